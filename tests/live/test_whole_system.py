"""Live schedulers, network and cluster in virtual time: see simulated/system.py.

MOORAGE_SEED=7 runs one seed, MOORAGE_SEEDS=1000 that many.
"""

import asyncio

import pytest
from simulated import memory, system
from simulated.faults import WATCH_FAULTS, WRITE_FAULTS
from tests.storm_seeds import seeds

from moorage.cluster.resources import PODS


@pytest.mark.parametrize("seed", seeds(8))
def test_whole_system(seed):
    system.run(seed)


# The workload of a seed has changed since some of them failed; unit tests have what they showed.
@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(224, id="expired credentials, and a clock that was set back"),
        pytest.param(43, id="an earlier list with another pod of the same name"),
        pytest.param(31, id="a nomination that was not observed yet is cleared"),
        pytest.param(836, id="an earlier list hides a victim for a moment"),
        pytest.param(857, id="an earlier list hides a preemptor for a moment"),
        pytest.param(706, id="an earlier list shows a victim as it was before its deletion"),
        pytest.param(50376, id="a device claim that is released before its allocation is observed"),
        pytest.param(93130, id="a pod is preempted while its volume is being written"),
        pytest.param(237, id="earlier lists after repeated events, and while a pod is bound"),
    ],
)
def test_seeds_that_failed(seed):
    system.run(seed)


def test_same_seed_same_run():
    first, second = (system.journal(system.run(1)) for _ in range(2))
    assert first == second


class Churn(system.System):
    """Pods come and go, all different; then none is left."""

    COUNT, ALIVE, PER_SECOND = 300, 10, 10
    # What is kept of pods that are gone has limits; the checks of the tests keep everything.
    LIMITED = ("_gone", "_series", "journal", "history", "_network", "_requested_at", "_popped_at")

    def __init__(self, faults):
        super().__init__(0)
        self.plan.shares, self.plan.outages, self.node_count = dict.fromkeys(faults, 0.03), [], 3
        self.extender, self.configuration, self.replicas = None, system.FEW, self.replicas[:1]

    async def _disturb(self, *_):
        pass

    _disturb_controllers = _compact = _disturb

    async def _change_cluster(self):
        api = self.server.api
        for number in range(self.COUNT):
            container = {"name": "main", "image": "web"}
            container["resources"] = {"requests": {"cpu": f"{number + 1}m"}}
            meta = {"name": f"pod-{number}", "labels": {"number": str(number)}}
            spec = {"containers": [container], "terminationGracePeriodSeconds": 0}
            api.create(PODS, {"metadata": meta, "spec": spec})
            if number >= self.ALIVE:
                api.delete(PODS, "default", f"pod-{number - self.ALIVE}")
            await asyncio.sleep(1 / self.PER_SECOND)

    def _check_end(self, before, changes):
        super()._check_end(before, changes)
        self.sizes = memory.sizes(self.replicas[0].live)


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param((), id="without faults"),
        pytest.param((*WRITE_FAULTS, *WATCH_FAULTS), id="requests and watches fail"),
    ],
)
def test_memory_is_bounded(faults):
    """300 pods, 10 at a time: no collection of the scheduler grows with their number."""
    churn = Churn(faults)
    system.run_system(churn)
    large = {path: size for path, size in churn.sizes.items() if size > Churn.COUNT / 2}
    assert {p: s for p, s in large.items() if not any(x in p for x in Churn.LIMITED)} == {}
