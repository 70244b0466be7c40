"""Reflectors and performer in virtual time, with a faulty network between them and the API server.

MOORAGE_SEED=7 runs one seed, MOORAGE_SEEDS=1000 that many.
"""

import asyncio
import itertools
from collections import Counter
from random import Random

import pytest
import virtual_loop
from api_server import Store
from simulated_transport import FAULTS, SimulatedTransport
from tests.storm_seeds import seeds

from moorage.api.kinds import KINDS
from moorage.api.server_requests import BindPod, DeletePod, PodRef
from moorage.core.effects import Done, Effect, Failed
from moorage.core.observations import Deleted
from moorage.live.client import Client
from moorage.live.clock import Clock
from moorage.live.connection import Connection
from moorage.live.event_recorder import EventRecorder
from moorage.live.performer import ApiPerformer
from moorage.live.reflector import ObservationQueue, Reflector

FAULTY_SECONDS = 60.0
CALM_SECONDS = 200.0


class LoopClock(Clock):
    def __init__(self, loop):
        self.monotonic = self.wall = loop.time


class Run:
    """Pods come and go; random ones are bound and deleted through the performer."""

    def __init__(self, seed):
        self.random = Random(seed)
        self.store = Store(history=200)
        self.transport = SimulatedTransport(self.store, Random(seed + 1), FAULTY_SECONDS)
        self.names = itertools.count()
        self.sent, self.outcomes = {}, {}

    async def run(self):
        loop = asyncio.get_running_loop()
        client = Client(
            Connection(server="http://simulated"),
            transport=self.transport,
            clock=LoopClock(loop),
            random=Random(1),
        )
        queue = ObservationQueue()
        kinds = [KINDS["Pod"], KINDS["Node"]]
        reflectors = [Reflector(client, kind, queue) for kind in kinds]
        performer = ApiPerformer(
            client,
            EventRecorder(client, "host"),
            lambda: True,
            self.outcomes.__setitem__,
            pytest.fail,
        )
        tasks = [asyncio.create_task(reflector.run()) for reflector in reflectors]
        for i in range(3):
            self.store.create("nodes", "", {"metadata": {"name": f"node-{i}"}})
        while loop.time() < FAULTY_SECONDS:
            self.change(performer)
            await asyncio.sleep(self.random.uniform(0, 1))
        await performer.drained()
        await asyncio.sleep(CALM_SECONDS)
        self.check_observed(queue)
        self.check_outcomes()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return self.transport.log

    def change(self, performer):
        pods = self.store.objects["pods"]
        if len(pods) < 5 or self.random.random() < 0.3:
            pod = {"metadata": {"name": f"pod-{next(self.names)}"}, "spec": {}}
            self.store.create("pods", "default", pod)
            return
        key = self.random.choice(sorted(pods))
        ref = PodRef(*key, pods[key]["metadata"]["uid"])
        request = BindPod(ref, f"node-{self.random.randrange(3)}")
        if self.random.random() < 0.3:
            request = DeletePod(ref)
        ticket = len(self.sent)
        self.sent[ticket] = request
        performer.perform([Effect(ticket, request)])

    def check_observed(self, queue):
        """After all observations a scheduler knows what is stored, in its latest version."""
        known = {}
        for observation in iter(queue.take, None):
            obj = observation.obj
            if isinstance(observation, Deleted):
                known.pop((type(obj), obj.key), None)
            else:
                known[type(obj), obj.key] = obj.metadata.resource_version
        stored = {
            (KINDS[kind].struct, "/".join(key).lstrip("/")): obj["metadata"]["resourceVersion"]
            for kind in ("Pod", "Node")
            for key, obj in self.store.objects[KINDS[kind].plural].items()
        }
        assert known == stored

    def check_outcomes(self):
        """No pod is bound twice, and what is reported is true."""
        uids = [uid for uid, _ in self.store.binds]
        assert len(uids) == len(set(uids)), "a pod was bound twice"
        assert self.outcomes.keys() == self.sent.keys()
        bindings = {t: (r.pod.uid, r.node) for t, r in self.sent.items() if isinstance(r, BindPod)}
        counts = Counter(bindings.values())
        for ticket, binding in bindings.items():
            outcome, is_performed = self.outcomes[ticket], binding in self.store.binds
            if isinstance(outcome, Done):
                assert is_performed, f"{self.sent[ticket]} was reported done"
            elif isinstance(outcome, Failed) and counts[binding] == 1:
                assert not is_performed, f"{self.sent[ticket]} was reported failed"


@pytest.mark.parametrize("seed", seeds(20))
def test_faulty_network(seed):
    virtual_loop.run(Run(seed).run())


def test_same_seed_same_run():
    first, second = (virtual_loop.run(Run(3).run()) for _ in range(2))
    assert first == second
    assert {fault for _, _, _, fault in first} == {"", *FAULTS}
