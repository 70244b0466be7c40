"""Services, and the controllers that create pods from a template.

Topology spreading derives its default selector from services and some of the controllers. A
scheduler does not read the others: `moorage.expansion` runs the controllers that create their pods.
Fields that only controllers read are plain data.
"""

from typing import Any

from moorage.api.meta import Data, Int32, Int64, KubeObject, LabelSelector, ObjectMeta
from moorage.api.pod import PodSpec
from moorage.api.storage import PersistentVolumeClaimSpec

MAX_PODS = 1_000_000
"""Of one workload that is read from a file, or given to a simulation."""


class PodTemplateSpec(Data):
    """The template of a controller's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()
    # Of the fields that no struct has; `api/manifests/unread_fields.py` sets it.
    unread_digest: str = ""


class ServiceSpec(Data):
    selector: dict[str, str] | None = None


class Service(KubeObject):
    """A service; None as selector selects nothing."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Data):
    selector: dict[str, str] | None = None
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    template: PodTemplateSpec | None = None


class ReplicationController(KubeObject):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()
    status: dict[str, Any] = {}


class SelectedSpec(Data):
    selector: LabelSelector | None = None
    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    template: PodTemplateSpec | None = None


class ReplicaSet(KubeObject):
    spec: SelectedSpec = SelectedSpec()
    status: dict[str, Any] = {}


class StatefulSetClaimTemplate(Data):
    """A claim of which each pod of a stateful set gets its own."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()


class StatefulSetOrdinals(Data):
    start: Int32 = 0


class StatefulSetSpec(SelectedSpec):
    volume_claim_templates: tuple[StatefulSetClaimTemplate, ...] = ()
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()
    # "Parallel"; any other value means in order.
    pod_management_policy: str = "OrderedReady"
    service_name: str = ""
    update_strategy: dict[str, Any] | None = None
    persistent_volume_claim_retention_policy: dict[str, Any] | None = None
    revision_history_limit: Int32 | None = None


class StatefulSet(KubeObject):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: dict[str, Any] = {}


class DeploymentSpec(SelectedSpec):
    strategy: dict[str, Any] | None = None
    paused: bool = False
    revision_history_limit: Int32 | None = None
    progress_deadline_seconds: Int32 | None = None


class Deployment(KubeObject):
    """A deployment; its replica sets create the pods."""

    spec: DeploymentSpec = DeploymentSpec()
    status: dict[str, Any] = {}


class DaemonSetSpec(Data):
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None
    min_ready_seconds: Int32 = 0
    update_strategy: dict[str, Any] | None = None
    revision_history_limit: Int32 | None = None


class DaemonSet(KubeObject):
    """A daemon set: a pod on every eligible node."""

    spec: DaemonSetSpec = DaemonSetSpec()
    status: dict[str, Any] = {}


class JobSpec(Data):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: str = ""
    suspend: bool = False
    template: PodTemplateSpec | None = None
    selector: LabelSelector | None = None
    manual_selector: bool | None = None
    managed_by: str | None = None
    backoff_limit: Int32 | None = None
    backoff_limit_per_index: Int32 | None = None
    max_failed_indexes: Int32 | None = None
    active_deadline_seconds: Int64 | None = None
    ttl_seconds_after_finished: Int32 | None = None
    pod_replacement_policy: str | None = None
    pod_failure_policy: dict[str, Any] | None = None
    success_policy: dict[str, Any] | None = None


class Job(KubeObject):
    """A job: pods that run to completion, with a total number and a number at a time."""

    spec: JobSpec = JobSpec()
    status: dict[str, Any] = {}


class JobTemplate(Data):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Data):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: Int64 | None = None
    concurrency_policy: str = ""
    suspend: bool = False
    job_template: JobTemplate | None = None
    successful_jobs_history_limit: Int32 | None = None
    failed_jobs_history_limit: Int32 | None = None


class CronJob(KubeObject):
    """A job that runs on a schedule."""

    spec: CronJobSpec = CronJobSpec()
    status: dict[str, Any] = {}


def pod_template(obj: KubeObject) -> tuple[str, PodTemplateSpec | None] | None:
    """The path of a workload's pod template, and the template; None for other kinds."""
    match obj:
        case ReplicationController() | ReplicaSet() | StatefulSet() | Deployment():
            return "spec.template", obj.spec.template
        case DaemonSet() | Job():
            return "spec.template", obj.spec.template
        case CronJob():
            run = obj.spec.job_template
            return "spec.jobTemplate.spec.template", run.spec.template if run else None
    return None
