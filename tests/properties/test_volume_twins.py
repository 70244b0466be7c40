"""VolumeRestrictions, NodeVolumeLimits and VolumeZone: their two forms agree, whatever happened.

The per-node form reads the pods of one node and the objects as they are now; the whole-cluster
form uses incremental counts. They are compared while pods, nodes, claims, volumes, classes,
CSINodes and attachments come, change and go.
"""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.storage_builders import (
    claimed,
    ephemeral,
    make_attachment,
    make_claim,
    make_class,
    make_csi_node,
    make_volume,
)

from moorage import plugin as mp
from moorage.api.pod import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    AzureDisk,
    GCEPersistentDisk,
    Volume,
)
from moorage.api.storage import AzureFileSource, GCEDiskSource, VolumeIDSource
from moorage.framework.cluster import Cluster
from moorage.framework.invoke import PluginMethod, filter_one
from moorage.framework.state import CycleState
from moorage.nodes import changes
from moorage.nodes.table import NodeTable
from moorage.nodes.template import Templates
from moorage.nodes.usage import Usage
from moorage.plugins.node_volume_limits import NodeVolumeLimits
from moorage.plugins.node_volume_limits.attach_limits import UNLIMITED, AttachLimits
from moorage.plugins.node_volume_limits.plugin import TOO_MANY
from moorage.plugins.volume_restrictions import CLAIM_IN_USE, NO_DISK, VolumeRestrictions
from moorage.plugins.volume_zone import ELSEWHERE, LABELS, VolumeZone
from moorage.testing import make_node, make_pod

NODES = tuple(f"n{i}" for i in range(5))
CLAIMS = ("c0", "c1", "c2", "c3")
VOLUMES = ("v0", "v1", "v2")
DRIVERS = ("ebs.csi.aws.com", "pd.csi.storage.gke.io", "x")
PROVISIONERS = ("x", "kubernetes.io/aws-ebs", "kubernetes.io/vsphere-volume")
PLUGINS = [VolumeRestrictions(), NodeVolumeLimits(), VolumeZone()]


class StorageCluster:
    """A small cluster in which storage changes at random."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.serial = 0
        self.pods = {}
        self.objects = {}
        self.cluster = Cluster(NodeTable(2))
        self.table = self.cluster.table
        self.templates = Templates()
        for _ in range(15):
            self.set_node()
            self.put_something()

    def step(self):
        weights = {self.add_pod: 5, self.remove_pod: 3, self.set_node: 1, self.remove_node: 1}
        weights |= {self.put_something: 6, self.drop_something: 2}
        self.rng.choices(list(weights), list(weights.values()))[0]()

    def rebuilt(self):
        """A new cluster with the same objects."""
        cluster = Cluster(self.table)
        for obj in self.objects.values():
            cluster.put(obj)
        return cluster

    # Nodes and pods

    def set_node(self):
        keys = self.rng.sample(list(LABELS), self.rng.choice((0, 1, 2, 4)))
        labels = {key: self.rng.choice("ab") for key in keys}
        self.table.set_node(make_node(self.rng.choice(NODES), labels=labels))

    def remove_node(self):
        name = self.rng.choice(NODES)
        if self.table.node(name) is not None:
            self.table.remove_node(name)

    def add_pod(self):
        if len(self.pods) > 10:  # So that limits are neither far away nor long exceeded.
            self.remove_pod()
        pod = self.random_pod(node=self.rng.choice(NODES))
        self.pods[pod.uid] = pod
        self.table.add_pod(pod.node_name, pod, Usage.of(pod))

    def remove_pod(self):
        if self.pods:
            pod = self.pods.pop(self.rng.choice(sorted(self.pods)))
            self.table.remove_pod(pod.node_name, pod.uid)

    def random_pod(self, node=None):
        self.serial += 1
        volumes = tuple(self.random_volume() for _ in range(self.rng.randrange(4)))
        return make_pod(f"p{self.serial % 3}", uid=f"u{self.serial}", node=node, volumes=volumes)

    def random_volume(self):
        pick, read_only = self.rng.choice, self.rng.random() < 0.4
        disk = pick("ab")
        aws = pick(("vol-1", "vol-2", "aws://z/vol-1", "aws://z/what"))
        return pick(
            (
                Volume(name="secret"),
                claimed(pick(CLAIMS)),
                claimed(pick(CLAIMS)),
                ephemeral(pick(("e0", "e1"))),
                Volume(gce_persistent_disk=GCEPersistentDisk(disk, read_only=read_only)),
                Volume(aws_elastic_block_store=AWSElasticBlockStore(aws)),
                Volume(azure_disk=AzureDisk(disk_uri=disk)),
                Volume(iscsi=ISCSI(iqn=disk, read_only=read_only)),
                Volume(rbd=RBD(tuple(self.rng.sample("abc", 2)), disk, read_only=read_only)),
            )
        )

    # Other objects

    def put_something(self):
        obj = self.rng.choice(
            (self.claim, self.volume, self.csi_node, self.attachment, self.storage_class)
        )()
        self.objects[type(obj), obj.key] = obj
        self.cluster.put(obj)

    def drop_something(self):
        if self.objects:
            which = self.rng.choice(list(self.objects))
            self.cluster.drop(self.objects.pop(which))

    def claim(self):
        pick = self.rng.choice
        # Some are made for a pod that is there, some for one that is not any more.
        owner = self.random_pod() if self.rng.random() < 0.2 or not self.pods else None
        owner = owner or self.pods[pick(sorted(self.pods))]
        name = pick((*CLAIMS, f"{owner.name}-e0", f"{owner.name}-e1"))
        return make_claim(
            name,
            volume=pick(("", "", "", *VOLUMES)),
            storage_class=pick((None, "fast", "fast", "slow", "unheard")),
            modes=pick((("ReadWriteOnce",), ("ReadWriteOncePod",))),
            owner=owner,
        )

    def volume(self):
        pick = self.rng.choice
        labels = {key: pick(("a", "b", "a__b", "a__")) for key in LABELS if pick((0, 0, 1))}
        spec = pick(
            (
                {"driver": pick(DRIVERS), "handle": pick(("vol-1", "vol-2", "h"))},
                {"aws_elastic_block_store": VolumeIDSource(pick(("vol-1", "aws://z/what")))},
                {"gce_persistent_disk": GCEDiskSource(pick("ab"))},
                {"azure_file": AzureFileSource("share")},
            )
        )
        return make_volume(pick(VOLUMES), labels=labels, **spec)

    def csi_node(self):
        limits = {driver: self.rng.choice((0, 1, 2, 3, 4, None)) for driver in DRIVERS}
        some = self.rng.sample(DRIVERS, self.rng.randrange(4))
        return make_csi_node(self.rng.choice(NODES), {driver: limits[driver] for driver in some})

    def attachment(self):
        pick = self.rng.choice
        return make_attachment(
            pick(("at0", "at1", "at2")),
            node=pick(NODES),
            volume=pick((None, *VOLUMES)),
            attacher=pick(("", *DRIVERS)),
        )

    def storage_class(self):
        pick = self.rng.choice
        mode = pick((None, "Immediate", "WaitForFirstConsumer", "WaitForFirstConsumer"))
        return make_class(pick(("fast", "slow")), provisioner=pick(PROVISIONERS), mode=mode)


def compare(cluster, plugin):
    """Both forms, for a pod that waits; returns the codes and reasons that came up."""
    pod = cluster.random_pod()
    state = CycleState.of(cluster.cluster, cluster.templates.of(pod))
    if not plugin.pre_filter(state, pod).is_success:
        return set()
    rows = np.flatnonzero(cluster.table.active_rows)
    method = PluginMethod(plugin, "filter")
    alone = [filter_one(method, state, pod, cluster.table.info(row)) for row in rows.tolist()]
    for asked in (cluster.table, cluster.table.slice(rows), cluster.table.slice(rows[::-1])):
        verdicts = plugin.filter_all(state, pod, asked)
        assert len(verdicts.codes) == len(asked)
        codes = verdicts.codes[rows] if asked is cluster.table else verdicts.codes
        said = [verdicts.status_of(code) if code else mp.SUCCESS for code in codes.tolist()]
        wanted = alone if asked is cluster.table or asked.rows[0] == rows[0] else alone[::-1]
        plain = [(status.code, status.reasons) for status in said]
        assert plain == [(status.code, status.reasons) for status in wanted]
    return {(status.code, status.reasons) for status in alone}


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@given(seed=st.integers(0, 2**32 - 1))
def test_twins_agree(plugin, seed):
    cluster = StorageCluster(seed)
    for _ in range(40):
        for _ in range(cluster.rng.choice((0, 1, 1, 5))):
            cluster.step()
        if cluster.table.node_count:
            compare(cluster, plugin)


@pytest.mark.parametrize(
    ("plugin", "statuses"),
    [
        pytest.param(VolumeRestrictions(), [NO_DISK, CLAIM_IN_USE], id="VolumeRestrictions"),
        pytest.param(NodeVolumeLimits(), [TOO_MANY], id="NodeVolumeLimits"),
        pytest.param(VolumeZone(), [ELSEWHERE], id="VolumeZone"),
    ],
)
def test_the_random_clusters_cause_all_rejections(plugin, statuses):
    cluster, said = StorageCluster(1), set()
    for _ in range(600):
        cluster.step()
        said |= compare(cluster, plugin) if cluster.table.node_count else set()
    assert said >= {(status.code, status.reasons) for status in [mp.SUCCESS, *statuses]}
    if plugin.name == "NodeVolumeLimits":
        assert any(code is mp.Code.ERROR for code, _ in said)
        assert any("looking up PVC" in text for _, texts in said for text in texts)


@given(seed=st.integers(0, 2**32 - 1))
def test_attach_counts_equal_a_recount(seed):
    cluster = StorageCluster(seed)
    kept = AttachLimits(cluster.cluster)
    for _ in range(40):
        cluster.step()
        assert counts(kept, cluster) == counts(AttachLimits(cluster.rebuilt()), cluster)


def counts(attached, cluster):
    """All that it says of rows with a node."""
    attached.refresh()
    rows = np.flatnonzero(cluster.table.active_rows)
    unlimited = np.full(cluster.table.capacity, UNLIMITED)
    free = {driver: attached.free(driver) for driver in (*DRIVERS, *PROVISIONERS)}
    names = [f"{driver}/{handle}" for driver in DRIVERS for handle in ("vol-1", "vol-2", "h")]
    more = {name: attached.more([name]) + np.zeros(cluster.table.capacity) for name in names}
    return (
        {driver: (unlimited if f is None else f)[rows].tolist() for driver, f in free.items()},
        {name: needed[rows].tolist() for name, needed in more.items()},
        {row: text for row, text in attached.errors.items() if row in rows},
        attached.has_csi_node[rows].tolist(),
    )


def test_twins_agree_when_change_logs_are_truncated(monkeypatch):
    monkeypatch.setattr(changes, "LONGEST", 4)
    cluster = StorageCluster(2)
    for _ in range(150):
        for _ in range(cluster.rng.choice((1, 3, 9))):
            cluster.step()
        for plugin in PLUGINS if cluster.table.node_count else ():
            compare(cluster, plugin)
