"""Refusals: what quotas and limit ranges keep from being created, by workload."""

from typing import NamedTuple

from moorage.controllers import daemon_set, deployment, job, objects, pods
from moorage.controllers.index import WORKLOAD, ObjectIndex
from moorage.controllers.objects import Object


class Refusal(NamedTuple):
    """A workload whose pods are refused, or another object that is."""

    kind: str
    namespace: str
    name: str
    # How many pods are missing because of it.
    pods: int
    # The message of the API server.
    reason: str

    @property
    def is_pod(self) -> bool:
        """Whether it is a pod of the input, not of a workload."""
        return self.kind == "Pod"

    @property
    def key(self) -> str:
        return f"{self.kind} {self.namespace}/{self.name}"

    def to_dict(self) -> dict[str, object]:
        return self._asdict()


def of_workloads(index: ObjectIndex) -> list[Refusal]:
    """The workloads that could not create an object when they last tried; owners for their sets."""
    found: dict[str, Refusal] = {}
    for (task, key), reason in index.failures.items():
        workload = index.get(*key) if task == WORKLOAD else None
        missing = 0 if workload is None else missing_pods(workload, index)
        if workload is None or missing <= 0:
            continue
        owner = index.by_uid(objects.controller_uid(workload)) or workload
        kind, namespace, name = owner["kind"], objects.namespace(owner), objects.name(owner)
        before = found.get(objects.uid(owner))
        total = missing + (before.pods if before is not None else 0)
        found[objects.uid(owner)] = Refusal(kind, namespace, name, total, reason)
    return list(found.values())


def wanted_pods(workload: Object) -> int:
    """How many pods a workload would have at a time; of a CronJob, each run."""
    match workload["kind"]:
        case "Job":
            parallelism = objects.spec_number(workload, "parallelism", 1)
            return min(parallelism, objects.spec_number(workload, "completions", parallelism))
        case "CronJob":
            template = objects.spec(workload).get("jobTemplate") or {}
            return wanted_pods({"kind": "Job", "spec": template.get("spec") or {}})
        case "DaemonSet":
            return objects.status_number(workload, "desiredNumberScheduled")
        case "Deployment" | "ReplicaSet" | "StatefulSet" | "ReplicationController":
            return objects.replicas(workload)
    return 0


def missing_pods(workload: Object, index: ObjectIndex) -> int:
    """How many pods a workload would create now."""
    kind = objects.kind_of(workload)
    if kind == daemon_set.KIND:
        return wanted_pods(workload) - objects.status_number(workload, "currentNumberScheduled")
    if kind == deployment.KIND:
        return wanted_pods(workload) - objects.status_number(workload, "replicas")
    if kind == "batch/CronJob":
        return wanted_pods(workload)
    active = sum(map(pods.is_active, index.controlled("Pod", objects.uid(workload))))
    wanted = wanted_pods(workload)
    if kind == job.KIND and objects.spec(workload).get("completions") is not None:
        left = objects.spec_number(workload, "completions") - job.succeeded(workload)
        wanted = min(wanted, left)
    return wanted - active
