"""A proxy between a scheduler and an API server that injects faults.

    python faulty_proxy.py UPSTREAM [--seed 7]           prints its address, and serves

PUT /faults with a JSON object sets how likely each fault is, from 0 to 1:

    drop       the connection ends without an answer, before the request is carried out
    drop_after the same, after it was carried out: the client does not know
    busy       429 with Retry-After, before
    error      500, before;   error_after: 500 although it was carried out
    slow       the answer takes `slow_seconds`
    gone       a watch ends with 410
    cut        a watch is cut off, within a line
    garble     a line of a watch cannot be read
    double     an event of a watch comes twice
    delay      an event of a watch, and all behind it, come `delay_seconds` late

Leases are left alone unless `leases` is true. `answers` are documents by path that the proxy serves
itself. GET /faults says how often each fault happened, and how many bindings were asked for; GET
/seen what was done to which resources, as roles speak of it.
"""

import argparse
import asyncio
import json
import random

import aiohttp
from aiohttp import web

NO_FAULTS = {"slow_seconds": 0.2, "delay_seconds": 0.2, "leases": False, "answers": {}}
HOP_BY_HOP = {"transfer-encoding", "connection", "content-length", "keep-alive", "host"}


VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}


def access(request):
    """Group, resource and verb of a request."""
    _, root, *rest = request.path.split("/")
    group = rest.pop(0) if root == "apis" else ""
    rest = rest[1:]  # the version
    if rest[0] == "namespaces" and len(rest) > 2:
        rest = rest[2:]
    resource = "/".join([rest[0], *rest[2:]])
    reading = "watch" if "watch" in request.query else "get" if len(rest) > 1 else "list"
    return group, resource, VERBS.get(request.method, reading)


class Proxy:
    def __init__(self, upstream, seed):
        self.upstream = upstream
        self.random = random.Random(seed)
        self.faults = dict(NO_FAULTS)
        self.counts = {}
        self.seen = set()

    def hits(self, fault):
        hit = self.random.random() < self.faults.get(fault, 0)
        if hit:
            self.counts[fault] = self.counts.get(fault, 0) + 1
        return hit

    async def handle(self, request):
        if request.path == "/faults":
            if request.method == "PUT":
                self.faults = NO_FAULTS | await request.json()
            return web.json_response(self.counts)
        if request.path == "/seen":
            return web.json_response(sorted(self.seen))
        if request.path in self.faults["answers"]:
            return web.json_response(self.faults["answers"][request.path])
        if request.path != "/version":  # Open to all, whatever the roles say.
            self.seen.add(access(request))
        body = await request.read()
        if request.path.endswith("/binding"):
            self.counts["bindings"] = self.counts.get("bindings", 0) + 1
        is_calm = "/leases" in request.path and not self.faults["leases"]
        if not is_calm and (fault := self.before(request)) is not None:
            return fault
        headers = {k: v for k, v in request.headers.items() if k.lower() not in HOP_BY_HOP}
        async with self.session.request(
            request.method,
            self.upstream + request.raw_path,
            data=body or None,
            headers=headers,
            timeout=aiohttp.ClientTimeout(total=None),
        ) as answer:
            if request.query.get("watch") and answer.status == 200:
                return await self.watch(request, answer)
            content = await answer.read()
        if not is_calm:
            if self.hits("slow"):
                await asyncio.sleep(self.faults["slow_seconds"])
            if (fault := self.after(request)) is not None:
                return fault
        return web.Response(
            body=content, status=answer.status, content_type=answer.content_type or None
        )

    def before(self, request):
        if self.hits("drop"):
            return self.hang_up(request)
        if self.hits("busy"):
            return web.json_response(
                {"kind": "Status", "code": 429, "message": "too many requests, please try again"},
                status=429,
                headers={"Retry-After": "0"},
            )
        return self.failure() if self.hits("error") else None

    def after(self, request):
        if self.hits("drop_after"):
            return self.hang_up(request)
        return self.failure() if self.hits("error_after") else None

    def failure(self):
        return web.json_response(
            {"kind": "Status", "code": 500, "message": "etcdserver: request timed out"}, status=500
        )

    def hang_up(self, request):
        request.transport.abort()
        return web.Response()

    async def watch(self, request, answer):
        near = web.StreamResponse(headers={"Content-Type": "application/json"})
        await near.prepare(request)
        try:
            rest = b""
            while chunk := await answer.content.readany():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in filter(None, lines):
                    if not await self.pass_on(request, near, line):
                        return near
        except (aiohttp.ClientError, ConnectionError):
            pass
        return near

    async def pass_on(self, request, near, line):
        if self.hits("gone"):
            status = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}
            await near.write(json.dumps({"type": "ERROR", "object": status}).encode() + b"\n")
            return False
        if self.hits("cut"):
            await near.write(line[: len(line) // 2])
            request.transport.abort()
            return False
        if self.hits("garble"):
            line = line[: len(line) // 2]
        if self.hits("delay"):
            await asyncio.sleep(self.faults["delay_seconds"])
        await near.write(line + b"\n")
        if self.hits("double"):
            await near.write(line + b"\n")
        return True


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("upstream")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--seed", type=int, default=7)
    arguments = parser.parse_args()
    proxy = Proxy(arguments.upstream, arguments.seed)
    app = web.Application(client_max_size=2**26)
    app.router.add_route("*", "/{path:.*}", proxy.handle)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.5)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", arguments.port)
    await site.start()
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)) as proxy.session:
        port = site._server.sockets[0].getsockname()[1]
        print(f"http://127.0.0.1:{port}", flush=True)  # noqa: T201  # read by the parent process
        await asyncio.Event().wait()


if __name__ == "__main__":
    asyncio.run(main())
