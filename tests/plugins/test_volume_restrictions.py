"""Disks and claims that bear one pod only."""

import pytest
from tests.storage_builders import claimed, ephemeral, make_claim

from moorage import plugin as mp
from moorage.api.pod import ISCSI, RBD, AWSElasticBlockStore, GCEPersistentDisk, Volume
from moorage.nodes.usage import Placed, Usage
from moorage.plugins.claim_advice import names_claim
from moorage.plugins.volume_restrictions import (
    CLAIM_IN_USE,
    EXCLUSIVE,
    NO_DISK,
    VolumeRestrictions,
    frees_a_volume,
)
from moorage.testing import (
    check_plugin,
    check_twins,
    make_cluster,
    make_node,
    make_pod,
    make_state,
    run_plugin,
)

QUEUE, QUEUE_SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP
SECRET = Volume(name="secret")


def gce(*, read_only=False):
    return Volume(gce_persistent_disk=GCEPersistentDisk(pd_name="disk", read_only=read_only))


def ebs(*, read_only=False):
    return Volume(aws_elastic_block_store=AWSElasticBlockStore("vol-1", read_only=read_only))


def iscsi(*, read_only=False):
    return Volume(iscsi=ISCSI(iqn="iqn.x", read_only=read_only))


def rbd(*monitors, read_only=False):
    return Volume(rbd=RBD(monitors=monitors, image="img", read_only=read_only))


def once(name="data", **more):
    return make_claim(name, modes=("ReadWriteOncePod",), **more)


@pytest.mark.parametrize(
    ("new", "there", "status"),
    [
        pytest.param([gce()], [gce()], NO_DISK, id="20: the same GCE disk, both write"),
        pytest.param([gce(read_only=True)], [gce(read_only=True)], mp.SUCCESS, id="20: both read"),
        pytest.param(
            [ebs(read_only=True)], [ebs(read_only=True)], NO_DISK, id="20: EBS, both read"
        ),
        pytest.param([rbd("a", "b")], [rbd("c", "d")], mp.SUCCESS, id="21: RBD, other monitors"),
        pytest.param([rbd("a", "b")], [rbd("d", "b")], NO_DISK, id="RBD, a monitor in common"),
        pytest.param([iscsi()], [iscsi(read_only=True)], NO_DISK, id="iSCSI, one of them writes"),
        pytest.param([SECRET, gce()], [SECRET, gce()], NO_DISK, id="with volumes that are ignored"),
        pytest.param([gce()], [ebs(), iscsi()], mp.SUCCESS, id="other disks"),
        pytest.param([gce(), gce()], [], mp.SUCCESS, id="twice in one pod is the pod's own affair"),
    ],
)
def test_disks(new, there, status):
    pods = [make_pod("there", node="node", volumes=tuple(there))]
    pod = make_pod("new", volumes=tuple(new))
    assert run_plugin(VolumeRestrictions(), pod, make_node(), pods=pods).status == status
    away = [make_pod("there", node="other", volumes=tuple(there))]
    ran = run_plugin(VolumeRestrictions(), pod, make_node(), others=[make_node("other")], pods=away)
    assert ran.status == mp.SUCCESS


@pytest.mark.parametrize(
    ("volumes", "claims", "there", "found"),
    [
        pytest.param([], [], [], mp.SKIP, id="no volumes"),
        pytest.param([SECRET], [], [], mp.SKIP, id="a secret"),
        pytest.param([claimed("data")], [make_claim()], [claimed("data")], mp.SKIP, id="for many"),
        pytest.param([claimed("data")], [once()], [], mp.SKIP, id="22: for one pod, unused"),
        pytest.param([claimed("data")], [once()], [claimed("data")], mp.SUCCESS, id="22: in use"),
        pytest.param(
            [claimed("data")],
            [],
            [],
            mp.unresolvable('persistentvolumeclaim "data" not found'),
            id="22: a claim that is missing",
        ),
        pytest.param(
            [claimed("data")],
            [once(namespace="other")],
            [],
            mp.unresolvable('persistentvolumeclaim "data" not found'),
            id="a claim of another namespace",
        ),
        pytest.param([ephemeral("tmp")], [], [], mp.SKIP, id="a claim made for the pod"),
    ],
)
def test_pre_filter(volumes, claims, there, found):
    pods = [make_pod("there", node="n1", volumes=tuple(there))]
    cluster = make_cluster([make_node("n1")], pods, claims)
    pod = make_pod(volumes=tuple(volumes))
    assert VolumeRestrictions().pre_filter(make_state(pod, cluster), pod) == found


def test_a_claim_for_one_pod_refuses_every_node_while_it_is_in_use():
    user = make_pod("user", node="n1", volumes=(claimed("data"),))
    cluster = make_cluster([make_node("n1"), make_node("n2")], [user], [once()])
    pod = make_pod("new", volumes=(claimed("data"),))
    state = make_state(pod, cluster)
    VolumeRestrictions().pre_filter(state, pod)
    for row in (0, 1):
        assert VolumeRestrictions().filter(state, pod, cluster.table.info(row)) == CLAIM_IN_USE
    check_twins(VolumeRestrictions(), pod, cluster)
    cluster.table.remove_pod("n1", user.uid)
    assert VolumeRestrictions().pre_filter(make_state(pod, cluster), pod) == mp.SKIP


def test_a_user_whose_node_is_gone_is_not_seen():
    user = make_pod("user", node="n1", volumes=(claimed("data"),))
    cluster = make_cluster([make_node("n1"), make_node("n2")], [user], [once()])
    cluster.table.remove_node("n1")
    pod = make_pod("new", volumes=(claimed("data"),))
    assert VolumeRestrictions().pre_filter(make_state(pod, cluster), pod) == mp.SKIP


def test_the_disk_is_named_before_the_claim():
    user = make_pod("user", node="n1", volumes=(claimed("data"), gce()))
    cluster = make_cluster([make_node("n1"), make_node("n2")], [user], [once()])
    pod = make_pod("new", volumes=(claimed("data"), gce()))
    check_twins(VolumeRestrictions(), pod, cluster)
    state = make_state(pod, cluster)
    VolumeRestrictions().pre_filter(state, pod)
    verdicts = VolumeRestrictions().filter_all(state, pod, cluster.table)
    rows = [cluster.table.row_of[name] for name in ("n1", "n2")]
    said = [verdicts.status_of(int(verdicts.codes[row])) for row in rows]
    assert said == [NO_DISK, CLAIM_IN_USE]


class TestWhatIf:
    """Preemption calls add_pod and remove_pod."""

    pod = make_pod("new", volumes=(claimed("a"), claimed("b")))

    def state(self, *pods):
        cluster = make_cluster([make_node("n1")], pods, [once("a"), once("b")])
        state = make_state(self.pod, cluster)
        assert VolumeRestrictions().pre_filter(state, self.pod) == mp.SUCCESS
        return state, cluster.table.info(cluster.table.row_of["n1"])

    @staticmethod
    def placed(pod):
        return Placed(pod, Usage.of(pod))

    def test_the_only_user_leaves(self):
        user = make_pod("user", node="n1", volumes=(claimed("a"),))
        state, node = self.state(user)
        VolumeRestrictions().remove_pod(state, self.pod, self.placed(user), node)
        assert VolumeRestrictions().filter(state, self.pod, node) == mp.SUCCESS
        VolumeRestrictions().add_pod(state, self.pod, self.placed(user), node)
        assert VolumeRestrictions().filter(state, self.pod, node) == CLAIM_IN_USE

    def test_one_of_two_users_leaves(self):
        one = make_pod("one", node="n1", volumes=(claimed("a"),))
        two = make_pod("two", node="n1", volumes=(claimed("b"),))
        state, node = self.state(one, two)
        VolumeRestrictions().remove_pod(state, self.pod, self.placed(one), node)
        assert state[EXCLUSIVE].in_use == 1
        assert VolumeRestrictions().filter(state, self.pod, node) == CLAIM_IN_USE

    def test_names_are_compared_without_namespaces_as_kubernetes_does(self):
        user = make_pod("user", node="n1", volumes=(claimed("a"),))
        state, node = self.state(user)
        stranger = make_pod("stranger", namespace="other", volumes=(claimed("a"),))
        VolumeRestrictions().remove_pod(state, self.pod, self.placed(stranger), node)
        assert state[EXCLUSIVE].in_use == 0

    def test_a_copy_of_the_state_is_corrected_alone(self):
        user = make_pod("user", node="n1", volumes=(claimed("a"),))
        state, node = self.state(user)
        VolumeRestrictions().remove_pod(state.clone(), self.pod, self.placed(user), node)
        assert state[EXCLUSIVE].in_use == 1


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(make_pod("old", volumes=(gce(),)), QUEUE, id="a disk in the way"),
        pytest.param(make_pod("old", volumes=(claimed("data"),)), QUEUE, id="a claim in common"),
        pytest.param(
            make_pod("old", namespace="other", volumes=(gce(), claimed("data"))),
            QUEUE_SKIP,
            id="23: in another namespace",
        ),
        pytest.param(make_pod("old", volumes=(claimed("other"),)), QUEUE_SKIP, id="another claim"),
        pytest.param(make_pod("old"), QUEUE_SKIP, id="no volumes"),
    ],
)
def test_a_deleted_pod(deleted, hint):
    pod = make_pod("new", volumes=(gce(), claimed("data")))
    assert frees_a_volume(pod, deleted, None) is hint


@pytest.mark.parametrize(
    ("claim", "hint"),
    [
        pytest.param(make_claim(), QUEUE, id="the pod's own"),
        pytest.param(make_claim("other"), QUEUE_SKIP, id="another pod's claim"),
        pytest.param(make_claim(namespace="other"), QUEUE_SKIP, id="a namesake elsewhere"),
        pytest.param(make_claim("pod-tmp"), QUEUE_SKIP, id="one that was made for the pod"),
    ],
)
def test_a_new_claim(claim, hint):
    pod = make_pod("pod", volumes=(claimed("data"), ephemeral("tmp")))
    assert names_claim(pod, None, claim) is hint


def test_conforms():
    check_plugin(VolumeRestrictions(), pods=[make_pod(volumes=(gce(),)), make_pod()])
