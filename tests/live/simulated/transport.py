"""The transport of a simulation: connects one process to the simulated server, with faults.

A request is on the network from the moment it is sent: it arrives, or not, whatever happens to the
process meanwhile. `faults` lists the faults.
"""

import asyncio
import json
from collections import deque
from contextlib import aclosing
from urllib.parse import parse_qsl, urlencode, urlsplit

from moorage.cluster.status_errors import StatusError
from moorage.live.api_errors import NoResponseError, NotSentError
from moorage.live.transport import HttpResponse

CONNECT_SECONDS = 0.02
KEEP_ALIVE_SECONDS = 30.0
STALE_VERSIONS = 40
HELD_SECONDS, BOOKMARKS = 4.0, 5
RETRY = "\r\nretry-after: 1"
METHODS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410}


def classify(method, path):
    """The verb and the kind of a request."""
    parts = urlsplit(path)
    steps = parts.path.strip("/").split("/")
    steps = steps[2:] if steps[0] == "api" else steps[3:]
    if len(steps) > 2 and steps[0] == "namespaces":
        steps = steps[2:]
    if steps[2:] == ["binding"]:
        return "bind", steps[0]
    if method == "GET":
        return ("get" if len(steps) > 1 else "list"), steps[0] if steps else "version"
    return METHODS[method], steps[0]


class SimulatedTransport:
    """See the module; `network` records every request and every response."""

    def __init__(self, process, server, plan, network):
        self.process = process
        self.server = server
        self.plan = plan
        self.network = network
        self._loop = process.loop

    def encode_headers(self, headers):
        return json.dumps(headers)

    def close(self):
        pass

    async def request(self, method, path, headers, body, *, seconds, before_sending, **_):
        where = f"{method} {path.partition('?')[0]}"
        verb, plural = classify(method, path)
        await self._connect(where)
        before_sending()
        sent_at = self._loop.time()
        fault = self.plan.decide(sent_at, self.process.name, verb, plural)
        self.network.sent(self.process, verb, plural, path, fault)
        if fault == "unsent":
            raise NotSentError(f"{where}: no connection")
        if fault == "stale":
            path = self._stale(path)
        answer = self._loop.create_future()
        self._loop.spawn(self._carry(answer, fault, (method, path, json.loads(headers), body)))
        try:
            async with asyncio.timeout(seconds):
                response = await answer
        except TimeoutError:
            raise NoResponseError(f"{where}: no answer within {seconds:g} s") from None
        self.network.answered(self.process, verb, plural, sent_at, body, response.status)
        return response

    async def _connect(self, where):
        if self.plan.random.random() < 0.2:
            await asyncio.sleep(self.plan.random.uniform(0, CONNECT_SECONDS))
        if self.process.is_dead:
            raise NotSentError(f"{where}: the process was killed")

    async def _carry(self, answer, fault, request):
        """The way of a request to the server and back."""
        await asyncio.sleep(self.plan.there_seconds(fault))
        if fault in ("lost", "hang"):
            response = None
        elif fault == "busy":
            response = refusal(429, "busy", RETRY)
        elif fault == "error":
            response = refusal(self.plan.random.choice((500, 503, 504)), "sorry")
        elif not self.server.accepts(request[2]):
            response = refusal(401, "Unauthorized")
        else:
            response = await self.server.respond(*request)
            self.network.performed(self.process, request, response)
        await asyncio.sleep(self.plan.back_seconds(fault))
        if answer.done() or fault in ("hang", "hang_after"):
            return
        if fault in ("lost", "lost_after"):
            answer.set_exception(NoResponseError("the connection broke"))
        else:
            answer.set_result(refusal(500, "sorry") if fault == "error_after" else response)

    def _stale(self, path):
        """A list as a server that is behind would answer it."""
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        if "continue" in query:
            return path
        store = self.server.api.store
        version = max(store.version - self.plan.random.randint(1, STALE_VERSIONS), store.floor)
        query |= {"resourceVersion": version, "resourceVersionMatch": "Exact"}
        return f"{parts.path}?{urlencode(query)}"

    async def stream(self, path, headers, *, seconds, **_):
        _, plural = classify("GET", path)
        await self._connect(f"GET {path.partition('?')[0]}")
        fault = self.plan.decide(self._loop.time(), self.process.name, "watch", plural)
        self.network.sent(self.process, "watch", plural, path, fault)
        await asyncio.sleep(self.plan.there_seconds(fault))
        if fault == "unsent":
            raise ConnectionRefusedError("no connection")
        if fault in ("busy", "error", "gone"):
            code = {"busy": 429, "error": 503, "gone": 410}[fault]
            return SimulatedStream.of(refusal(code, "sorry", RETRY if fault == "busy" else ""))
        if not self.server.accepts(json.loads(headers)):
            return SimulatedStream.of(refusal(401, "Unauthorized"))
        if fault == "replay":
            path = self._earlier(path)
        stream = SimulatedStream(self._loop.time() + seconds)
        self._loop.spawn(self._send(stream, path, plural))
        return stream

    def _earlier(self, path):
        """A watch that begins with events which were sent before."""
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        version = int(query["resourceVersion"]) - self.plan.random.randint(1, STALE_VERSIONS)
        return f"{parts.path}?{urlencode(query | {'resourceVersion': max(version, 1)})}"

    async def _send(self, stream, path, plural):
        """The way of the events of a watch to the process, in order."""
        draw, last = self.plan.random, b""
        since = dict(parse_qsl(urlsplit(path).query))["resourceVersion"]
        try:
            chunks = self.server.watch(path, lambda: stream.is_open)
        except StatusError as error:
            stream.put(event("ERROR", error.to_status()))
            stream.put(b"")
            return
        async with aclosing(chunks):
            async for chunk in chunks:
                now = self._loop.time()
                fault = self.plan.decide(now, self.process.name, "watch", plural)
                await asyncio.sleep(self.plan.there_seconds(fault))
                if fault == "cut":
                    if part := chunk[: draw.randint(0, len(chunk))]:
                        stream.put(part)
                    stream.put(ConnectionResetError("cut"))
                    return
                if fault == "stall":
                    await asyncio.sleep(KEEP_ALIVE_SECONDS)
                    stream.put(ConnectionResetError("no keep-alive"))
                    return
                if fault == "gone":
                    stream.put(chunk + event("ERROR", GONE))
                    return
                if fault == "hold":
                    await self._hold(stream, version_of(last) if last else since)
                last = chunk
                if fault == "garble":
                    chunk += chunk[: draw.randint(1, len(chunk) - 2)] + b"\n"
                stream.put(chunk)
                if fault == "repeat":
                    stream.put(chunk)
        stream.put(b"")

    async def _hold(self, stream, version):
        """For a while, nothing but bookmarks with the version of the last event."""
        for _ in range(self.plan.random.randint(1, BOOKMARKS)):
            stream.put(event("BOOKMARK", {"metadata": {"resourceVersion": version}}))
            await asyncio.sleep(self.plan.random.uniform(0, HELD_SECONDS))


class SimulatedStream:
    """A response that arrives in parts; an exception or b"" is the last one."""

    def __init__(self, ends_at, status=200, head=b"http/1.1 200"):
        self.status, self.head = status, head
        self.is_open = True
        self._ends_at = ends_at
        self._parts = deque()
        self._arrived = asyncio.Event()

    @classmethod
    def of(cls, response):
        stream = cls(None, response.status, response.head)
        stream.put(response.body)
        stream.put(b"")
        return stream

    def put(self, part):
        self._parts.append(part)
        self._arrived.set()

    async def readany(self):
        async with asyncio.timeout_at(self._ends_at):
            while not self._parts:
                self._arrived.clear()
                await self._arrived.wait()
        part = self._parts.popleft()
        if isinstance(part, Exception):
            raise part
        return part

    async def read(self):
        found = []
        while part := await self.readany():
            found.append(part)
        return b"".join(found)

    def close(self):
        self.is_open = False


def version_of(chunk):
    """The version of the last event of a chunk."""
    return json.loads(chunk.splitlines()[-1])["object"]["metadata"]["resourceVersion"]


def event(type_, obj):
    return json.dumps({"type": type_, "object": obj}).encode() + b"\n"


def refusal(code, message, headers=""):
    body = json.dumps({"code": code, "message": message}).encode()
    return HttpResponse(code, f"http/1.1 {code}{headers}".encode(), body)
