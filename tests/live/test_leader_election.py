"""Acquiring, renewing, losing and releasing the lease."""

import asyncio
import time
from contextlib import asynccontextmanager

import pytest
from api_server import Refused, Store, application_of, serve
from fake_clock import RealClock

from moorage.api.config import LeaderElection
from moorage.live import leader_election
from moorage.live.client import Client
from moorage.live.connection import Connection
from moorage.live.leader_election import LeaderElector

SETTINGS = LeaderElection(
    lease_duration_seconds=1.0, renew_deadline_seconds=0.6, retry_period_seconds=0.1
)
KEY = ("kube-system", "kube-scheduler")


@asynccontextmanager
async def candidates(*names, clock=None):
    store = Store(100)
    runner, port = await serve(application_of(store), 0)
    try:
        connection = Connection(server=f"http://127.0.0.1:{port}")
        async with Client(connection, clock=clock or RealClock()) as client:
            yield (store, *(LeaderElector(client, SETTINGS, name) for name in names))
    finally:
        await runner.cleanup()


def spec(store):
    return store.objects["leases"][KEY]["spec"]


def take(store):
    """Another candidate writes its name into the lease."""
    held = store.objects["leases"][KEY]
    taken = {**held["spec"], "holderIdentity": "other"}
    store.replace("leases", KEY, {**held, "spec": taken})


def test_fields():
    async def go():
        async with candidates("me") as (store, lease):
            assert not lease.may_act()
            await lease.acquire()
            assert lease.may_act()
            return spec(store)

    found = asyncio.run(go())
    assert found["holderIdentity"] == "me"
    assert found["leaseDurationSeconds"] == 1
    assert found["leaseTransitions"] == 0
    assert found["acquireTime"] == found["renewTime"]
    assert len(found["renewTime"]) == len("2026-01-01T00:00:00.000000Z")


def test_renewals_keep_the_time_of_acquisition():
    async def go():
        async with candidates("me") as (store, lease):
            await lease.acquire()
            before = spec(store)
            keeping = asyncio.create_task(lease.keep())
            await asyncio.sleep(0.35)
            keeping.cancel()
            return before, spec(store)

    before, after = asyncio.run(go())
    assert after["acquireTime"] == before["acquireTime"]
    assert after["renewTime"] > before["renewTime"]
    assert after["leaseTransitions"] == 0


def test_standby_waits_for_the_end_of_a_lease_and_not_longer():
    async def go():
        async with candidates("first", "second") as (store, first, second):
            await first.acquire()
            began = time.monotonic()
            await second.acquire()
            return time.monotonic() - began, spec(store)

    seconds, found = asyncio.run(go())
    assert 1.0 <= seconds < 1.9  # not until a second lease would be over
    assert found["holderIdentity"] == "second"
    assert found["leaseTransitions"] == 1


def test_standby_does_not_take_a_lease_that_is_renewed():
    async def go():
        async with candidates("first", "second") as (_, first, second):
            await first.acquire()
            keeping = asyncio.create_task(first.keep())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(1.5):
                    await second.acquire()
            keeping.cancel()
            return first.may_act(), second.may_act()

    assert asyncio.run(go()) == (True, False)


def test_released_lease_is_free_at_once():
    async def go():
        async with candidates("first", "second") as (store, first, second):
            await first.acquire()
            await first.release()
            assert spec(store)["holderIdentity"] == ""
            assert not first.may_act()
            async with asyncio.timeout(0.9):  # before the lease would be over
                await second.acquire()

    asyncio.run(go())


def test_leader_that_was_stopped_too_long_may_not_act():
    clock = RealClock()

    async def go():
        async with candidates("me", clock=clock) as (_, lease):
            await lease.acquire()
            clock.ahead = 0.7
            assert not lease.may_act()  # at once, before anybody has looked at the lease
            with pytest.raises(leader_election.LeaseLost, match="not renewed in time"):
                await lease.keep()
            assert not lease.is_held

    asyncio.run(go())


def test_leader_without_a_server_gives_up_at_its_deadline():
    async def go():
        async with candidates("me") as (store, lease):
            await lease.acquire()
            began = time.monotonic()
            store.objects["leases"].clear()
            store.get = lambda *_: time.sleep(0.02) or 1 / 0  # every answer is a 500
            with pytest.raises(leader_election.LeaseLost):
                await lease.keep()
            return time.monotonic() - began

    assert 0.5 <= asyncio.run(go()) < 5  # A busy machine may be late; who never gives up hangs.


def test_leader_whose_lease_was_taken_over_stops_at_once():
    async def go():
        async with candidates("me") as (store, lease):
            await lease.acquire()
            take(store)
            with pytest.raises(leader_election.LeaseLost, match="other holds the lease"):
                await lease.keep()
            assert not lease.may_act()

    asyncio.run(go())


def test_release_after_a_take_over_changes_nothing():
    async def go():
        async with candidates("me") as (store, lease):
            await lease.acquire()
            take(store)
            await lease.release()
            return spec(store)["holderIdentity"]

    assert asyncio.run(go()) == "other"


def test_standby_backs_off_from_a_failing_server():
    # The lease has run out, and it cannot be taken.
    async def go():
        clock = RealClock()
        async with candidates("first", "second", clock=clock) as (store, first, second):
            await first.acquire()
            looking = asyncio.create_task(second.acquire())
            await asyncio.sleep(0.1)
            store.replace = refused
            clock.ahead = 2.0
            before = store.requests
            await asyncio.sleep(0.5)
            looking.cancel()
            return store.requests - before

    def refused(*_):
        raise Refused(403, "Forbidden", "the roles are not read yet")

    assert 2 <= asyncio.run(go()) <= 40  # two requests for each look, which are 0.05 s apart
