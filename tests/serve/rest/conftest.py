"""An API server on its own port, in a thread, and a minimal HTTP client."""

import asyncio
import http.client
import json
import threading
from random import Random
from urllib.parse import urlsplit

import pytest
from aiohttp import web

from moorage.api import timestamps
from moorage.cluster.api_server import ApiServer
from moorage.cluster.objects import validation
from moorage.serve.journaled_store import open_store
from moorage.serve.protobuf import envelope
from moorage.serve.rest.app import AppSettings, make_app

START = 1_800_000_000.0
TIMEOUT_SECONDS = 60.0


class Response:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        if self.headers.get("Content-Type") == envelope.MEDIA_TYPE:
            return envelope.decode(self.body)
        return json.loads(self.body)


class Served:
    """A server whose time changes only when a test sets `now`."""

    def __init__(self, journal=None, settings=None, log_size=1000):
        self.now = START
        random = Random(7)
        self.store = open_store(
            clock=lambda: timestamps.to_text(self.now),
            uid=lambda: validation.generate_uid(random),
            journal=journal,
            log_size=log_size,
        )
        self.api = ApiServer(self.store, now=lambda: self.now, random=random)
        self._settings = settings or AppSettings()
        self._ready = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self._thread.start()
        assert self._ready.wait(TIMEOUT_SECONDS)

    async def _run(self):
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        app = make_app(self.api, self._settings)
        # As in `serve`: open requests do not delay the shutdown.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def close(self):
        if not self._thread.is_alive():  # The test may have stopped it already.
            return
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(TIMEOUT_SECONDS)
        assert not self._thread.is_alive()

    def request(self, method, path, body=None, *, media="application/json", **headers):
        """One request on its own connection."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_SECONDS)
        try:
            if body is not None and not isinstance(body, bytes):
                body = json.dumps(body).encode()
            given = {"Content-Type": media} if body is not None else {}
            given |= {name.replace("_", "-"): value for name, value in headers.items()}
            connection.request(method, path, body, given)
            got = connection.getresponse()
            return Response(got.status, got.headers, got.read())
        finally:
            connection.close()

    def get(self, path, **headers):
        return self.request("GET", path, **headers)

    def post(self, path, body, **headers):
        return self.request("POST", path, body, **headers)

    def put(self, path, body, **headers):
        return self.request("PUT", path, body, **headers)

    def patch(self, path, body, media, **headers):
        return self.request("PATCH", path, body, media=media, **headers)

    def delete(self, path, body=None, **headers):
        return self.request("DELETE", path, body, **headers)

    def watch(self, path):
        """All lines of a watch with a timeout."""
        lines = self.get(path).body.splitlines()
        return [json.loads(line) for line in lines]

    @property
    def host(self):
        return urlsplit(self.url).netloc


@pytest.fixture
def serve():
    """Start servers; all of them stop at the end of the test."""
    running = []

    def start(**options):
        running.append(Served(**options))
        return running[-1]

    yield start
    for each in running:
        each.close()


@pytest.fixture
def server(serve):
    return serve()


@pytest.fixture
def make_pod():
    def make(name="web", **spec):
        spec = {"containers": [{"name": "app", "image": "nginx"}], **spec}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": spec,
        }

    return make
