"""VolumeBinding's two forms agree while volumes, claims, classes, capacities and nodes change.

The per-node form looks at the objects as they are now; the whole-cluster form works from counts
that are updated incrementally. Cached results are stale if either form misses a change.
"""

from contextlib import suppress
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from tests.storage_builders import (
    HOSTNAME,
    claimed,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
    make_free_volume,
    make_waiting_claim,
    reaching,
)

from moorage.api import csi_migration
from moorage.api.meta import LabelSelector, NodeSelector
from moorage.api.storage import (
    PersistentVolume,
    TopologySelectorLabel,
    TopologySelectorTerm,
    TypedReference,
    VolumeIDSource,
    VolumeNodeAffinity,
)
from moorage.framework.cluster import Cluster
from moorage.nodes import changes
from moorage.nodes.objects import AssumeError
from moorage.nodes.table import NodeTable
from moorage.plugins.volume_binding import VolumeBinding, finding
from moorage.plugins.volume_binding.plugin import CLAIMS
from moorage.testing import check_twins, make_node, make_pod, make_state

NODES = tuple(f"n{i}" for i in range(6))
CLAIM_NAMES = ("c0", "c1", "c2", "c3")
VOLUME_NAMES = tuple(f"v{i}" for i in range(6))
SIZES = ("1Gi", "2Gi", "3Gi")
CLASSES = ("fast", "slow")


class ChangingStorage:
    """A small cluster in which storage changes at random."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.version = 0
        self.objects = {}
        self.cluster = Cluster(NodeTable(2))
        self.put(make_class("fast"))
        self.put(make_class("slow", provisioner="kubernetes.io/no-provisioner"))
        for _ in range(12):
            self.set_node()
            self.put_something()

    def step(self):
        weights = {self.put_something: 8, self.drop_something: 2, self.assume_something: 4}
        weights |= {self.set_node: 2, self.remove_node: 1, self.restore_something: 1}
        self.rng.choices(list(weights), list(weights.values()))[0]()

    def set_node(self):
        name = self.rng.choice(NODES)
        labels = {HOSTNAME: name, "zone": self.rng.choice("ab")}
        if self.rng.random() < 0.3:
            labels |= {"topology.ebs.csi.aws.com/zone": self.rng.choice("ab")}
        self.cluster.table.set_node(make_node(name, labels=labels))

    def remove_node(self):
        name = self.rng.choice(NODES)
        if self.cluster.table.node(name) is not None:
            self.cluster.table.remove_node(name)

    def put(self, obj):
        self.version += 1
        meta = replace(obj.metadata, resource_version=str(self.version))
        obj = replace(obj, metadata=meta)
        self.objects[type(obj), obj.key] = obj
        self.cluster.put(obj)

    def put_something(self):
        kinds = (self.claim, self.claim, self.volume, self.volume, self.volume)
        kinds += (self.storage_class, self.driver, self.capacity, self.csi_node)
        self.put(self.rng.choice(kinds)())

    def drop_something(self):
        if self.objects:
            self.cluster.drop(self.objects.pop(self.rng.choice(sorted(self.objects, key=str))))

    def assume_something(self):
        _, obj = self.rng.choice(sorted(self.objects.items(), key=str))
        if isinstance(obj, PersistentVolume):
            taken = replace(obj.spec, claim_ref=self.reference())
            with suppress(AssumeError):
                self.cluster.assume(replace(obj, spec=taken), "holder")

    def restore_something(self):
        self.cluster.restore(self.rng.choice(sorted(self.objects.items(), key=str))[1])

    def claim(self):
        pick = self.rng.choice
        name = pick(CLAIM_NAMES)
        if self.rng.random() < 0.3:
            return make_claim(name, volume=pick(VOLUME_NAMES))
        selector = pick((None, None, None, LabelSelector(match_labels={"disk": "ssd"})))
        return make_waiting_claim(
            name,
            pick((*SIZES, None)),
            storage_class=pick(CLASSES),
            selected_node=pick((None,) * 6 + NODES[:2]),
            modes=pick((("ReadWriteOnce",), ("ReadWriteOnce", "ReadOnlyMany"))),
            selector=selector,
        )

    def reference(self):
        name = self.rng.choice(CLAIM_NAMES)
        uid = self.rng.choice(("", f"claim default/{name}", "another"))
        return TypedReference(namespace="default", name=name, uid=uid)

    def affinity(self):
        pick = self.rng.choice
        near = reaching(HOSTNAME, *self.rng.sample(NODES, pick((1, 1, 2))))
        zonal = reaching("zone", pick("ab"))
        both = NodeSelector(
            node_selector_terms=(
                *near.required.node_selector_terms,
                *zonal.required.node_selector_terms,
            )
        )
        old = reaching("topology.kubernetes.io/zone", pick("ab"))
        return pick((None, near, near, near, zonal, VolumeNodeAffinity(required=both), old))

    def volume(self):
        pick = self.rng.choice
        disk = VolumeIDSource(volume_id="vol-1") if self.rng.random() < 0.2 else None
        free = make_free_volume(
            pick(VOLUME_NAMES),
            pick(SIZES),
            storage_class=pick(CLASSES),
            given_to=self.reference() if self.rng.random() < 0.25 else None,
            phase=pick(("Available", "Available", "Available", "Bound")),
            labels=pick(({}, {"disk": "ssd"})),
            access_modes=("ReadWriteOnce", *pick(((), ("ReadOnlyMany",)))),
            aws_elastic_block_store=disk,
        )
        return replace(free, spec=replace(free.spec, node_affinity=self.affinity()))

    def storage_class(self):
        pick = self.rng.choice
        label = TopologySelectorLabel(key="zone", values=(pick("ab"),))
        terms = pick(((), (), (TopologySelectorTerm(match_label_expressions=(label,)),)))
        return replace(make_class("fast"), allowed_topologies=terms)

    def driver(self):
        return make_driver(storage_capacity=self.rng.choice((True, True, False)))

    def capacity(self):
        pick = self.rng.choice
        where = pick(({}, {"zone": pick("ab")}, {HOSTNAME: pick(NODES)}))
        return make_capacity(f"k{pick('012')}", pick((*SIZES, None)), on=where)

    def csi_node(self):
        node = make_csi_node(self.rng.choice(NODES))
        marks = {csi_migration.MIGRATED_PLUGINS: self.rng.choice((csi_migration.EBS, ""))}
        return replace(node, metadata=replace(node.metadata, annotations=marks))

    def pod(self):
        count = self.rng.choice((1, 1, 2, 3))
        names = self.rng.choices(CLAIM_NAMES, k=count)
        return make_pod(volumes=tuple(claimed(name) for name in names))

    def afresh(self):
        """A new cluster with the same objects."""
        cluster = Cluster(NodeTable())
        for node in filter(None, self.cluster.table.nodes):
            cluster.table.set_node(node)
        for obj in self.objects.values():
            cluster.put(obj)
        for assumption in self.cluster.assumed:
            cluster.assume(assumption.obj, assumption.holder)
        return cluster


def answers(cluster, pod):
    state = make_state(pod, cluster)
    if not VolumeBinding().pre_filter(state, pod).is_success:
        return {}
    problems, _ = finding.find_all(cluster, state[CLAIMS])
    return {name: int(problems[row]) for name, row in cluster.table.row_of.items()}


def compare(storage):
    pod = storage.pod()
    found = answers(storage.cluster, pod)
    assert found == answers(storage.afresh(), pod)
    if found:
        check_twins(VolumeBinding(), pod, storage.cluster)
    return found.values()


@given(st.integers(min_value=0, max_value=10_000))
def test_twins_agree_whatever_changes(seed):
    storage = ChangingStorage(seed)
    for _ in range(15):
        storage.step()
        compare(storage)


def test_the_random_clusters_cause_all_rejections():
    problems = set()
    for seed in range(40):
        storage = ChangingStorage(seed)
        for _ in range(15):
            storage.step()
            problems.update(compare(storage))
    bits = (finding.FAR, finding.NOT_FOUND, finding.NO_ROOM, finding.LOST)
    assert 0 in problems
    assert all(any(bit & found for found in problems) for bit in bits)


@pytest.mark.parametrize("seed", range(5))
def test_twins_agree_when_change_logs_are_truncated(seed, monkeypatch):
    monkeypatch.setattr(changes, "LONGEST", 4)
    storage = ChangingStorage(seed)
    for _ in range(40):
        storage.step()
        compare(storage)
