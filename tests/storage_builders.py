"""Claims, volumes, classes and what nodes say of CSI drivers, in one line each."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api import claims
from moorage.api.meta import (
    LabelSelector,
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
)
from moorage.api.pod import ClaimVolume, EphemeralVolume, Pod, Volume
from moorage.api.quantity import Quantity
from moorage.api.storage import (
    CSIDriver,
    CSIDriverSpec,
    CSINode,
    CSINodeAllocatable,
    CSINodeDriver,
    CSINodeSpec,
    CSISource,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    PersistentVolumeStatus,
    StorageClass,
    TypedReference,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
    VolumeNodeAffinity,
    VolumeResources,
)

DRIVER = "csi.example.com"
HOSTNAME = "kubernetes.io/hostname"


def claimed(name: str) -> Volume:
    """A pod's volume that stands for a claim."""
    return Volume(name=name, persistent_volume_claim=ClaimVolume(claim_name=name))


def ephemeral(name: str) -> Volume:
    """A pod's volume with a claim that is made for the pod."""
    return Volume(name=name, ephemeral=EphemeralVolume())


def make_claim(
    name: str = "data",
    *,
    namespace: str = "default",
    volume: str = "",
    storage_class: str | None = None,
    modes: Sequence[str] = ("ReadWriteOnce",),
    owner: Pod | None = None,
) -> PersistentVolumeClaim:
    """A claim, bound if a volume is given; `owner` is the pod that it was made for."""
    owners: tuple[OwnerReference, ...] = ()
    if owner is not None:
        owners = (OwnerReference(kind="Pod", name=owner.name, uid=owner.uid, controller=True),)
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace=namespace,
            uid=f"claim {namespace}/{name}",
            annotations={claims.BIND_COMPLETED: "yes"} if volume else {},
            owner_references=owners,
        ),
        spec=PersistentVolumeClaimSpec(
            volume_name=volume, storage_class_name=storage_class, access_modes=tuple(modes)
        ),
    )


def make_volume(
    name: str = "pv",
    *,
    driver: str = "",
    handle: str = "",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """A volume, of a CSI driver if one is given; its handle is then its name unless told."""
    if driver:
        spec["csi"] = CSISource(driver=driver, volume_handle=handle or name)
    return PersistentVolume(
        metadata=ObjectMeta(name=name, uid=f"volume {name}", labels=dict(labels or {})),
        spec=PersistentVolumeSpec(**spec),
    )


def make_class(
    name: str = "fast", *, provisioner: str = DRIVER, mode: str | None = "WaitForFirstConsumer"
) -> StorageClass:
    """A storage class."""
    return StorageClass(
        metadata=ObjectMeta(name=name), provisioner=provisioner, volume_binding_mode=mode
    )


def make_csi_node(name: str = "node", limits: Mapping[str, int | None] | None = None) -> CSINode:
    """A node's CSI drivers with how many volumes each attaches; None for one that does not say."""
    drivers = tuple(
        CSINodeDriver(
            name=driver,
            allocatable=None if limit is None else CSINodeAllocatable(count=limit),
        )
        for driver, limit in (limits or {}).items()
    )
    return CSINode(metadata=ObjectMeta(name=name), spec=CSINodeSpec(drivers=drivers))


def make_attachment(
    name: str, *, node: str = "node", volume: str | None = "pv", attacher: str = DRIVER
) -> VolumeAttachment:
    """A volume that is attached to a node."""
    source = VolumeAttachmentSource(persistent_volume_name=volume)
    return VolumeAttachment(
        metadata=ObjectMeta(name=name),
        spec=VolumeAttachmentSpec(attacher=attacher, node_name=node, source=source),
    )


def make_waiting_claim(
    name: str = "data",
    size: Quantity | None = "1Gi",
    *,
    storage_class: str = "fast",
    modes: Sequence[str] = ("ReadWriteOnce",),
    selected_node: str | None = None,
    version: str = "1",
    **spec: Any,
) -> PersistentVolumeClaim:
    """A claim without a volume, perhaps with a node for which one is being made."""
    annotations = {} if selected_node is None else {claims.SELECTED_NODE: selected_node}
    requests = {} if size is None else {"storage": size}
    return PersistentVolumeClaim(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            uid=f"claim default/{name}",
            annotations=annotations,
            resource_version=version,
        ),
        spec=PersistentVolumeClaimSpec(
            storage_class_name=storage_class,
            access_modes=tuple(modes),
            resources=VolumeResources(requests=requests),
            **spec,
        ),
    )


def make_free_volume(
    name: str = "pv",
    size: Quantity = "1Gi",
    *,
    on: Sequence[str] | None = None,
    key: str = HOSTNAME,
    storage_class: str = "fast",
    given_to: TypedReference | None = None,
    phase: str = "Available",
    version: str = "1",
    labels: Mapping[str, str] | None = None,
    **spec: Any,
) -> PersistentVolume:
    """A volume that is there to be claimed, on nodes whose label has one of these values."""
    return PersistentVolume(
        metadata=ObjectMeta(
            name=name, uid=f"volume {name}", labels=dict(labels or {}), resource_version=version
        ),
        spec=PersistentVolumeSpec(
            capacity={"storage": size},
            storage_class_name=storage_class,
            claim_ref=given_to,
            node_affinity=None if on is None else reaching(key, *on),
            **{"access_modes": ("ReadWriteOnce",), **spec},
        ),
        status=PersistentVolumeStatus(phase=phase),
    )


def reaching(key: str, *values: str) -> VolumeNodeAffinity:
    """The affinity of a volume to nodes whose label has one of these values."""
    wanted = LabelSelectorRequirement(key=key, operator="In", values=values)
    term = NodeSelectorTerm(match_expressions=(wanted,))
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=(term,)))


def make_driver(name: str = DRIVER, *, storage_capacity: bool | None = True) -> CSIDriver:
    """A driver that keeps accounts of its capacity, unless told otherwise."""
    spec = CSIDriverSpec(storage_capacity=storage_capacity)
    return CSIDriver(metadata=ObjectMeta(name=name), spec=spec)


def make_capacity(
    name: str = "capacity",
    capacity: Quantity | None = "1Gi",
    *,
    storage_class: str = "fast",
    on: Mapping[str, str] | None = None,
    largest: Quantity | None = None,
) -> CSIStorageCapacity:
    """What a driver can still provide on nodes with these labels; on all if none are given."""
    return CSIStorageCapacity(
        metadata=ObjectMeta(name=name, namespace="default"),
        storage_class_name=storage_class,
        node_topology=LabelSelector(match_labels=dict(on or {})),
        capacity=capacity,
        maximum_volume_size=largest,
    )
