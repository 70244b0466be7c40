"""How a stored object looks through the door that a client came by.

Most often just as it is kept: then its bytes, encoded once, serve every list and every watch.
"""

from moorage.serve.change_log import Stored
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import EVENTS, EVENTS_V1, Resource
from moorage.serve.rest import event_views
from moorage.serve.store import encode


def kept(resource: Resource) -> Resource:
    """The resource under which objects are kept and worked on."""
    return EVENTS if resource is EVENTS_V1 else resource


def inward(resource: Resource, obj: Object) -> Object:
    """An object that came in, as it is kept."""
    return event_views.to_kept(obj) if resource is EVENTS_V1 else obj


def outward(resource: Resource, obj: Object) -> Object:
    """A kept object as this resource shows it."""
    if resource is EVENTS_V1:
        return event_views.to_shown(obj)
    if resource.custom and obj.get("apiVersion") != resource.api_version:
        return {**obj, "apiVersion": resource.api_version}
    return obj


def body(resource: Resource, stored: Stored) -> bytes:
    """The JSON of a kept object as this resource shows it."""
    shown = outward(resource, stored.object)
    return stored.body if shown is stored.object else encode(shown)


def partial(obj: Object) -> Object:
    """The metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }
