"""Where things are in the API: /api/v1/..., /apis/GROUP/VERSION/..."""

import re
from urllib.parse import quote, urlencode

from moorage.api.kinds import Kind

# Nearly every name is one of these; to look is quicker than to quote.
_is_plain = re.compile(r"[a-z0-9.-]+").fullmatch


def of_kind(kind: Kind) -> str:
    """All objects of a kind, in whatever namespace."""
    return f"{root(kind.group, kind.version)}/{kind.plural}"


def root(group: str, version: str) -> str:
    """Where a group lives; the core group has no name."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def namespaced(base: str, namespace: str, plural: str, *parts: str) -> str:
    """One object or one of its parts."""
    at = f"{base}/namespaces/{_quoted(namespace)}/{plural}"
    return "/".join((at, *map(_quoted, parts)))


def pod(namespace: str, name: str, *parts: str) -> str:
    """A pod, or a part of it: its binding, its status."""
    return namespaced("/api/v1", namespace, "pods", name, *parts)


def volume(name: str) -> str:
    """A persistent volume."""
    return f"/api/v1/persistentvolumes/{_quoted(name)}"


def claim(namespace: str, name: str) -> str:
    """A claim for one."""
    return namespaced("/api/v1", namespace, "persistentvolumeclaims", name)


def query(path: str, **parameters: str | int | None) -> str:
    """A path with parameters; those that are None or empty are left out."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def _quoted(name: str) -> str:
    return name if _is_plain(name) else quote(name, safe="")
