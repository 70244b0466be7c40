"""Where a URL leads: a resource, an object, a part of one."""

from typing import NamedTuple

from moorage.serve.catalog import Catalog
from moorage.serve.refusals import BadRequest, NotFound
from moorage.serve.resources import NAMESPACES, PODS, Resource

# Parts of a pod that a kubelet would have to answer for.
_RUNNING = ("log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers")


class Place(NamedTuple):
    """What a URL names; without a name it is the whole collection."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


def find(catalog: Catalog, path: str) -> Place:
    """The place that a path below `/api/` or `/apis/` leads to; raises NotFound."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2 and parts[1] == "v1":
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise nowhere()
    if "" in rest:
        raise nowhere()
    namespace = None
    # `namespaces/a/status` is a part of a namespace, `namespaces/a/pods` are pods in it.
    if rest[0] == "namespaces" and len(rest) > 2:
        own = not group and len(rest) == 3 and rest[2] in NAMESPACES.subresources
        if not own:
            namespace, rest = rest[1], rest[2:]
    resource = catalog.find(group, version, rest[0])
    if resource is None or len(rest) > 3:
        raise nowhere()
    place = Place(resource, namespace, *rest[1:])
    _check(place)
    return place


def nowhere() -> NotFound:
    """As the API server says it of a URL that it does not know."""
    return NotFound("the server could not find the requested resource")


def _check(place: Place) -> None:
    resource = place.resource
    if resource is PODS and place.subresource in _RUNNING:
        why = "nothing runs here: pods of this server have no containers"
        raise BadRequest(f"no {place.subresource}, because {why}", resource, place.name)
    if place.subresource and place.subresource not in resource.subresources:
        raise nowhere()
    if place.namespace is not None and not resource.namespaced:
        raise nowhere()
    if place.name and resource.namespaced and place.namespace is None:
        raise nowhere()
