"""Claims, volumes, classes and what nodes say of CSI drivers, in one line each."""

from collections.abc import Mapping, Sequence
from typing import Any

from moorage.api import claims
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.pod import ClaimVolume, EphemeralVolume, Pod, Volume
from moorage.api.storage import (
    CSINode,
    CSINodeAllocatable,
    CSINodeDriver,
    CSINodeSpec,
    CSISource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
    StorageClass,
    VolumeAttachment,
    VolumeAttachmentSource,
    VolumeAttachmentSpec,
)

DRIVER = "csi.example.com"


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
