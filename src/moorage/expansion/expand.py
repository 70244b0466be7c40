"""expand: replace every workload and node pool by the pods and nodes that it creates.

The controllers run once, on a cluster in which no pod starts: for questions that have no time.
"""

from collections.abc import Iterable
from typing import TypeVar

from msgspec.structs import replace

from moorage.api import defaults, timestamps
from moorage.api.kinds import WORKLOADS
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.workloads import CronJob, Job, StatefulSet
from moorage.errors import ManifestError
from moorage.expansion.host import ControllerHost
from moorage.expansion.pools import nodes_of_pools

T = TypeVar("T", bound=KubeObject)


def expand(objects: Iterable[KubeObject]) -> list[KubeObject]:
    """The objects, with nodes and devices of pools, pods of workloads and their claims.

    Pods that exist are not created again; owner references say which workload they belong to.
    Objects that only create others (deployments, jobs, node pools) are not returned; all others
    come first, in their order. All pods of a stateful set are created, and one run of a cron job.
    """
    objects = list(objects)
    given = [obj for obj in objects if type(obj).__name__ not in WORKLOADS]
    if len(given) == len(objects) and not any(_has_template(obj) for obj in objects):
        return objects
    nodes = nodes_of_pools(objects)
    cluster = _StaticCluster()
    for obj in cluster.host.take([*map(_at_once, objects), *nodes], ()):
        cluster.put(defaults.identity(obj))
    cluster.host.turn()
    return [*given, *nodes, *cluster.created]


def _has_template(obj: KubeObject) -> bool:
    return getattr(getattr(obj, "spec", None), "template", None) is not None


def _as_it_is(obj: KubeObject) -> KubeObject:
    return obj


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

    def __init__(self) -> None:
        self.created: list[KubeObject] = []
        self.host = ControllerHost(self, _as_it_is, _start)
        self._objects: dict[type[KubeObject], dict[str, KubeObject]] = {}

    def put(self, obj: KubeObject) -> None:
        self._objects.setdefault(type(obj), {})[obj.key] = obj
        if isinstance(obj, Pod):
            self.host.pod_changed(obj)

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
