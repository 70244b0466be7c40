import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec, PodStatus
from moorage.controllers.kubelet import RUN_SECONDS
from moorage.errors import InputError
from moorage.sim import kubelet
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.kubelet import Kubelet

KEY = "default/web"


class Harness:
    """A cluster with kubelets; `at(t)` is what it looks like by then."""

    def __init__(self) -> None:
        self.cluster = MemoryCluster()
        self.clock: Clock[object] = Clock()
        self.kubelet = Kubelet(self.cluster, self.clock)
        self.cluster.create(Node(metadata=ObjectMeta(name="n1")), 0)

    def pod(self, *, node="", phase="", run_seconds=None, grace=None) -> Pod:
        annotations = {} if run_seconds is None else {RUN_SECONDS: run_seconds}
        spec = PodSpec(node_name=node, termination_grace_period_seconds=grace)
        meta = ObjectMeta(name="web", annotations=annotations)
        made = Pod(metadata=meta, spec=spec, status=PodStatus(phase=phase))
        return self.cluster.create(made, self.clock.now)

    def phase_at(self, at: float) -> str | None:
        while self.clock.next_at is not None and self.clock.next_at <= at:
            self.kubelet.perform(self.clock.pop())  # type: ignore[arg-type]
        self.clock.advance(at)
        pod = self.cluster.get(Pod, KEY)
        return None if pod is None else pod.status.phase


def test_a_bound_pod_starts_after_a_moment():
    harness = Harness()
    harness.cluster.bind(KEY, harness.pod().uid, "n1", 0)
    assert [harness.phase_at(t) for t in (0.9, 1.0)] == ["Pending", "Running"]
    pod = harness.cluster.get(Pod, KEY)
    assert pod is not None
    assert pod.status.start_time == "2026-01-01T00:00:01Z"


def test_an_unbound_pod_does_not_start():
    harness = Harness()
    harness.pod()
    assert harness.phase_at(100) == "Pending"


@pytest.mark.parametrize(
    ("pod", "phases"),
    [
        pytest.param(
            {"node": "n1", "run_seconds": "3"},
            {1: "Running", 3.9: "Running", 4: "Succeeded"},
            id="a pod with an end",
        ),
        pytest.param(
            {"node": "n1", "phase": "Running", "run_seconds": "3"},
            {2.9: "Running", 3: "Succeeded"},
            id="that runs from the start",
        ),
        pytest.param({"node": "n1"}, {1000: "Running"}, id="a pod without an end"),
        pytest.param({"node": "far"}, {1000: "Pending"}, id="on an unknown node"),
    ],
)
def test_running(pod, phases):
    harness = Harness()
    harness.pod(**pod)
    assert {t: harness.phase_at(t) for t in phases} == phases


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf"])
def test_a_time_to_run_that_is_no_time(text):
    with pytest.raises(InputError, match=f'must be seconds, is "{text}"'):
        kubelet.run_seconds(Pod(metadata=ObjectMeta(annotations={RUN_SECONDS: text})))


@pytest.mark.parametrize(
    ("pod", "there_until"),
    [
        pytest.param({"node": "n1", "grace": 5}, 7, id="its own grace period"),
        pytest.param({"node": "n1"}, 32, id="half a minute otherwise"),
        pytest.param({"node": "n1", "grace": 60, "run_seconds": "4"}, 5, id="or its own end"),
    ],
)
def test_a_deleted_pod_is_there_until_its_grace_is_over(pod, there_until):
    harness = Harness()
    harness.pod(**pod)
    harness.phase_at(2)
    harness.cluster.delete(Pod, KEY, 2)
    assert harness.phase_at(there_until - 0.1) == "Running"
    assert harness.phase_at(there_until) is None


def test_a_second_deletion_may_shorten_the_grace_period_but_not_extend_it():
    harness = Harness()
    harness.pod(node="n1", phase="Running", grace=30)
    harness.cluster.delete(Pod, KEY, 0)
    harness.cluster.delete(Pod, KEY, 0, grace_seconds=60)
    assert harness.phase_at(9) == "Running"
    harness.cluster.delete(Pod, KEY, 9, grace_seconds=5)
    assert [harness.phase_at(t) for t in (13.9, 14)] == ["Running", None]


def test_a_pod_deleted_before_it_started_never_runs():
    harness = Harness()
    harness.pod(node="n1", grace=5)
    harness.cluster.delete(Pod, KEY, 0)
    assert [harness.phase_at(t) for t in (4, 5)] == ["Pending", None]


def test_the_pods_of_a_missing_node_are_collected_after_a_while():
    harness = Harness()
    harness.pod(node="n1")
    harness.phase_at(10)
    harness.cluster.delete(Node, "n1", 10)
    assert [harness.phase_at(t) for t in (49, 50)] == ["Running", None]


def test_unless_the_node_is_back():
    harness = Harness()
    harness.pod(node="n1")
    harness.cluster.delete(Node, "n1", 0)
    assert harness.phase_at(20) == "Pending"
    harness.cluster.create(Node(metadata=ObjectMeta(name="n1")), 20)
    assert [harness.phase_at(t) for t in (21, 100)] == ["Running", "Running"]


def test_a_pod_bound_to_a_node_that_has_just_gone_is_collected():
    harness = Harness()
    harness.cluster.bind(KEY, harness.pod().uid, "gone", 0)
    assert [harness.phase_at(t) for t in (39, 40)] == ["Pending", None]


def test_the_end_of_a_pod_is_not_that_of_its_namesake():
    harness = Harness()
    harness.pod(node="n1", run_seconds="10")
    harness.phase_at(2)
    harness.cluster.delete(Pod, KEY, 2, grace_seconds=0)
    harness.pod(node="n1")
    assert harness.phase_at(50) == "Running"
