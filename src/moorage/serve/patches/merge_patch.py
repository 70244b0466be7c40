"""JSON merge patch (RFC 7386): null removes, objects merge, everything else replaces."""

from typing import Any


def apply(target: Any, patch: Any) -> Any:
    """The target with the patch in it; neither is changed."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply(result.get(key), value)
    return result
