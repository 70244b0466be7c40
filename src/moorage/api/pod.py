"""Pods: the fields that a scheduler reads."""

from msgspec import field

from moorage.api import storage
from moorage.api.meta import (
    Condition,
    Data,
    Int32,
    Int64,
    KubeObject,
    LabelSelector,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
)
from moorage.api.quantity import Quantity

Resources = dict[str, Quantity]

DEFAULT_SCHEDULER = "default-scheduler"


class ResourceRequirements(Data):
    """Requests and limits of a container or of a whole pod."""

    requests: Resources = {}
    limits: Resources = {}


class ContainerPort(Data):
    """A port of a container; with `host_port` also a port of its node."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = field(name="hostIP", default="")
    protocol: str = ""
    name: str = ""


class ContainerRestartRule(Data):
    """What happens when a container exits in a given way."""

    action: str = ""


class Container(Data):
    """A container or an init container."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[ContainerRestartRule, ...] = ()

    @property
    def is_sidecar(self) -> bool:
        """Whether it is an init container that keeps running."""
        return self.restart_policy == "Always"


class Toleration(Data):
    """Taints that the pod tolerates."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: Int64 | None = None


class PreferredSchedulingTerm(Data):
    """A node selector term that adds `weight` to the score of matching nodes."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Data):
    """Required and preferred nodes; None if absent."""

    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: (
        tuple[PreferredSchedulingTerm, ...] | None
    ) = None

    @property
    def required(self) -> NodeSelector | None:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[PreferredSchedulingTerm, ...] | None:
        return self.preferred_during_scheduling_ignored_during_execution


class PodAffinityTerm(Data):
    """Pods to be near to or away from, and the topology key that defines near."""

    label_selector: LabelSelector | None = None
    topology_key: str = ""
    namespaces: tuple[str, ...] = ()
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Data):
    """A preferred pod affinity term."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Data):
    """Pod affinity or, with the same shape, pod anti-affinity."""

    required_during_scheduling_ignored_during_execution: tuple[PodAffinityTerm, ...] = ()
    preferred_during_scheduling_ignored_during_execution: tuple[WeightedPodAffinityTerm, ...] = ()

    @property
    def required(self) -> tuple[PodAffinityTerm, ...]:
        return self.required_during_scheduling_ignored_during_execution

    @property
    def preferred(self) -> tuple[WeightedPodAffinityTerm, ...]:
        return self.preferred_during_scheduling_ignored_during_execution


class Affinity(Data):
    """Node affinity, pod affinity and pod anti-affinity."""

    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Data):
    """How evenly matching pods have to be spread over the domains of a topology key."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class PodSchedulingGate(Data):
    """A gate: the pod is not scheduled until it is removed."""

    name: str = ""


class ClaimVolume(Data):
    """A volume that is a persistent volume claim."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralClaimTemplate(Data):
    """The claim that a generic ephemeral volume creates."""

    metadata: ObjectMeta = ObjectMeta()
    spec: storage.PersistentVolumeClaimSpec = storage.PersistentVolumeClaimSpec()


class EphemeralVolume(Data):
    """A generic ephemeral volume: its claim is named after the pod and the volume."""

    volume_claim_template: EphemeralClaimTemplate | None = None


class GCEPersistentDisk(storage.GCEDiskSource):
    read_only: bool = False


class AWSElasticBlockStore(storage.VolumeIDSource):
    read_only: bool = False


class AzureDisk(storage.AzureDiskSource):
    read_only: bool = False


class ISCSI(Data):
    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBD(Data):
    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class CSIVolume(Data):
    """An inline CSI volume."""

    driver: str = ""
    read_only: bool | None = None


class ImageVolume(Data):
    reference: str = ""


class Volume(Data):
    """A volume; sources that do not concern the node (secrets, config maps) are not read."""

    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: EphemeralVolume | None = None
    gce_persistent_disk: GCEPersistentDisk | None = None
    aws_elastic_block_store: AWSElasticBlockStore | None = None
    azure_disk: AzureDisk | None = None
    azure_file: storage.AzureFileSource | None = None
    cinder: storage.VolumeIDSource | None = None
    portworx_volume: storage.VolumeIDSource | None = None
    vsphere_volume: storage.VsphereSource | None = None
    iscsi: ISCSI | None = None
    rbd: RBD | None = None
    csi: CSIVolume | None = None
    image: ImageVolume | None = None


class PodResourceClaim(Data):
    """A device claim of the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGroup(Data):
    """The PodGroup, in the pod's namespace, that the pod is a member of."""

    pod_group_name: str = ""


class PodSpec(Data):
    """The desired state of a pod."""

    node_name: str = ""
    scheduler_name: str = DEFAULT_SCHEDULER
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    node_selector: dict[str, str] | None = None
    affinity: Affinity | None = None
    tolerations: tuple[Toleration, ...] = ()
    containers: tuple[Container, ...] = ()
    init_containers: tuple[Container, ...] = ()
    overhead: Resources = {}
    resources: ResourceRequirements | None = None
    volumes: tuple[Volume, ...] = ()
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    scheduling_group: PodSchedulingGroup | None = None
    resource_claims: tuple[PodResourceClaim, ...] = ()
    runtime_class_name: str = ""
    host_network: bool = False
    host_users: bool | None = None
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None


class ContainerStatus(Data):
    """The actual resources of a running container, which differ while it is resized."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: Resources = {}


class PodResourceClaimStatus(Data):
    """The claim that was created for an entry of `spec.resourceClaims`."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedResourceRequest(Data):
    """The request of a special claim that serves an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedResourceClaimStatus(Data):
    """The special claim that serves extended resources of the pod with devices."""

    request_mappings: tuple[ContainerExtendedResourceRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Data):
    """The observed state of a pod."""

    phase: str = ""
    conditions: tuple[Condition, ...] = ()
    nominated_node_name: str = ""
    start_time: str | None = None
    container_statuses: tuple[ContainerStatus, ...] = ()
    init_container_statuses: tuple[ContainerStatus, ...] = ()
    resources: ResourceRequirements | None = None
    allocated_resources: Resources = {}
    resource_claim_statuses: tuple[PodResourceClaimStatus, ...] = ()
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    message: str = ""
    reason: str = ""


# A pod in one of these has ended, and uses nothing of its node any more.
TERMINAL_PHASES = ("Succeeded", "Failed")


class Pod(KubeObject):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def node_name(self) -> str:
        """The node that the pod is bound to; empty before that."""
        return self.spec.node_name

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    @property
    def is_terminating(self) -> bool:
        return self.metadata.deletion_timestamp is not None

    @property
    def is_terminal(self) -> bool:
        """Whether it has succeeded or failed; a terminal pod uses no resources."""
        return self.status.phase in TERMINAL_PHASES

    def condition(self, type_: str) -> Condition | None:
        """The first condition of that type."""
        for each in self.status.conditions:  # In less time than a generator would take.
            if each.type == type_:
                return each
        return None
