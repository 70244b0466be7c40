"""Watches of large objects and of slow clients."""

import asyncio
import contextlib
import itertools
import json
import time

import pytest

from moorage.cluster.resources import CONFIG_MAPS, PODS
from moorage.cluster.store import Store
from moorage.serve.journaled_store import open_store
from moorage.serve.rest import lists, requests, watches
from moorage.serve.rest.watches import Watches, WatchRequest
from moorage.serve.sqlite import SqliteJournal

MEGABYTE = 1_000_000


@pytest.fixture
def store():
    uids = itertools.count()
    return Store(clock=lambda: "2026-01-01T00:00:00Z", uid=lambda: f"uid-{next(uids)}")


def large(name, text="x"):
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"a": text * MEGABYTE}}


def watch_of(resource, version, seconds=0.0, **query):
    options = requests.list_options({"watch": "1", "resourceVersion": str(version), **query})
    selector = lists.object_selector(resource, options)
    return WatchRequest(resource, None, selector, options, seconds, lambda stored: stored.body)


async def chunks(store, watch, meanwhile=lambda count: None):
    """All chunks of a watch, and what happens after each of them."""
    found = []
    stream = Watches(store).chunks(watch, lambda: True)
    async with contextlib.aclosing(stream):
        async for chunk in stream:
            found.append(chunk)
            meanwhile(len(found))
    return found


def test_a_write_has_few_large_objects(store):
    for number in range(20):
        store.create(CONFIG_MAPS, large(f"c{number}"))
    for version in (0, 1):
        found = asyncio.run(chunks(store, watch_of(CONFIG_MAPS, version)))
        assert max(map(len, found)) < 3 * MEGABYTE
        lines = [json.loads(line) for line in b"".join(found).splitlines()]
        names = {each["object"]["metadata"]["name"] for each in lines}
        assert (len(lines), len(names)) == (20, 20)


def test_a_client_that_is_slower_than_the_history_is_expired(store):
    store.create(CONFIG_MAPS, large("c"))

    def change(count):
        for number in range(100 if count == 1 else 0):
            store.update(CONFIG_MAPS, large("c", str(number % 10)))

    (*_, last) = asyncio.run(chunks(store, watch_of(CONFIG_MAPS, 0), change))
    error = json.loads(last)
    assert (error["type"], error["object"]["code"]) == ("ERROR", 410)
    assert "too old resource version" in error["object"]["message"]


def small(name):
    return {"metadata": {"name": name, "namespace": "default"}}


def test_a_watch_ends_and_has_bookmarks_while_objects_change(store, monkeypatch):
    monkeypatch.setattr(watches, "BOOKMARK_SECONDS", 0.05)

    async def watch_during_changes(**query):
        async def change():
            for number in itertools.count():
                store.create(CONFIG_MAPS, small(f"{query.get('fieldSelector', 'a')[0]}{number}"))
                await asyncio.sleep(0.002)

        changing = asyncio.create_task(change())
        found = await chunks(store, watch_of(CONFIG_MAPS, 0, 0.5, **query))
        changing.cancel()
        return [json.loads(line)["type"] for line in b"".join(found).splitlines()]

    found = asyncio.run(asyncio.wait_for(watch_during_changes(), 30))
    assert set(found) == {"ADDED"}
    query = {"fieldSelector": "metadata.name=none", "allowWatchBookmarks": "true"}
    found = asyncio.run(asyncio.wait_for(watch_during_changes(**query), 30))
    assert set(found) == {"BOOKMARK"}


def test_a_change_wakes_the_watches_of_its_kind_alone(store):
    """A thousand idle watches took 14 ms of each change."""

    async def idle():
        found = Watches(store)
        waiting = [
            asyncio.create_task(anext(found.chunks(watch_of(CONFIG_MAPS, 0, 60.0), lambda: True)))
            for _ in range(200)
        ]
        await asyncio.sleep(0.1)
        began = time.process_time()
        for number in range(500):
            store.create(PODS, small(f"p{number}"))
            await asyncio.sleep(0)
        spent = time.process_time() - began
        store.create(CONFIG_MAPS, small("a"))
        lines = await asyncio.gather(*waiting)
        assert all(b'"ADDED"' in line for line in lines)
        return spent

    assert asyncio.run(idle()) < 0.5  # 1.4 seconds


def test_watches_of_a_journaled_store_see_what_becomes_durable_later(tmp_path):
    async def watched():
        store = open_store(
            clock=lambda: "2026-01-01T00:00:00Z",
            uid=lambda: "uid",
            journal=SqliteJournal(tmp_path),
        )
        store.start()
        found = Watches(store)
        stream = found.chunks(watch_of(CONFIG_MAPS, 1, 60.0), lambda: True)
        for number in range(20):
            store.create(CONFIG_MAPS, small(f"c{number}"))
            await asyncio.sleep(0.001 * (number % 3))
        lines = b""
        while lines.count(b"\n") < 20:
            lines += await asyncio.wait_for(anext(stream), 30)
        await stream.aclose()
        found.close()
        await store.wait_until_durable()
        store.close()

    asyncio.run(watched())
