"""POST, PUT, PATCH and DELETE."""

from typing import Any

from aiohttp import web

from moorage.serve.api_server import ApiServer
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import NAMESPACES, PODS, Resource
from moorage.serve.rest import lists, requests, responses
from moorage.serve.rest.requests import RequestPath
from moorage.serve.status_errors import BadRequestError, MethodNotAllowedError
from moorage.serve.verbs import binding, delete, patch, scale
from moorage.serve.verbs.delete import DeleteOptions
from moorage.serve.verbs.patch import Patch, PatchTarget

_LONGEST_MANAGER = 128


class WriteRequests:
    """What answers requests that change something. Each answers when the change is durable."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api

    async def post(self, request: web.Request, place: RequestPath) -> web.Response:
        """Create an object, or ask something of one."""
        dry_run = requests.dry_run(request.query)
        match place.subresource:
            case "binding":
                return await self._bind(request, place, dry_run=dry_run)
            case "eviction":
                return await self._evict(request, place, dry_run=dry_run)
        if place.name:
            raise not_allowed()
        if place.resource.namespaced and place.namespace is None:
            raise BadRequestError(
                "an empty namespace may not be set during creation: name one in the URL"
            )
        kept = responses.storage_resource(place.resource)
        obj = responses.to_storage(place.resource, await requests.read_object(request, place))
        created = self._api.create(kept, obj, dry_run=dry_run)
        return await self._shown(place.resource, created, 201)

    async def put(self, request: web.Request, place: RequestPath) -> web.Response:
        """Replace an object, or a part of one."""
        if not place.name or place.subresource in ("binding", "eviction"):
            raise not_allowed()
        dry_run, manager = requests.dry_run(request.query), _manager(request)
        kept = responses.storage_resource(place.resource)
        if place.subresource == "scale":
            return await self._scale(request, place, manager, dry_run=dry_run)
        obj = responses.to_storage(place.resource, await requests.read_object(request, place))
        new = self._api.update(
            kept, obj, subresource=place.subresource, manager=manager, dry_run=dry_run
        )
        return await self._shown(place.resource, new)

    async def patch(self, request: web.Request, place: RequestPath) -> web.Response:
        """Change an object, or a part of one, as a patch says."""
        if not place.name or place.subresource in ("binding", "eviction"):
            raise not_allowed()
        wanted = Patch(
            media_type=requests.media_type(request.headers),
            body=await requests.read_patch(request),
            manager=_manager(request),
            force=requests.flag(request.query, "force"),
            dry_run=requests.dry_run(request.query),
        )
        kept = responses.storage_resource(place.resource)
        if kept is not place.resource and isinstance(wanted.body, dict):
            wanted = wanted._replace(body=responses.to_storage(place.resource, wanted.body))
        target = PatchTarget(kept, place.namespace or "", place.name, place.subresource)
        new, created = patch.patch(self._api, target, wanted)
        return await self._shown(place.resource, new, 201 if created else 200)

    async def delete(self, request: web.Request, place: RequestPath) -> web.Response:
        """Delete an object, or all that a selector chooses."""
        if place.subresource:
            raise not_allowed()
        dry_run = requests.dry_run(request.query)
        options = await self._options(request)
        dry_run = dry_run or "All" in options.dry_run
        if not place.name:
            return await self._delete_collection(request, place, options, dry_run=dry_run)
        kept = responses.storage_resource(place.resource)
        namespace = place.namespace or ""
        last, gone = self._api.delete(kept, namespace, place.name, options, dry_run=dry_run)
        if gone and place.resource is not PODS:
            await self._api.store.settled()
            return responses.deleted(place.resource, last["metadata"])
        return await self._shown(place.resource, last)

    async def _delete_collection(
        self, request: web.Request, place: RequestPath, options: DeleteOptions, *, dry_run: bool
    ) -> web.Response:
        if place.resource is NAMESPACES:
            raise not_allowed()
        if place.resource.namespaced and place.namespace is None:
            raise not_allowed()
        reading = requests.list_options(request.query)
        choice = lists.object_selector(
            place.resource, reading.label_selector, reading.field_selector
        )
        kept, store = responses.storage_resource(place.resource), self._api.store
        found = store.snapshot(kept, place.namespace)
        chosen = [each for _, each in found if choice.matches(each.object)]
        for each in chosen:
            meta = each.object["metadata"]
            namespace = meta.get("namespace", "")
            self._api.delete(kept, namespace, meta["name"], options, dry_run=dry_run)
        await store.settled()
        return responses.json(responses.success())

    async def _bind(
        self, request: web.Request, place: RequestPath, *, dry_run: bool
    ) -> web.Response:
        wanted = binding.read(await requests.read_value(request) or {}, place.name)
        self._api.bind(place.namespace or "", place.name, wanted, dry_run=dry_run)
        await self._api.store.settled()
        return responses.json(responses.success() | {"code": 201}, 201)

    async def _evict(
        self, request: web.Request, place: RequestPath, *, dry_run: bool
    ) -> web.Response:
        body = await requests.read_options(request)
        requests.check_metadata(body.get("metadata", {}))
        options = delete.read_options(body.get("deleteOptions", {}))
        dry_run = dry_run or "All" in options.dry_run
        self._api.evict(place.namespace or "", place.name, options, dry_run=dry_run)
        await self._api.store.settled()
        return responses.json(responses.success() | {"code": 201}, 201)

    async def _scale(
        self, request: web.Request, place: RequestPath, manager: str, *, dry_run: bool
    ) -> web.Response:
        body = await requests.read_value(request)
        current = self._api.store.get(place.resource, place.namespace or "", place.name)
        wanted = scale.scaled(place.resource, current, body)
        new = self._api.update(place.resource, wanted, manager=manager, dry_run=dry_run)
        await self._api.store.settled()
        return responses.json(scale.of(new))

    async def _options(self, request: web.Request) -> DeleteOptions:
        body: dict[str, Any] = await requests.read_options(request)
        given = dict(body)
        for field in ("gracePeriodSeconds", "propagationPolicy", "orphanDependents"):
            if field in request.query and field not in given:
                given[field] = _plain(request.query[field], field)
        return delete.read_options(given)

    async def _shown(self, resource: Resource, obj: Object, code: int = 200) -> web.Response:
        await self._api.store.settled()
        return responses.json(responses.from_storage(resource, obj), code)


def not_allowed() -> MethodNotAllowedError:
    """As the API server says it."""
    return MethodNotAllowedError("the server does not allow this method on the requested resource")


def _plain(text: str, field: str) -> Any:
    if field == "gracePeriodSeconds":
        try:
            return int(text[:20])
        except ValueError:
            raise BadRequestError(
                f"gracePeriodSeconds: has to be a number, is {text[:60]!r}"
            ) from None
    if field == "orphanDependents":
        return text.lower() in ("1", "t", "true", "")
    return text


def _manager(request: web.Request) -> str:
    """Who writes: what the request says, else the first word of the client's name."""
    manager: str = request.query.get("fieldManager", "")
    if len(manager) > _LONGEST_MANAGER or not manager.isprintable():
        raise BadRequestError(
            f"fieldManager: has to be at most {_LONGEST_MANAGER} printable characters"
        )
    if manager or requests.media_type(request.headers) == patch.APPLY:
        return manager
    return request.headers.get("User-Agent", "").partition("/")[0][:_LONGEST_MANAGER]
