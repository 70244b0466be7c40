"""GET: an object, a list, a watch."""

from random import Random

from aiohttp import web

from moorage.serve.api_server import ApiServer
from moorage.serve.controllers.objects import Object
from moorage.serve.rest import lists, requests, responses
from moorage.serve.rest.requests import (
    PARTIAL,
    PARTIAL_LIST,
    PLAIN_JSON,
    TABLE,
    ListOptions,
    RequestPath,
    ResponseFormat,
)
from moorage.serve.rest.tables.table import render_table
from moorage.serve.rest.watches import Render, Watches, WatchRequest
from moorage.serve.store import StoredObject, encode
from moorage.serve.verbs import scale

_SHORTEST_WATCH_SECONDS = 1800.0


class ReadRequests:
    """What answers GET requests."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._random = Random(api.random.random())
        self.watches = Watches(api.store)

    async def get(self, request: web.Request, place: RequestPath) -> web.StreamResponse:
        """Answer a GET of a resource, an object or a part of one."""
        form = requests.accepted_format(request.headers.get("Accept", ""), requests.OBJECT_FORMS)
        reading = requests.list_options(request.query)
        if reading.watch and not place.subresource:
            return await self._watch(request, place, reading, form)
        if place.name:
            return await self._one(place, reading, form)
        return await self._list(place, reading, form)

    async def _one(
        self, place: RequestPath, reading: ListOptions, form: ResponseFormat
    ) -> web.Response:
        store, kept = self._api.store, responses.storage_resource(place.resource)
        stored = store.stored(kept, place.namespace or "", place.name)
        await store.settled()
        if place.subresource == "scale":
            return responses.json(scale.of(stored.object))
        return responses.raw_json(self._render(place, reading, form, one=True)(stored))

    async def _list(
        self, place: RequestPath, reading: ListOptions, form: ResponseFormat
    ) -> web.Response:
        store, kept = self._api.store, responses.storage_resource(place.resource)
        page = lists.read_page(store, kept, place.namespace, reading, shown_as=place.resource)
        await store.settled()
        if form == TABLE:
            objects = [responses.from_storage(place.resource, each.object) for each in page.items]
            shown = self._table(place, reading, objects)
            return responses.json({**shown, "metadata": responses.list_metadata(page)})
        if form in (PARTIAL, PARTIAL_LIST):
            return responses.json(responses.partial_list(place.resource, page))
        return responses.raw_json(responses.list_body(place.resource, page))

    async def _watch(
        self, request: web.Request, place: RequestPath, reading: ListOptions, form: ResponseFormat
    ) -> web.StreamResponse:
        choice = lists.object_selector(
            place.resource, reading.label_selector, reading.field_selector, place.name
        )
        timeout = reading.timeout_seconds
        if timeout is None:  # Not all at the same moment.
            timeout = _SHORTEST_WATCH_SECONDS * (1 + self._random.random())
        watch = WatchRequest(
            resource=responses.storage_resource(place.resource),
            namespace=place.namespace,
            choice=choice,
            version=reading.version,
            bookmarks=reading.bookmarks,
            initial_events=bool(reading.initial_events),
            timeout_seconds=timeout,
            render=self._render(place, reading, form),
        )
        return await self.watches.stream(request, watch)

    def _render(
        self, place: RequestPath, reading: ListOptions, form: ResponseFormat, *, one: bool = False
    ) -> Render:
        resource = place.resource
        if form == PLAIN_JSON:
            return lambda stored: responses.object_body(resource, stored)
        if form == TABLE:
            first = True

            def as_table(stored: StoredObject) -> bytes:
                nonlocal first
                shown = self._table(
                    place, reading, [responses.from_storage(resource, stored.object)]
                )
                if not first:  # Columns are told once; then they are known.
                    shown["columnDefinitions"] = None
                first = one
                meta = {"resourceVersion": str(stored.version)}
                return encode({**shown, "metadata": meta})

            return as_table
        return lambda stored: encode(
            responses.partial_metadata(responses.from_storage(resource, stored.object))
        )

    def _table(self, place: RequestPath, reading: ListOptions, objects: list[Object]) -> Object:
        api = self._api
        return render_table(place.resource, objects, api.store, api.now(), reading.include_object)
