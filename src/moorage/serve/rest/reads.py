"""GET: an object, a list, a watch."""

from random import Random

from aiohttp import web

from moorage.serve.api_server import ApiServer
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import ResourcePath
from moorage.serve.rest import lists, requests, responses
from moorage.serve.rest.requests import (
    PARTIAL,
    PARTIAL_LIST,
    PLAIN_JSON,
    TABLE,
    ListOptions,
    ResponseFormat,
)
from moorage.serve.rest.tables.table import render_table
from moorage.serve.rest.watches import Render, Watches, WatchRequest
from moorage.serve.store import StoredObject, encode
from moorage.serve.verbs import scale

_MIN_WATCH_SECONDS = 1800.0


class ReadRequests:
    """Handles GET requests."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._random = Random(api.random.random())
        self.watches = Watches(api.store)

    async def get(self, request: web.Request, path: ResourcePath) -> web.StreamResponse:
        """Handle a GET of a collection, an object or a subresource."""
        accept = request.headers.get("Accept", "")
        format_ = requests.accepted_format(accept, requests.OBJECT_FORMATS)
        options = requests.list_options(request.query)
        if options.watch and not path.subresource:
            return await self._watch(request, path, options, format_)
        if path.name:
            return await self._get(path, options, format_)
        return await self._list(path, options, format_)

    async def _get(
        self, path: ResourcePath, options: ListOptions, format_: ResponseFormat
    ) -> web.Response:
        store = self._api.store
        stored = store.stored(responses.storage_resource(path.resource), *path.key)
        await store.wait_until_durable()
        if path.subresource == "scale":
            return responses.json(scale.scale_of(stored.object))
        render = self._render(path, options, format_, single=True)
        return responses.raw_json(render(stored))

    async def _list(
        self, path: ResourcePath, options: ListOptions, format_: ResponseFormat
    ) -> web.Response:
        store, resource = self._api.store, path.resource
        stored_as = responses.storage_resource(resource)
        selector = lists.object_selector(resource, options)
        page = lists.read_page(store, stored_as, path.namespace, selector, options)
        await store.wait_until_durable()
        if format_ == TABLE:
            objects = [responses.from_storage(resource, each.object) for each in page.items]
            table = self._table(path, options, objects)
            return responses.json({**table, "metadata": responses.list_metadata(page)})
        if format_ in (PARTIAL, PARTIAL_LIST):
            return responses.json(responses.partial_list(resource, page))
        return responses.raw_json(responses.list_body(resource, page))

    async def _watch(
        self,
        request: web.Request,
        path: ResourcePath,
        options: ListOptions,
        format_: ResponseFormat,
    ) -> web.StreamResponse:
        selector = lists.object_selector(path.resource, options, path.name)
        timeout = options.timeout_seconds
        if timeout is None:  # Random, so that not all watches end at the same time.
            timeout = _MIN_WATCH_SECONDS * (1 + self._random.random())
        watch = WatchRequest(
            resource=responses.storage_resource(path.resource),
            namespace=path.namespace,
            selector=selector,
            version=options.version,
            bookmarks=options.bookmarks,
            initial_events=bool(options.initial_events),
            timeout_seconds=timeout,
            render=self._render(path, options, format_),
        )
        return await self.watches.stream(request, watch)

    def _render(
        self,
        path: ResourcePath,
        options: ListOptions,
        format_: ResponseFormat,
        *,
        single: bool = False,
    ) -> Render:
        resource = path.resource
        if format_ == PLAIN_JSON:
            return lambda stored: responses.object_body(resource, stored)
        if format_ == TABLE:
            first = True

            def as_table(stored: StoredObject) -> bytes:
                nonlocal first
                table = self._table(
                    path, options, [responses.from_storage(resource, stored.object)]
                )
                if not first:  # A watch sends the column definitions once.
                    table["columnDefinitions"] = None
                first = single
                meta = {"resourceVersion": str(stored.version)}
                return encode({**table, "metadata": meta})

            return as_table
        return lambda stored: encode(
            responses.partial_metadata(responses.from_storage(resource, stored.object))
        )

    def _table(self, path: ResourcePath, options: ListOptions, objects: list[Object]) -> Object:
        api = self._api
        return render_table(path.resource, objects, api.store, api.now(), options.include_object)
