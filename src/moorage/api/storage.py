"""Volumes, claims, storage classes and CSI limits."""

from msgspec import field

from moorage.api.meta import Condition, Data, Int32, KubeObject, LabelSelector, NodeSelector
from moorage.api.quantity import Quantity


class TypedReference(Data):
    """A reference to another object, as in a volume's `claimRef`."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""


class VolumeResources(Data):
    """The storage that a claim requests."""

    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(Data):
    access_modes: tuple[str, ...] = ()
    resources: VolumeResources = VolumeResources()
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""
    selector: LabelSelector | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Data):
    phase: str = ""
    access_modes: tuple[str, ...] = ()
    capacity: dict[str, Quantity] = {}
    conditions: tuple[Condition, ...] = ()
    current_volume_attributes_class_name: str | None = None


class PersistentVolumeClaim(KubeObject):
    """A claim for a volume."""

    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Data):
    """The nodes that can access a volume."""

    required: NodeSelector | None = None


class CSISource(Data):
    driver: str = ""
    volume_handle: str = ""


class GCEDiskSource(Data):
    pd_name: str = ""


class VolumeIDSource(Data):
    """A volume of AWS EBS, Cinder or Portworx."""

    volume_id: str = field(name="volumeID", default="")


class AzureDiskSource(Data):
    disk_name: str = ""
    disk_uri: str = field(name="diskURI", default="")
    kind: str | None = None


class AzureFileSource(Data):
    share_name: str = ""


class VsphereSource(Data):
    volume_path: str = ""


class PersistentVolumeSpec(Data):
    capacity: dict[str, Quantity] = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: TypedReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    csi: CSISource | None = None
    gce_persistent_disk: GCEDiskSource | None = None
    aws_elastic_block_store: VolumeIDSource | None = None
    azure_disk: AzureDiskSource | None = None
    azure_file: AzureFileSource | None = None
    cinder: VolumeIDSource | None = None
    portworx_volume: VolumeIDSource | None = None
    vsphere_volume: VsphereSource | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeStatus(Data):
    phase: str = ""


class PersistentVolume(KubeObject):
    """A piece of storage."""

    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class TopologySelectorLabel(Data):
    key: str = ""
    values: tuple[str, ...] = ()


class TopologySelectorTerm(Data):
    match_label_expressions: tuple[TopologySelectorLabel, ...] = ()


class StorageClass(KubeObject):
    """How volumes of a class are provisioned."""

    provisioner: str = ""
    volume_binding_mode: str | None = None
    reclaim_policy: str | None = None
    allowed_topologies: tuple[TopologySelectorTerm, ...] = ()
    parameters: dict[str, str] = {}


class CSINodeAllocatable(Data):
    count: Int32 | None = None


class CSINodeDriver(Data):
    name: str = ""
    node_id: str = field(name="nodeID", default="")
    topology_keys: tuple[str, ...] = ()
    allocatable: CSINodeAllocatable | None = None


class CSINodeSpec(Data):
    drivers: tuple[CSINodeDriver, ...] = ()


class CSINode(KubeObject):
    """The CSI drivers of a node and how many volumes each can attach."""

    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Data):
    attach_required: bool | None = None
    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(KubeObject):
    """The capabilities of a CSI driver."""

    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(KubeObject):
    """The capacity that a driver can still provision in a part of the cluster."""

    storage_class_name: str = ""
    node_topology: LabelSelector | None = None
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None


class VolumeAttachmentSource(Data):
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Data):
    attacher: str = ""
    node_name: str = ""
    source: VolumeAttachmentSource = VolumeAttachmentSource()


class VolumeAttachmentStatus(Data):
    attached: bool = False


class VolumeAttachment(KubeObject):
    """A volume attached to a node."""

    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()
    status: VolumeAttachmentStatus = VolumeAttachmentStatus()
