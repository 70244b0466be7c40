"""Parsing a request: the path, the query parameters and the body."""

import asyncio
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from aiohttp import web

from moorage.api import documents
from moorage.cluster import status_errors
from moorage.cluster.resources import NAMESPACES, PODS, Resource, ResourcePath, ResourceRegistry
from moorage.cluster.status_errors import (
    BadRequestError,
    NotFoundError,
    TooLargeError,
    UnsupportedMediaTypeError,
)
from moorage.cluster.verbs import delete
from moorage.cluster.verbs.delete import DeleteOptions
from moorage.controllers.objects import Object
from moorage.serve.protobuf import envelope
from moorage.serve.rest import decoding, negotiation

# The path --------------------------------------------------------------------------------------

# Subresources of a pod that only a kubelet with containers can serve.
_KUBELET_SUBRESOURCES = ("exec", "attach", "portforward", "proxy", "ephemeralcontainers")
NOTHING_RUNS = "nothing runs here: pods of this server have no containers"


def parse_path(registry: ResourceRegistry, path: str) -> ResourcePath:
    """The resource of a path below `/api/` or `/apis/`; raises NotFoundError."""
    parts = path.strip("/").split("/")
    if parts[0] == "api" and len(parts) > 2 and parts[1] == "v1":
        group, version, rest = "", "v1", parts[2:]
    elif parts[0] == "apis" and len(parts) > 3:
        group, version, rest = parts[1], parts[2], parts[3:]
    else:
        raise unknown_path()
    namespace = None
    # `namespaces/a/status` is a subresource of a namespace, `namespaces/a/pods` are pods in it.
    if rest[0] == "namespaces" and len(rest) > 2:
        own = not group and len(rest) == 3 and rest[2] in NAMESPACES.subresources
        if not own:
            namespace, rest = rest[1], rest[2:]
    resource = registry.find(group, version, rest[0])
    if resource is None or len(rest) > 3 or "" in (namespace, *rest):
        raise unknown_path()
    parsed = ResourcePath(resource, namespace, *rest[1:])
    _check_path(parsed)
    return parsed


def unknown_path() -> NotFoundError:
    """The error for a URL that the API does not serve."""
    return NotFoundError("the server could not find the requested resource")


def _check_path(path: ResourcePath) -> None:
    resource = path.resource
    if resource is PODS and path.subresource in _KUBELET_SUBRESOURCES:
        text = f"no {path.subresource}, because {NOTHING_RUNS}"
        raise BadRequestError(text, resource, path.name)
    known = (*resource.subresources, "log") if resource is PODS else resource.subresources
    unknown_subresource = path.subresource and path.subresource not in known
    needless_namespace = path.namespace is not None and not resource.namespaced
    missing_namespace = path.name and resource.namespaced and path.namespace is None
    if unknown_subresource or needless_namespace or missing_namespace:
        raise unknown_path()


# Query parameters ------------------------------------------------------------------------------

_MAX_INTEGER = 2**63


class ListOptions(NamedTuple):
    """The options of a list or a watch."""

    label_selector: str
    field_selector: str
    limit: int
    continue_token: str
    version: int | None
    match: str
    watch: bool
    bookmarks: bool
    initial_events: bool | None
    timeout_seconds: float | None
    include_object: str


def list_options(query: Mapping[str, str]) -> ListOptions:
    """The options of a list or a watch; raises BadRequestError."""
    options = ListOptions(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=_integer(query, "limit"),
        continue_token=query.get("continue", ""),
        version=_version(query),
        match=query.get("resourceVersionMatch", ""),
        watch=flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout_seconds=_integer(query, "timeoutSeconds") if query.get("timeoutSeconds") else None,
        include_object=query.get("includeObject", "Metadata") or "Metadata",
    )
    _check_list_options(options)
    return options


def _check_list_options(options: ListOptions) -> None:
    if options.include_object not in ("None", "Metadata", "Object"):
        rule = "must be 'Metadata', 'Object', 'None', or empty"
        shown = f'Invalid value: "{options.include_object[:60]}": {rule}'
        raise BadRequestError(f"Unable to convert to Table as requested: includeObject: {shown}")
    for field, rule in _list_option_errors(options):
        reason = "Forbidden" if rule.startswith("Forbidden") else "NotSupported"
        raise status_errors.invalid_options("ListOptions", f"FieldValue{reason}", field, rule)
    if options.continue_token and options.version:
        raise BadRequestError("specifying resource version is not allowed when using continue")


def _list_option_errors(options: ListOptions) -> Iterator[tuple[str, str]]:
    """What an API server objects to, as field and rule."""
    match, field = options.match, "resourceVersionMatch"
    if options.initial_events is not None:
        if not options.watch:
            rule = "Forbidden: sendInitialEvents is forbidden for list"
            yield "sendInitialEvents", rule
        elif match != "NotOlderThan":
            rule = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            yield field, f"Forbidden: {rule}"
    elif match and options.watch:
        rule = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        yield field, f"Forbidden: {rule}"
    elif match and options.version is None:
        rule = "resourceVersionMatch is forbidden unless resourceVersion is provided"
        yield field, f"Forbidden: {rule}"
    elif match and options.continue_token:
        yield field, "Forbidden: resourceVersionMatch is forbidden when continue is provided"
    elif match not in ("", "Exact", "NotOlderThan"):
        supported = 'supported values: "Exact", "NotOlderThan", ""'
        yield field, f'Unsupported value: "{match[:60]}": {supported}'
    elif match == "Exact" and options.version == 0:
        rule = 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'
        yield field, f"Forbidden: {rule}"


OPTIONS = {"POST": "CreateOptions", "PUT": "UpdateOptions", "PATCH": "PatchOptions"}


def is_dry_run(request: web.Request) -> bool:
    """Whether the request must not change anything; raises InvalidError."""
    value = request.query.get("dryRun", "")
    if value not in ("", "All"):
        text = f'Unsupported value: ["{value[:60]}"]: supported values: "All"'
        kind = OPTIONS.get(request.method, "DeleteOptions")
        raise status_errors.invalid_options(kind, "FieldValueNotSupported", "dryRun", text)
    return value == "All"


def flag(query: Mapping[str, str], name: str) -> bool:
    """A boolean parameter; as in an API server, a name without a value is true."""
    return name in query and query[name].lower() not in ("0", "f", "false")


def _is_integer(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < _MAX_INTEGER


def _integer(query: Mapping[str, str], name: str) -> int:
    """A whole number; as in an API server, a negative one is as good as none."""
    text = query.get(name, "")
    if text and not _is_integer(text.removeprefix("-")):
        raise BadRequestError(f'strconv.ParseInt: parsing "{text[:60]}": invalid syntax')
    return max(0, int(text or 0))


_DURATION = re.compile(r"[-+]?(0|((\d+\.?\d*|\.\d+)(ns|us|µs|ms|s|m|h))+)")


def check_timeout(query: Mapping[str, str]) -> None:
    """Reject a `timeout` that is not a duration such as 10s; no request takes that long here."""
    text = query.get("timeout", "")
    if text and not _DURATION.fullmatch(text):
        raise BadRequestError(
            f'invalid timeout specified in the request URL - time: invalid duration "{text[:60]}"'
        )


def _version(query: Mapping[str, str]) -> int | None:
    text = query.get("resourceVersion", "")
    if text and not _is_integer(text):
        raise BadRequestError(
            f'invalid resource version: resourceVersion: Invalid value: "{text[:60]}": '
            f'strconv.ParseUint: parsing "{text[:60]}": invalid syntax'
        )
    return int(text) if text else None


# The body --------------------------------------------------------------------------------------

BODY_SECONDS = 30.0
_JSON_BODIES = ("application/json", "")
_YAML_BODIES = ("application/yaml", "application/apply-patch+yaml")
_STRING_FIELDS = ("name", "generateName", "namespace", "uid", "resourceVersion")


def media_type(request: web.Request) -> str:
    """The media type of a body, without its parameters."""
    header: str = request.headers.get("Content-Type", "")
    return header.partition(";")[0].strip().lower()


async def _read_bytes(request: web.Request) -> bytes:
    try:
        if request.content.is_eof():  # Most bodies arrive with the head: no timer is needed.
            return await request.read()
        async with asyncio.timeout(BODY_SECONDS):
            return await request.read()
    except TimeoutError:
        problem = f"the body of the request did not arrive within {BODY_SECONDS:.0f} s"
        raise BadRequestError(problem, code=408) from None
    except web.RequestPayloadError:
        encoding = request.headers.get("Content-Encoding", "")
        problem = f"the body of the request cannot be decoded as {encoding[:20]!r}"
        raise BadRequestError(problem) from None
    except web.HTTPRequestEntityTooLarge:
        raise TooLargeError("the request is larger than this server accepts") from None


async def read_value(request: web.Request) -> Any:
    """A body as a value without nulls; raises BadRequestError or UnsupportedMediaTypeError."""
    media, body = media_type(request), await _read_bytes(request)
    if media in _YAML_BODIES:
        strict = request.query.get("fieldValidation") == "Strict"
        return documents.without_nulls(decoding.decode_yaml(body, strict=strict))
    if media == negotiation.PROTOBUF:
        return envelope.decode(body)
    if media not in _JSON_BODIES and body:
        raise UnsupportedMediaTypeError(
            "the body of the request was in an unknown format - accepted media types include: "
            + ", ".join(negotiation.ENCODINGS)
        )
    decoded = decoding.decode_json(body) if body else None
    return documents.without_nulls(decoded) if b"null" in body else decoded


async def read_patch(request: web.Request) -> Any:
    """A patch as a value with its nulls, which remove fields."""
    body = await _read_bytes(request)
    try:
        return decoding.decode_json(body)
    except BadRequestError:
        if media_type(request) not in _YAML_BODIES:
            raise
    return decoding.decode_yaml(body, strict=request.query.get("fieldValidation") == "Strict")


async def read_duplicates(request: web.Request) -> list[str]:
    """The paths of fields that a JSON body has more than once, if the client asks for them."""
    if media_type(request) not in _JSON_BODIES or not request.query.get("fieldValidation"):
        return []
    return decoding.duplicate_fields(await _read_bytes(request))


async def read_options(request: web.Request) -> dict[str, Any]:
    """The body of a deletion or an eviction, which may be missing."""
    found = await read_value(request)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadRequestError("DeleteOptions have to be an object")
    return found


async def read_delete_options(request: web.Request) -> DeleteOptions:
    """The options of a deletion: those of the body, else those of the query."""
    given = dict(await read_options(request))
    for field in ("gracePeriodSeconds", "propagationPolicy", "orphanDependents"):
        if field in request.query and field not in given:
            given[field] = _query_option(request.query[field], field)
    return delete.read_options(given)


def _query_option(text: str, field: str) -> Any:
    if field == "gracePeriodSeconds":
        try:
            return int(text[:20])
        except ValueError:
            why = f'strconv.ParseInt: parsing "{text[:60]}": invalid syntax'
            raise BadRequestError(why) from None
    if field == "orphanDependents":
        return text.lower() in ("1", "t", "true", "")
    return text


async def read_object(request: web.Request, path: ResourcePath) -> Object:
    """An object that fits the URL of the request."""
    found: Object = await read_value(request)
    _check_object(path.resource, found)
    meta = found["metadata"] = {**found.get("metadata", {})}
    meta["namespace"] = meta.get("namespace") or path.namespace or ""
    if path.resource.namespaced and meta["namespace"] != (path.namespace or ""):
        raise BadRequestError(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not path.resource.namespaced:
        del meta["namespace"]
    if path.name and not meta.get("name"):
        raise BadRequestError(
            f"the name of the object ({path.name[:100]} based on URL) was undeterminable: "
            "name must be provided"
        )
    if path.name and meta["name"] != path.name:
        raise BadRequestError(
            f"the name of the object ({meta['name'][:100]}) does not match the name on the URL "
            f"({path.name[:100]})"
        )
    return found


def _check_object(resource: Resource, found: Any) -> None:
    """Reject a value that is not an object of this resource."""
    kind = resource.kind
    if not isinstance(found, dict):
        raise BadRequestError(f"the body of the request has to be an object of kind {kind}")
    if found.get("apiVersion", resource.api_version) != resource.api_version:
        raise BadRequestError(
            f"the API version in the data ({found['apiVersion']!s:.100}) does not match the "
            f"expected API version ({resource.api_version})"
        )
    if found.get("kind", kind) != kind:
        raise BadRequestError(
            f"the kind in the data ({found['kind']!s:.100}) does not match the expected kind "
            f"({kind})"
        )
    check_metadata(found.get("metadata", {}))


def check_metadata(meta: Any) -> None:
    """Reject metadata of wrong types."""
    if not isinstance(meta, dict):
        raise BadRequestError("metadata has to be an object")
    for field in _STRING_FIELDS:
        if not isinstance(meta.get(field, ""), str):
            raise BadRequestError(f"metadata.{field} has to be a text")
