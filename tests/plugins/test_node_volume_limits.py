"""A CSI driver attaches no more volumes to a node than it can."""

import pytest
from msgspec.structs import replace
from tests.storage_builders import (
    DRIVER,
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
    AWSElasticBlockStore,
    AzureDisk,
    CSIVolume,
    GCEPersistentDisk,
    PodStatus,
    Volume,
)
from moorage.api.storage import AzureFileSource, GCEDiskSource, VolumeIDSource
from moorage.framework.invoke import PluginMethod, filter_one
from moorage.nodes.usage import Usage
from moorage.plugins.node_volume_limits import NodeVolumeLimits, plugin
from moorage.plugins.node_volume_limits.attach_limits import AttachLimits
from moorage.plugins.node_volume_limits.plugin import TOO_MANY
from moorage.testing import check_plugin, make_cluster, make_node, make_pod, make_state

EBS, GCE = "ebs.csi.aws.com", "pd.csi.storage.gke.io"
QUEUE, QUEUE_SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP


def bound(name, driver=DRIVER, **volume):
    """A claim and its volume."""
    return [
        make_claim(name, volume=f"pv-{name}"),
        make_volume(f"pv-{name}", driver=driver, **volume),
    ]


def limited(limit, driver=DRIVER):
    return make_csi_node(limits={driver: limit})


def ebs(volume_id):
    return Volume(name="disk", aws_elastic_block_store=AWSElasticBlockStore(volume_id))


def gce(name):
    return Volume(gce_persistent_disk=GCEPersistentDisk(name))


def using(*volumes, name="there"):
    named = [claimed(v) if isinstance(v, str) else v for v in volumes]
    return make_pod(name, node="node", volumes=tuple(named))


def verdict(objects, pods, *volumes, pod=None):
    """What both forms say of a node, or what they raise."""
    pod = pod or using(*volumes, name="new")
    cluster = make_cluster([make_node()], pods, objects)
    state = make_state(pod, cluster)
    found = NodeVolumeLimits().pre_filter(state, pod)
    if not found.is_success:
        return found
    row = cluster.table.row_of["node"]
    verdicts = NodeVolumeLimits().filter_all(state, pod, cluster.table)
    code = int(verdicts.codes[row])
    together = verdicts.status_of(code) if code else mp.SUCCESS
    alone = filter_one(
        PluginMethod(NodeVolumeLimits(), "filter"), state, pod, cluster.table.info(row)
    )
    assert together.by(alone.plugin) == alone
    assert (code in verdicts.errors) == (alone.code is mp.Code.ERROR)
    return alone.message if alone.code is mp.Code.ERROR else alone


ABC = [*bound("a"), *bound("b"), *bound("c")]
UNBOUND = [make_claim("shared", storage_class="fast"), make_class()]


@pytest.mark.parametrize(
    ("objects", "pods", "volumes", "status"),
    [
        pytest.param([*ABC, limited(2)], [using("a")], ["b"], mp.SUCCESS, id="up to the limit"),
        pytest.param([*ABC, limited(2)], [using("a", "b")], ["c"], TOO_MANY, id="one too many"),
        pytest.param([*ABC, limited(0)], [], ["a"], TOO_MANY, id="a limit of none"),
        pytest.param(
            [*ABC, limited(1)], [using("a")], ["a"], mp.SUCCESS, id="what is attached is no more"
        ),
        pytest.param(
            [*ABC, limited(2)],
            [using("a"), using("a", name="other")],
            ["b"],
            mp.SUCCESS,
            id="two pods with one claim have one volume",
        ),
        pytest.param(
            [*ABC, limited(1)],
            [],
            ["a", "a"],
            mp.SUCCESS,
            id="a claim twice in a pod is one volume",
        ),
        pytest.param([*ABC, limited(1)], [], ["a", "b"], TOO_MANY, id="two claims are two"),
        pytest.param(
            [*ABC, limited(2), *(make_attachment(v, volume=f"pv-{v}") for v in "ab")],
            [],
            ["a"],
            TOO_MANY,
            id="24: left attached, and wanted again, counts twice",
        ),
        pytest.param(
            [*ABC, limited(2), make_attachment("x", volume="pv-a")],
            [],
            ["b"],
            mp.SUCCESS,
            id="25: one left attached",
        ),
        pytest.param(
            [*ABC, limited(2), make_attachment("x", volume="pv-a")],
            [using("a")],
            ["b"],
            mp.SUCCESS,
            id="attached for a pod that is there",
        ),
        pytest.param(
            [*ABC, limited(1), make_attachment("x", node="elsewhere", volume="pv-a")],
            [],
            ["b"],
            mp.SUCCESS,
            id="attached elsewhere",
        ),
        pytest.param(
            [
                *ABC,
                limited(1),
                make_attachment("x", volume=None),
                make_attachment("y", attacher=""),
            ],
            [],
            ["b"],
            mp.SUCCESS,
            id="attachments that say too little",
        ),
        pytest.param(
            [*ABC, *UNBOUND, limited(4)],
            [using("shared", "a"), using("shared", "b", name="two")],
            ["c"],
            mp.SUCCESS,
            id="26: an unbound claim that two pods share",
        ),
        pytest.param(
            [*ABC, *UNBOUND, limited(3)],
            [using("shared", "a"), using("shared", "b", name="two")],
            ["c"],
            TOO_MANY,
            id="an unbound claim counts as what will be made for it",
        ),
        pytest.param(
            [
                *ABC,
                make_claim("lost", volume="gone", storage_class="fast"),
                make_class(),
                limited(1),
            ],
            [using("lost")],
            ["a"],
            TOO_MANY,
            id="27: the volume is gone, the class is known",
        ),
        pytest.param(
            [*ABC, make_claim("lost", volume="gone"), limited(1)],
            [using("lost")],
            ["a"],
            mp.SUCCESS,
            id="27: the volume is gone, no class",
        ),
        pytest.param(
            [*bound("a", EBS, handle="vol-1"), *bound("b", EBS), limited(2, EBS)],
            [using("a"), using(ebs("vol-1"), name="inline")],
            ["b"],
            mp.SUCCESS,
            id="28: an in-tree disk and the CSI volume that it has become",
        ),
        pytest.param(
            [*bound("b", EBS), limited(1, EBS)],
            [using(ebs("aws://us-east-1a/vol-1"))],
            ["b"],
            TOO_MANY,
            id="an in-tree disk in the pod",
        ),
        pytest.param(
            [
                make_claim("a", volume="pv-a"),
                make_volume("pv-a", aws_elastic_block_store=VolumeIDSource("vol-1")),
                limited(1, EBS),
            ],
            [using(ebs("vol-2"))],
            ["a"],
            TOO_MANY,
            id="an in-tree disk behind a claim",
        ),
        pytest.param(
            [
                make_claim("a", volume="pv-a"),
                make_volume("pv-a", azure_file=AzureFileSource("share")),
                limited(0),
            ],
            [],
            ["a"],
            mp.SUCCESS,
            id="a file share is not attached",
        ),
        pytest.param(
            [
                make_claim("x", storage_class="old"),
                make_class("old", provisioner="kubernetes.io/gce-pd"),
                limited(0, GCE),
            ],
            [],
            ["x"],
            TOO_MANY,
            id="a class of an in-tree plugin",
        ),
        pytest.param(
            [
                make_claim("x", storage_class="v"),
                make_class("v", provisioner="kubernetes.io/vsphere-volume"),
                limited(0, "kubernetes.io/vsphere-volume"),
            ],
            [],
            ["x"],
            mp.SUCCESS,
            id="a class of an in-tree plugin that was not moved",
        ),
        pytest.param(ABC, [using("a", "b")], ["c"], mp.SUCCESS, id="29: no CSINode"),
        pytest.param(
            [*ABC, make_csi_node(limits={DRIVER: None})], [], ["a"], mp.SUCCESS, id="29: no limit"
        ),
        pytest.param(
            [*ABC, make_csi_node("other", {DRIVER: 0})], [], ["a"], mp.SUCCESS, id="another's limit"
        ),
        pytest.param([*ABC, limited(0, "x")], [], ["a"], mp.SUCCESS, id="another driver's limit"),
        pytest.param(
            [*ABC, *bound("d", "x"), make_csi_node(limits={DRIVER: 5, "x": 0})],
            [],
            ["a", "d"],
            TOO_MANY,
            id="one driver of two is full",
        ),
        pytest.param(
            [*ABC, limited(1)],
            [using("missing")],
            ["a"],
            mp.SUCCESS,
            id="a running pod's lost claim",
        ),
        pytest.param(
            [*ABC, limited(1)],
            [],
            ["missing"],
            mp.unresolvable(
                'looking up PVC default/missing: persistentvolumeclaim "missing" not found'
            ),
            id="the pod's own claim is missing",
        ),
        pytest.param(
            [limited(0, EBS)],
            [],
            [ebs("aws://us-east-1a/nonsense")],
            "converting volume(disk) from inline to csi: "
            "failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume (aws://us-east-1a/nonsense)",
            id="a disk with an unreadable name",
        ),
        pytest.param(
            [], [], [ebs("aws://us-east-1a/nonsense")], mp.SUCCESS, id="the same without a CSINode"
        ),
        pytest.param([limited(0)], [], [Volume(csi=CSIVolume(DRIVER))], mp.SKIP, id="inline CSI"),
        pytest.param([limited(0)], [], [Volume(name="secret")], mp.SKIP, id="31: a secret"),
        pytest.param([limited(0)], [], [], mp.SKIP, id="no volumes"),
    ],
)
def test_limits(objects, pods, volumes, status):
    assert verdict(objects, pods, *volumes) == status


class TestClaimsMadeForAPod:
    pod = make_pod("web", volumes=(ephemeral("tmp"),))
    stranger = make_pod("stranger", uid="stranger")

    def claim(self, owner):
        return make_claim("web-tmp", storage_class="fast", owner=owner)

    def test_counted(self):
        objects = [self.claim(self.pod), make_class(), limited(0)]
        assert verdict(objects, [], pod=self.pod) == TOO_MANY

    def test_missing(self):
        text = 'looking up PVC default/web-tmp: persistentvolumeclaim "web-tmp" not found'
        assert verdict([limited(0)], [], pod=self.pod) == mp.unresolvable(text)

    def test_of_another_pod(self):
        text = "PVC default/web-tmp was not created for pod default/web (pod is not owner)"
        assert verdict([self.claim(self.stranger), limited(9)], [], pod=self.pod) == text
        assert verdict([self.claim(self.stranger)], [], pod=self.pod) == text

    def test_of_a_pod_that_runs(self):
        running = replace(self.pod, spec=replace(self.pod.spec, node_name="node"))
        text = "PVC default/web-tmp was not created for pod default/web (pod is not owner)"
        objects = [self.claim(self.stranger), *bound("a")]
        assert verdict([*objects, limited(9)], [running], "a") == text
        # Without volumes to count, the volumes of other pods are not read.
        assert verdict(objects, [running], "a") == mp.SUCCESS
        assert verdict([*objects, limited(9)], [running], Volume(azure_file=AzureFileSource())) == (
            mp.SUCCESS
        )


def test_a_regional_disk_is_one_disk_by_its_region():
    zones = {"topology.kubernetes.io/zone": "r1-a__r1-b"}
    disk = make_volume("pv", labels=zones, gce_persistent_disk=GCEDiskSource("d"))
    handle = "projects/UNSPECIFIED/regions/r1/disks/d"
    objects = [make_claim("a", volume="pv"), disk, *bound("b", GCE, handle=handle), limited(1, GCE)]
    assert verdict(objects, [using("b")], "a") == mp.SUCCESS


def test_a_disk_that_azure_does_not_manage():
    disk = Volume(name="d", azure_disk=AzureDisk(disk_uri="x", kind="Dedicated"))
    text = (
        "converting volume(d) from inline to csi: kind(Dedicated) is not supported in csi migration"
    )
    assert verdict([limited(1)], [], disk) == text


@pytest.mark.parametrize(
    ("old", "new", "hint"),
    [
        pytest.param({"a": 1}, {"a": 2}, QUEUE, id="raised"),
        pytest.param({"a": 2}, {"a": 1}, QUEUE_SKIP, id="lowered"),
        pytest.param({"a": None}, {"a": 1}, QUEUE, id="stated"),
        pytest.param({}, {"a": 1}, QUEUE, id="a new driver"),
        pytest.param({"a": 1}, {}, QUEUE_SKIP, id="a driver goes"),
        pytest.param({"a": 2, "b": 1}, {"a": 1, "b": 2}, QUEUE, id="one raised, one lowered"),
    ],
)
def test_a_node_states_other_limits(old, new, hint):
    changed = make_csi_node(limits=old), make_csi_node(limits=new)
    assert plugin.raises_a_limit(make_pod(), *changed) is hint


@pytest.mark.parametrize(
    ("deleted", "hint"),
    [
        pytest.param(using("a"), QUEUE, id="with a claim"),
        pytest.param(using(ephemeral("a")), QUEUE, id="with a claim made for it"),
        pytest.param(using(gce("a")), QUEUE, id="with a disk"),
        pytest.param(using(Volume(name="s")), QUEUE_SKIP, id="with a secret"),
        pytest.param(make_pod(volumes=(claimed("a"),)), QUEUE_SKIP, id="that ran nowhere"),
        pytest.param(
            replace(
                make_pod(volumes=(claimed("a"),)), status=PodStatus(nominated_node_name="node")
            ),
            QUEUE,
            id="that has a nominated node",
        ),
    ],
)
def test_a_deleted_pod(deleted, hint):
    assert plugin.detaches(make_pod(), deleted, None) is hint


@pytest.mark.parametrize(
    ("claim", "hint"),
    [
        pytest.param(make_claim("data"), QUEUE, id="that it names"),
        pytest.param(make_claim("web-tmp"), QUEUE, id="made for it"),
        pytest.param(make_claim("other"), QUEUE_SKIP, id="of another pod"),
        pytest.param(make_claim("data", namespace="x"), QUEUE_SKIP, id="elsewhere"),
    ],
)
def test_a_new_claim(claim, hint):
    pod = make_pod("web", volumes=(claimed("data"), ephemeral("tmp")))
    assert plugin.is_wanted(pod, None, claim) is hint


@pytest.mark.parametrize(
    ("volume", "attacher", "hint"),
    [
        pytest.param(claimed("a"), "whatever", QUEUE, id="any, for a pod with a claim"),
        pytest.param(ebs("vol-1"), EBS, QUEUE, id="by the driver of the pod's disk"),
        pytest.param(ebs("vol-1"), GCE, QUEUE_SKIP, id="by another driver"),
        pytest.param(ephemeral("a"), DRIVER, QUEUE_SKIP, id="for a pod with a claim made for it"),
    ],
)
def test_a_volume_is_detached(volume, attacher, hint):
    pod = make_pod(volumes=(volume,))
    assert plugin.is_detached(pod, make_attachment("x", attacher=attacher), None) is hint


def test_conforms():
    check_plugin(NodeVolumeLimits())


def test_whether_every_node_takes_volumes_follows_the_pods():
    cluster = make_cluster([make_node()], [], [limited(2), *ABC])
    limits, there = AttachLimits(cluster), using("a")
    two = {f"{DRIVER}/x": DRIVER, f"{DRIVER}/y": DRIVER}
    assert limits.refresh().all_take(two)
    cluster.table.add_pod("node", there, Usage.of(there))
    assert not limits.refresh().all_take(two)
    cluster.table.remove_pod("node", there.uid)
    assert limits.refresh().all_take(two)
    assert limits.all_take(dict.fromkeys(map(str, range(9)), "another driver"))


def test_what_was_read_of_a_pod_is_read_again_after_a_change():
    pod = using("a", name="new")
    cluster = make_cluster([make_node()], [], [make_csi_node(limits={DRIVER: 5, "x": 5}), *ABC])
    state, limits = make_state(pod, cluster), cluster.derived(AttachLimits)
    assert NodeVolumeLimits().pre_filter(state, pod).is_success
    NodeVolumeLimits().filter_all(state, pod, cluster.table)
    cluster.put(make_volume("pv-a", driver="x"))
    cluster.table.add_pod("node", pod, Usage.of(pod))
    row = cluster.table.row_of["node"]
    assert [limits.refresh().free(driver)[row] for driver in (DRIVER, "x")] == [5, 4]


def test_a_shared_volume_counts_until_its_last_pod_leaves():
    attachment = make_attachment("x", volume="pv-b")
    cluster = make_cluster([make_node()], [], [limited(5), attachment, *ABC])
    limits, row = AttachLimits(cluster), cluster.table.row_of["node"]
    pods = [using("a", "b", name="one"), using("a", name="two")]
    free = [limits.refresh().free(DRIVER)[row]]
    for pod in pods:
        cluster.table.add_pod("node", pod, Usage.of(pod))
        free.append(limits.refresh().free(DRIVER)[row])
    for pod in pods:
        cluster.table.remove_pod("node", pod.uid)
        free.append(limits.refresh().free(DRIVER)[row])
    # The volume b is attached all the time.
    assert free == [4, 3, 3, 3, 4]
