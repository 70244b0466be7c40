"""Where things are in the API: /api/v1/..., /apis/GROUP/VERSION/..."""

from urllib.parse import quote, urlencode

from moorage.api.kinds import Kind


def of_kind(kind: Kind) -> str:
    """All objects of a kind, in whatever namespace."""
    return f"{root(kind.group, kind.version)}/{kind.plural}"


def root(group: str, version: str) -> str:
    """Where a group lives; the core group has no name."""
    return f"/apis/{group}/{version}" if group else f"/api/{version}"


def namespaced(base: str, namespace: str, plural: str, *parts: str) -> str:
    """One object or one of its parts."""
    steps = "".join(f"/{quote(part, safe='')}" for part in parts)
    return f"{base}/namespaces/{quote(namespace, safe='')}/{plural}{steps}"


def pod(namespace: str, name: str, *parts: str) -> str:
    """A pod, or a part of it: its binding, its status."""
    return namespaced("/api/v1", namespace, "pods", name, *parts)


def volume(name: str) -> str:
    """A persistent volume."""
    return f"/api/v1/persistentvolumes/{quote(name, safe='')}"


def claim(namespace: str, name: str) -> str:
    """A claim for one."""
    return namespaced("/api/v1", namespace, "persistentvolumeclaims", name)


def query(path: str, **parameters: str | int | None) -> str:
    """A path with parameters; those that are None or empty are left out."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path
