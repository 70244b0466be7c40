"""Responses: objects as the requested resource shows them, lists and `Status` objects.

Most objects are served exactly as they are stored: then the JSON that the store encoded once
serves every list and watch.
"""

import contextlib
import re
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
from aiohttp import web
from aiohttp.abc import AbstractStreamWriter

from moorage import terminal
from moorage.api import documents
from moorage.cluster.objects import custom_schemas
from moorage.cluster.resources import (
    AUTOSCALERS,
    AUTOSCALERS_V1,
    EVENTS,
    EVENTS_V1,
    Resource,
)
from moorage.cluster.status_errors import NotAcceptableError, StatusError
from moorage.cluster.store import StoredObject, encode
from moorage.controllers.objects import Object
from moorage.serve.protobuf import envelope
from moorage.serve.protobuf.encoder import UnencodableError
from moorage.serve.rest import autoscalers, negotiation
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


_STORED_AS = {EVENTS_V1: EVENTS, AUTOSCALERS_V1: AUTOSCALERS}


def storage_resource(resource: Resource) -> Resource:
    """The resource under which objects are stored: Events as `v1`, autoscalers as `v2`."""
    return _STORED_AS.get(resource, resource)


def to_storage(resource: Resource, obj: Object) -> Object:
    """An object of a request as it is stored."""
    if resource is AUTOSCALERS_V1:
        return autoscalers.to_v2(obj)
    if resource is not EVENTS_V1:
        return obj
    stored = {_EVENT_FIELDS.get(key, key): value for key, value in obj.items()}
    return {**stored, "apiVersion": "v1"}


def from_storage(resource: Resource, obj: Object) -> Object:
    """A stored object as this resource serves it."""
    if resource is AUTOSCALERS_V1:
        return autoscalers.to_v1(obj)
    if resource is EVENTS_V1:
        served = {_EVENT_V1_FIELDS.get(key, key): value for key, value in obj.items()}
        return {**served, "apiVersion": "events.k8s.io/v1"}
    if resource.custom and obj.get("apiVersion") != resource.api_version:
        obj = {**obj, "apiVersion": resource.api_version}
    if resource.defaulting_schema is not None:
        filled: Object = custom_schemas.fill_defaults(obj, resource.defaulting_schema)
        return obj if filled == obj else filled
    return obj


def object_body(
    resource: Resource, stored: StoredObject, encoding: str = negotiation.JSON
) -> bytes:
    """A stored object as this resource serves it, encoded."""
    if encoding == negotiation.PROTOBUF:
        return envelope.wrap(resource.api_version, resource.kind, _messages.get(resource, stored))
    served = from_storage(resource, stored.object)
    if encoding == negotiation.YAML:
        return yaml_body(served)
    return stored.body if served is stored.object else encode(served)


META_V1 = "meta.k8s.io/v1"


class MessageCache:
    """Protobuf messages of stored objects: several watches send each change at the same time."""

    def __init__(self, max_bytes: int = 16 * 1024 * 1024) -> None:
        self._max_bytes = max_bytes
        self.bytes = 0
        # The JSON is kept with the message, so that no other object gets its id meanwhile.
        self._found: dict[tuple[int, Resource], tuple[bytes, bytes]] = {}

    def get(self, resource: Resource, stored: StoredObject) -> bytes:
        key = (id(stored.body), resource)
        found = self._found.get(key)
        if found is None:
            try:
                message = envelope.encode_message(from_storage(resource, stored.object))
            except UnencodableError as error:
                raise NotAcceptableError(f"{error}; ask for JSON", resource) from None
            found = self._found[key] = stored.body, message
            self.bytes += sum(map(len, found))
            while self.bytes > self._max_bytes:
                oldest = self._found.pop(next(iter(self._found)))
                self.bytes -= sum(map(len, oldest))
        return found[1]


_messages = MessageCache()


def partial_metadata(obj: Object, api_version: str = META_V1) -> Object:
    """The object as PartialObjectMetadata."""
    kind = {"kind": "PartialObjectMetadata", "apiVersion": api_version}
    return {**kind, "metadata": obj["metadata"]}


# HTTP responses --------------------------------------------------------------------------------


R = TypeVar("R", bound=web.StreamResponse)
_MAX_WARNINGS = 20


def with_warnings(response: R, texts: Sequence[str]) -> R:
    """The response with warnings, which kubectl prints."""
    for text in texts[:_MAX_WARNINGS]:
        quoted = text.replace("\\", "\\\\").replace('"', '\\"')
        response.headers.add("Warning", f'299 - "{terminal.visible(quoted)}"')
    return response


class ObjectResponse(web.Response):
    """A value that is encoded as the request accepts it: JSON, YAML or protobuf.

    `body` is its JSON, if that is known.
    """

    def __init__(self, value: Any, status: int = 200, body: bytes | None = None) -> None:
        super().__init__(status=status)
        self.value = value
        self._json = body

    async def prepare(self, request: web.BaseRequest) -> AbstractStreamWriter | None:
        self.encode(request.headers.get("Accept", ""))
        return await super().prepare(request)

    def encode(self, accept: str) -> None:
        """Set the body, unless it is set."""
        if self.body is None:
            encoding = negotiation.status_encoding(accept)
            if encoding == negotiation.JSON and self._json is not None:
                self.body, media = self._json, encoding
            else:
                self.body, media = encoded(self.value, encoding)
            self.headers.setdefault("Content-Type", media)


def json(value: Any, status: int = 200, body: bytes | None = None) -> web.Response:
    """A value as JSON, or in another encoding that the request prefers."""
    return ObjectResponse(value, status, body)


def encoded(value: Any, encoding: str) -> tuple[bytes, str]:
    """A value and its media type; JSON if it has no other encoding."""
    if encoding == negotiation.PROTOBUF and envelope.has_message(value):
        with contextlib.suppress(UnencodableError):
            return envelope.encode(value), encoding
    if encoding == negotiation.YAML:
        return yaml_body(value), encoding
    return encode(value), negotiation.JSON


def yaml_body(value: Any) -> bytes:
    """A value as YAML."""
    plain = msgspec.json.decode(encode(value))
    return documents.as_yaml(plain, sort_keys=True).encode()


def raw(body: bytes, encoding: str = negotiation.JSON) -> web.Response:
    """A body that is already encoded."""
    return web.Response(body=body, headers={"Content-Type": encoding})


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


def list_body(resource: Resource, page: ListPage, encoding: str = negotiation.JSON) -> bytes:
    """A list, joined from its encoded objects."""
    kind = f"{resource.kind}List"
    if encoding == negotiation.PROTOBUF:
        encoded_items = [_messages.get(resource, stored) for stored in page.items]
        meta = list_metadata(page)
        return envelope.wrap_list(resource.api_version, kind, meta, encoded_items)
    head = {"kind": kind, "apiVersion": resource.api_version}
    if encoding == negotiation.YAML:
        return yaml_body(msgspec.json.decode(list_body(resource, page)))
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
