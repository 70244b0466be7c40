"""Paths of the API: /api/v1/..., /apis/GROUP/VERSION/..."""

import re
from urllib.parse import quote, urlencode

from moorage.api.kinds import Kind

# Nearly every name matches this, and the match is quicker than quoting.
_is_plain = re.compile(r"[a-z0-9.-]+").fullmatch


def of_kind(kind: Kind) -> str:
    """All objects of a kind, in all namespaces; the core group has no name."""
    return f"/{'apis' if kind.group else 'api'}/{kind.api_version}/{kind.plural}"


def namespaced(base: str, namespace: str, plural: str, *parts: str) -> str:
    """A collection in a namespace, one of its objects, or a subresource of that."""
    at = f"{base}/namespaces/{_quoted(namespace)}/{plural}"
    return "/".join((at, *map(_quoted, parts)))


def pod(namespace: str, name: str, *parts: str) -> str:
    """A pod, or a subresource: binding, status."""
    return namespaced("/api/v1", namespace, "pods", name, *parts)


def volume(name: str) -> str:
    """A persistent volume."""
    return f"/api/v1/persistentvolumes/{_quoted(name)}"


def claim(namespace: str, name: str) -> str:
    """A persistent volume claim."""
    return namespaced("/api/v1", namespace, "persistentvolumeclaims", name)


def pod_group(namespace: str, name: str) -> str:
    """A pod group."""
    return namespaced("/apis/scheduling.k8s.io/v1alpha2", namespace, "podgroups", name)


def device_claim(namespace: str, *parts: str) -> str:
    """All device claims of a namespace, one of them, or its status."""
    return namespaced("/apis/resource.k8s.io/v1", namespace, "resourceclaims", *parts)


def query(path: str, **parameters: str | int | None) -> str:
    """A path with query parameters; those that are None or empty are omitted."""
    given = {name: value for name, value in parameters.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def _quoted(name: str) -> str:
    return name if _is_plain(name) else quote(name, safe="")
