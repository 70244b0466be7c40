"""GET: an object, a list, a watch."""

from random import Random
from typing import NamedTuple

from aiohttp import web

from moorage.cluster import status_errors
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import ResourcePath
from moorage.cluster.store import StoredObject, encode
from moorage.cluster.verbs import scale
from moorage.controllers.objects import Object
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

_MIN_WATCH_SECONDS = 1800.0


class ReadRequest(NamedTuple):
    """A parsed GET request."""

    path: ResourcePath
    options: ListOptions
    format: ResponseFormat


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
        read = ReadRequest(path, requests.list_options(request.query), format_)
        if read.options.watch and not path.subresource:
            return await self.watches.stream(request, self.watch_request(read))
        return await (self._get(read) if path.name else self._list(read))

    async def _get(self, read: ReadRequest) -> web.Response:
        path, store = read.path, self._api.store
        stored_as = responses.storage_resource(path.resource)
        version = store.readable_version
        if version is None:
            stored = store.stored(stored_as, *path.key)
        else:
            found = dict(store.snapshot(stored_as, path.key[0], version)).get(path.key)
            if found is None:
                raise status_errors.not_found(path.resource, path.name)
            stored = found
        await store.wait_until_readable()
        if path.subresource == "scale":
            return responses.json(scale.scale_of(stored.object))
        return responses.raw_json(self._render(read, single=True)(stored))

    async def _list(self, read: ReadRequest) -> web.Response:
        store, resource = self._api.store, read.path.resource
        stored_as = responses.storage_resource(resource)
        selector = lists.object_selector(resource, read.options)
        page = lists.read_page(store, stored_as, read.path.namespace, selector, read.options)
        await store.wait_until_readable()
        if read.format.as_ == TABLE:
            objects = [responses.from_storage(resource, each.object) for each in page.items]
            meta = responses.list_metadata(page)
            return responses.json({**self._table(read, objects), "metadata": meta})
        if read.format.as_ in (PARTIAL, PARTIAL_LIST):
            return responses.json(responses.partial_list(resource, page, read.format.api_version))
        return responses.raw_json(responses.list_body(resource, page))

    def watch_request(self, read: ReadRequest) -> WatchRequest:
        """The watch that a request asks for; raises BadRequestError."""
        path, options = read.path, read.options
        timeout = options.timeout_seconds
        selector = lists.object_selector(path.resource, options, path.name)
        if timeout is None:  # Random, so that not all watches end at the same time.
            timeout = _MIN_WATCH_SECONDS * (1 + self._random.random())
        stored_as = responses.storage_resource(path.resource)
        return WatchRequest(
            stored_as, path.namespace, selector, options, timeout, self._render(read)
        )

    def _render(self, read: ReadRequest, *, single: bool = False) -> Render:
        resource = read.path.resource
        if read.format == PLAIN_JSON:
            return lambda stored: responses.object_body(resource, stored)
        if read.format.as_ == TABLE:
            first = True

            def as_table(stored: StoredObject) -> bytes:
                nonlocal first
                table = self._table(read, [responses.from_storage(resource, stored.object)])
                if not first:  # A watch sends the column definitions once.
                    table["columnDefinitions"] = None
                first = single
                return encode({**table, "metadata": {"resourceVersion": str(stored.version)}})

            return as_table
        return lambda stored: encode(
            responses.partial_metadata(
                responses.from_storage(resource, stored.object), read.format.api_version
            )
        )

    def _table(self, read: ReadRequest, objects: list[Object]) -> Object:
        store, now = self._api.store, self._api.now()
        include, version = read.options.include_object, read.format.api_version
        return render_table(read.path.resource, objects, store, now, include, version)
