"""Acquiring, renewing, losing and releasing the lease, in virtual time."""

import asyncio
from contextlib import asynccontextmanager
from random import Random

import pytest
from simulated import loop as simulated_loop
from simulated.faults import FaultPlan
from simulated.loop import Process
from simulated.server import SimulatedServer
from simulated.transport import SimulatedTransport, refusal

from moorage.api.config import LeaderElection
from moorage.cluster.resources import LEASES
from moorage.live import leader_election
from moorage.live.client import Client
from moorage.live.connection import Connection, Identity
from moorage.live.leader_election import LeaderElector

SETTINGS = LeaderElection()  # 15 s, of which the leader uses 10, and renews every 2 s.
KEY = ("kube-system", "kube-scheduler")


class Requests:
    """The requests of all candidates; nothing is checked."""

    def __init__(self):
        self.count = 0

    def sent(self, *_):
        self.count += 1

    def answered(self, *_):
        pass

    performed = answered


class Lease:
    """The lease as it is stored, and the server that stores it."""

    def __init__(self, loop):
        self.server = SimulatedServer(loop, Random(1))
        self.requests = Requests()
        self.refused = 0

    def spec(self):
        return self.server.api.store.get(LEASES, *KEY)["spec"]

    def take(self):
        """Another candidate writes its name into the lease."""
        held = self.server.api.store.get(LEASES, *KEY)
        taken = {**held["spec"], "holderIdentity": "other"}
        self.server.api.replace(LEASES, {**held, "spec": taken})

    def refuse(self, *methods, seconds=0.0, code=403):
        """Answer requests with an error from now on, after some time."""
        respond = self.server.respond

        async def refused(method, *request):
            if method in methods:
                self.refused += 1
                await asyncio.sleep(seconds)
                return refusal(code, "not now")
            return await respond(method, *request)

        self.server.respond = refused


@asynccontextmanager
async def candidates(loop, *names):
    lease, plan = Lease(loop), FaultPlan(Random(1), until=0.0)
    found = []
    for name in names:
        transport = SimulatedTransport(Process(loop, name), lease.server, plan, lease.requests)
        connection = Connection(server="http://simulated", identity=Identity(token="token-0"))
        client = Client(
            connection, transport=transport, clock=transport.process.clock, random=Random(name)
        )
        found.append(LeaderElector(client, SETTINGS, name))
    yield lease, *found


def run(main):
    return simulated_loop.run(main, Random(1))


def test_fields():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            assert not elector.may_act()
            await elector.acquire()
            assert elector.may_act()
            return lease.spec()

    found = run(go)
    assert found["holderIdentity"] == "me"
    assert found["leaseDurationSeconds"] == 15
    assert found["leaseTransitions"] == 0
    assert found["acquireTime"] == found["renewTime"]
    assert len(found["renewTime"]) == len("2026-01-01T00:00:00.000000Z")


def test_renewals_keep_the_time_of_acquisition():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            before = lease.spec()
            keeping = asyncio.create_task(elector.keep())
            await asyncio.sleep(60)
            keeping.cancel()
            assert elector.may_act()
            return before, lease.spec()

    before, after = run(go)
    assert after["acquireTime"] == before["acquireTime"]
    assert after["renewTime"] > before["renewTime"]
    assert after["leaseTransitions"] == 0


def test_standby_waits_for_the_end_of_a_lease_and_not_longer():
    async def go(loop):
        async with candidates(loop, "first", "second") as (lease, first, second):
            await first.acquire()
            began = loop.time()
            await second.acquire()
            return loop.time() - began, lease.spec()

    seconds, found = run(go)
    assert 15.0 <= seconds < 15.2
    assert found["holderIdentity"] == "second"
    assert found["leaseTransitions"] == 1


def test_standby_does_not_take_a_lease_that_is_renewed():
    async def go(loop):
        async with candidates(loop, "first", "second") as (_, first, second):
            await first.acquire()
            keeping = asyncio.create_task(first.keep())
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(100):
                    await second.acquire()
            keeping.cancel()
            return first.may_act(), second.may_act()

    assert run(go) == (True, False)


def test_the_duration_of_a_lease_is_that_of_its_holder():
    async def go(loop):
        async with candidates(loop, "first", "second") as (_, first, second):
            first.settings = LeaderElection(lease_duration_seconds=40.0)
            await first.acquire()
            began = loop.time()
            await second.acquire()
            return loop.time() - began

    assert 40.0 <= run(go) < 40.2


def test_released_lease_is_free_at_once():
    async def go(loop):
        async with candidates(loop, "first", "second") as (lease, first, second):
            await first.acquire()
            waiting = asyncio.create_task(second.acquire())
            await asyncio.sleep(3)
            await first.release()
            assert lease.spec()["holderIdentity"] == ""
            assert not first.may_act()
            released_at = loop.time()
            await waiting
            return loop.time() - released_at

    assert run(go) < 1.5


def test_leader_that_was_stopped_too_long_may_not_act():
    async def go(loop):
        async with candidates(loop, "me") as (_, elector):
            await elector.acquire()
            loop.now += 10.1
            assert not elector.may_act()  # at once, before anybody has looked at the lease
            with pytest.raises(leader_election.LeaseLost, match="not renewed in time"):
                await elector.keep()
            assert not elector.is_held

    run(go)


def test_the_deadline_counts_from_sending():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            respond = lease.server.respond

            async def slow(*request):
                found = await respond(*request)
                await asyncio.sleep(4.0)
                return found

            await elector.acquire()
            lease.server.respond = slow
            keeping = asyncio.create_task(elector.keep())
            await asyncio.sleep(SETTINGS.retry_period_seconds + 4.1)
            keeping.cancel()
            return elector.seconds_since_renewal()

    assert 4.0 <= run(go) < 4.2


@pytest.mark.parametrize("seconds", [0.0, 3.0, 100.0])
def test_leader_without_a_server_gives_up_at_its_deadline(seconds):
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            lease.refuse("GET", "PUT", seconds=seconds)
            with pytest.raises(leader_election.LeaseLost):
                await elector.keep()
            return elector.seconds_since_renewal()

    # A request that is not answered ends at the deadline; otherwise the next attempt notices it.
    assert 10.0 <= run(go) < (10.6 if seconds < 10 else 10.1)


def test_leader_repeats_a_failed_renewal_four_times_per_retry_period():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            lease.refuse("PUT")
            before = lease.requests.count
            with pytest.raises(leader_election.LeaseLost):
                await elector.keep()
            return lease.requests.count - before

    assert 15 <= run(go) <= 17  # From 2 s to 10 s after the acquisition, every 0.5 s.


def test_leader_whose_write_conflicts_reads_the_lease_once_each_time():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            lease.refuse("PUT", code=409)
            lease.refuse("GET", code=429)
            before = lease.requests.count
            with pytest.raises(leader_election.LeaseLost):
                await elector.keep()
            return lease.requests.count - before

    assert 30 <= run(go) <= 34  # Two requests every 0.5 s.


def test_leader_whose_lease_was_taken_over_stops_at_once():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            lease.take()
            with pytest.raises(leader_election.LeaseLost, match="other holds the lease"):
                await elector.keep()
            assert not elector.may_act()

    run(go)


def test_release_of_a_standby_changes_nothing():
    async def go(loop):
        async with candidates(loop, "first", "second") as (lease, first, second):
            await first.acquire()
            waiting = asyncio.create_task(second.acquire())
            await asyncio.sleep(3)
            waiting.cancel()
            await second.release()
            return lease.spec()["holderIdentity"]

    assert run(go) == "first"


def test_release_while_a_renewal_is_under_way():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            respond = lease.server.respond

            async def slow(*request):
                found = await respond(*request)
                await asyncio.sleep(1)
                return found

            lease.server.respond = slow
            keeping = asyncio.create_task(elector.keep())
            await asyncio.sleep(2.5)  # The renewal was performed, its answer is on its way.
            keeping.cancel()
            await elector.release()
            return lease.spec()["holderIdentity"]

    assert run(go) == ""


def test_release_after_a_take_over_changes_nothing():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            lease.take()
            await elector.release()
            return lease.spec()["holderIdentity"]

    assert run(go) == "other"


def test_a_leader_whose_answer_was_lost_acquires_its_own_lease():
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            respond, requests = lease.server.respond, iter([1, 2])

            async def lost(*request):
                found = await respond(*request)
                if request[0] == "POST" and next(requests) == 1:
                    return refusal(500, "sorry")
                return found

            lease.server.respond = lost
            await elector.acquire()
            return loop.time(), lease.spec()["holderIdentity"]

    seconds, holder = run(go)
    assert seconds < 3
    assert holder == "me"


@pytest.mark.parametrize(
    ("method", "code"),
    [
        pytest.param("PUT", 403, id="forbidden"),
        pytest.param("PUT", 429, id="busy for writes"),
        pytest.param("GET", 429, id="busy for reads"),
    ],
)
def test_standby_backs_off_from_a_failing_server(method, code):
    # The lease has run out, and it cannot be taken.
    async def go(loop):
        async with candidates(loop, "first", "second") as (lease, first, second):
            await first.acquire()
            looking = asyncio.create_task(second.acquire())
            await asyncio.sleep(1)
            lease.refuse(method, code=code)
            await asyncio.sleep(16)
            before = lease.refused
            await asyncio.sleep(10)
            looking.cancel()
            return lease.refused - before

    assert 7 <= run(go) <= 13  # Once every 0.8 to 1.2 s.


def test_a_lease_that_cannot_be_released_is_logged(caplog):
    async def go(loop):
        async with candidates(loop, "me") as (lease, elector):
            await elector.acquire()
            lease.refuse("PUT")
            await elector.release()
            assert not elector.may_act()

    with caplog.at_level("WARNING", logger="moorage"):
        run(go)
    assert [record.getMessage() for record in caplog.records] == ["cannot release the lease"]


def test_the_log_names_every_new_leader(caplog):
    async def go(loop):
        async with candidates(loop, "first", "second") as (_, first, second):
            await first.acquire()
            await second.acquire()

    with caplog.at_level("INFO", logger="moorage"):
        run(go)
    found = [(r.getMessage(), r.named["identity"], r.named.get("leader")) for r in caplog.records]
    assert found == [
        ("attempting to acquire leader lease", "first", None),
        ("successfully acquired lease", "first", None),
        ("attempting to acquire leader lease", "second", None),
        ("new leader elected", "second", "first"),
        ("successfully acquired lease", "second", None),
    ]
