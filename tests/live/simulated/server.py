"""The API server of a simulation: `serve`'s handlers on a store in memory, without HTTP."""

import bisect
import itertools
from operator import attrgetter
from urllib.parse import parse_qsl, urlsplit

from aiohttp import web
from simulated.loop import START

from moorage.api import timestamps
from moorage.cluster.api_server import ApiServer
from moorage.cluster.store import ResourceChangeLog, Store
from moorage.live.transport import HttpResponse
from moorage.serve.rest import app, reads, requests
from moorage.serve.rest.reads import ReadRequests
from moorage.serve.rest.responses import ObjectResponse

LOG_SIZE = 400


class CompactedLog(ResourceChangeLog):
    """A change log whose oldest part can be dropped at any time."""

    def compact(self, version):
        dropped = bisect.bisect_right(self._changes, version, key=attrgetter("version"))
        self.first += dropped
        del self._changes[:dropped]
        self.floor = max(self.floor, version)


class CompactedStore(Store):
    """A store whose history is dropped up to a version, for all kinds alike, as etcd does it."""

    @property
    def floor(self):
        """The earliest version that all kinds can be listed at."""
        return max((log.floor for log in self._logs.values()), default=self._floor)

    def log(self, resource):
        key = resource.storage_key
        if key not in self._logs:
            self._logs[key] = CompactedLog(self._log_size, self._floor)
        return self._logs[key]

    def compact(self, version):
        self._floor = max(self._floor, version)
        for log in self._logs.values():
            log.compact(version)


class Request:
    """What the handlers read of a request."""

    def __init__(self, method, path, headers, body):
        parts = urlsplit(path)
        self.method = method
        self.path = parts.path
        self.query = dict(parse_qsl(parts.query))
        self.headers = headers
        self.content = self
        self._body = body

    def is_eof(self):
        """Of the content: a request arrives as a whole."""
        return True

    async def read(self):
        return self._body or b""


class SimulatedServer:
    """All requests of a simulation end here."""

    def __init__(self, loop, random, log_size=LOG_SIZE):
        number = itertools.count(1)
        store = CompactedStore(
            clock=lambda: timestamps.to_text(self.now()),
            uid=lambda: f"{random.getrandbits(32):08x}-0000-4000-8000-{next(number):012x}",
            log_size=log_size,
        )
        self._loop = loop
        self.tokens = {"Bearer token-0"}  # Those that are valid.
        self.api = ApiServer(store, now=self.now, random=random)
        self._router = app.RequestRouter(self.api)
        self._reads = ReadRequests(self.api)

    def now(self):
        return START + self._loop.time()

    def accepts(self, headers):
        """Whether a request has a valid token."""
        return headers.get("Authorization") in self.tokens

    async def respond(self, method, path, headers, body):
        """Perform a request; returns an HttpResponse."""
        request = Request(method, path, headers, body)
        found = await app.error_responses(request, self._router.handle)
        assert isinstance(found, web.Response), "a watch is no request"
        if isinstance(found, ObjectResponse):
            found.encode(headers["Accept"])
        lines = "".join(f"\r\n{name.lower()}: {value}" for name, value in found.headers.items())
        return HttpResponse(found.status, f"http/1.1 {found.status}{lines}".encode(), found.body)

    def watch(self, path, is_connected):
        """The chunks of a watch, or an error as raised by the handlers."""
        request = Request("GET", path, {}, None)
        parsed = requests.parse_path(self.api.registry, request.path)
        watch = self._reads.watch_request(reads.parse_request(request, parsed))
        return self._reads.watches.chunks(watch, is_connected)
