"""GET: an object, a list, a watch."""

from random import Random

from aiohttp import web

from moorage.serve.api_server import ApiServer
from moorage.serve.change_log import Stored
from moorage.serve.controllers.objects import Object
from moorage.serve.rest import answers, field_paths, lists, negotiation, query, views
from moorage.serve.rest.negotiation import PARTIAL, PARTIAL_LIST, PLAIN, TABLE, Form
from moorage.serve.rest.paths import Place
from moorage.serve.rest.query import Reading
from moorage.serve.rest.tables import table
from moorage.serve.rest.watches import Render, Watch, Watches
from moorage.serve.store import encode
from moorage.serve.verbs import scale

_SHORTEST_WATCH_SECONDS = 1800.0


class Reads:
    """What answers GET requests."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self._random = Random(api.random.random())
        self.watches = Watches(api.store)

    async def get(self, request: web.Request, place: Place) -> web.StreamResponse:
        """Answer a GET of a resource, an object or a part of one."""
        form = negotiation.wanted(request.headers.get("Accept", ""), negotiation.OBJECT_FORMS)
        reading = query.read(request.query)
        if reading.watch and not place.subresource:
            return await self._watch(request, place, reading, form)
        if place.name:
            return await self._one(place, reading, form)
        return await self._list(place, reading, form)

    async def _one(self, place: Place, reading: Reading, form: Form) -> web.Response:
        store, kept = self._api.store, views.kept(place.resource)
        stored = store.stored(kept, place.namespace or "", place.name)
        await store.settled()
        if place.subresource == "scale":
            return answers.json(scale.of(stored.object))
        return answers.raw(self._render(place, reading, form, one=True)(stored))

    async def _list(self, place: Place, reading: Reading, form: Form) -> web.Response:
        store, kept = self._api.store, views.kept(place.resource)
        page = lists.read(store, kept, place.namespace, reading, shown_as=place.resource)
        await store.settled()
        if form == TABLE:
            objects = [views.outward(place.resource, each.object) for each in page.items]
            shown = self._table(place, reading, objects)
            return answers.json({**shown, "metadata": answers.list_metadata(page)})
        if form in (PARTIAL, PARTIAL_LIST):
            return answers.json(answers.partial_list(place.resource, page))
        return answers.raw(answers.listing(place.resource, page))

    async def _watch(
        self, request: web.Request, place: Place, reading: Reading, form: Form
    ) -> web.StreamResponse:
        choice = field_paths.choose(
            place.resource, reading.label_selector, reading.field_selector, place.name
        )
        timeout = reading.timeout_seconds
        if timeout is None:  # Not all at the same moment.
            timeout = _SHORTEST_WATCH_SECONDS * (1 + self._random.random())
        watch = Watch(
            resource=views.kept(place.resource),
            namespace=place.namespace,
            choice=choice,
            version=reading.version,
            bookmarks=reading.bookmarks,
            initial_events=bool(reading.initial_events),
            timeout_seconds=timeout,
            render=self._render(place, reading, form),
        )
        return await self.watches.stream(request, watch)

    def _render(self, place: Place, reading: Reading, form: Form, *, one: bool = False) -> Render:
        resource = place.resource
        if form == PLAIN:
            return lambda stored: views.body(resource, stored)
        if form == TABLE:
            first = True

            def as_table(stored: Stored) -> bytes:
                nonlocal first
                shown = self._table(place, reading, [views.outward(resource, stored.object)])
                if not first:  # Columns are told once; then they are known.
                    shown["columnDefinitions"] = None
                first = one
                meta = {"resourceVersion": str(stored.version)}
                return encode({**shown, "metadata": meta})

            return as_table
        return lambda stored: encode(views.partial(views.outward(resource, stored.object)))

    def _table(self, place: Place, reading: Reading, objects: list[Object]) -> Object:
        api = self._api
        return table(place.resource, objects, api.store, api.now(), reading.include_object)
