"""Structs that validate the kinds that the scheduler does not read, or reads in part."""

from typing import Any

from moorage.api.kinds import KINDS
from moorage.api.meta import Data, Int32, Int64, KubeObject, LabelSelector
from moorage.api.pod_groups import Workload
from moorage.api.policy import PodDisruptionBudget, PodDisruptionBudgetStatus
from moorage.api.workloads import (
    PodTemplateSpec,
    ReplicationControllerSpec,
    StatefulSetClaimTemplate,
    StatefulSetOrdinals,
)
from moorage.cluster.resources import Resource


class RollingUpdate(Data):
    """The limits of a rollout: integers, or percentages such as 25%."""

    max_surge: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    partition: Int32 | None = None


class UpdateStrategy(Data):
    """How pods of an old template are replaced."""

    type: str = ""
    rolling_update: RollingUpdate = RollingUpdate()


class WorkloadSpec(Data):
    """The fields of all workloads that controllers read."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
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
    strategy: UpdateStrategy = UpdateStrategy()
    update_strategy: UpdateStrategy = UpdateStrategy()
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    volume_claim_templates: tuple[StatefulSetClaimTemplate, ...] = ()
    paused: bool | None = None
    completion_mode: str | None = None


class WorkloadObject(KubeObject):
    spec: WorkloadSpec = WorkloadSpec()
    status: dict[str, Any] = {}


class MapSelectorSpec(ReplicationControllerSpec):
    min_ready_seconds: Int32 = 0


class ReplicationControllerObject(KubeObject):
    spec: MapSelectorSpec = MapSelectorSpec()
    status: dict[str, Any] = {}


class BudgetStatus(PodDisruptionBudgetStatus):
    observed_generation: Int64 = 0


class DisruptionBudgetObject(PodDisruptionBudget):
    status: BudgetStatus = BudgetStatus()


class NamespaceSpec(Data):
    finalizers: tuple[str, ...] = ()


class NamespaceObject(KubeObject):
    spec: NamespaceSpec = NamespaceSpec()
    status: dict[str, Any] = {}


class DefinitionNames(Data, kw_only=True):
    kind: str
    plural: str
    singular: str = ""
    list_kind: str = ""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()


class DefinitionVersion(Data, kw_only=True):
    name: str
    served: bool = False
    storage: bool = False
    subresources: dict[str, Any] | None = None


class DefinitionSpec(Data, kw_only=True):
    group: str
    names: DefinitionNames
    scope: str
    versions: tuple[DefinitionVersion, ...]


class Definition(KubeObject, kw_only=True):
    spec: DefinitionSpec
    status: dict[str, Any] = {}


class AnyObject(KubeObject):
    """Any other kind: `spec` and `status` must be objects if they exist."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class DataObject(KubeObject):
    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}
    string_data: dict[str, str] = {}
    type: str = ""
    immutable: bool = False


class EventReference(Data):
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    field_path: str = ""


class EventObject(KubeObject):
    involved_object: EventReference = EventReference()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: Int32 = 0
    series: dict[str, Any] | None = None
    source: dict[str, Any] = {}
    related: EventReference | None = None
    first_timestamp: str | None = None
    last_timestamp: str | None = None
    event_time: str | None = None
    action: str = ""
    reporting_component: str = ""
    reporting_instance: str = ""


WORKLOAD_KINDS = ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job")
_STRUCTS: dict[str, type[KubeObject]] = (
    {name: kind.struct for name, kind in KINDS.items()}
    | dict.fromkeys(WORKLOAD_KINDS, WorkloadObject)
    | {
        "ReplicationController": ReplicationControllerObject,
        "CustomResourceDefinition": Definition,
        "Namespace": NamespaceObject,
        "PodDisruptionBudget": DisruptionBudgetObject,
        "ConfigMap": DataObject,
        "Secret": DataObject,
        "Event": EventObject,
        "Workload": Workload,
    }
)


def struct_of(resource: Resource) -> type[KubeObject]:
    """The struct that validates the objects of a resource."""
    return _STRUCTS.get(resource.built_in_kind, AnyObject)
