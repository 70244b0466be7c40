"""An HTTP extender of a simulation: accepts every node, gives scores, and binds; with faults."""

import asyncio
import json

from moorage.api import config
from moorage.api.meta import ObjectMeta
from moorage.cluster.status_errors import StatusError
from moorage.cluster.verbs.binding import Binding, BindingTarget
from moorage.live.api_errors import NoResponseError, NotSentError
from moorage.live.transport import HttpResponse

SETTINGS = config.Extender(
    url_prefix="http://extender",
    filter_verb="filter",
    prioritize_verb="prioritize",
    bind_verb="bind",
    weight=1,
    node_cache_capable=True,
    http_timeout_seconds=5.0,
)
FAULTS = ("unsent", "lost", "lost_after", "error", "garbage", "refuse")
SHARE = 0.03


class DirectCalls:
    """Calls without a thread: an answer to filter or prioritize is there at once."""

    def wait(self, call):
        try:
            call.send(None)
        except StopIteration as stopped:
            return stopped.value
        raise AssertionError("an extender's answer has to be there at once")

    async def run(self, call):
        return await call

    def at_once(self, calls):
        found = []
        for call in calls:
            try:
                found.append(call())
            except Exception as error:
                found.append(error)
        return found


class ExtenderTransport:
    def __init__(self, process, system):
        self._process = process
        self._system = system

    def encode_headers(self, headers):
        return ""

    def close(self):
        pass

    async def request(self, method, path, headers, body, *, seconds, **_):
        system = self._system
        draw, now = system.plan.random, system.loop.time()
        has_fault = now < system.plan.until and draw.random() < SHARE
        fault = draw.choice(FAULTS) if has_fault else ""
        given, verb = json.loads(body), path.strip("/")
        system.network.sent_to_extender(self._process, verb, fault)
        if fault == "unsent" or self._process.is_dead:
            raise NotSentError("no connection")
        if fault == "lost":
            raise NoResponseError("the connection broke")
        if fault == "error":
            return HttpResponse(500, b"http/1.1 500", b"")
        if fault == "garbage" and verb != "bind":
            return HttpResponse(200, b"http/1.1 200", b"<html>")
        if fault == "refuse":
            return answer({"Error": "out of order"} if verb != "prioritize" else None)
        if verb == "filter":
            return answer({"NodeNames": given["NodeNames"]})
        if verb == "prioritize":
            return answer([{"Host": each, "Score": len(each)} for each in given["NodeNames"]])
        performing = system.loop.spawn(self._bind(given))
        await asyncio.wait({performing})
        if fault == "lost_after":
            raise NoResponseError("the connection broke")
        return performing.result()

    async def _bind(self, given):
        await asyncio.sleep(self._system.plan.there_seconds(""))
        meta = ObjectMeta(uid=given["PodUID"])
        binding = Binding(BindingTarget("Node", given["Node"]), meta)
        try:
            self._system.server.api.bind(given["PodNamespace"], given["PodName"], binding)
        except StatusError as error:
            return answer({"Error": str(error)})
        return answer({"Error": ""})


def answer(value):
    return HttpResponse(200, b"http/1.1 200", json.dumps(value).encode())
