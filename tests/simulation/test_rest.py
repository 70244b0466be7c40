"""When a simulation ends because no work is left."""

import pytest

from moorage import plugin as mp
from moorage.core.journal import Popped
from moorage.sim.faults import Faults
from moorage.sim.run import Simulation
from moorage.testing.builders import make_node, make_pod

CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}


def small(name="n1", **fields):
    return make_node(name, allocatable={"cpu": "1", "pods": "10"}, **fields)


def pod(name="web", *, cpu="1", **fields):
    return make_pod(name, requests={"cpu": cpu}, **fields)


def job(name: str, seconds: int):
    wants = {"requests": {"cpu": "1"}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": {"moorage.dev/run-seconds": str(seconds)}},
        "spec": {"containers": [{"name": "c", "resources": wants}]},
    }


def tries(sim: Simulation) -> int:
    return sum(isinstance(fact, Popped) for fact in sim.journal)


@pytest.mark.parametrize(
    ("objects", "ends_at"),
    [
        pytest.param([], 0, id="an empty cluster"),
        pytest.param([small()], 0, id="no pod"),
        pytest.param([small(), pod()], 1, id="when the last pod has started"),
        pytest.param([small(), pod(gates=["g"])], 0, id="a gated pod is not waited for"),
        pytest.param([small(), pod(cpu="9")], 0, id="nor one that fits nowhere"),
        pytest.param([small(), job("a", 1000)], 1, id="nor the end of a job, if no pod waits"),
        pytest.param([small(), job("a", 1000), pod()], 1002, id="but if a pod waits"),
        pytest.param([small(), job("a", 1000), pod(gates=["g"])], 1, id="a gated pod does not"),
    ],
)
def test_the_time_at_which_a_run_ends(objects, ends_at):
    sim = Simulation(objects)
    sim.run()
    assert sim.now == ends_at


def test_retries_that_cannot_succeed_end_the_run():
    sim = Simulation([pod()])  # Without nodes a pod is retried as after an error.
    sim.run()
    assert sim.pending == {"default/web": "no nodes available to schedule pods"}
    assert 10 < sim.now < 30
    assert tries(sim) < 10


def test_such_retries_do_not_fill_the_time_until_a_job_ends():
    sim = Simulation([job("a", 10_000_000), small(), pod()])
    sim.run(until=10)
    sim.delete("Node", "", "n1")  # Now the pod meets no nodes at all, and goes into back-off.
    sim.run()
    assert tries(sim) < 30


def test_a_run_continues_for_a_retry_that_may_succeed_at_random():
    sim = Simulation([small(), pod()], faults=Faults(bind_fails=0.9), seed=4)
    sim.run()
    assert sim.placements == {"default/web": "n1"}


def test_running_again_does_nothing_more():
    sim = Simulation([small(), pod(), pod("b")])
    sim.run()
    before = sim.now, list(sim.journal.lines())
    sim.run()
    assert (sim.now, list(sim.journal.lines())) == before


def test_until_is_a_time_that_is_reached():
    sim = Simulation([small(), pod()])
    sim.run(until=0.5)
    assert sim.now == 0.5
    assert sim.read("Pod", "", "web")["status"]["phase"] == "Pending"
    sim.run(until=100)
    assert sim.now == 100
    assert sim.read("Pod", "", "web")["status"]["phase"] == "Running"


def test_until_includes_the_flush_of_unschedulable_pods():
    sim = Simulation([small(), pod(cpu="9")])
    sim.run(until=1000)
    assert tries(sim) == 4  # At 0, and at each multiple of 30 s that is over five minutes later.


def test_a_pod_without_a_matching_hint_is_retried_after_five_minutes():
    # No hint requeues a pod without terms when a new node is infeasible for a pod with
    # anti-affinity. As in Kubernetes, it stays unschedulable until the flush.
    loner = manifest(
        "loner", labels={"app": "loner"}, spec={"affinity": {"podAntiAffinity": ALONE}}
    )
    sim = Simulation([zoned("n1", "a"), loner], CONFIG)
    sim.run()
    sim.create([manifest("web", labels={"app": "web"})])
    sim.run()
    assert sim.placements["default/web"] is None
    before = sim.now
    sim.create([zoned("n2", "b")])
    sim.run()
    assert sim.placements["default/web"] == "n2"
    assert sim.now - before < 340


def test_unschedulable_pods_are_retried_once_after_capacity_is_freed():
    sim = Simulation([small(), pod(cpu="9")])
    sim.run()
    assert (sim.now, tries(sim)) == (0, 1)
    sim.create([small("n2")])
    sim.run()
    sim.run()
    assert 300 < sim.now < 400
    assert tries(sim) == 2


ALONE = {
    "requiredDuringSchedulingIgnoredDuringExecution": [
        {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "web"}}}
    ]
}


def zoned(name: str, zone: str):
    return make_node(name, labels={"zone": zone})


def manifest(name: str, *, labels, spec=None):
    meta = {"name": name, "labels": labels}
    spec = {"containers": [{"name": "c"}]} | (spec or {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


class Grudge:
    """Rejects every pod at permit, and registers for all events."""

    name = "Grudge"

    def permit(self, state, pod, node):
        return mp.unschedulable("never")


def test_pods_that_requeue_each_other_do_not_stop_the_clock():
    plugins = {"multiPoint": {"enabled": [{"name": f"{__name__}:Grudge"}]}}
    config = CONFIG | {"profiles": [{"plugins": plugins}]}
    sim = Simulation([small(), pod("a"), pod("b")], config)
    sim.run()
    assert set(sim.placements.values()) == {None}
    assert sim.now < 100
