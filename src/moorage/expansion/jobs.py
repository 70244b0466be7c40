"""Jobs, and one run of each CronJob: pods that run to completion, a limited number at a time."""

from moorage.api import defaults
from moorage.api.pod import Pod
from moorage.api.workloads import CronJob, Job, PodTemplateSpec
from moorage.expansion import templates
from moorage.expansion.children import Children, ControllerActions, live
from moorage.expansion.templates import NameGenerator

INDEXED = "Indexed"
INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = ("batch.kubernetes.io/job-name", "job-name")
CONTROLLER_UID = ("batch.kubernetes.io/controller-uid", "controller-uid")
# Kubernetes names a run by the minute for which it is scheduled; ours by the start of virtual time.
FIRST_MINUTE = 29_453_760


def of_cron_job(owner: CronJob, children: Children) -> Job | None:
    """One run of a cron job; None if it has one already or is suspended."""
    template = owner.spec.job_template
    if template is None:
        raise templates.missing_field(owner, "spec.jobTemplate")
    if owner.spec.suspend or children.of(owner, Job):
        return None
    name = f"{owner.name}-{FIRST_MINUTE}"
    meta = templates.owned_meta(owner, name, template.metadata)
    return Job(api_version="batch/v1", kind="Job", metadata=meta, spec=template.spec)


def reconcile(owner: Job, children: Children, names: NameGenerator) -> ControllerActions:
    """Create pods up to the parallelism, and no more than have still to succeed."""
    spec = owner.spec
    if spec.template is None:
        raise templates.missing_field(owner, "spec.template")
    if spec.completion_mode == INDEXED and spec.completions is None:
        raise templates.missing_field(owner, "spec.completions", "; an Indexed job needs it")
    if spec.suspend:
        return ControllerActions()
    own = children.of(owner, Pod)
    done = [pod for pod in own if pod.status.phase == "Succeeded"]
    running = live(own)
    parallelism = 1 if spec.parallelism is None else max(0, spec.parallelism)
    if spec.completions is not None:
        left = max(0, spec.completions - len(done) - len(running))
    else:  # A work queue: no pods are created after one has succeeded.
        left = 0 if done else parallelism
    count = max(0, min(parallelism - len(running), left))
    indices: list[int] | list[None] = [None] * count
    if spec.completion_mode == INDEXED:
        used = {pod.metadata.annotations.get(INDEX) for pod in [*done, *running]}
        indices = [i for i in range(spec.completions or 0) if str(i) not in used][:count]
    taken = {pod.name for pod in own}
    return ControllerActions([_pod(owner, spec.template, names, taken, i) for i in indices])


def _pod(
    owner: Job, template: PodTemplateSpec, names: NameGenerator, taken: set[str], index: int | None
) -> Pod:
    prefix = f"{owner.name}-" if index is None else f"{owner.name}-{index}-"
    name = names.fresh_of(owner, prefix, taken)
    indexed = {} if index is None else {INDEX: str(index)}
    uid = defaults.identity(owner).uid
    labels = indexed | dict.fromkeys(JOB_NAME, owner.name) | dict.fromkeys(CONTROLLER_UID, uid)
    return templates.pod(owner, template, name, labels=labels, annotations=indexed)
