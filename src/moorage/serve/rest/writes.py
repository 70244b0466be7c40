"""POST, PUT, PATCH and DELETE."""

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import msgspec
from aiohttp import web

from moorage.cluster import status_errors
from moorage.cluster.api_server import ApiServer
from moorage.cluster.objects import field_validation
from moorage.cluster.objects.rule_checks import DeferredRules
from moorage.cluster.resources import NAMESPACES, PODS, Resource, ResourcePath
from moorage.cluster.status_errors import BadRequestError, MethodNotAllowedError
from moorage.cluster.store import key_of
from moorage.cluster.verbs import binding, delete, patch, scale, update
from moorage.cluster.verbs.delete import DeleteOptions
from moorage.cluster.verbs.patch import Patch
from moorage.controllers.objects import Object
from moorage.serve.rest import lists, reads, requests, responses
from moorage.serve.rest.lists import ListPage

T = TypeVar("T")
_MODES = (field_validation.IGNORE, field_validation.STRICT, field_validation.WARN)
_MAX_MANAGER = 128


class WriteRequests:
    """Handles requests that change objects; responds once the change is durable."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        # One thread: with more of them, requests without rules would wait longer for Python's lock.
        self._rule_thread = ThreadPoolExecutor(max_workers=1)

    def close(self) -> None:
        """Evaluate no further rules."""
        self._rule_thread.shutdown(wait=False, cancel_futures=True)

    async def post(self, request: web.Request, path: ResourcePath) -> web.Response:
        """Create an object, bind or evict a pod."""
        dry_run = requests.is_dry_run(request)
        if path.subresource == "binding":
            target = binding.read_binding(await requests.read_value(request) or {}, path.name)
            self._api.bind(*path.key, target, dry_run=dry_run)
            return await self._succeed(201)
        if path.subresource == "eviction":
            body = await requests.read_options(request)
            requests.check_metadata(body.get("metadata", {}))
            options = delete.read_options(body.get("deleteOptions", {}))
            self._api.evict(*path.key, options, dry_run=dry_run or "All" in options.dry_run)
            return await self._succeed(201)
        if path.name:
            raise not_allowed()
        if path.resource.namespaced and path.namespace is None:
            raise BadRequestError(
                "an empty namespace may not be set during creation: name one in the URL"
            )
        read = await requests.read_object(request, path)
        warnings: list[str] = []
        read = self._checked(
            request, path.resource, read, warnings, await requests.read_duplicates(request)
        )
        stored_as, manager = responses.storage_resource(path.resource), _manager(request)
        # The name is generated before the rules of the object may be deferred.
        obj = self._api.with_name(stored_as, responses.to_storage(path.resource, read))
        created = await self._with_rules(
            lambda: self._api.create(stored_as, obj, manager=manager, dry_run=dry_run)
        )
        return await self._respond(path.resource, created, 201, warnings)

    async def put(self, request: web.Request, path: ResourcePath) -> web.Response:
        """Replace an object or a subresource."""
        _check_object_path(path)
        dry_run, manager = requests.is_dry_run(request), _manager(request)
        if path.subresource == "scale":
            body = await requests.read_object(request, path._replace(resource=scale.SCALES))
            current = self._api.store.get(path.resource, *path.key)
            changed = scale.scaled(path.resource, current, body)
            new = self._api.update(
                path.resource, changed, subresource="scale", manager=manager, dry_run=dry_run
            )
            await self._api.store.wait_until_durable()
            return responses.json(scale.scale_of(path.resource, new))
        read = await requests.read_object(request, path)
        warnings: list[str] = []
        read = self._checked(
            request, path.resource, read, warnings, await requests.read_duplicates(request)
        )
        obj = responses.to_storage(path.resource, read)
        stored_as, part = responses.storage_resource(path.resource), path.subresource
        self._api.store.get(stored_as, *path.key)  # raises NotFoundError
        update.check_versioned(path.resource, obj)
        new = await self._with_rules(
            lambda: self._api.update(
                stored_as, obj, subresource=part, manager=manager, dry_run=dry_run
            )
        )
        return await self._respond(path.resource, new, warnings=warnings)

    async def patch(self, request: web.Request, path: ResourcePath) -> web.Response:
        """Patch an object or a subresource."""
        _check_object_path(path)
        _check_patch_options(request)
        warnings: list[str] = []
        change = Patch(
            media_type=requests.media_type(request),
            body=await requests.read_patch(request),
            manager=_manager(request),
            force=requests.flag(request.query, "force"),
            dry_run=requests.is_dry_run(request),
            check=lambda obj: self._checked(request, checked_as, obj, warnings),
        )
        stored_as = responses.storage_resource(path.resource)
        checked_as = scale.SCALES if path.subresource == "scale" else stored_as
        if stored_as is not path.resource and isinstance(change.body, dict):
            change = change._replace(body=responses.to_storage(path.resource, change.body))
        stored_path = path._replace(resource=stored_as)

        def perform() -> tuple[Object, bool]:
            warnings.clear()  # It may be repeated.
            return patch.patch(self._api, stored_path, change)

        new, created = await self._with_rules(perform)
        shown_as = scale.SCALES if path.subresource == "scale" else path.resource
        return await self._respond(shown_as, new, 201 if created else 200, warnings)

    async def delete(self, request: web.Request, path: ResourcePath) -> web.Response:
        """Delete an object, or all objects that a selector matches."""
        if path.subresource:
            raise not_allowed()
        dry_run = requests.is_dry_run(request)
        options = await requests.read_delete_options(request)
        dry_run = dry_run or "All" in options.dry_run
        if not path.name:
            return await self._delete_collection(request, path, options, dry_run=dry_run)
        stored_as = responses.storage_resource(path.resource)
        last, gone = self._api.delete(stored_as, *path.key, options, dry_run=dry_run)
        if gone and path.resource is not PODS:
            await self._api.store.wait_until_durable()
            return responses.deleted(path.resource, last["metadata"])
        return await self._respond(path.resource, last)

    async def _delete_collection(
        self, request: web.Request, path: ResourcePath, options: DeleteOptions, *, dry_run: bool
    ) -> web.Response:
        all_namespaces = path.resource.namespaced and path.namespace is None
        if path.resource is NAMESPACES or all_namespaces:
            raise not_allowed()
        selector = lists.object_selector(path.resource, requests.list_options(request.query))
        stored_as, store = responses.storage_resource(path.resource), self._api.store
        found = [each for _, each in store.snapshot(stored_as, path.namespace)]
        page = ListPage([each for each in found if selector.matches(each.object)], store.version)
        for each in page.items:
            self._api.delete(stored_as, *key_of(each.object), options, dry_run=dry_run)
        await store.wait_until_durable()
        encoding = reads.accepted_format(request, path.resource).encoding
        return responses.raw(responses.list_body(path.resource, page, encoding), encoding)

    async def _with_rules(self, perform: Callable[[], T]) -> T:
        """Perform a write; expensive rules of custom resources are evaluated in a thread.

        If the stored object changes meanwhile, they are evaluated again.
        """
        loop = asyncio.get_running_loop()
        while True:
            try:
                with self._api.rules.deferring():
                    return perform()
            except DeferredRules as deferred:
                await loop.run_in_executor(self._rule_thread, deferred.evaluate)

    async def _succeed(self, status: int = 200) -> web.Response:
        await self._api.store.wait_until_durable()
        return responses.success(status)

    async def _respond(
        self, resource: Resource, obj: Object, status: int = 200, warnings: Sequence[str] = ()
    ) -> web.Response:
        store = self._api.store
        served = responses.from_storage(resource, obj)
        stored = store.find_stored(responses.storage_resource(resource), *key_of(obj))
        # The store has encoded the object already, unless this is a dry run or a deletion.
        body = stored.body if stored is not None and stored.object is served else None
        await store.wait_until_durable()
        return responses.with_warnings(responses.json(served, status, body), warnings)

    def _checked(
        self,
        request: web.Request,
        resource: Resource,
        obj: Object,
        warnings: list[str],
        duplicates: Sequence[str] = (),
    ) -> Object:
        """The object without unknown fields; `fieldValidation` decides whether it is refused."""
        mode = request.query.get("fieldValidation") or field_validation.WARN
        if mode not in _MODES:
            listed = ", ".join(f'"{each}"' for each in sorted(("", *_MODES)))
            text = f'Unsupported value: "{mode[:60]}": supported values: {listed}'
            kind = requests.OPTIONS[request.method]
            reason = "FieldValueNotSupported"
            raise status_errors.invalid_options(kind, reason, "fieldValidation", text)
        applied = request.method == "PATCH" and requests.media_type(request) == patch.APPLY
        checked = field_validation.check_fields(
            self._api.store,
            resource,
            obj,
            mode,
            applied=applied,
            patched=request.method == "PATCH" and not applied,
            duplicates=duplicates,
        )
        warnings += checked.warnings
        return checked.object


def not_allowed() -> MethodNotAllowedError:
    """The error of a verb that the path does not support."""
    return MethodNotAllowedError("the server does not allow this method on the requested resource")


def _check_patch_options(request: web.Request) -> None:
    is_apply = requests.media_type(request) == patch.APPLY
    if is_apply and not request.query.get("fieldManager"):
        text, field = "Required value: is required for apply patch", "fieldManager"
        raise status_errors.invalid_options("PatchOptions", "FieldValueRequired", field, text)
    if not is_apply and "force" in request.query:
        text = "Forbidden: may not be specified for non-apply patch"
        raise status_errors.invalid_options("PatchOptions", "FieldValueForbidden", "force", text)


def _check_object_path(path: ResourcePath) -> None:
    if not path.name or path.subresource in ("binding", "eviction"):
        raise not_allowed()


def _manager(request: web.Request) -> str:
    """The field manager: the query parameter, else the first part of the user agent."""
    manager: str = request.query.get("fieldManager", "")
    kind = requests.OPTIONS.get(request.method, "CreateOptions")
    if len(manager.encode()) > _MAX_MANAGER:
        text = f"Too long: may not be more than {_MAX_MANAGER} bytes"
        raise status_errors.invalid_options(kind, "FieldValueTooLong", "fieldManager", text)
    if not manager.isprintable():
        at, sign = next((i, c) for i, c in enumerate(manager) if not c.isprintable())
        text = f"invalid character U+{ord(sign):04X} (at position {at})"
        shown = f"Invalid value: {msgspec.json.encode(manager).decode()}: {text}"
        raise status_errors.invalid_options(kind, "FieldValueInvalid", "fieldManager", shown)
    if manager or requests.media_type(request) == patch.APPLY:
        return manager
    return request.headers.get("User-Agent", "").partition("/")[0][:_MAX_MANAGER]
