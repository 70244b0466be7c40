"""Load: nodes and pods through HTTP, scheduled, with watches that must not miss a change.

Small here; `make load` runs the size that docs/serve.md gives figures for.
"""

import asyncio
import json
import os
import time
from collections import Counter

import aiohttp

FULL = os.environ.get("MOORAGE_LOAD") == "full"
NODES, PODS = (1000, 5000) if FULL else (100, 400)
WATCHERS = 4
AT_ONCE = 16
POD = {
    "containers": [
        {
            "name": "c",
            "image": "a",
            "resources": {"requests": {"cpu": "100m", "memory": "100Mi"}},
        }
    ]
}


class Watcher:
    """Lists once, then watches; keeps every event as (type, name, version)."""

    def __init__(self) -> None:
        self.events = []
        self.running = set()
        self.done = asyncio.Event()

    async def follow(self, session, began) -> None:
        async with session.get("/api/v1/pods") as answer:
            version = (await answer.json())["metadata"]["resourceVersion"]
        began.set()
        params = {"watch": "1", "resourceVersion": version, "timeoutSeconds": "300"}
        async with session.get("/api/v1/pods", params=params) as answer:
            async for line in answer.content:
                self.hear(json.loads(line))
                if len(self.running) == PODS:
                    self.done.set()

    def hear(self, event) -> None:
        meta = event["object"]["metadata"]
        self.events.append((event["type"], meta["name"], int(meta["resourceVersion"])))
        if event["object"]["status"]["phase"] == "Running":
            self.running.add(meta["name"])


async def create(session, path, objects) -> float:
    """Create objects concurrently; returns the duration."""
    began = time.perf_counter()
    left = iter(objects)

    async def some() -> None:
        for obj in left:
            async with session.post(path, json=obj) as answer:
                assert answer.status == 201, await answer.text()

    await asyncio.gather(*(some() for _ in range(AT_ONCE)))
    return time.perf_counter() - began


async def burden(url):
    """The measurements, and the events of each watch."""
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, connector=connector, read_bufsize=2**24) as session:
        watchers = [Watcher() for _ in range(WATCHERS)]
        begun = [asyncio.Event() for _ in watchers]
        tasks = [
            asyncio.create_task(watcher.follow(session, event))
            for watcher, event in zip(watchers, begun, strict=True)
        ]
        await asyncio.gather(*(event.wait() for event in begun))
        nodes = ({"metadata": {"name": f"n{number}"}} for number in range(NODES))
        figures = {"nodes": await create(session, "/api/v1/nodes", nodes)}
        pods = ({"metadata": {"name": f"p{number}"}, "spec": POD} for number in range(PODS))
        began = time.perf_counter()
        slowest = asyncio.create_task(slowest_answer(session))
        path = "/api/v1/namespaces/default/pods"
        figures["pods"] = await create(session, path, pods)
        await asyncio.gather(*(watcher.done.wait() for watcher in watchers))
        figures["all running"] = time.perf_counter() - began
        slowest.cancel()
        figures["slowest answer"] = max((await asyncio.gather(slowest))[0])
        async with session.get("/api/v1/pods") as answer:
            there = (await answer.json())["items"]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return figures, watchers, there


async def slowest_answer(session):
    """The latency of small requests under load."""
    took = [0.0]
    try:
        while True:
            began = time.perf_counter()
            async with session.get("/api/v1/namespaces/default") as answer:
                await answer.read()
            took.append(time.perf_counter() - began)
            await asyncio.sleep(0.05)
    except asyncio.CancelledError:
        return took


def test_every_watch_gets_every_change_once(serving):
    with serving("--nodes", "0") as server:
        figures, watchers, there = asyncio.run(burden(server.url))
    if FULL:
        print({name: round(seconds, 2) for name, seconds in figures.items()})  # noqa: T201
    last = {pod["metadata"]["name"]: int(pod["metadata"]["resourceVersion"]) for pod in there}
    assert len(last) == PODS
    assert all(pod["spec"].get("nodeName") for pod in there)
    for watcher in watchers:
        versions = [version for _, _, version in watcher.events]
        assert versions == sorted(set(versions))  # in order, and nothing twice
        assert Counter(type_ for type_, _, _ in watcher.events)["ADDED"] == PODS
        assert {name: version for _, name, version in watcher.events} == last
    shortest = min(len(watcher.events) for watcher in watchers)
    first, *others = [watcher.events[:shortest] for watcher in watchers]
    assert all(other == first for other in others)
    assert figures["slowest answer"] < 30  # On a busy machine too; a block would last for good.
