"""What a pod costs `moorage run`: CPU time from its first watch line to its Event.

    .venv/bin/python tools/live_cost.py --nodes 1000 --pods 5000
    .venv/bin/python tools/live_cost.py --per-second 300 --heartbeats 500
    .venv/bin/python tools/live_cost.py --compare COMMIT --repeat 5

This process is the API server, one that stores and checks nothing: it answers lists from memory,
accepts every binding and Event, and sends watch lines as long as kube-apiserver's. So the machine
has little else to do, and a run takes seconds. Pods arrive in one burst, or one by one. With
`--compare` the sources of another commit run in turn with those of this checkout.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvloop
from compare_commits import RUN, in_turn
from served_documents import STAMP, bound_document, compact, node_document, pod_document

from moorage.errors import InputError

DEADLINE_SECONDS = 300.0
STEP_SECONDS = 0.01
SETTLE_SECONDS = 1.0
BEAT_SECONDS = 10.0
CREATED = b"HTTP/1.1 201 Created\r\nAudit-Id: 6d4c1cb2-5d4e-4a8e-b7b0-a4f6f0b0d7a5\r\n"
OK = b"HTTP/1.1 200 OK\r\nAudit-Id: 6d4c1cb2-5d4e-4a8e-b7b0-a4f6f0b0d7a5\r\n"
HEADERS = (
    b"Cache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
    b"Date: Wed, 18 Nov 2026 01:02:03 GMT\r\n"
    b"X-Kubernetes-Pf-Flowschema-Uid: 8f0a3b1e-3d0a-4b59-9d8a-0c6c1a2b3c4d\r\n"
    b"X-Kubernetes-Pf-Prioritylevel-Uid: 1c2d3e4f-0a1b-4c5d-8e9f-a0b1c2d3e4f5\r\n"
)
BOUND = json.dumps(
    {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201}
).encode()


def watch_line(kind: str, document: dict[str, Any]) -> bytes:
    return compact({"type": kind, "object": document}) + b"\n"


class Server:
    """The API server: the nodes, the open watches, and what was received."""

    def __init__(self, nodes: int) -> None:
        self.nodes = [compact(node_document(i)) for i in range(nodes)]
        self.watches: dict[str, asyncio.Transport] = {}
        self.bound = 0
        self.events = 0
        self._version = 1
        self._pod = watch_line("ADDED", pod_document())
        self._bound_pod = watch_line("MODIFIED", bound_document())

    def next_version(self) -> bytes:
        self._version += 1
        return b"%d" % self._version

    def create_pod(self, i: int) -> None:
        line = self._pod.replace(b"NAME", b"web-6d4cf56db6-%05d" % i)
        self.send("pods", line.replace(b"VERSION", self.next_version()))

    def beat(self, i: int) -> None:
        """Send the node as it is a moment later."""
        node = self.nodes[i % len(self.nodes)]
        stamp = b'"lastHeartbeatTime":"%s"' % time.strftime("%Y-%m-%dT%H:%M:%SZ").encode()
        node = node.replace(b'"lastHeartbeatTime":"%s"' % STAMP.encode(), stamp)
        version = b'"resourceVersion":"%s"' % self.next_version()
        node = node.replace(b'"resourceVersion":"1"', version)
        self.send("nodes", b'{"type":"MODIFIED","object":%s}\n' % node)

    def send(self, plural: str, line: bytes) -> None:
        self.watches[plural].write(b"%x\r\n%s\r\n" % (len(line), line))

    def respond(self, transport: asyncio.Transport, target: str, body: bytes) -> None:
        path, _, query = target.partition("?")
        plural = path.rpartition("/")[2]
        if "watch=true" in query:
            self.watches[plural] = transport
            transport.write(OK + HEADERS + b"Transfer-Encoding: chunked\r\n\r\n")
        elif plural == "binding":
            self._bind(transport, path.split("/")[-2], body)
        elif plural == "events":
            self.events += 1
            answer(transport, CREATED, body)
        else:
            items = b",".join(self.nodes) if plural == "nodes" else b""
            version = self.next_version()
            page = b'{"metadata":{"resourceVersion":"%s"},"items":[%s]}' % (version, items)
            answer(transport, OK, page)

    def _bind(self, transport: asyncio.Transport, pod: str, body: bytes) -> None:
        self.bound += 1
        answer(transport, CREATED, BOUND)
        node = json.loads(body)["target"]["name"].encode()
        line = self._bound_pod.replace(b"NAME", pod.encode()).replace(b"NODE", node)
        self.send("pods", line.replace(b"VERSION", self.next_version()))


def answer(transport: asyncio.Transport, head: bytes, body: bytes) -> None:
    transport.write(b"%s%sContent-Length: %d\r\n\r\n%s" % (head, HEADERS, len(body), body))


class HttpServer(asyncio.Protocol):
    """One connection of the server."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._received = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end]
            found = re.search(rb"(?i)content-length: (\d+)", head)
            behind = end + 4 + (int(found[1]) if found else 0)
            if len(self._received) < behind:
                return
            body, self._received = self._received[end + 4 : behind], self._received[behind:]
            self._server.respond(self._transport, head.split(b" ", 2)[1].decode(), body)


@contextmanager
def scheduler(source: Path, port: int, folder: str, flags: list[str]) -> Iterator[int]:
    """`moorage run` of these sources in a process; its ID."""
    cluster = {"name": "stub", "cluster": {"server": f"http://127.0.0.1:{port}"}}
    context = {"name": "stub", "context": {"cluster": "stub", "user": "nobody"}}
    user = {"name": "nobody", "user": {"token": "t" * 900}}  # As long as a ServiceAccount's.
    Path(folder, "kubeconfig").write_text(
        json.dumps(
            {
                "apiVersion": "v1",
                "kind": "Config",
                "current-context": "stub",
                "clusters": [cluster],
                "contexts": [context],
                "users": [user],
            }
        )
    )
    command = [sys.executable, "-c", RUN, "run", "--kubeconfig", f"{folder}/kubeconfig"]
    options = ["--leader-elect=false", "--kube-api-qps=-1", "--secure-port=0", *flags]
    environment = {**os.environ, "PYTHONPATH": str(source)}
    with subprocess.Popen([*command, *options], env=environment, stderr=subprocess.DEVNULL) as run:
        try:
            yield run.pid
        finally:
            run.kill()


def cpu_seconds(process: int) -> float:
    """CPU time of a process's first thread, to the nanosecond."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9


async def measure(source: Path, arguments: argparse.Namespace) -> tuple[float, float]:
    """Milliseconds of CPU time per pod, or per heartbeat without pods, and how many per second."""
    server = Server(arguments.nodes)
    loop = asyncio.get_running_loop()
    listening = await loop.create_server(lambda: HttpServer(server), "127.0.0.1", 0)
    port = listening.sockets[0].getsockname()[1]
    with (
        tempfile.TemporaryDirectory() as folder,
        scheduler(source, port, folder, arguments.flags) as process,
    ):
        await until(lambda: {"nodes", "pods"} <= server.watches.keys())
        await schedule(server, 1, 0)  # The first pod of a template costs more.
        await asyncio.sleep(SETTLE_SECONDS)
        before, began = cpu_seconds(process), time.monotonic()
        beating = asyncio.create_task(beat(server, arguments.heartbeats))
        count = arguments.pods
        if count:
            lasted = await schedule(server, count, arguments.per_second)
        else:
            await asyncio.sleep(BEAT_SECONDS)
            lasted, count = time.monotonic() - began, int(BEAT_SECONDS * arguments.heartbeats)
        beating.cancel()
        await asyncio.sleep(SETTLE_SECONDS)
        spent = cpu_seconds(process) - before
    listening.close()
    return 1000 * spent / count, count / lasted


async def schedule(server: Server, pods: int, per_second: float) -> float:
    """Create pods and wait for their Events; seconds until the last binding."""
    began, first = time.monotonic(), server.bound
    for i in range(pods):
        server.create_pod(first + i)
        if per_second:
            await asyncio.sleep(max(began + (i + 1) / per_second - time.monotonic(), 0))
    await until(lambda: server.bound >= first + pods)
    lasted = time.monotonic() - began
    await until(lambda: server.events >= first + pods)
    return lasted


async def beat(server: Server, per_second: float) -> None:
    """Send heartbeats of the nodes in turn until cancelled."""
    began = time.monotonic()
    for i in itertools.count():
        if not per_second:
            return
        server.beat(i)
        await asyncio.sleep(max(began + (i + 1) / per_second - time.monotonic(), 0))


async def until(is_done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not is_done():
        if time.monotonic() > deadline:
            sys.exit(f"not done after {DEADLINE_SECONDS:.0f} seconds")
        await asyncio.sleep(STEP_SECONDS)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=5000, help="0: heartbeats only")
    parser.add_argument("--per-second", type=float, default=0.0, help="0: all pods at once")
    parser.add_argument("--heartbeats", type=float, default=0.0, help="of nodes, per second")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--compare", metavar="COMMIT")
    parser.add_argument("flags", nargs="*", help="further flags of `moorage run`, behind --")
    arguments = parser.parse_args()
    for name, least in (
        ("nodes", 1),
        ("pods", 0),
        ("per_second", 0),
        ("heartbeats", 0),
        ("repeat", 1),
    ):
        if not getattr(arguments, name) >= least:
            flag = name.replace("_", "-")
            parser.error(f"--{flag} is {getattr(arguments, name)}; it has to be {least} or more")
    if arguments.pods == 0 and arguments.heartbeats == 0:
        parser.error("--pods is 0; then --heartbeats has to be above 0")

    def measured(name: str, source: Path) -> float:
        cost, rate = uvloop.run(measure(source, arguments))
        print(f"{name}: {1000 * cost:.0f} us of CPU time, {rate:.0f} per second", flush=True)
        return cost

    in_turn(arguments.compare, arguments.repeat, measured)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        print(f"live_cost.py: {error}", file=sys.stderr)
        sys.exit(2)
