"""User plugins in storms: no pod is reserved twice or waits on permit for ever."""

import pytest
from tests import storm

from moorage import plugin as mp
from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.api.server_requests import PatchPodStatus
from moorage.core.journal import Bound, Erred, Waiting
from moorage.sim.run import Simulation

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def with_plugins(*names):
    enabled = [{"name": f"{__name__}:{name}"} for name in names]
    return CONFIG | {"profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}]}


class Ledger:
    """Every reservation ends, and only one is open per pod."""

    name = "Ledger"

    def __init__(self):
        self.open = set()

    def reserve(self, state, pod, node):
        assert pod.uid not in self.open, f"{pod.key} is reserved twice"
        self.open.add(pod.uid)
        return mp.SUCCESS

    def unreserve(self, state, pod, node):
        assert pod.uid in self.open, f"{pod.key} was not reserved"
        self.open.remove(pod.uid)

    def post_bind(self, state, pod, node):
        assert pod.uid in self.open, f"{pod.key} is bound without a reservation"
        self.open.remove(pod.uid)


class Pairs:
    """Pods with the label app=b go in pairs: the first one waits for a second."""

    name = "Pairs"

    def permit(self, state, pod, node):
        if pod.labels.get("app") != "b":
            return mp.SUCCESS
        for waiting in state.cluster.waiting.values():
            if waiting.signal is None:
                waiting.allow(self.name)
                return mp.SUCCESS
        return mp.wait(4)


class Announces:
    """Makes a request for every pod before it is bound."""

    name = "Announces"

    def pre_bind(self, state, pod, node):
        return (PatchPodStatus(mp.PodRef.of(pod), Condition(type="Going", status=str(node))),)


@pytest.mark.parametrize("seed", range(30))
def test_reservations_end(seed):
    sim = storm.run(seed, with_plugins("Ledger"))
    assert complaints(sim) == []


@pytest.mark.parametrize("seed", range(10))
def test_pods_that_wait_for_each_other(seed):
    sim = storm.run(seed, with_plugins("Ledger", "Pairs"))
    assert complaints(sim) == []


@pytest.mark.parametrize("seed", range(20))
def test_requests_before_a_binding(seed):
    sim = storm.run(seed, with_plugins("Ledger", "Announces"))
    assert complaints(sim) == []
    for fact in sim.journal:
        pod = sim.cluster.get(Pod, fact.pod)
        if isinstance(fact, Bound) and pod is not None and pod.uid == fact.uid:
            assert pod.condition("Going") is not None


def test_some_pods_waited():
    sims = [storm.run(seed, with_plugins("Pairs")) for seed in range(5)]
    assert any(isinstance(fact, Waiting) for sim in sims for fact in sim.journal)


def complaints(sim: Simulation) -> list[str]:
    return [f.message for f in sim.journal if isinstance(f, Erred) and "Ledger" in f.message]
