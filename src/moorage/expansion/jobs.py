"""Jobs, and one run of each CronJob: pods that come to an end, so many at a time."""

from msgspec.structs import replace

from moorage.api.pod import Pod
from moorage.api.workloads import CronJob, Job, PodTemplateSpec
from moorage.errors import ManifestError
from moorage.expansion import templates
from moorage.expansion.children import Children, live
from moorage.expansion.names import Names
from moorage.expansion.wanted import Wanted

INDEXED = "Indexed"
INDEX = "batch.kubernetes.io/job-completion-index"
JOB_NAME = ("batch.kubernetes.io/job-name", "job-name")
CONTROLLER_UID = ("batch.kubernetes.io/controller-uid", "controller-uid")
# Kubernetes names a run by the minute that it was due; ours is due when virtual time starts.
FIRST_MINUTE = 29_453_760


def of_cron_job(owner: CronJob, children: Children) -> Job | None:
    """One run; None if there was one already, or there shall be none."""
    template = owner.spec.job_template
    if template is None:
        where = f"CronJob {owner.namespace or 'default'}/{owner.name}"
        raise ManifestError(f"{where}, spec.jobTemplate: is missing")
    if owner.spec.suspend or children.of(owner, Job):
        return None
    name = f"{owner.name}-{FIRST_MINUTE}"
    meta = templates.owned_meta(owner, name, template.metadata)
    return Job(api_version="batch/v1", kind="Job", metadata=meta, spec=template.spec)


def wanted(owner: Job, children: Children, serials: Names) -> Wanted:
    """As many pods as may run at a time, and no more than have still to succeed."""
    spec = owner.spec
    where = f"Job {owner.namespace or 'default'}/{owner.name}"
    if spec.template is None:
        raise ManifestError(f"{where}, spec.template: is missing")
    if spec.completion_mode == INDEXED and spec.completions is None:
        raise ManifestError(f"{where}, spec.completions: is missing; an Indexed job needs it")
    if spec.suspend:
        return Wanted()
    own = children.of(owner, Pod)
    done = [pod for pod in own if pod.status.phase == "Succeeded"]
    running = live(own)
    at_a_time = 1 if spec.parallelism is None else max(0, spec.parallelism)
    if spec.completions is not None:
        left = max(0, spec.completions - len(done) - len(running))
    else:  # A work queue: as soon as one has succeeded, no more are started.
        left = 0 if done else at_a_time
    count = min(at_a_time - len(running), left)
    taken = {pod.name for pod in own}
    if spec.completion_mode == INDEXED:
        indices = _free_indices(spec.completions or 0, [*done, *running])[: max(0, count)]
        made = [_pod(owner, spec.template, serials, taken, index) for index in indices]
    else:
        made = [_pod(owner, spec.template, serials, taken) for _ in range(count)]
    return Wanted(made=made)


def _free_indices(completions: int, pods: list[Pod]) -> list[int]:
    used = {pod.metadata.annotations.get(INDEX) for pod in pods}
    return [index for index in range(completions) if str(index) not in used]


def _pod(
    owner: Job,
    template: PodTemplateSpec,
    serials: Names,
    taken: set[str],
    index: int | None = None,
) -> Pod:
    key = f"Job/{owner.namespace or 'default'}/{owner.name}"
    prefix = f"{owner.name}-" if index is None else f"{owner.name}-{index}-"
    place = {} if index is None else {INDEX: str(index)}
    pod = templates.pod(
        owner, template, serials.fresh(key, prefix, taken), labels=place, annotations=place
    )
    uid = pod.metadata.owner_references[0].uid
    labels = dict.fromkeys(JOB_NAME, owner.name) | dict.fromkeys(CONTROLLER_UID, uid)
    return replace(pod, metadata=replace(pod.metadata, labels=pod.labels | labels))
