"""Watches of large objects and of slow clients."""

import asyncio
import contextlib
import itertools
import json

import pytest

from moorage.cluster.resources import CONFIG_MAPS
from moorage.cluster.store import Store
from moorage.serve.rest import lists, requests
from moorage.serve.rest.watches import Watches, WatchRequest

MEGABYTE = 1_000_000


@pytest.fixture
def store():
    uids = itertools.count()
    return Store(clock=lambda: "2026-01-01T00:00:00Z", uid=lambda: f"uid-{next(uids)}")


def large(name, text="x"):
    return {"metadata": {"name": name, "namespace": "default"}, "data": {"a": text * MEGABYTE}}


def watch_of(resource, version):
    options = requests.list_options({"watch": "1", "resourceVersion": str(version)})
    selector = lists.object_selector(resource, options)
    return WatchRequest(resource, None, selector, options, 0.0, lambda stored: stored.body)


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
