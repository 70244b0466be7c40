"""Pod groups and workloads (`scheduling.k8s.io/v1alpha2`): pods that are scheduled together."""

from moorage.api.meta import Condition, Data, Int32, KubeObject
from moorage.api.pod import Pod

POD_GROUP_SCHEDULED = "PodGroupScheduled"
# What a preemption may evict of a group: a single pod, or only all pods together.
DISRUPT_POD, DISRUPT_POD_GROUP = DISRUPTION_MODES = ("Pod", "PodGroup")

MAX_TEMPLATES = 8
MAX_TOPOLOGY_CONSTRAINTS = 1
MAX_RESOURCE_CLAIMS = 4


class WorkloadReference(Data):
    """A template in a Workload."""

    workload_name: str = ""
    pod_group_template_name: str = ""


class PodGroupTemplateReference(Data):
    """Where a group comes from; for information."""

    workload: WorkloadReference | None = None


class BasicSchedulingPolicy(Data):
    """Members are bound as far as they fit."""


class GangSchedulingPolicy(Data):
    """Members are bound only if so many can be."""

    min_count: Int32 = 0


class PodGroupSchedulingPolicy(Data):
    """Exactly one of the two."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class TopologyConstraint(Data):
    """All members are on nodes with the same value of a label."""

    key: str = ""


class PodGroupSchedulingConstraints(Data):
    topology: tuple[TopologyConstraint, ...] = ()


class PodGroupResourceClaim(Data):
    """A device claim that the members of a group share."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodGroupTemplate(Data):
    """The fields of a group that a Workload describes."""

    name: str = ""
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupSpec(Data):
    pod_group_template_ref: PodGroupTemplateReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = PodGroupSchedulingPolicy()
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None


class PodGroupStatus(Data):
    conditions: tuple[Condition, ...] = ()


class PodGroup(KubeObject):
    """Pods that are scheduled together; they name it in `spec.schedulingGroup`."""

    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def min_count(self) -> int | None:
        """How many members have to be bound together; None for a basic group."""
        gang = self.spec.scheduling_policy.gang
        return None if gang is None else gang.min_count

    @property
    def priority(self) -> int:
        return self.spec.priority or 0

    def condition(self, type_: str) -> Condition | None:
        """The first condition of that type."""
        return next((each for each in self.status.conditions if each.type == type_), None)


class TypedLocalReference(Data):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class PodGroupWorkloadSpec(Data):
    controller_ref: TypedLocalReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()


class Workload(KubeObject):
    """Templates of pod groups. No scheduler reads it."""

    spec: PodGroupWorkloadSpec = PodGroupWorkloadSpec()


def group_key(pod: Pod) -> str:
    """`namespace/name` of the group that a pod names; empty if it names none."""
    group = pod.spec.scheduling_group
    return "" if group is None else f"{pod.metadata.namespace}/{group.pod_group_name}"
