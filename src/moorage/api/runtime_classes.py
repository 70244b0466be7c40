"""RuntimeClass admission: the overhead, node selector and tolerations of a pod's runtime class."""

from typing import Any

from moorage.api.validation import field_errors as fe
from moorage.api.validation.amounts import nano
from moorage.api.validation.field_errors import Fields


def apply(spec: dict[str, Any], runtime_class: Fields | None) -> str:
    """Set what the class of a pod defines; returns why the pod is refused, if it is.

    The class is None for a pod without one.
    """
    overhead = fe.mapping(fe.mapping(runtime_class or {}, "overhead"), "podFixed")
    given = spec.get("overhead")
    if given and not overhead:
        return "pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead"
    if given and {k: nano(v) for k, v in given.items()} != {
        k: nano(v) for k, v in overhead.items()
    }:
        return "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead"
    if overhead:
        spec["overhead"] = dict(overhead)
    scheduling = fe.mapping(runtime_class or {}, "scheduling")
    selector = dict(spec.get("nodeSelector") or {})
    for key, value in fe.mapping(scheduling, "nodeSelector").items():
        if selector.setdefault(key, value) != value:
            return (
                f"conflict: runtimeClass.scheduling.nodeSelector[{key}] = {value}; "
                f"pod.spec.nodeSelector[{key}] = {selector[key]}"
            )
    if selector:
        spec["nodeSelector"] = selector
    tolerations = list(spec.get("tolerations") or ())
    added = [each for each in fe.items(scheduling, "tolerations") if each not in tolerations]
    if added:
        spec["tolerations"] = [*tolerations, *map(dict, added)]
    return ""


def not_found(name: str) -> str:
    """Why a pod is refused whose class does not exist."""
    return f'pod rejected: RuntimeClass "{name}" not found'
