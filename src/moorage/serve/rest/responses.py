"""Responses: objects as the requested resource shows them, lists and `Status` objects.

Most objects are served exactly as they are stored: then the JSON that the store encoded once
serves every list and watch.
"""

import re
from typing import Any

from aiohttp import web

from moorage.cluster.resources import EVENTS, EVENTS_V1, Resource
from moorage.cluster.status_errors import StatusError
from moorage.cluster.store import StoredObject, encode
from moorage.controllers.objects import Object
from moorage.serve.rest.lists import ListPage

# Stored objects and served objects -------------------------------------------------------------

# Fields of events.k8s.io/v1 by their names in v1; other fields have the same name in both.
_EVENT_FIELDS = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
}
_EVENT_V1_FIELDS = {stored: served for served, stored in _EVENT_FIELDS.items()}


def storage_resource(resource: Resource) -> Resource:
    """The resource under which objects are stored: Events are stored as `v1`."""
    return EVENTS if resource is EVENTS_V1 else resource


def to_storage(resource: Resource, obj: Object) -> Object:
    """An object of a request as it is stored."""
    if resource is not EVENTS_V1:
        return obj
    stored = {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
    return {**stored, "apiVersion": "v1"}


def from_storage(resource: Resource, obj: Object) -> Object:
    """A stored object as this resource serves it."""
    if resource is EVENTS_V1:
        served = {_EVENT_V1_FIELDS.get(key, key): value for key, value in obj.items()}
        return {**served, "apiVersion": "events.k8s.io/v1"}
    if resource.custom and obj.get("apiVersion") != resource.api_version:
        return {**obj, "apiVersion": resource.api_version}
    return obj


def object_body(resource: Resource, stored: StoredObject) -> bytes:
    """The JSON of a stored object as this resource serves it."""
    served = from_storage(resource, stored.object)
    return stored.body if served is stored.object else encode(served)


META_V1 = "meta.k8s.io/v1"


def partial_metadata(obj: Object, api_version: str = META_V1) -> Object:
    """The object as PartialObjectMetadata."""
    kind = {"kind": "PartialObjectMetadata", "apiVersion": api_version}
    return {**kind, "metadata": obj["metadata"]}


# HTTP responses --------------------------------------------------------------------------------


def json(value: Any, status: int = 200) -> web.Response:
    """A value as JSON."""
    return raw_json(encode(value), status)


def raw_json(body: bytes, status: int = 200) -> web.Response:
    """A body that is already JSON."""
    return web.Response(body=body, status=status, headers={"Content-Type": "application/json"})


def error(error: StatusError) -> web.Response:
    """An error as a Status."""
    response = json(error.to_status(), error.status_code)
    if error.retry_after_seconds:
        response.headers["Retry-After"] = str(error.retry_after_seconds)
    return response


def deleted(resource: Resource, meta: dict[str, Any]) -> web.Response:
    """The Status of a deletion without an object in the response."""
    details = {"name": meta["name"], "kind": resource.plural, "uid": meta["uid"]}
    if resource.group:
        details["group"] = resource.group
    return success(details=details)


def success(status: int = 200, **fields: Any) -> web.Response:
    """A Status of success."""
    code = {} if status == 200 else {"code": status}
    body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success"}
    return json({**body, **fields, **code}, status)


def list_body(resource: Resource, page: ListPage) -> bytes:
    """The JSON of a list, joined from the JSON of its objects."""
    head = {"kind": f"{resource.kind}List", "apiVersion": resource.api_version}
    items = b",".join([_item_body(resource, stored) for stored in page.items])
    metadata = encode(list_metadata(page))
    return b'%b,"metadata":%b,"items":[%b]}' % (encode(head)[:-1], metadata, items)


# As in an API server, items of built-in kinds have neither kind nor apiVersion in a list.
_TYPE_FIRST = re.compile(rb'\{"(?:apiVersion|kind)":"[^"\\]*","(?:apiVersion|kind)":"[^"\\]*",')


def _item_body(resource: Resource, stored: StoredObject) -> bytes:
    body = object_body(resource, stored)
    if resource.custom:
        return body
    # Most objects begin with both, so that the JSON need not be encoded again.
    first = _TYPE_FIRST.match(body)
    if first is not None:
        return b"{" + body[first.end() :]
    served = from_storage(resource, stored.object)
    return encode({k: v for k, v in served.items() if k not in ("apiVersion", "kind")})


def list_metadata(page: ListPage) -> dict[str, Any]:
    """The metadata of a list."""
    meta: dict[str, Any] = {"resourceVersion": str(page.version)}
    if page.continue_token:
        meta["continue"] = page.continue_token
    if page.remaining is not None:
        meta["remainingItemCount"] = page.remaining
    return meta


def partial_list(resource: Resource, page: ListPage, api_version: str = META_V1) -> Object:
    """A PartialObjectMetadataList."""
    served = [from_storage(resource, each.object) for each in page.items]
    return {
        "kind": "PartialObjectMetadataList",
        "apiVersion": api_version,
        "metadata": list_metadata(page),
        "items": [partial_metadata(each, api_version) for each in served],
    }
