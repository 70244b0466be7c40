"""The advice for rejections by storage plugins names claim, volume and the pods that use it."""

import pytest
from tests.storage_manifests import BY_HAND, DRIVER, claimed, csi_node, storage_class

from moorage import explain

ZONE = "topology.kubernetes.io/zone"
BOUND = {"pv.kubernetes.io/bind-completed": "yes"}


def node(name, zone):
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": {ZONE: zone}},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }


def pod(name="web", *volumes, on=None):
    spec = {"containers": [{"name": "c", "image": "i"}], "volumes": list(volumes)}
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def claim(name="data", *, volume=None, mode="ReadWriteOnce", annotations=None, **spec):
    meta = {"name": name, "annotations": BOUND if volume else annotations or {}}
    spec |= {"accessModes": [mode], "volumeName": volume or ""}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": meta, "spec": spec}


def unbound(**spec):
    """A claim as in a manifest."""
    new = claim(**spec)
    new["spec"] = {"accessModes": ["ReadWriteOnce"], **SIZE, **spec}
    return new


def stored(obj):
    """As an API server has it, whose controllers have not acted yet."""
    return obj | {"metadata": obj["metadata"] | {"uid": "u", "namespace": "default"}}


def volume(name="pv-7", labels=None, **spec):
    meta = {"name": name, "labels": labels or {}}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": meta,
        "spec": {"capacity": {"storage": "5Gi"}, "accessModes": ["ReadWriteOnce"], **spec},
        "status": {"phase": "Available"},
    }


def only_in(*zones):
    terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": list(zones)}]}]
    return {"nodeAffinity": {"required": {"nodeSelectorTerms": terms}}}


CSI = {"csi": {"driver": DRIVER, "volumeHandle": "vol-7"}}
DISK = {"name": "disk", "gcePersistentDisk": {"pdName": "disk-1"}}
SIZE = {"resources": {"requests": {"storage": "1Gi"}}}
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
NOTHING = "node(s) didn't find available persistent volumes to bind"


@pytest.mark.parametrize(
    ("volumes", "objects", "line"),
    [
        pytest.param(
            [claimed("data")],
            [claim(volume="pv-7"), volume(**only_in("z2"))],
            f"{AFFINITY}: claim data is bound to pv-7, which only {ZONE} In [z2] reaches.",
            id="a volume in another zone",
        ),
        pytest.param(
            [claimed("data")],
            [claim(volume="pv-7"), volume(labels={ZONE: "z2"})],
            "node(s) had no available volume zone: claim data is bound to pv-7, which is in "
            f"{ZONE}=z2; here it is {ZONE}=z1 (2 nodes).",
            id="a volume with a label of another zone",
        ),
        pytest.param(
            [claimed("data")],
            [claim(volume="pv-7")],
            'persistentvolume "pv-7" not found: claim data is bound to pv-7, which does not exist.',
            id="a deleted volume",
        ),
        pytest.param(
            [claimed("data")],
            [],
            'persistentvolumeclaim "data" not found: the pod uses claim data, not there in '
            "namespace default.",
            id="a missing claim",
        ),
        pytest.param(
            [claimed("data")],
            [claim()],
            f"{UNBOUND}: claim data is not bound: it has no class, so a volume has to be made for "
            "it by hand.",
            id="an unbound claim without a class",
        ),
        pytest.param(
            [claimed("data")],
            [claim(storageClassName="fast")],
            f"{UNBOUND}: claim data is not bound: its class fast does not exist.",
            id="a missing storage class",
        ),
        pytest.param(
            [claimed("data")],
            [stored(claim(storageClassName="fast")), storage_class("fast", mode="Immediate")],
            f"{UNBOUND}: claim data is not bound: its class fast does not wait for a pod, and no "
            "volume has come yet.",
            id="a volume that is being provisioned",
        ),
        pytest.param(
            [claimed("data")],
            [
                claim(storageClassName="local", **SIZE),
                storage_class("local", BY_HAND),
                volume("far", storageClassName="local", **only_in("z2")),
            ],
            f"{NOTHING}: claim data wants 1Gi of class local, and free of that class: far; none is "
            "made on demand.",
            id="local volumes on other nodes",
        ),
        pytest.param(
            [claimed("data")],
            [
                claim(
                    storageClassName="fast",
                    annotations={"volume.kubernetes.io/selected-node": "elsewhere"},
                ),
                storage_class("fast"),
            ],
            f"{NOTHING}: the volume of claim data is being made for node elsewhere.",
            id="a volume that is being provisioned for another node",
        ),
        pytest.param(
            [claimed("data")],
            [
                claim(volume="pv-7", mode="ReadWriteOncePod"),
                volume(**CSI),
                pod("user", claimed("data"), on="n1"),
            ],
            "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
            "already in-use by another pod: claim data is for one pod at a time, now default/user "
            "on n1.",
            id="a ReadWriteOncePod claim in use",
        ),
        pytest.param(
            [DISK],
            [pod(name, DISK, on=on) for name, on in (("a", "n1"), ("b", "n2"))],
            "node(s) had no available disk: in use: gce disk-1 by default/a on n1, "
            "gce disk-1 by default/b on n2.",
            id="a disk in use by other pods",
        ),
        pytest.param(
            [claimed("data")],
            [claim(volume="pv-7"), volume(**CSI), csi_node("n1", 0), csi_node("n2", 0)],
            f"node(s) exceed max volume count: claim data is pv-7 of {DRIVER}; attached at most: "
            f"0 of {DRIVER} (2 nodes).",
            id="attach limits reached",
        ),
    ],
)
def test_advice_names_the_storage_objects(volumes, objects, line):
    pending = pod("web", *volumes)
    explanation = explain([node("n1", "z1"), node("n2", "z1"), pending, *objects], "default/web")
    assert explanation.advice == [line]
    assert line.split(":")[0] in explanation.message


BY_NAME = {"storageClassName": "manual", "volumeName": "pv-7"}
RESERVED = {"claimRef": {"namespace": "default", "name": "data"}}


@pytest.mark.parametrize(
    "objects",
    [
        pytest.param(
            [unbound(**BY_NAME), volume(storageClassName="manual")], id="the claim names a volume"
        ),
        pytest.param(
            [unbound(storageClassName="manual"), volume(storageClassName="manual", **RESERVED)],
            id="the volume names the claim",
        ),
        pytest.param(
            [unbound(storageClassName="fast"), storage_class("fast", mode="Immediate")],
            id="a class that provisions at once",
        ),
    ],
)
def test_a_new_claim_that_controllers_bind_at_once(objects):
    pending = pod("web", claimed("data"))
    assert explain([node("n1", "z1"), pending, *objects], "default/web").picked == "n1"
    kept = [stored(each) if "Claim" in each["kind"] else each for each in objects]
    assert explain([node("n1", "z1"), pending, *kept], "default/web").message == (
        f"0/1 nodes are available: {UNBOUND}."
    )


def test_a_stored_claim_with_a_reserved_volume():
    objects = [stored(unbound(storageClassName="manual")), volume(**RESERVED)]
    explanation = explain([node("n1", "z1"), pod("web", claimed("data")), *objects], "default/web")
    assert explanation.advice == [
        f"{UNBOUND}: claim data is not bound: volume pv-7 is reserved for it, and is not bound to "
        "it yet."
    ]


def test_the_claim_of_a_new_ephemeral_volume():
    template = {"spec": unbound(storageClassName="fast")["spec"]}
    pending = pod("web", {"name": "v", "ephemeral": {"volumeClaimTemplate": template}})
    found = explain([node("n1", "z1"), pending, storage_class("fast")], "default/web")
    assert found.picked == "n1"
