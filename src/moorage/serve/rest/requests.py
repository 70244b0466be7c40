"""Parsing a request: the path, the query parameters, the Accept header and the body."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from aiohttp import web
from multidict import CIMultiDictProxy

from moorage.serve.controllers.objects import Object
from moorage.serve.objects import decoding, protobuf
from moorage.serve.resources import NAMESPACES, PODS, Resource, ResourceRegistry
from moorage.serve.status_errors import (
    BadRequestError,
    InvalidError,
    NotAcceptableError,
    NotFoundError,
    TooLargeError,
    UnsupportedMediaTypeError,
)

# Parts of a pod that a kubelet would have to answer for.
_RUNNING = ("log", "exec", "attach", "portforward", "proxy", "ephemeralcontainers")


class RequestPath(NamedTuple):
    """What a URL names; without a name it is the whole collection."""

    resource: Resource
    namespace: str | None = None
    name: str = ""
    subresource: str = ""


def parse_path(registry: ResourceRegistry, path: str) -> RequestPath:
    """The place that a path below `/api/` or `/apis/` leads to; raises NotFoundError."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2 and parts[1] == "v1":
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    if "" in rest:
        raise unknown_path()
    namespace = None
    # `namespaces/a/status` is a part of a namespace, `namespaces/a/pods` are pods in it.
    if rest[0] == "namespaces" and len(rest) > 2:
        own = not group and len(rest) == 3 and rest[2] in NAMESPACES.subresources
        if not own:
            namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0])
    if resource is None or len(rest) > 3:
        raise unknown_path()
    place = RequestPath(resource, namespace, *rest[1:])
    _check_path(place)
    return place


def unknown_path() -> NotFoundError:
    """As the API server says it of a URL that it does not know."""
    return NotFoundError("the server could not find the requested resource")


def _check_path(place: RequestPath) -> None:
    resource = place.resource
    if resource is PODS and place.subresource in _RUNNING:
        why = "nothing runs here: pods of this server have no containers"
        raise BadRequestError(f"no {place.subresource}, because {why}", resource, place.name)
    if place.subresource and place.subresource not in resource.subresources:
        raise unknown_path()
    if place.namespace is not None and not resource.namespaced:
        raise unknown_path()
    if place.name and resource.namespaced and place.namespace is None:
        raise unknown_path()


_INT64 = 2**63


class ListOptions(NamedTuple):
    """How a collection is to be read."""

    label_selector: str
    field_selector: str
    limit: int
    token: str
    version: int | None
    match: str
    watch: bool
    bookmarks: bool
    initial_events: bool | None
    timeout_seconds: float | None
    include_object: str


def list_options(query: Mapping[str, str]) -> ListOptions:
    """The options of a list or a watch; raises BadRequestError."""
    reading = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=_integer(query, "limit"),
        token=query.get("continue", ""),
        version=_version(query),
        match=query.get("resourceVersionMatch", ""),
        watch=flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout_seconds=_integer(query, "timeoutSeconds") if query.get("timeoutSeconds") else None,
        include_object=query.get("includeObject", "Metadata") or "Metadata",
    )
    _check_list_options(reading)
    return reading


def dry_run(query: Mapping[str, str]) -> bool:
    """Whether nothing is to be kept; raises InvalidError for what is not understood."""
    value = query.get("dryRun", "")
    if value not in ("", "All"):
        raise InvalidError(f'dryRun: Unsupported value: "{value[:60]}": supported values: "All"')
    return value == "All"


def flag(query: Mapping[str, str], name: str) -> bool:
    """A yes or no; as with an API server, a name without a value is a yes."""
    if name not in query:
        return False
    return query[name].lower() not in ("0", "f", "false")


def _check_list_options(reading: ListOptions) -> None:
    if reading.match not in ("", "Exact", "NotOlderThan"):
        raise BadRequestError(f'resourceVersionMatch: Unsupported value: "{reading.match[:60]}"')
    if reading.match and reading.version is None and reading.initial_events is None:
        raise BadRequestError(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
            "resourceVersion is provided"
        )
    if reading.match == "Exact" and (reading.watch or reading.version == 0):
        raise BadRequestError(
            "resourceVersionMatch: Forbidden: an exact version is for lists, and not 0"
        )
    if reading.initial_events is not None and (
        not reading.watch or reading.match != "NotOlderThan"
    ):
        raise BadRequestError(
            "sendInitialEvents: Forbidden: it is for watches with resourceVersionMatch=NotOlderThan"
        )
    if reading.include_object not in ("None", "Metadata", "Object"):
        raise BadRequestError(f'includeObject: Unsupported value: "{reading.include_object[:60]}"')
    if reading.token and reading.version:
        raise BadRequestError("specifying resource version is not allowed when using continue")


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < _INT64):
        raise BadRequestError(f"{name}: has to be a whole number, is {text[:60]!r}")
    return int(text)


def _version(query: Mapping[str, str]) -> int | None:
    text = query.get("resourceVersion", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < _INT64):
        raise BadRequestError(f'resourceVersion: Invalid value: "{text[:60]}"')
    return int(text)


_JSON_ACCEPTED = ("application/json", "application/*", "*/*")


class ResponseFormat(NamedTuple):
    """A form of an answer; `as_` is empty for the plain one."""

    as_: str = ""
    group: str = ""
    version: str = ""


PLAIN_JSON = ResponseFormat()


def accepted_format(accept: str, offered: tuple[ResponseFormat, ...]) -> ResponseFormat:
    """The first form in an Accept header that is offered; plain JSON always is."""
    if not accept:
        return PLAIN_JSON
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        if media not in _JSON_ACCEPTED:
            continue
        given = dict(part.split("=", 1) for part in parameters if "=" in part)
        form = ResponseFormat(given.get("as", ""), given.get("g", ""), given.get("v", ""))
        if not form.as_:
            return PLAIN_JSON
        if form in offered:
            return form
    raise NotAcceptableError(
        "only the following media types are accepted: application/json (without protobuf, CBOR)"
    )


TABLE = ResponseFormat("Table", "meta.k8s.io", "v1")
PARTIAL = ResponseFormat("PartialObjectMetadata", "meta.k8s.io", "v1")
PARTIAL_LIST = ResponseFormat("PartialObjectMetadataList", "meta.k8s.io", "v1")
OBJECT_FORMS = (TABLE, PARTIAL, PARTIAL_LIST)
DISCOVERY_V2 = ResponseFormat("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")


_JSON_BODIES = ("application/json", "")
_YAML_BODIES = ("application/yaml", "application/apply-patch+yaml")
_STRING_FIELDS = ("name", "generateName", "namespace", "uid", "resourceVersion")


def media_type(headers: CIMultiDictProxy[str]) -> str:
    """The format of a body, without its parameters."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def read_bytes(request: web.Request) -> bytes:
    """The bytes of a body; raises TooLargeError."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLargeError("the request is larger than this server accepts") from None


async def read_value(request: web.Request) -> Any:
    """A body as a value, nulls left out; raises BadRequestError or UnsupportedMediaTypeError."""
    media, body = media_type(request.headers), await read_bytes(request)
    if media in _YAML_BODIES:
        return decoding.without_nulls(decoding.decode_yaml(body))
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(body)
    if media not in _JSON_BODIES and body:
        raise UnsupportedMediaTypeError(
            "the body of the request was in an unknown format - accepted media types include: "
            f"application/json, application/yaml; it is {media[:60]!r}"
        )
    decoded = decoding.decode_json(body) if body else None
    return decoding.without_nulls(decoded) if b"null" in body else decoded


async def read_patch(request: web.Request) -> Any:
    """A patch as a value, with its nulls: they mean something."""
    body = await read_bytes(request)
    try:
        return decoding.decode_json(body)
    except BadRequestError:
        if media_type(request.headers) not in _YAML_BODIES:
            raise
    return decoding.decode_yaml(body)


async def read_options(request: web.Request) -> Any:
    """The body of a deletion, which may be missing."""
    found = await read_value(request)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadRequestError("DeleteOptions have to be an object")
    return found


async def read_object(request: web.Request, place: RequestPath) -> Object:
    """An object that belongs where it was sent."""
    found: Object = await read_value(request)
    check_object(place.resource, found)
    meta = found["metadata"] = {**found.get("metadata", {})}
    meta["namespace"] = meta.get("namespace") or place.namespace or ""
    if place.resource.namespaced and meta["namespace"] != (place.namespace or ""):
        raise BadRequestError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not place.resource.namespaced:
        del meta["namespace"]
    if place.name and (meta.get("name") or place.name) != place.name:
        raise BadRequestError(
            f"the name of the object ({meta['name'][:100]}) does not match the name on the URL "
            f"({place.name[:100]})"
        )
    if place.name:
        meta["name"] = place.name
    return found


def check_object(resource: Resource, found: Any) -> None:
    """Refuse what is no object of this resource."""
    if not isinstance(found, dict):
        raise BadRequestError(
            f"the body of the request has to be an object of kind {resource.kind}"
        )
    if found.get("apiVersion", resource.api_version) != resource.api_version:
        raise BadRequestError(
            f"the API version in the data ({found['apiVersion']!s:.100}) does not match the "
            f"expected API version ({resource.api_version})"
        )
    if found.get("kind", resource.kind) != resource.kind:
        raise BadRequestError(
            f"the kind in the data ({found['kind']!s:.100}) does not match the expected kind "
            f"({resource.kind})"
        )
    check_metadata(found.get("metadata", {}))


def check_metadata(meta: Any) -> None:
    """Refuse metadata that cannot be looked into."""
    if not isinstance(meta, dict):
        raise BadRequestError("metadata has to be an object")
    for field in _STRING_FIELDS:
        if not isinstance(meta.get(field, ""), str):
            raise BadRequestError(f"metadata.{field} has to be a text")
