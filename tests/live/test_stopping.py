"""What a scheduler that is stopped still writes: the API server answers slowly, or not at all.

In virtual time, except for the signals.
"""

import asyncio
import json
import logging
import math
import signal
import time
from random import Random

import pytest
from simulated import loop as simulated_loop
from simulated.faults import FaultPlan, Outage
from simulated.loop import Process
from simulated.server import SimulatedServer
from simulated.transport import SimulatedTransport
from world import until

from moorage.api import config
from moorage.cluster.resources import EVENTS, LEASES, NODES, PODS
from moorage.core.scheduler import Scheduler
from moorage.live import kinds, start
from moorage.live.client import Client
from moorage.live.connection import Connection, Identity
from moorage.live.leader_election import LeaderElector
from moorage.live.run import LiveScheduler

CONFIGURATION = config.load()
FITTING = 3


class Stopped:
    """A scheduler with reports to write that is stopped, and what it still wrote."""

    def __init__(self, *, rate=10.0, fault="", large=60, grace_seconds=30.0, leader_elect=True):
        self.large = large
        self.rate, self.fault, self.grace_seconds = rate, fault, grace_seconds
        self.leader_elect = leader_elect
        self.plan = FaultPlan(Random(0), math.inf)
        self.plan.shares, self.plan.outages = {}, []
        self.log = []
        simulated_loop.run(self.main, Random(0))

    async def main(self, loop):
        server = SimulatedServer(loop, Random(0), log_size=2000)
        api = server.api
        amounts = {"cpu": "4", "memory": "8Gi", "pods": "110"}
        node = {"metadata": {"name": "node"}, "status": {"allocatable": amounts}}
        api.create(NODES, node)
        process = Process(loop, "replica")
        task = process.spawn(self.schedule(process, server))
        await self.until(lambda: self.live.leads)
        for i in range(FITTING):
            api.create(PODS, pod(f"fits-{i}", "1"))
        for i in range(self.large):
            api.create(PODS, pod(f"large-{i}", "99"))
        queue = self.live.scheduler.queue
        await self.until(lambda: queue.counts()["unschedulable"] == self.large)
        if self.fault:
            only = {"plural": "pods"} if self.fault == "slow" else {}  # Else the lease is lost.
            self.plan.outages = [Outage(self.fault, loop.time(), math.inf, **only)]
        self.stopped_at = loop.time()
        self.live.stop()
        self.code = await task
        self.seconds = loop.time() - self.stopped_at
        self.pods, self.events, self.leases = (
            [json.loads(each.body) for _, each in api.store.snapshot(resource)]
            for resource in (PODS, EVENTS, LEASES)
        )

    live = None

    async def until(self, condition):
        while self.live is None or not condition():
            await asyncio.sleep(0.01)

    async def schedule(self, process, server):
        transport = SimulatedTransport(process, server, self.plan, self)
        async with Client(
            Connection(server="http://simulated", identity=Identity(token="token-0")),
            per_second=self.rate,
            burst=10,
            transport=transport,
            clock=process.clock,
            random=Random(0),
        ) as client:
            elector = None
            if self.leader_elect:
                unlimited = client.with_own_bucket(is_limited=False)
                elector = LeaderElector(unlimited, CONFIGURATION.leader_election, "replica")
            self.live = LiveScheduler(
                Scheduler(CONFIGURATION, seed=0),
                client,
                kinds.watched(start.plugins(CONFIGURATION)),
                host="host",
                elector=elector,
                grace_seconds=self.grace_seconds,
            )
            return await self.live.run()

    # What the transport reports

    def sent(self, process, verb, plural, path, fault):
        pass

    def answered(self, process, verb, plural, sent_at, body, status):
        self.log.append((sent_at, verb, plural))

    def performed(self, process, request, response):
        pass

    @property
    def conditions(self):
        """Names of the pods that say why they do not fit."""
        found = [(each, each["status"].get("conditions", [])) for each in self.pods]
        return [p["metadata"]["name"] for p, c in found if any(x["status"] == "False" for x in c)]

    @property
    def holder(self):
        return self.leases[0]["spec"]["holderIdentity"]


def pod(name, cpu):
    container = {"name": "main", "image": "web", "resources": {"requests": {"cpu": cpu}}}
    return {"metadata": {"name": name}, "spec": {"containers": [container]}}


@pytest.mark.parametrize("leader_elect", [True, False])
@pytest.mark.parametrize(
    ("rate", "fault", "large"),
    [
        pytest.param(10.0, "", 60, id="a low rate"),
        pytest.param(0.0, "slow", 12, id="slow answers"),
    ],
)
def test_everything_is_written(caplog, leader_elect, rate, fault, large):
    stopped = Stopped(rate=rate, fault=fault, large=large, leader_elect=leader_elect)
    assert len(stopped.conditions) == large
    assert len(stopped.events) == FITTING + large
    assert stopped.code == 0
    assert 1 < stopped.seconds < 27
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


def test_the_lease_is_given_back_when_no_write_needs_it_any_more():
    stopped = Stopped()
    assert stopped.holder == ""
    writes = [(verb, plural) for _, verb, plural in stopped.log if verb != "list"]
    last = len(writes) - 1 - writes[::-1].index(("update", "leases"))
    assert ("patch", "pods") in writes[:last]
    assert {plural for _, plural in writes[last + 1 :]} <= {"events", "pods"}
    assert ("patch", "pods") not in writes[last + 1 :]


@pytest.mark.parametrize("leader_elect", [True, False])
@pytest.mark.parametrize("fault", ["hang", "unsent"], ids=["a server that hangs", "no server"])
def test_it_ends_in_time(caplog, fault, leader_elect):
    stopped = Stopped(fault=fault, leader_elect=leader_elect)
    assert stopped.code == 0
    assert 25 < stopped.seconds <= 30
    check_unwritten(stopped, caplog)


def test_another_grace_period(caplog):
    stopped = Stopped(grace_seconds=2.0)
    assert stopped.seconds <= 2.0
    assert stopped.holder == ""
    check_unwritten(stopped, caplog)


def check_unwritten(stopped, caplog):
    """It says how many conditions and Events are missing; those of a binding may not exist."""
    [lost] = [each.named for each in caplog.records if each.getMessage() == "not written"]
    missing = stopped.large - len(stopped.conditions)
    assert 0 < missing <= lost["conditions"] <= missing + FITTING
    missing = stopped.large + FITTING - len(stopped.events)
    assert 0 < missing - FITTING <= lost["events"] <= missing


# Of a process


@pytest.fixture
def hanging(world):
    """A scheduler whose API server does not answer any more while Events are outstanding."""

    def start(*flags):
        world.create_node("node")
        scheduler = world.run(
            "--leader-elect=false", "--kube-api-qps=5", "--kube-api-burst=5", *flags
        )
        for i in range(20):
            world.create_pod(f"pod-{i}", cpu="99")
        until(lambda: any(world.reasons().values()))
        return scheduler

    return start


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(hanging, number):
    scheduler = hanging("--grace-period=10m")
    scheduler.signal(number)
    until(lambda: scheduler.said("stopping"))
    began = time.monotonic()
    scheduler.signal(number)
    assert scheduler.wait() == 1
    assert time.monotonic() - began < 5


def test_the_grace_period_is_a_flag(hanging):
    scheduler = hanging("--grace-period=1s")
    assert scheduler.stop() == 0
    assert scheduler.said("not written")


PLUGIN = """
from pathlib import Path


class Endless:
    name = "Endless"

    def filter(self, state, pod, node):
        Path(__file__).with_name("begun").touch()
        while True:
            pass
"""


def test_a_plugin_that_does_not_return_is_ended(world):
    world.create_node("node")
    (world.folder / "endless.py").write_text(PLUGIN)
    plugins = {"multiPoint": {"enabled": [{"name": "endless.py:Endless"}]}}
    file = world.configuration(profiles=[{"plugins": plugins}]).rename(world.folder / "mine.json")
    scheduler = world.run("--leader-elect=false", "--grace-period=1s", "--config", file)
    world.create_pod("pod")
    until((world.folder / "begun").exists)
    assert scheduler.stop() == 1
    assert scheduler.said("endless.py")
