"""Numbers, lists, times and gaps that an API server would refuse, in objects that never met one.

A scheduler takes them as they come: fewer than no replicas are none, a skew of 0 lets nothing be
scheduled, and a node affinity without terms matches no node. Whoever wrote that meant something
else, and ought to hear of it.
"""

import re
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache

from moorage.api import workloads
from moorage.api.meta import KubeObject
from moorage.api.pod import Affinity, Pod, PodSpec
from moorage.api.policy import PodDisruptionBudget
from moorage.api.workloads import (
    CronJob,
    Deployment,
    Job,
    JobSpec,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

Fault = tuple[str, str]
"""A field's path, and what is wrong with it."""

# Read for their selectors as well: nobody has to make pods of them.
SELECTING = (ReplicationController, ReplicaSet, StatefulSet)

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def out_of_bounds(obj: KubeObject) -> Fault | None:
    """The path of the first field whose value cannot be, and what it may be."""
    # This runs for every pod there is, and most have nothing but times to look at.
    meta = obj.metadata
    if meta.creation_timestamp is not None and not _is_time(meta.creation_timestamp):
        return _no_time("metadata.creationTimestamp", meta.creation_timestamp)
    if meta.deletion_timestamp is not None and not _is_time(meta.deletion_timestamp):
        return _no_time("metadata.deletionTimestamp", meta.deletion_timestamp)
    if isinstance(obj, Pod):
        started = obj.status.start_time
        if started is not None and not _is_time(started):
            return _no_time("status.startTime", started)
        if not obj.spec.topology_spread_constraints and obj.spec.affinity is None:
            return None
    return next(_faults(obj), None)


def _faults(obj: KubeObject) -> Iterator[Fault]:
    match obj:
        case Pod():
            yield from _of_pod(obj.spec, "spec")
        case ReplicationController() | ReplicaSet() | StatefulSet() | Deployment():
            yield from _at_least_none("spec.replicas", obj.spec.replicas)
        case Job():
            yield from _of_job(obj.spec, "spec")
        case CronJob():
            if (run := obj.spec.job_template) is None:
                yield "spec.jobTemplate", "is missing"
            else:
                yield from _of_job(run.spec, "spec.jobTemplate.spec")
        case PodDisruptionBudget():
            yield from _of_share("spec.minAvailable", obj.spec.min_available)
            yield from _of_share("spec.maxUnavailable", obj.spec.max_unavailable)
    if (found := workloads.pod_template(obj)) is not None:
        place, template = found
        if template is not None:
            yield from _of_pod(template.spec, f"{place}.spec")
        elif not isinstance(obj, SELECTING):
            yield place, "is missing"


def _of_job(spec: JobSpec, path: str) -> Iterator[Fault]:
    yield from _at_least_none(f"{path}.parallelism", spec.parallelism)
    yield from _at_least_none(f"{path}.completions", spec.completions)
    if spec.completion_mode == "Indexed" and spec.completions is None:
        yield f"{path}.completions", "is missing; an Indexed job needs it"


def _of_share(path: str, share: int | str | None) -> Iterator[Fault]:
    if isinstance(share, int):
        yield from _at_least_none(path, share)


def _of_pod(spec: PodSpec, path: str) -> Iterator[Fault]:
    for i, each in enumerate(spec.topology_spread_constraints):
        if each.max_skew < 1:
            place = f"{path}.topologySpreadConstraints[{i}].maxSkew"
            yield place, f"must be 1 or more, is {_given(each.max_skew)}"
        if each.min_domains is not None and each.min_domains < 1:
            place = f"{path}.topologySpreadConstraints[{i}].minDomains"
            yield place, f"must be 1 or more, is {each.min_domains}"
    if spec.affinity is not None:
        yield from _of_affinity(spec.affinity, f"{path}.affinity")


def _of_affinity(affinity: Affinity, path: str) -> Iterator[Fault]:
    if (nodes := affinity.node_affinity) is not None:
        if nodes.required is not None and not nodes.required.node_selector_terms:
            problem = "must have at least one node selector term"
            yield f"{path}.nodeAffinity.{REQUIRED}.nodeSelectorTerms", problem
        for i, liked in enumerate(nodes.preferred or ()):
            yield from _weight(f"{path}.nodeAffinity.{PREFERRED}[{i}]", liked.weight)
    for field, pods in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        for i, weighted in enumerate(pods.preferred if pods is not None else ()):
            yield from _weight(f"{path}.{field}.{PREFERRED}[{i}]", weighted.weight)


def _weight(path: str, weight: int) -> Iterator[Fault]:
    if not 1 <= weight <= 100:
        yield f"{path}.weight", f"must be in the range 1-100, is {_given(weight)}"


def _given(number: int) -> str:
    """A number as it was written; one that was not is 0 by now."""
    return str(number) if number else "0 or missing"


def _at_least_none(path: str, number: int | None) -> Iterator[Fault]:
    if number is not None and number < 0:
        yield path, f"must be 0 or more, is {number}"


def _no_time(path: str, text: str) -> Fault:
    return path, f'must be a time such as 2026-01-31T12:00:00Z, is "{text[:60]}"'


@lru_cache(maxsize=1024)
def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True
