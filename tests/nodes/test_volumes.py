"""Which rows hold pods with which claims and disks, and whose disks conflict."""

import pytest

from moorage.api.pod import (
    ISCSI,
    RBD,
    AWSElasticBlockStore,
    ClaimVolume,
    CSIVolume,
    EphemeralVolume,
    GCEPersistentDisk,
    Volume,
)
from moorage.nodes import volumes
from moorage.nodes.changes import Cursor
from moorage.nodes.volumes import VolumeUses
from moorage.testing import make_node, make_pod, make_table


def gce(name="disk", *, read_only=False):
    return Volume(gce_persistent_disk=GCEPersistentDisk(pd_name=name, read_only=read_only))


def ebs(name="vol-1", *, read_only=False):
    return Volume(aws_elastic_block_store=AWSElasticBlockStore(volume_id=name, read_only=read_only))


def iscsi(iqn="iqn.x", portal="10.0.0.1", *, read_only=False):
    return Volume(iscsi=ISCSI(iqn=iqn, target_portal=portal, read_only=read_only))


def rbd(*monitors, pool="rbd", image="img", read_only=False):
    return Volume(rbd=RBD(monitors=monitors, pool=pool, image=image, read_only=read_only))


def claim(name="data"):
    return Volume(name=name, persistent_volume_claim=ClaimVolume(claim_name=name))


CONFLICTS = [
    pytest.param(gce(), gce(), True, id="GCE: the same disk, both write"),
    pytest.param(gce(read_only=True), gce(), True, id="GCE: one of them writes"),
    pytest.param(gce(read_only=True), gce(read_only=True), False, id="GCE: both read"),
    pytest.param(gce(), gce("other"), False, id="GCE: other disks"),
    pytest.param(ebs(), ebs(), True, id="EBS: the same volume"),
    pytest.param(ebs(read_only=True), ebs(read_only=True), True, id="EBS: even if both read"),
    pytest.param(ebs(), ebs("vol-2"), False, id="EBS: other volumes"),
    pytest.param(iscsi(), iscsi(portal="10.0.0.2"), True, id="iSCSI: whatever the portal"),
    pytest.param(iscsi(read_only=True), iscsi(read_only=True), False, id="iSCSI: both read"),
    pytest.param(iscsi(), iscsi("iqn.y"), False, id="iSCSI: other names"),
    pytest.param(rbd("a", "b"), rbd("b", "c"), True, id="RBD: a monitor in common"),
    pytest.param(rbd("a", "b"), rbd("c", "d"), False, id="RBD: no monitor in common"),
    pytest.param(rbd("a"), rbd("a", pool="fast"), False, id="RBD: other pools"),
    pytest.param(rbd("a"), rbd("a", image="other"), False, id="RBD: other images"),
    pytest.param(rbd("a", read_only=True), rbd("a", read_only=True), False, id="RBD: both read"),
    pytest.param(rbd("a", read_only=True), rbd("a"), True, id="RBD: one of them writes"),
    pytest.param(gce("x"), ebs("x"), False, id="disks of other kinds"),
    pytest.param(claim(), claim(), False, id="claims are no disks"),
]


@pytest.mark.parametrize(("one", "other", "conflicts"), CONFLICTS)
def test_conflicts(one, other, conflicts):
    for new, there in ((one, other), (other, one)):
        table = make_table(
            [make_node("n"), make_node("empty")], [make_pod(node="n", volumes=(there,))]
        )
        marked = table.using(volumes.in_conflict(new))
        assert marked[table.row_of["n"]] == conflicts
        assert not marked[table.row_of["empty"]]


def test_uses_end_with_the_last_pod_that_has_them():
    held = VolumeUses()
    one = make_pod("one", volumes=(claim(), claim("other"), claim()))
    two = make_pod("two", volumes=(claim(),))
    held.add(3, one)
    held.add(3, two)
    held.add(4, two)
    use = volumes.claim_use("default", "data")
    assert set(held.rows(use)) == {3, 4}
    assert set(held.pods(3)) == {one.uid, two.uid}
    held.remove(3, one)
    held.remove(4, two)
    assert set(held.rows(use)) == {3}
    assert set(held.rows(volumes.claim_use("default", "other"))) == set()
    held.remove(3, two)
    assert list(held.rows(use)) == []
    assert not held._pods
    assert Cursor(held.changes, 0).changed() == [3, 3, 4, 3, 4, 3]


def test_a_volume_made_for_the_pod_goes_by_the_pods_name():
    pod = make_pod("web-0", namespace="shop", volumes=(Volume(name="tmp", ephemeral=_EPHEMERAL),))
    assert list(volumes.uses_of(pod)) == [(volumes.EPHEMERAL, "shop/web-0-tmp")]


@pytest.mark.parametrize(
    ("volume", "tells"),
    [
        pytest.param(Volume(name="secret"), False, id="a secret"),
        pytest.param(claim(), True, id="a claim"),
        pytest.param(Volume(csi=CSIVolume(driver="x")), True, id="an inline CSI volume"),
    ],
)
def test_pods_are_listed_whose_volumes_say_something(volume, tells):
    table = make_table([make_node("n")], [make_pod(node="n", volumes=(Volume(name="x"), volume))])
    assert bool(table.volumes.pods(table.row_of["n"])) is tells


_EPHEMERAL = EphemeralVolume()
