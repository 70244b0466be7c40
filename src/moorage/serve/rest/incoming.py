"""Bodies of requests, as far as they are alike: an object that fits the URL it came to."""

from typing import Any

from aiohttp import web
from multidict import CIMultiDictProxy

from moorage.serve.controllers.objects import Object
from moorage.serve.objects import bodies, protobuf
from moorage.serve.refusals import BadRequest, TooLarge, UnsupportedMedia
from moorage.serve.resources import Resource
from moorage.serve.rest.paths import Place

_JSON = ("application/json", "")
_YAML = ("application/yaml", "application/apply-patch+yaml")
_TEXTS = ("name", "generateName", "namespace", "uid", "resourceVersion")


def media_type(headers: CIMultiDictProxy[str]) -> str:
    """The format of a body, without its parameters."""
    return headers.get("Content-Type", "").partition(";")[0].strip().lower()


async def read(request: web.Request) -> bytes:
    """The bytes of a body; raises TooLarge."""
    try:
        return await request.read()
    except web.HTTPRequestEntityTooLarge:
        raise TooLarge("the request is larger than this server accepts") from None


async def value(request: web.Request) -> Any:
    """A body as a value, nulls left out; raises BadRequest or UnsupportedMedia."""
    media, body = media_type(request.headers), await read(request)
    if media in _YAML:
        return bodies.without_nulls(bodies.decode_yaml(body))
    if media == protobuf.MEDIA_TYPE:
        return protobuf.decode(body)
    if media not in _JSON and body:
        raise UnsupportedMedia(
            "the body of the request was in an unknown format - accepted media types include: "
            f"application/json, application/yaml; it is {media[:60]!r}"
        )
    decoded = bodies.decode(body) if body else None
    return bodies.without_nulls(decoded) if b"null" in body else decoded


async def patch(request: web.Request) -> Any:
    """A patch as a value, with its nulls: they mean something."""
    body = await read(request)
    try:
        return bodies.decode(body)
    except BadRequest:
        if media_type(request.headers) not in _YAML:
            raise
    return bodies.decode_yaml(body)


async def options(request: web.Request) -> Any:
    """The body of a deletion, which may be missing."""
    found = await value(request)
    if found is None:
        return {}
    if not isinstance(found, dict):
        raise BadRequest("DeleteOptions have to be an object")
    return found


async def obj(request: web.Request, place: Place) -> Object:
    """An object that belongs where it was sent."""
    found: Object = await value(request)
    check(place.resource, found)
    meta = found["metadata"] = {**found.get("metadata", {})}
    meta["namespace"] = meta.get("namespace") or place.namespace or ""
    if place.resource.namespaced and meta["namespace"] != (place.namespace or ""):
        raise BadRequest(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    if not place.resource.namespaced:
        del meta["namespace"]
    if place.name and (meta.get("name") or place.name) != place.name:
        raise BadRequest(
            f"the name of the object ({meta['name'][:100]}) does not match the name on the URL "
            f"({place.name[:100]})"
        )
    if place.name:
        meta["name"] = place.name
    return found


def check(resource: Resource, found: Any) -> None:
    """Refuse what is no object of this resource."""
    if not isinstance(found, dict):
        raise BadRequest(f"the body of the request has to be an object of kind {resource.kind}")
    if found.get("apiVersion", resource.api_version) != resource.api_version:
        raise BadRequest(
            f"the API version in the data ({found['apiVersion']!s:.100}) does not match the "
            f"expected API version ({resource.api_version})"
        )
    if found.get("kind", resource.kind) != resource.kind:
        raise BadRequest(
            f"the kind in the data ({found['kind']!s:.100}) does not match the expected kind "
            f"({resource.kind})"
        )
    check_metadata(found.get("metadata", {}))


def check_metadata(meta: Any) -> None:
    """Refuse metadata that cannot be looked into."""
    if not isinstance(meta, dict):
        raise BadRequest("metadata has to be an object")
    for field in _TEXTS:
        if not isinstance(meta.get(field, ""), str):
            raise BadRequest(f"metadata.{field} has to be a text")
