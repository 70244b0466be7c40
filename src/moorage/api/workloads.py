"""Services, and the controllers that create pods from a template.

Topology spreading derives its default selector from services and some of the controllers. A
scheduler does not read the others: `moorage.expansion` turns them into the pods that they create.
"""

from moorage.api.meta import Data, Int32, KubeObject, LabelSelector, ObjectMeta
from moorage.api.pod import PodSpec
from moorage.api.storage import PersistentVolumeClaimSpec


class PodTemplateSpec(Data):
    """The template of a controller's pods."""

    metadata: ObjectMeta = ObjectMeta()
    spec: PodSpec = PodSpec()


class ServiceSpec(Data):
    selector: dict[str, str] | None = None


class Service(KubeObject):
    """A service; None as selector selects nothing."""

    spec: ServiceSpec = ServiceSpec()


class ReplicationControllerSpec(Data):
    selector: dict[str, str] | None = None
    replicas: Int32 | None = None
    template: PodTemplateSpec | None = None


class ReplicationController(KubeObject):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class SelectedSpec(Data):
    selector: LabelSelector | None = None
    replicas: Int32 | None = None
    template: PodTemplateSpec | None = None


class ReplicaSet(KubeObject):
    spec: SelectedSpec = SelectedSpec()


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


class StatefulSet(KubeObject):
    spec: StatefulSetSpec = StatefulSetSpec()


class Deployment(KubeObject):
    """A deployment; its replica sets create the pods."""

    spec: SelectedSpec = SelectedSpec()


class DaemonSetSpec(Data):
    selector: LabelSelector | None = None
    template: PodTemplateSpec | None = None


class DaemonSet(KubeObject):
    """A daemon set: a pod on every eligible node."""

    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(Data):
    parallelism: Int32 | None = None
    completions: Int32 | None = None
    completion_mode: str = ""
    suspend: bool = False
    template: PodTemplateSpec | None = None


class Job(KubeObject):
    """A job: pods that run to completion, with a total number and a number at a time."""

    spec: JobSpec = JobSpec()


class JobTemplate(Data):
    metadata: ObjectMeta = ObjectMeta()
    spec: JobSpec = JobSpec()


class CronJobSpec(Data):
    suspend: bool = False
    job_template: JobTemplate | None = None


class CronJob(KubeObject):
    """A job that runs on a schedule."""

    spec: CronJobSpec = CronJobSpec()


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
