"""Responses: objects as the requested resource shows them, lists and `Status` objects.

Most objects are served exactly as they are stored: then the JSON that the store encoded once
serves every list and watch.
"""

from typing import Any

from aiohttp import web

from moorage.serve.controllers.objects import Object
from moorage.serve.resources import EVENTS, EVENTS_V1, Resource
from moorage.serve.rest.lists import ListPage
from moorage.serve.status_errors import StatusError
from moorage.serve.store import StoredObject, encode

# events.k8s.io/v1 -> v1; what is not listed has one name in both.
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
}
_NAMES_BACK = {kept: shown for shown, kept in _NAMES.items()}


def _event_to_storage(obj: Object) -> Object:
    """An event of events.k8s.io/v1 as it is kept."""
    kept = {_NAMES.get(key, key): value for key, value in obj.items()}
    return {**kept, "apiVersion": "v1"}


def _event_from_storage(obj: Object) -> Object:
    """A kept event as events.k8s.io/v1 shows it."""
    shown = {_NAMES_BACK.get(key, key): value for key, value in obj.items()}
    return {**shown, "apiVersion": "events.k8s.io/v1"}


def storage_resource(resource: Resource) -> Resource:
    """The resource under which objects are kept and worked on."""
    return EVENTS if resource is EVENTS_V1 else resource


def to_storage(resource: Resource, obj: Object) -> Object:
    """An object that came in, as it is kept."""
    return _event_to_storage(obj) if resource is EVENTS_V1 else obj


def from_storage(resource: Resource, obj: Object) -> Object:
    """A kept object as this resource shows it."""
    if resource is EVENTS_V1:
        return _event_from_storage(obj)
    if resource.custom and obj.get("apiVersion") != resource.api_version:
        return {**obj, "apiVersion": resource.api_version}
    return obj


def object_body(resource: Resource, stored: StoredObject) -> bytes:
    """The JSON of a kept object as this resource shows it."""
    shown = from_storage(resource, stored.object)
    return stored.body if shown is stored.object else encode(shown)


def partial_metadata(obj: Object) -> Object:
    """The metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": obj["metadata"],
    }


def json(value: Any, status: int = 200) -> web.Response:
    """Any value as JSON."""
    return raw_json(encode(value), status)


def raw_json(body: bytes, status: int = 200) -> web.Response:
    """JSON that is encoded already."""
    return web.Response(body=body, status=status, headers={"Content-Type": "application/json"})


def error(error: StatusError) -> web.Response:
    """What went wrong, as a Status."""
    answer = json(error.to_status(), error.status_code)
    if error.retry_after_seconds:
        answer.headers["Retry-After"] = str(error.retry_after_seconds)
    return answer


def deleted(resource: Resource, meta: dict[str, Any], code: int = 200) -> web.Response:
    """That it worked, where there is no object to show."""
    details = {"name": meta["name"], "kind": resource.plural, "uid": meta["uid"]}
    if resource.group:
        details["group"] = resource.group
    return json(success(details) | ({"code": code} if code != 200 else {}), code)


def success(details: dict[str, Any] | None = None) -> dict[str, Any]:
    """A Status that says so."""
    status: dict[str, Any] = {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Success",
    }
    return {**status, "details": details} if details else status


def list_body(resource: Resource, page: ListPage) -> bytes:
    """A list, put together from bytes that are there already."""
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
    items = b",".join([object_body(resource, stored) for stored in page.items])
    return b"%b,%b,%b%b]}" % (
        encode(head)[:-1],
        b'"metadata":' + encode(list_metadata(page)),
        b'"items":[',
        items,
    )


def list_metadata(page: ListPage) -> dict[str, Any]:
    """The metadata of a list."""
    meta: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.token:
        meta["continue"] = page.token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def partial_list(resource: Resource, page: ListPage) -> dict[str, Any]:
    """A list of metadata alone."""
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": list_metadata(page),
        "items": [_partial_item(resource, stored) for stored in page.items],
    }


def _partial_item(resource: Resource, stored: StoredObject) -> dict[str, Any]:
    return partial_metadata(from_storage(resource, stored.object))
