"""GET: an object, a list, a watch."""

from functools import lru_cache
from random import Random
from typing import NamedTuple

from aiohttp import web

from moorage.api.schema import messages
from moorage.cluster import status_errors
from moorage.cluster.api_server import ApiServer
from moorage.cluster.resources import Resource, ResourcePath
from moorage.cluster.store import StoredObject
from moorage.cluster.verbs import scale
from moorage.controllers.objects import Object
from moorage.serve.rest import lists, negotiation, requests, responses
from moorage.serve.rest.negotiation import (
    PARTIAL,
    PARTIAL_LIST,
    TABLE,
    ResponseFormat,
)
from moorage.serve.rest.requests import ListOptions
from moorage.serve.rest.tables.table import render_table
from moorage.serve.rest.watches import Render, Watches, WatchRequest

_MIN_WATCH_SECONDS = 1800.0


class ReadRequest(NamedTuple):
    """A parsed GET request."""

    path: ResourcePath
    options: ListOptions
    format: ResponseFormat


def parse_request(request: web.Request, path: ResourcePath) -> ReadRequest:
    """A GET request; raises StatusError."""
    format_ = accepted_format(request, path.resource)
    return ReadRequest(path, requests.list_options(request.query), format_)


class ReadRequests:
    """Handles GET requests."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._random = Random(api.random.random())
        self.watches = Watches(api.store)

    async def get(self, request: web.Request, path: ResourcePath) -> web.StreamResponse:
        """Handle a GET of a collection, an object or a subresource."""
        if path.subresource == "log":
            return self._log(path)
        read = parse_request(request, path)
        if read.options.watch and not path.subresource:
            return await self.watches.stream(request, self.watch_request(read))
        return await (self._get(read) if path.name else self._list(read))

    def _log(self, path: ResourcePath) -> web.Response:
        """An empty log with a warning; after an error `kubectl logs -f` would ask again."""
        pod = self._api.store.get(path.resource, *path.key)
        if not pod["spec"].get("nodeName"):
            raise status_errors.BadRequestError(f"pod {path.name} does not have a host assigned")
        response = web.Response(text="")
        return responses.with_warnings(response, [f"no log, because {requests.NOTHING_RUNS}"])

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
            shown = scale.scale_of(path.resource, stored.object)
            if not read.format.as_:
                return responses.json(shown)
            stored = stored._replace(object=shown)
            read = read._replace(path=path._replace(resource=scale.SCALES))
        return responses.raw(self._render(read, single=True)(stored), read.format.encoding)

    async def _list(self, read: ReadRequest) -> web.Response:
        store, resource = self._api.store, read.path.resource
        if read.format.as_ == PARTIAL:
            what = f"the requested object is a list (*{resource.kind}List)"
            raise status_errors.NotAcceptableError(f"you requested {PARTIAL}, but {what}")
        stored_as = responses.storage_resource(resource)
        selector = lists.object_selector(resource, read.options)
        page = lists.read_page(store, stored_as, read.path.namespace, selector, read.options)
        await store.wait_until_readable()
        encoding, form = read.format.encoding, read.format.as_
        if form == TABLE:
            objects = [responses.from_storage(resource, each.object) for each in page.items]
            meta = responses.list_metadata(page)
            table = {**self._table(read, objects), "metadata": meta}
            return responses.raw(*responses.encoded(table, encoding))
        if form == PARTIAL_LIST:
            listed = responses.partial_list(resource, page, read.format.api_version)
            return responses.raw(*responses.encoded(listed, encoding))
        return responses.raw(responses.list_body(resource, page, encoding), encoding)

    def watch_request(self, read: ReadRequest) -> WatchRequest:
        """The watch that a request asks for; raises BadRequestError."""
        path, options = read.path, read.options
        timeout = options.timeout_seconds
        selector = lists.object_selector(path.resource, options, path.name)
        if timeout is None:  # Random, so that not all watches end at the same time.
            timeout = _MIN_WATCH_SECONDS * (1 + self._random.random())
        stored_as = responses.storage_resource(path.resource)
        encoding = read.format.encoding
        return WatchRequest(
            stored_as, path.namespace, selector, options, timeout, self._render(read), encoding
        )

    def _render(self, read: ReadRequest, *, single: bool = False) -> Render:
        resource, encoding = read.path.resource, read.format.encoding
        if not read.format.as_:
            return lambda stored: responses.object_body(resource, stored, encoding)
        if read.format.as_ == TABLE:
            first = True

            def as_table(stored: StoredObject) -> bytes:
                nonlocal first
                table = self._table(read, [responses.from_storage(resource, stored.object)])
                if not first:  # A watch sends the column definitions once.
                    table["columnDefinitions"] = None
                first = single
                table["metadata"] = {"resourceVersion": str(stored.version)}
                return responses.encoded(table, encoding)[0]

            return as_table

        def as_metadata(stored: StoredObject) -> bytes:
            served = responses.from_storage(resource, stored.object)
            partial = responses.partial_metadata(served, read.format.api_version)
            return responses.encoded(partial, encoding)[0]

        return as_metadata

    def _table(self, read: ReadRequest, objects: list[Object]) -> Object:
        store, now = self._api.store, self._api.now()
        include, version = read.options.include_object, read.format.api_version
        return render_table(read.path.resource, objects, store, now, include, version)


def accepted_format(request: web.Request, resource: Resource) -> ResponseFormat:
    """The format of the response to a request for a resource; raises NotAcceptableError."""
    accept = request.headers.get("Accept", "")
    return _offered_format(accept, resource, watch=requests.flag(request.query, "watch"))


@lru_cache(maxsize=256)
def _offered_format(accept: str, resource: Resource, *, watch: bool) -> ResponseFormat:
    known = messages.message_of(resource.api_version, resource.kind) is not None
    excluded = set() if known and not resource.custom else {negotiation.PROTOBUF}
    if watch:
        excluded.add(negotiation.YAML)
    encodings = tuple(each for each in negotiation.ENCODINGS if each not in excluded)
    offered = () if resource.is_review else negotiation.OBJECT_FORMATS
    return negotiation.accepted_format(accept, offered, encodings)
