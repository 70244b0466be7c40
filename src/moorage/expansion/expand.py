"""expand: replace every workload and node pool by the pods and nodes that it creates.

The controllers run once, on a cluster in which no pod starts: for questions that have no time.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from moorage.api import defaults, timestamps
from moorage.api.kinds import WORKLOADS
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import LimitRange, PriorityClass, ResourceQuota, RuntimeClass
from moorage.api.storage import StorageClass
from moorage.api.workloads import CronJob, Job, StatefulSet
from moorage.errors import AdmissionError, ManifestError
from moorage.expansion.host import ControllerHost
from moorage.expansion.pools import nodes_of_pools
from moorage.expansion.refusals import Refusal

T = TypeVar("T", bound=KubeObject)

# The kinds that refuse new objects, and those that change them.
REFUSING = (LimitRange, RuntimeClass, ResourceQuota)
CLASSES = (PriorityClass, StorageClass)


class Expansion(NamedTuple):
    """All objects after controllers and admission, and what admission refused."""

    objects: list[KubeObject]
    refusals: list[Refusal]
    # The refused pods of the input, with the message of the API server by key.
    refused_pods: list[Pod]
    messages: dict[str, str]


def expand(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """The objects, with nodes and devices of pools, pods of workloads and their claims.

    Pods that exist are not created again; owner references say which workload they belong to.
    Objects that only create others (deployments, jobs, node pools) are not returned; all others
    come first, in their order. All pods of a stateful set are created, and one run of a cron job.
    Objects that quotas or limit ranges refuse are left out.
    """
    return expansion(objects).objects


def expansion(objects: Iterable[KubeObject]) -> Expansion:
    """The same, with the refusals."""
    objects = list(objects)
    given = [obj for obj in objects if type(obj).__name__ not in WORKLOADS]
    may_refuse = any(isinstance(obj, REFUSING) for obj in objects)
    has_templates = len(given) < len(objects) or any(_has_template(obj) for obj in objects)
    if not has_templates and not may_refuse:
        return Expansion(objects, [], [], {})
    nodes = nodes_of_pools(objects)
    cluster = _StaticCluster([obj for obj in objects if isinstance(obj, (*REFUSING, *CLASSES))])
    found = cluster.host.take([*map(_at_once, objects), *nodes], ())
    if may_refuse:
        cluster.admit(found)
    else:
        for obj in found:
            cluster.put(defaults.identity(obj))
    cluster.host.turn()
    kept = [obj for obj in given if id(obj) not in cluster.refused]
    refused = [
        defaults.identity(obj)
        for obj in given
        if isinstance(obj, Pod) and id(obj) in cluster.refused
    ]
    refusals = cluster.host.refusals
    messages = {f"{each.namespace}/{each.name}": each.reason for each in refusals if each.is_pod}
    return Expansion([*kept, *nodes, *cluster.created], refusals, refused, messages)


def _has_template(obj: KubeObject) -> bool:
    return getattr(getattr(obj, "spec", None), "template", None) is not None


def _start() -> float:
    return timestamps.EPOCH_SECONDS


def _at_once(obj: KubeObject) -> KubeObject:
    """The object, so that its controller creates all pods at once."""
    match obj:
        case StatefulSet():
            return replace(obj, spec=replace(obj.spec, pod_management_policy="Parallel"))
        case CronJob():
            return _first_run(obj)
    return obj


def _first_run(owner: CronJob) -> Job:
    """One run of a cron job; of a suspended one, a suspended run."""
    template = owner.spec.job_template
    where = f"CronJob {owner.namespace or 'default'}/{owner.name}"
    if template is None:
        raise ManifestError(f"{where}, spec.jobTemplate: is missing")
    if template.spec.template is None:
        raise ManifestError(f"{where}, spec.jobTemplate.spec.template: is missing")
    name = f"{owner.name}-{int(timestamps.EPOCH_SECONDS // 60)}"
    meta = replace(template.metadata, name=name, namespace=owner.namespace)
    spec = replace(template.spec, suspend=template.spec.suspend or owner.spec.suspend)
    return Job(api_version="batch/v1", kind="Job", metadata=meta, spec=spec)


class _StaticCluster:
    """Objects by type and key; `created` are those that controllers created."""

    def __init__(self, known: Sequence[KubeObject]) -> None:
        self.created: list[KubeObject] = []
        self.refused: set[int] = set()  # identities of given objects
        self._complete = defaults.completer(known)
        self.host = ControllerHost(self, self._complete, _start)
        self._objects: dict[type[KubeObject], dict[str, KubeObject]] = {}

    def admit(self, found: list[KubeObject]) -> None:
        """Add objects of the input, except those that admission refuses."""
        for obj in found:
            try:
                completed = self._complete(obj)
                why = self.host.quotas.refusal(completed)
            except AdmissionError as error:
                why = error.why
            if why:
                self.refused.add(id(obj))
                self.host.refuse(obj, why)
            else:
                self.put(completed)

    def put(self, obj: KubeObject) -> None:
        self._objects.setdefault(type(obj), {})[obj.key] = obj
        self.host.quotas.observe(obj)
        if isinstance(obj, Pod):
            self.host.triggers.pod_changed(obj)

    def get(self, kind: type[T], key: str) -> T | None:
        found = self._objects.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T]) -> Iterable[T]:
        return self._objects.get(kind, {}).values()  # type: ignore[return-value]  # keyed by kind

    def create_object(self, obj: KubeObject) -> KubeObject:
        obj = defaults.identity(obj)
        self.put(obj)
        self.created.append(obj)
        return obj

    def write(self, obj: T) -> T:
        self.put(obj)
        return obj

    def delete_object(self, kind: type[KubeObject], key: str, grace_seconds: int | None) -> None:
        """Nothing is deleted: the question is what is created."""
