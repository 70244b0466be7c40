"""A transport in virtual time: a client, a store in memory, and faults from one seed between them.

Each request may not be sent, take long, be refused (429, 500), or be answered with 500 or not at
all after it was performed. A watch may be refused (410), cut, or wait. The same seed gives the same
run.
"""

import asyncio
import json
from urllib.parse import parse_qsl, urlsplit

import api_server

from moorage.live.api_errors import NoResponseError, NotSentError
from moorage.live.transport import HttpResponse

FAULTS = dict.fromkeys(("unsent", "busy", "error", "lost", "lost_after", "error_after"), 0.08)
LONGEST_SECONDS = 2.0
WATCH_SECONDS = 30.0


class SimulatedTransport:
    def __init__(self, store, random, until):
        self.store = store
        self.random = random
        self.until = until  # There are no faults from then on.
        self.log = []

    @property
    def now(self):
        return asyncio.get_running_loop().time()

    def happens(self, probability):
        return self.now < self.until and self.random.random() < probability

    def encode_headers(self, headers):
        return ""

    def close(self):
        pass

    async def request(self, method, path, headers, body, *, seconds, before_sending, **_):
        where = f"{method} {path.partition('?')[0]}"
        await asyncio.sleep(self.delay())
        before_sending()
        fault = next((each for each, share in FAULTS.items() if self.happens(share)), "")
        self.log.append((round(self.now, 6), method, path, fault))
        if fault == "unsent":
            raise NotSentError(f"{where}: no connection")
        if fault in ("busy", "error"):
            return response(*((429, "busy") if fault == "busy" else (500, "sorry")))
        if fault == "lost":
            raise NoResponseError(f"{where}: the connection broke")
        try:
            found = self.perform(method, path, json.loads(body) if body else None)
        except api_server.Refused as refused:
            return response(refused.code, refused.message)
        await asyncio.sleep(self.delay())
        if fault == "lost_after":
            raise NoResponseError(f"{where}: the connection broke")
        if fault == "error_after":
            return response(500, "sorry")
        return HttpResponse(200, b"http/1.1 200 ok", json.dumps(found).encode())

    def delay(self):
        return self.random.uniform(0, LONGEST_SECONDS if self.happens(0.2) else 0.01)

    def perform(self, method, path, body):
        plural, key, part = parse(path)
        match method, part:
            case "GET", _ if key is None:
                items = list(self.store.objects[plural].values())
                return {"metadata": {"resourceVersion": str(self.store.version)}, "items": items}
            case "GET", _:
                return self.store.get(plural, key)
            case "POST", "binding":
                self.store.bind(key, body)
                return {}
            case "PATCH", "status":
                return self.store.patch_status(key, body)
            case "DELETE", _:
                return self.store.delete(plural, key)
        raise AssertionError((method, path))

    async def stream(self, path, headers, *, seconds, **_):
        await asyncio.sleep(self.delay())
        self.log.append((round(self.now, 6), "WATCH", path, ""))
        if self.happens(0.1):
            raise ConnectionResetError("no watch")
        plural, _, _ = parse(path)
        since = int(dict(parse_qsl(urlsplit(path).query))["resourceVersion"])
        return SimulatedWatch(self, plural, since)


class SimulatedWatch:
    status, head = 200, b"http/1.1 200 ok"

    def __init__(self, transport, plural, since):
        self._transport = transport
        self._queue = asyncio.Queue()
        for line in transport.store.history[plural]:
            if line[0] > since:
                self._queue.put_nowait(line)
        self._watchers = transport.store.watchers[plural]
        self._watchers.add(self._queue)

    async def readany(self):
        if self._transport.happens(0.05):
            return json.dumps({"type": "ERROR", "object": {"code": 410}}).encode() + b"\n"
        try:
            line = await asyncio.wait_for(self._queue.get(), WATCH_SECONDS)
        except TimeoutError:
            return b""
        await asyncio.sleep(self._transport.delay())
        if self._transport.happens(0.05):
            raise ConnectionResetError("cut")
        return json.dumps({"type": line[1], "object": line[2]}).encode() + b"\n"

    def close(self):
        self._watchers.discard(self._queue)


def response(code, message):
    body = json.dumps({"code": code, "message": message}).encode()
    return HttpResponse(code, f"http/1.1 {code}".encode(), body)


def parse(path):
    """The plural, the key or None, and the subresource of a path."""
    steps = urlsplit(path).path.strip("/").split("/")[2:]
    if steps[0] != "namespaces" or len(steps) < 3:
        return steps[0], ("", steps[1]) if len(steps) > 1 else None, ""
    _, namespace, plural, *rest = steps
    return plural, (namespace, rest[0]) if rest else None, rest[1] if len(rest) > 1 else ""
