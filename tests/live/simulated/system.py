"""The whole system in virtual time: schedulers, network, API server, controllers and workload.

    run(7)    the run of seed 7; raises InvariantError if something is wrong

One to three replicas of the live scheduler run as processes on one loop, and controllers and
kubelets as another. Faults of the network, pauses, kills, restarts, clock jumps and expired
credentials end at `FAULTY_SECONDS`; then every pod that fits must be bound within `CALM_SECONDS`.
"""

import asyncio
import gc
import json
from random import Random

from simulated import checks, extender
from simulated import loop as simulated_loop
from simulated.checks import CheckedScheduler, Hesitate, NetworkChecks
from simulated.claims import ClaimWorkload
from simulated.faults import FaultPlan
from simulated.loop import Process
from simulated.server import SimulatedServer
from simulated.transport import SimulatedTransport
from simulated.workload import Workload

from moorage.api import config
from moorage.cluster.resources import LEASES
from moorage.errors import InvariantError
from moorage.framework.registry import Registry
from moorage.live import kinds, start
from moorage.live.client import Client
from moorage.live.connection import Connection, Identity
from moorage.live.extenders import HttpExtenders
from moorage.live.leader_election import LeaderElector
from moorage.live.run import LiveScheduler
from moorage.serve.control_plane import ControlPlane
from moorage.serve.rest import watches

FAULTY_SECONDS = 60.0
CALM_SECONDS = 90.0
LAST_REQUESTS = 40
QUIET_SECONDS = 20.0  # The end of the calm, in which requests are counted.
# Most seeds do without the plugins that read many kinds: their watches take most of the time.
MANY_KINDS = (
    "DynamicResources", "VolumeBinding", "VolumeRestrictions", "VolumeZone", "NodeVolumeLimits",
    "PodTopologySpread", "InterPodAffinity",
)  # fmt: skip
OFF, ON = [{"name": name} for name in MANY_KINDS], [{"name": Hesitate.name}]
KIND = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
ALL, FEW = (
    config.load({**KIND, "profiles": [{"plugins": {"multiPoint": {"enabled": ON, **off}}}]})
    for off in ({}, {"disabled": OFF})
)
REGISTRY = Registry({Hesitate.name: Hesitate})
PAUSES = (0.5, 5.0, 12.0, 25.0)
# Versions that are left after a compaction.
LEFT_VERSIONS = (0, 5, 40)
NODE_COUNTS = (1, 2, 2, 3, 3, 4, 5, 8, 20, 60, 200)


class TokenFile:
    """The file of a token, which is rotated."""

    number = 0

    def read_text(self, **_):
        return f"token-{self.number}"


class Replica:
    """A scheduler that is started again when its process ends."""

    def __init__(self, system, number):
        self.system = system
        self.name = f"replica-{number}"
        self.process = self.live = self.task = None
        self.starts = 0

    async def run(self):
        system, draw = self.system, self.system.random
        while True:
            await asyncio.sleep(draw.uniform(0, 5))
            self.starts += 1
            self.process = Process(system.loop, f"{self.name}.{self.starts}")
            self.task = self.process.spawn(self._main(self.process))
            await asyncio.wait({self.task})
            if not self.task.cancelled():
                self.task.result()  # An exception is a bug.

    async def _main(self, process):
        system = self.system
        transport = SimulatedTransport(process, system.server, system.plan, system.network)
        identity = Identity(token_file=system.token)
        async with Client(
            Connection(server="http://simulated", identity=identity),
            per_second=system.rate,
            transport=transport,
            clock=process.clock,
            random=Random(system.seed * 1000 + self.starts),
        ) as client:
            extenders = options = None
            if system.extender is not None:
                extenders = HttpExtenders(
                    [system.extender],
                    connect=lambda _: extender.ExtenderTransport(process, system),
                    calls=extender.DirectCalls,
                )
                options = {"extenders": extenders.extenders, "at_once": extenders.at_once}
            scheduler = CheckedScheduler(
                system.configuration,
                name=process.name,
                network=system.network,
                seed=system.seed,
                registry=REGISTRY,
                **(options or {}),
            )
            unlimited = client.with_own_bucket(is_limited=False)
            elector = LeaderElector(unlimited, system.configuration.leader_election, process.name)
            self.live = LiveScheduler(
                scheduler,
                client,
                system.kinds,
                host=process.name,
                elector=elector,
                extenders=extenders,
            )
            return await self.live.run()

    def kill(self):
        self.process.is_dead = True
        self.process.resume()
        self.task.cancel()


class System:
    """See the module."""

    def __init__(self, seed):
        self.seed = seed
        self.random = Random(f"system {seed}")
        draw = self.random
        self.replica_count = draw.choice((1, 2, 2, 3))
        self.node_count = draw.choice(NODE_COUNTS)
        self.rate = draw.choice((0.0, 0.0, 20.0, 50.0))
        names = [f"replica-{i}.1" for i in range(self.replica_count)]
        self.plan = FaultPlan(Random(f"faults {seed}"), FAULTY_SECONDS, names)
        lease = Random(f"lease {seed}")
        if lease.random() < 0.25:
            self.plan.add_lease_outage(lease)
        held = Random(f"held events {seed}")
        if held.random() < 0.2:
            self.plan.shares["hold"] = held.choice((0.02, 0.1))
        stale = Random(f"stale lists {seed}")
        self.stale_at = self.plan.add_stale_lists(stale) if self.plan.has_stale_lists else None
        self.extender = extender.SETTINGS if draw.random() < 0.15 else None
        self.has_claims = draw.random() < 0.25
        self.configuration = ALL if self.has_claims else FEW
        if self.has_claims:
            self.plan.add_claim_outage(Random(f"claim outage {seed}"))
        self.kinds = kinds.watched(start.plugins(self.configuration))
        self.bookmark_seconds = Random(f"bookmarks {seed}").choice((60.0, 5.0, 0.5))
        self.token = TokenFile()
        self.replicas = [Replica(self, i) for i in range(self.replica_count)]

    async def main(self, loop):
        self.loop = loop
        self.server = SimulatedServer(loop, Random(f"server {self.seed}"))
        api = self.server.api
        election = self.configuration.leader_election
        self.network = NetworkChecks(
            loop,
            api,
            election,
            checks_room=not self.plan.has_stale_lists,
        )
        claims = ClaimWorkload(api, Random(f"claims {self.seed}")) if self.has_claims else None
        self.workload = Workload(api, Random(f"workload {self.seed}"), self.node_count, claims)
        control_plane = ControlPlane(api, None, stopwatch=loop.time)
        tasks = [loop.spawn(each.run()) for each in self.replicas]
        controllers = Process(loop, "controllers")
        controlling = controllers.spawn(control_plane.run())
        controlling.add_done_callback(loop.ended)
        tasks += [controlling, loop.spawn(self._change_cluster())]
        tasks += [loop.spawn(self._create_before_stale_lists())]
        tasks += [loop.spawn(self._disturb(each)) for each in self.replicas]
        tasks += [loop.spawn(self._rotate_token()), loop.spawn(self._compact())]
        tasks += [loop.spawn(self._disturb_controllers(controllers))]
        tasks += [loop.spawn(self._maintain(controllers))]
        try:
            await self._until(FAULTY_SECONDS + CALM_SECONDS - QUIET_SECONDS)
            before = {each: self._requests(each) for each in self.replicas}
            changes = self.network.changes
            await self._until(FAULTY_SECONDS + CALM_SECONDS)
            self._check_end(before, self.network.changes - changes)
        finally:
            controllers.resume()
            for replica in self.replicas:
                if replica.task is not None and not replica.task.done():
                    replica.kill()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _until(self, moment):
        while self.loop.time() < moment:
            await asyncio.sleep(0.5)
            if self.loop.failures:
                raise self.loop.failures[0]

    async def _change_cluster(self):
        pause = self.random.choice((0.3, 1.0, 3.0))
        while self.loop.time() < FAULTY_SECONDS:
            self.workload.change()
            await asyncio.sleep(self.random.expovariate(1 / pause))

    async def _create_before_stale_lists(self):
        """Create pods, some under names of deleted ones, that the next lists do not show."""
        if self.stale_at is not None:
            await asyncio.sleep(self.stale_at)
            for _ in range(2):
                self.workload.add_pods()
                for _ in range(3):
                    self.workload.recreate_pod()

    async def _disturb(self, replica):
        """Pause, kill and stop a replica, and set its clock."""
        draw = self.random
        every = draw.choice((10.0, 30.0, 1000.0))
        while True:
            await asyncio.sleep(draw.expovariate(1 / every))
            if self.loop.time() >= FAULTY_SECONDS:
                return
            if replica.live is None or replica.task.done():
                continue
            match draw.choice(("pause", "pause", "kill", "stop", "clock")):
                case "pause":
                    await self._pause(replica.process, draw)
                case "kill":
                    replica.kill()
                case "stop":
                    replica.live.stop()
                case "clock":
                    replica.process.clock.ahead += draw.uniform(-7200, 7200)

    async def _disturb_controllers(self, controllers):
        """Pause controllers and kubelets: pods end late, cordoned nodes get no taint."""
        draw = Random(f"controllers {self.seed}")
        every = draw.choice((10.0, 30.0, 1000.0))
        while self.loop.time() < FAULTY_SECONDS:
            await self._pause(controllers, draw)
            await asyncio.sleep(draw.expovariate(1 / every))

    async def _maintain(self, controllers):
        """Cordon all nodes for a moment in which the controllers taint none of them.

        Nothing but the end of that tells of room for the pods that come meanwhile.
        """
        draw = Random(f"maintenance {self.seed}")
        if draw.random() < 0.2:
            await asyncio.sleep(FAULTY_SECONDS - draw.uniform(0.5, 2.0))
            controllers.pause()
            self.workload.cordon_all(on=True)
            self.workload.add_pods()
            await self._until(FAULTY_SECONDS + draw.uniform(1.0, 3.0))
            self.workload.cordon_all(on=False)
            await asyncio.sleep(0.5)
            controllers.resume()

    async def _pause(self, process, draw):
        process.pause()
        left = FAULTY_SECONDS - self.loop.time()
        await asyncio.sleep(min(draw.choice(PAUSES), left))
        process.resume()

    async def _compact(self):
        """Drop the history, so that watches from earlier versions get 410."""
        draw, store = Random(f"compaction {self.seed}"), self.server.api.store
        every = draw.choice((4.0, 15.0, 1000.0))
        while self.loop.time() < FAULTY_SECONDS:
            await asyncio.sleep(draw.expovariate(1 / every))
            store.compact(store.version - draw.choice(LEFT_VERSIONS))

    async def _rotate_token(self):
        """The old token expires before or after the new one is in the file."""
        draw = self.random
        await asyncio.sleep(draw.uniform(0, FAULTY_SECONDS))
        steps = [self._expire_token, self._write_token]
        draw.shuffle(steps)
        for step in steps:
            step()
            await asyncio.sleep(min(draw.uniform(0, 15), FAULTY_SECONDS - self.loop.time()))

    def _write_token(self):
        self.token.number += 1
        self.server.tokens.add("Bearer token-1")

    def _expire_token(self):
        self.server.tokens.discard("Bearer token-0")

    def describe(self):
        """The faults of this seed, and the last requests before a failure."""
        outages = "".join(f"\n  {outage}" for outage in self.plan.outages)
        lines = "".join(
            f"\n  {at:10.3f} {process:12} {verb:6} {path.partition('?')[0]} {fault.upper()}"
            for at, process, verb, path, fault in self.network.log[-LAST_REQUESTS:]
        )
        return (
            f"{self.replica_count} replicas, {self.node_count} nodes, {self.rate:g} requests/s"
            f"{', an extender' if self.extender else ''}{', claims' if self.has_claims else ''}"
            f"; faults: {self.plan.shares or 'none'}"
            f"\noutages: {outages or 'none'}\nthe last requests:{lines}"
        )

    def _requests(self, replica):
        return sum(self.network.counts[replica.process.name].values())

    def _check_end(self, before, changes):
        api = self.server.api
        lease = api.store.get(LEASES, "kube-system", "kube-scheduler")
        leaders = [each for each in self.replicas if each.live.leads]
        if [each.process.name for each in leaders] != [lease["spec"]["holderIdentity"]]:
            raise InvariantError(f"{len(leaders)} replicas lead; the lease is {lease['spec']}")
        for replica in self.replicas:
            count = self._requests(replica) - before[replica]
            if count > 4 * QUIET_SECONDS + (changes and 5 * self.workload.created):
                raise InvariantError(f"{replica.name} sent {count} requests without a reason")
            checks.check_requests(replica.live, self.network.counts[replica.process.name])
        checks.check_end(leaders[0].live, api, self.configuration)
        self.network.check_end()


def run(seed):
    """Run a seed; returns the system at its end."""
    return run_system(System(seed))


def run_system(system):
    thresholds, usual = gc.get_threshold(), watches.BOOKMARK_SECONDS
    watches.BOOKMARK_SECONDS = system.bookmark_seconds
    try:
        simulated_loop.run(system.main, Random(f"loop {system.seed}"))
    except InvariantError as error:
        raise InvariantError(f"seed {system.seed}: {error}\n{system.describe()}") from error
    finally:
        gc.unfreeze()  # A live scheduler freezes what it has listed.
        gc.set_threshold(*thresholds)
        watches.BOOKMARK_SECONDS = usual
    return system


def journal(system):
    """All requests of a run, and what is stored at its end, for comparisons."""
    store = system.server.api.store
    stored = [
        stored.body.decode()
        for resource in system.server.api.registry
        for _, stored in store.snapshot(resource)
    ]
    return json.dumps(system.network.log), stored
