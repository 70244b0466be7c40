"""A store on a journal: what it loads, and which requests wait for the journal."""

import asyncio

import pytest

from moorage.cluster.resources import CONFIG_MAPS
from moorage.cluster.status_errors import UnavailableError
from moorage.serve.journaled_store import JournalRow, open_store

BODY = b'{"metadata":{"name":"a","namespace":"default","resourceVersion":"7"}}'


class FakeJournal:
    """A journal with one row; what is written gets durable when the test says so."""

    def load(self):
        return [JournalRow(7, CONFIG_MAPS.storage_key, "default", "a", BODY)], 7, 7

    def start(self, notify):
        pass

    def write(self, row):
        pass


def make_store():
    return open_store(clock=lambda: "2026-01-01T00:00:00Z", uid=lambda: "u", journal=FakeJournal())


def test_objects_are_loaded_with_their_bytes():
    [(_, stored)] = make_store().snapshot(CONFIG_MAPS)
    assert (stored.body, stored.version) == (BODY, 7)


@pytest.mark.parametrize("failure", [None, OSError("no space")], ids=["written", "not written"])
def test_requests_that_wait_for_the_journal(failure):
    """One of two is cancelled, because its client has gone."""

    async def run():
        store = make_store()
        store.create(CONFIG_MAPS, {"metadata": {"name": "b", "namespace": "default"}})
        waiting = [asyncio.create_task(store.wait_until_durable()) for _ in range(2)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        await asyncio.wait(waiting[:1])
        store._set_durable(store.version, failure)
        return await asyncio.gather(*waiting, return_exceptions=True)

    cancelled, other = asyncio.run(run())
    assert isinstance(cancelled, asyncio.CancelledError)
    assert isinstance(other, UnavailableError) if failure else other is None
