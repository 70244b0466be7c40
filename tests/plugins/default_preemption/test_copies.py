"""A scheduler that preempts in a changing cluster decides like a copy of it, which has no caches.

Unlike in `test_twins`, two profiles with other arguments share the templates, pods are resized in
place, relabelled and listed anew, nodes come and go, and device classes serve a resource.
MOORAGE_SEEDS=1000 runs that many clusters.
"""

import pickle

import pytest
from msgspec.structs import replace
from tests.plugins.default_preemption import test_twins
from tests.plugins.default_preemption.test_twins import APPS, NODES
from tests.storm_seeds import seeds

from moorage.api import config
from moorage.api.devices import DeviceClass, DeviceClassSpec
from moorage.api.meta import Condition, ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import ContainerStatus, Pod, ResourceRequirements
from moorage.core.observations import Deleted, Listed, Updated
from moorage.core.scheduler import Scheduler
from moorage.framework import what_if
from moorage.nodes import resource_numbers, template
from moorage.plugins.default_preemption import results
from moorage.testing import make_node

GPU, OTHER = "example.com/gpu", "other"
CONFIG = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {"schedulerName": "default-scheduler"},
        {
            "schedulerName": OTHER,
            "plugins": {"multiPoint": {"disabled": [{"name": "NodePorts"}]}},
            "pluginConfig": [
                {"name": "NodeResourcesFit", "args": {"ignoredResources": [GPU]}},
                {
                    "name": "DefaultPreemption",
                    "args": {"minCandidateNodesPercentage": 30, "minCandidateNodesAbsolute": 0},
                },
            ],
        },
    ],
}
LIMITS = (
    (what_if, "MOST_KNOWN"),
    (resource_numbers, "MOST_KNOWN"),
    (template, "MOST_TEMPLATES"),
    (results, "MOST_BLOCKS"),
    (results, "FEWEST_CACHED"),
    (results, "CACHE_BYTES"),
)


class Cluster(test_twins.Cluster):
    """With more kinds of changes.

    In every other one no pod has affinity terms or ports, so that filters depend on resources only.
    """

    def __init__(self, seed):
        self.nodes = {}
        self.is_plain = seed % 2 == 0
        super().__init__(seed)
        self.scheduler = Scheduler(config.load(CONFIG), seed=seed)
        self.list_nodes(self.nodes)
        self.list_pods(self.pods)

    def set_node(self, name=None):
        draw = self.rng
        room = {"cpu": draw.choice("234"), "memory": "4Gi", "pods": draw.choice("4689")}
        if draw.random() < 0.5:
            room[GPU] = draw.choice("124")
        node = make_node(
            name or draw.choice(NODES), labels={"zone": draw.choice("abc")}, allocatable=room
        )
        self.nodes[node.name] = node
        self.observe(Updated(node))

    def remove_node(self):
        if len(self.nodes) > 4:
            self.observe(Deleted(self.nodes.pop(self.rng.choice(sorted(self.nodes)))))

    def some(self, objects):
        return {key: obj for key, obj in objects.items() if self.rng.random() < 0.95}

    def list_nodes(self, kept):
        self.nodes = kept
        self.observe(Listed(Node, tuple(kept.values())))

    def list_pods(self, kept):
        """A list in which many pods are new, one is there twice, and one names no known node."""
        draw = self.rng
        new = [self.new_pod(node=draw.choice((*NODES, "late"))) for _ in range(draw.randrange(9))]
        self.pods = kept | {pod.key: pod for pod in new}
        pods = list(self.pods.values())
        pods.insert(draw.randrange(len(pods) + 1), draw.choice(pods))
        self.observe(Listed(Pod, tuple(pods)))

    def new_pod(self, **fields):
        draw = self.rng
        requests = fields.pop("requests", {"cpu": draw.choice(("100m", "400m", "900m"))})
        requests |= {GPU: draw.choice("0012")}
        if self.is_plain:
            fields |= {"affinity": None, "topology_spread_constraints": (), "host_ports": ()}
        pod = super().new_pod(requests=requests, **fields)
        annotations = {"revision": draw.choice("12")}
        return replace(pod, metadata=replace(pod.metadata, annotations=annotations))

    def preemptor(self):
        pod, draw = super().preemptor(), self.rng
        return replace(
            pod,
            spec=replace(pod.spec, scheduler_name=draw.choice(("default-scheduler", OTHER))),
        )

    def change_pod(self):
        """Resize, relabel or terminate a pod."""
        draw = self.rng
        pod = self.pods[draw.choice(sorted(self.pods))]
        meta, spec, status = pod.metadata, pod.spec, pod.status
        match draw.randrange(4):
            case 0:
                meta = replace(meta, labels={"app": draw.choice(APPS)})
            case 1:
                meta = replace(meta, deletion_timestamp="2026-01-01T00:00:00Z")
            case _:
                wanted, actual = (
                    ResourceRequirements(requests={"cpu": draw.choice(("50m", "300m", "1200m"))})
                    for _ in range(2)
                )
                first = spec.containers[0]
                spec = replace(spec, containers=(replace(first, resources=wanted),))
                of_first = ContainerStatus(
                    name=first.name, resources=actual, allocated_resources=wanted.requests
                )
                reason = draw.choice(("Infeasible", "Deferred"))
                pending = Condition(type="PodResizePending", status="True", reason=reason)
                status = replace(
                    status, container_statuses=(of_first,), conditions=draw.choice(((), (pending,)))
                )
        self.pods[pod.key] = replace(pod, metadata=meta, spec=spec, status=status)
        self.observe(Updated(self.pods[pod.key]))

    def serve_resource(self):
        served = self.rng.choice((GPU, "example.com/none"))
        spec = DeviceClassSpec(extended_resource_name=served)
        self.observe(Updated(DeviceClass(metadata=ObjectMeta(name="gpu"), spec=spec)))

    def step(self):
        if self.rng.random() < 0.6:
            super().step()
            return
        list_nodes, list_pods = (
            lambda: self.list_nodes(self.some(self.nodes)),
            lambda: self.list_pods(self.some(self.pods)),
        )
        steps = [self.change_pod] * 6 + [self.remove_node, self.serve_resource]
        self.rng.choice([*steps, self.set_node, list_nodes, list_pods])()


def decision(scheduler, pod):
    """What was decided, with the candidates and why."""
    profile = scheduler.profiles[pod.spec.scheduler_name]
    made = scheduler.cycle.decide(profile, pod, scheduler.templates.of(pod), 0.0)
    found = made.post_filter
    if found is None:
        return made.row, made.feasible_count, made.rejected_by()
    why = found.why() if callable(found.why) else found.why
    chosen = found.status, found.nominated, found.victims, list(found.candidates), why
    return made.rejected_by(), chosen


@pytest.mark.parametrize("limit", [None, 2], ids=["as it is", "small caches"])
@pytest.mark.parametrize("seed", seeds(6))
def test_a_copy_decides_the_same(seed, limit, monkeypatch):
    for module, name in LIMITS if limit else ():
        monkeypatch.setattr(module, name, limit)
    cluster = Cluster(seed)
    kinds = [cluster.preemptor() for _ in range(5)]
    victims = 0
    for number in range(40):
        for _ in range(cluster.rng.choice((1, 1, 1, 3, 12))):
            cluster.step()
        kind, uid = cluster.rng.choice(kinds), f"new{number}"
        pod = replace(kind, metadata=replace(kind.metadata, name=uid, uid=uid))
        if cluster.rng.random() < 0.3:
            pod = cluster.wait(pod)
        copy = pickle.loads(pickle.dumps(cluster.scheduler))
        expected = decision(copy, pod)
        assert decision(cluster.scheduler, pod) == expected
        victims += len(expected) == 2 and bool(expected[1][2])
    cluster.scheduler.check_invariants()
    assert victims, "a test that never finds victims says nothing"
