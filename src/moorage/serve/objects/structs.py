"""What controllers and printers read of the kinds that a scheduler does not know."""

from typing import Any

from moorage.api.kinds import KINDS
from moorage.api.meta import Data, Int32, Int64, KubeObject, LabelSelector, ObjectMeta
from moorage.api.pod import PodSpec
from moorage.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from moorage.api.storage import PersistentVolumeClaimSpec
from moorage.serve.resources import Resource


class PodTemplate(Data):
    """The pods that a workload makes."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class RollingUpdate(Data):
    """How far a rollout may go; numbers, or shares such as 25%."""

    max_surge: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    partition: Int32 | None = None


class Strategy(Data):
    """How pods of an old template are replaced."""

    type: str = ""
    rolling_update: RollingUpdate = RollingUpdate()


class Ordinals(Data):
    """The number that a stateful set begins with."""

    start: Int32 = 0


class NamedClaim(Data):
    """The claims that a stateful set makes for each of its pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class WorkloadSpec(Data):
    """What controllers read of a workload's wishes."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplate | None = None
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    backoff_limit: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    ttl_seconds_after_finished: Int32 | None = None
    suspend: bool | None = None
    service_name: str = ""
    pod_management_policy: str = ""
    strategy: Strategy = Strategy()
    update_strategy: Strategy = Strategy()
    ordinals: Ordinals = Ordinals()
    volume_claim_templates: tuple[NamedClaim, ...] = ()
    paused: bool | None = None
    completion_mode: str | None = None


class Workload(KubeObject):
    spec: WorkloadSpec = WorkloadSpec()
    status: dict[str, Any] = {}


class MapSelectorSpec(Data):
    replicas: Int32 | None = None
    selector: dict[str, str] | None = None
    template: PodTemplate | None = None
    min_ready_seconds: Int32 = 0


class MapSelectorWorkload(KubeObject):
    spec: MapSelectorSpec = MapSelectorSpec()
    status: dict[str, Any] = {}


class BudgetStatus(PodDisruptionBudgetStatus):
    observed_generation: Int64 = 0


class Budget(PodDisruptionBudget):
    status: BudgetStatus = BudgetStatus()


class NamespaceSpec(Data):
    finalizers: tuple[str, ...] = ()


class OpenNamespace(KubeObject):
    spec: NamespaceSpec = NamespaceSpec()
    status: dict[str, Any] = {}


class Names(Data, kw_only=True):
    kind: str
    plural: str
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class Version(Data, kw_only=True):
    name: str
    served: bool = False
    storage: bool = False
    subresources: dict[str, Any] | None = None


class DefinitionSpec(Data, kw_only=True):
    group: str
    names: Names
    scope: str
    versions: tuple[Version, ...]


class Definition(KubeObject, kw_only=True):
    spec: DefinitionSpec
    status: dict[str, Any] = {}


class Lease(KubeObject):
    spec: dict[str, Any] = {}


class Plain(KubeObject):
    """Any other object: `spec` and `status`, where there are some, are objects."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class TextData(KubeObject):
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    string_data: dict[str, str] = {}
    type: str = ""
    immutable: bool = False


class Reference(Data):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class Event(KubeObject):
    involved_object: Reference = Reference()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: Int32 = 0
    series: dict[str, Any] | None = None
    source: dict[str, Any] = {}
    related: Reference | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    action: str = ""
    reporting_component: str = ""
    reporting_instance: str = ""


_WORKLOADS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
_STRUCTS: dict[str, type[KubeObject]] = (
    {name: kind.struct for name, kind in KINDS.items()}
    | dict.fromkeys(_WORKLOADS, Workload)
    | {
        "ReplicationController": MapSelectorWorkload,
        "CustomResourceDefinition": Definition,
        "Namespace": OpenNamespace,
        "PodDisruptionBudget": Budget,
        "ConfigMap": TextData,
        "Secret": TextData,
        "Event": Event,
        "Lease": Lease,
    }
)


def struct_of(resource: Resource) -> type[KubeObject]:
    """The struct that an object of this resource has to fit."""
    return Plain if resource.custom else _STRUCTS.get(resource.kind, Plain)
