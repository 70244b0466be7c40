"""Shapes with volumes: bound CSI volumes, local disks, and volumes that no plugin reads."""

from typing import Any

from moorage.api import storage
from moorage.api.claims import BIND_COMPLETED, NO_PROVISIONER, WAIT_FOR_FIRST_CONSUMER
from moorage.api.meta import (
    KubeObject,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
)
from moorage.api.pod import ClaimVolume, Volume
from moorage.bench.workload import HOSTNAME, NAMESPACE, BenchLoad, nodes_of, pod, pods_of, shape

DRIVER = "ebs.csi.aws.com"
VOLUMES_PER_NODE = 39
STORAGE = {"storage": "1Gi"}
ONE_NODE = ("ReadWriteOnce",)
LOCAL_CLASS = storage.StorageClass(
    metadata=ObjectMeta(name="local", uid="local", resource_version="1"),
    provisioner=NO_PROVISIONER,
    volume_binding_mode=WAIT_FOR_FIRST_CONSUMER,
)


@shape(pods=5_000)
def csi_volumes(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a bound CSI volume each; at most 39 on a node."""
    names = _names(initial, pods)
    others: list[KubeObject] = [_csi_node(f"node-{i}") for i in range(nodes)]
    others += [obj for name in names for obj in _bound(name)]
    return _claiming(names, nodes, initial, others)


@shape(pods=2_000)
def local_volumes(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a claim each, for a local disk of the selected node."""
    names = _names(initial, pods)
    per_node = -(-len(names) // nodes)
    others: list[KubeObject] = [LOCAL_CLASS]
    others += [_disk(f"node-{i}", n) for i in range(nodes) for n in range(per_node)]
    others += [_unbound(name) for name in names]
    return _claiming(names, nodes, initial, others)


@shape(pods=10_000)
def secrets(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a secret and a config map, which every node has."""
    volumes = (Volume(name="token"), Volume(name="settings"))
    return BenchLoad(
        nodes_of(nodes),
        pods_of("initial", initial, volumes=volumes),
        pods_of("pod", pods, volumes=volumes),
    )


def _names(initial: int, pods: int) -> list[str]:
    return [f"initial-{i}" for i in range(initial)] + [f"pod-{i}" for i in range(pods)]


def _claiming(names: list[str], nodes: int, initial: int, others: list[KubeObject]) -> BenchLoad:
    """Pods with a claim each, which has the pod's name."""
    made = []
    for name in names:
        claimed = ClaimVolume(claim_name=name)
        made.append(pod(name, volumes=(Volume(name="data", persistent_volume_claim=claimed),)))
    return BenchLoad(nodes_of(nodes), made[:initial], made[initial:], others=others)


def _meta(name: str, uid: str = "", **more: Any) -> ObjectMeta:
    return ObjectMeta(name=name, uid=uid or name, resource_version="1", **more)


def _csi_node(name: str) -> storage.CSINode:
    limit = storage.CSINodeAllocatable(count=VOLUMES_PER_NODE)
    driver = storage.CSINodeDriver(name=DRIVER, node_id=name, allocatable=limit)
    return storage.CSINode(metadata=_meta(name), spec=storage.CSINodeSpec(drivers=(driver,)))


def _disk(node: str, number: int) -> storage.PersistentVolume:
    """A local disk of a node."""
    here = LabelSelectorRequirement(key=HOSTNAME, operator="In", values=(node,))
    term = NodeSelectorTerm(match_expressions=(here,))
    only_here = storage.VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))
    return _volume(
        f"disk-{node}-{number}",
        "Available",
        storage_class_name=LOCAL_CLASS.name,
        node_affinity=only_here,
    )


def _unbound(name: str) -> storage.PersistentVolumeClaim:
    """A claim that waits for its first pod."""
    resources = storage.VolumeResources(requests=dict(STORAGE))
    return _claim(name, "Pending", storage_class_name=LOCAL_CLASS.name, resources=resources)


def _bound(name: str) -> tuple[storage.PersistentVolumeClaim, storage.PersistentVolume]:
    """A claim and the volume that it is bound to."""
    claim = _claim(name, "Bound", {BIND_COMPLETED: "true"}, volume_name=f"pv-{name}")
    volume = _volume(
        f"pv-{name}",
        "Bound",
        claim_ref=storage.TypedReference(namespace=NAMESPACE, name=name, uid=claim.uid),
        csi=storage.CSISource(driver=DRIVER, volume_handle=f"vol-{name}"),
    )
    return claim, volume


def _claim(
    name: str, phase: str, annotations: dict[str, str] | None = None, **spec: Any
) -> storage.PersistentVolumeClaim:
    return storage.PersistentVolumeClaim(
        metadata=_meta(name, f"claim-{name}", namespace=NAMESPACE, annotations=annotations or {}),
        spec=storage.PersistentVolumeClaimSpec(access_modes=ONE_NODE, **spec),
        status=storage.PersistentVolumeClaimStatus(phase=phase),
    )


def _volume(name: str, phase: str, **spec: Any) -> storage.PersistentVolume:
    return storage.PersistentVolume(
        metadata=_meta(name),
        spec=storage.PersistentVolumeSpec(capacity=dict(STORAGE), access_modes=ONE_NODE, **spec),
        status=storage.PersistentVolumeStatus(phase=phase),
    )
