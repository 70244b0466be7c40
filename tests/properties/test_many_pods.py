"""Pods that are created, listed or added together give the same state as one after the other."""

from copy import deepcopy
from dataclasses import astuple
from random import Random

import msgspec
import pytest
from msgspec.structs import replace
from tests.storm_seeds import seeds

from moorage import Simulation
from moorage.api.meta import LabelSelector, OwnerReference
from moorage.api.pod import (
    Affinity,
    ClaimVolume,
    EphemeralVolume,
    PodAffinity,
    PodAffinityTerm,
    PodResourceClaim,
    PodStatus,
    Volume,
)
from moorage.controllers.kubelet import RUN_SECONDS
from moorage.core.observations import Added, Listed
from moorage.core.scheduler import Scheduler
from moorage.nodes.table import NodeTable
from moorage.nodes.template import Templates
from moorage.sim.cluster import MemoryCluster
from moorage.sim.results.usage import UsageTable
from moorage.testing import make_node, make_pod

NODES = [make_node(f"node-{i}", labels={"zone": i % 2}) for i in range(6)]
OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="a", uid="a", controller=True)
APART = Affinity(
    pod_anti_affinity=PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(topology_key="zone", label_selector=LabelSelector()),
        )
    )
)


class RandomPods:
    """Pods of a few workloads; most of them run, and share their parts."""

    def __init__(self, seed, count=120):
        self._draw = Random(seed)
        self._workloads = [self._workload(i) for i in range(5)]
        self.pods = [self._pod(i) for i in range(count)]

    def _workload(self, i):
        draw = self._draw
        requests = draw.choice(({"cpu": "100m"}, {"memory": "1Gi", "example.com/x": 1}, {}))
        fields = {"affinity": APART} if not draw.randrange(4) else {}
        ports = (draw.randrange(80, 83),) if not draw.randrange(4) else ()
        pod = make_pod(
            requests=requests, labels={"app": draw.choice("ab")}, host_ports=ports, **fields
        )
        owners = (OWNER,) if draw.randrange(2) else ()
        return replace(pod, metadata=replace(pod.metadata, owner_references=owners))

    def _pod(self, i):
        draw, pod = self._draw, self._draw.choice(self._workloads)
        meta = replace(pod.metadata, name=f"pod-{i}", uid=f"uid-{i}", resource_version=str(i + 1))
        spec = replace(pod.spec, node_name=f"node-{draw.randrange(7)}")  # One does not exist.
        status = PodStatus(phase="Running")
        match draw.randrange(20):
            case 0:
                meta = replace(meta, annotations={RUN_SECONDS: draw.choice(("0", "3"))})
            case 1:
                meta = replace(meta, deletion_timestamp="2026-01-01T00:00:00Z")
            case 2:
                status = PodStatus(phase=draw.choice(("Pending", "Failed", "")))
            case 3:
                spec, status = replace(spec, node_name=""), PodStatus()
            case 4:
                claim = ClaimVolume(claim_name=f"claim-{draw.randrange(2)}")
                spec = replace(spec, volumes=(Volume(name="v", persistent_volume_claim=claim),))
            case 5:
                spec = replace(spec, volumes=(Volume(name="v", ephemeral=EphemeralVolume()),))
            case 6:
                claim = PodResourceClaim(name="c", resource_claim_template_name="t")
                spec = replace(spec, resource_claims=(claim,))
            case 7:
                meta = replace(meta, uid="")  # An API server gives it one.
        return replace(pod, metadata=meta, spec=spec, status=status)


def table_state(table):
    return (
        {name: table.requested_columns[name].tolist() for name in table.requested_columns.columns},
        table.requested_columns.values,
        table.nonzero_columns.values,
        {name: table.nonzero_columns[name].tolist() for name in table.nonzero_columns.columns},
        table.pod_counts.tolist(),
        [[(uid, it.pod, astuple(it.usage)) for uid, it in of.items()] for of in table.placed],
        table.ports._rows,
        [(each.namespace, each.labels, each.live, each.terminating) for each in classes(table)],
        [(each.term, each.rows) for each in table.placements.terms.all],
    )


def classes(table):
    return sorted(table.placements.classes.all(), key=lambda each: str(each.labels))


def one_by_one(monkeypatch):
    def create_all(self, objects, now):
        return [self.create(obj, now) for obj in objects]

    monkeypatch.setattr(MemoryCluster, "create_all", create_all)


def simulation_state(sim):
    recorder = sim._recorder
    state = (
        sim.objects,
        list(sim._clock),
        sim._kubelet._pods,
        sim._volumes._users,
        recorder.placements(),
        recorder.given_with_node,
        recorder.usage.total_requested,
        {name: column.tolist() for name, column in recorder.usage.requested.items()},
        recorder.queues._own,
        recorder._requested,
        (recorder.created, recorder.running, recorder.finished),
    )
    return deepcopy(state)


@pytest.mark.parametrize("seed", seeds(10))
def test_created(seed, monkeypatch):
    pods = RandomPods(seed).pods
    together = Simulation([*NODES, *pods], trace=True)
    begun = simulation_state(together)
    together.run(20)
    one_by_one(monkeypatch)
    separate = Simulation([*NODES, *pods], trace=True)
    assert begun == simulation_state(separate)
    separate.run(20)
    assert simulation_state(together) == simulation_state(separate)
    assert list(together.trace.lines()) == list(separate.trace.lines())
    assert list(together.journal) == list(separate.journal)
    assert msgspec.json.encode(together.result.to_dict()) == msgspec.json.encode(
        separate.result.to_dict()
    )


@pytest.mark.parametrize("seed", seeds(10))
def test_listed(seed):
    pods = {pod.uid: pod for pod in RandomPods(seed).pods}
    together, separate = Scheduler(), Scheduler()
    for scheduler in (together, separate):
        scheduler.observe(Listed(type(NODES[0]), tuple(NODES)), 0.0)
    together.observe(Listed(type(make_pod()), tuple(pods.values())), 1.0)
    for pod in pods.values():
        separate.observe(Added(pod), 1.0)
    assert table_state(together.cluster.table) == table_state(separate.cluster.table)
    cached = [
        [(uid, it.pod, it.node, it.state, it.template.serial, it.template.seen) for uid, it in each]
        for each in (together.cache.pods.items(), separate.cache.pods.items())
    ]
    assert cached[0] == cached[1]
    assert list(together.journal) == list(separate.journal)
    assert together.queue.counts() == separate.queue.counts()
    assert list(together.known_pods()) == list(separate.known_pods())
    together.check_invariants()
    for scheduler in (together, separate):
        while scheduler.has_work:
            scheduler.schedule_one(2.0)
    assert list(together.journal) == list(separate.journal)


@pytest.mark.parametrize("seed", seeds(10))
def test_added_to_the_table(seed):
    together, separate = NodeTable(), NodeTable()
    for table in (together, separate):
        for node in NODES:
            table.set_node(node)
        table.pod_changes()
    templates = Templates()
    pods = {pod.uid: pod for pod in RandomPods(seed).pods if pod.node_name}
    usages = [templates.of(pod).usage for pod in pods.values()]
    together.add_pods(list(pods.values()), usages)
    for pod, usage in zip(pods.values(), usages, strict=True):
        separate.add_pod(pod.node_name, pod, usage)
    assert table_state(together) == table_state(separate)
    assert together.changes.position == separate.changes.position
    assert together.changes.entries == separate.changes.entries
    assert together.pod_changes().entries == separate.pod_changes().entries
    of_rows = [
        [[a == b for b in numbers] for a in numbers]
        for numbers in (
            [table.resource_numbers.of(row) for row in table.row_of.values()]
            for table in (together, separate)
        )
    ]
    assert of_rows[0] == of_rows[1]


@pytest.mark.parametrize("seed", seeds(10))
def test_templates(seed):
    pods, together, separate = RandomPods(seed).pods, Templates(), Templates()
    found = together.of_each(pods)
    each = [separate.of(pod) for pod in pods]
    assert [(it.serial, it.seen, it.exemplar) for it in found] == [
        (it.serial, it.seen, it.exemplar) for it in each
    ]


@pytest.mark.parametrize("seed", seeds(10))
def test_usage_of_results(seed):
    draw, together, separate = Random(seed), UsageTable(), UsageTable()
    sizes = [{"cpu": 100, "pods": 1}, {"memory": 7, "pods": 1, "example.com/x": 2}, {}]
    placed = [(f"node-{draw.randrange(100)}", draw.choice(sizes)) for _ in range(300)]
    for table in (together, separate):
        for i in range(50):
            table.put_node(f"node-{i}", {"cpu": 4000})
    together.add_many([node for node, _ in placed], [size for _, size in placed])
    for node, size in placed:
        separate.add_requests(node, size)
    assert together.rows == separate.rows
    assert together.total_requested == separate.total_requested
    assert {name: column.tolist() for name, column in together.requested.items()} == {
        name: column.tolist() for name, column in separate.requested.items()
    }
