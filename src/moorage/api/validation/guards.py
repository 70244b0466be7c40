"""Checks of objects whose fields were not all seen: from code, from dumps, from recordings.

Objects from code may be abbreviated: a pod without an image can be scheduled. So only values are
checked that would change decisions silently, by the same rules as for files: `operator: exists`
tolerates nothing, a negative number of replicas means none, maxSkew 0 makes every pod
unschedulable. This runs for every pod of a large cluster: on structs, and once per equal part.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache
from operator import attrgetter
from typing import Any

import msgspec

from moorage.api import (
    device_fields,
    pod_group_rules,
    quantity,
    queues,
    storage,
    workloads,
)
from moorage.api.devices import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from moorage.api.meta import KubeObject
from moorage.api.node import Node, NodePool, Taint
from moorage.api.pod import Pod, PodSpec, ResourceRequirements
from moorage.api.pod_groups import PodGroup, Workload
from moorage.api.policy import LimitRange, PodDisruptionBudget, ResourceQuota, RuntimeClass
from moorage.api.quantity import Quantity
from moorage.api.queues import ElasticQuota, Queue
from moorage.api.validation import field_errors as fe
from moorage.api.validation import jobs, limits, placement, volumes
from moorage.api.validation.field_errors import FieldError, FieldErrors, Fields, join_path
from moorage.api.validation.quantities import quantities
from moorage.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet


def field_error(obj: KubeObject) -> FieldError | None:
    """The first invalid field of an object; None if the object is valid."""
    if not isinstance(obj, Pod):
        return _invalid_amount(obj) or _invalid_time(obj) or next(_value_errors(obj), None)
    key, parts = id(obj.spec.containers), _checked_parts(obj)  # Not reused: they are kept.
    if _valid_parts.get(key) == parts:
        return _invalid_time(obj)
    amount, value = _invalid_amount(obj), next(_value_errors(obj), None)
    if amount is None and value is None:
        if len(_valid_parts) >= _MAX_CACHED:
            _valid_parts.clear()
        _valid_parts[key] = parts
    return amount or _invalid_time(obj) or value


_MAX_CACHED = 4096
# By their containers, which a workload's pods share.
_valid_parts: dict[int, tuple[Any, ...]] = {}
_spec_parts = attrgetter(
    "containers",
    "init_containers",
    "overhead",
    "resources",
    "affinity",
    "topology_spread_constraints",
    "tolerations",
    "preemption_policy",
    "scheduling_group",
)
_status_parts = attrgetter(
    "container_statuses", "init_container_statuses", "resources", "allocated_resources"
)


def _checked_parts(pod: Pod) -> tuple[Any, ...]:
    """Everything that is checked of a pod, except times."""
    spec = pod.spec
    claims = spec.volumes and [each.ephemeral for each in spec.volumes if each.ephemeral]
    return _spec_parts(spec), _status_parts(pod.status), claims or ()


def _pod_spec(obj: KubeObject) -> tuple[str, PodSpec] | None:
    """The spec of a pod, or of the pods that a workload creates, and its path."""
    if isinstance(obj, Pod):
        return "spec", obj.spec
    path, template = workloads.pod_template(obj) or ("", None)
    return None if template is None else (f"{path}.spec", template.spec)


# Quantities

Amounts = tuple[str, int, Mapping[str, Quantity]]
"""A field path with `{}` for an index, the index, and quantities by name."""


def _invalid_amount(obj: KubeObject) -> FieldError | None:
    """The first field whose quantity does not parse, is negative, or does not fit into 64 bits."""
    for path, index, amounts in _amounts(obj):
        for name, amount in amounts.items():
            try:
                nano = quantity.nano(amount)
            except ValueError as error:
                place = join_path(path.format(index), name)
                return FieldError(place, "FieldValueInvalid", str(error))
            step = quantity.MICRO if name == "cpu" else quantity.NANO
            if nano < 0:
                problem = fe.NOT_NEGATIVE
            elif nano > quantity.INT64_MAX * step:  # Kubernetes would compute with 0.
                problem = "must fit into 64 bits"
            else:
                continue
            return fe.invalid(join_path(path.format(index), name), str(amount)[:60], problem)
    return None


def _amounts(obj: KubeObject) -> list[Amounts]:
    match obj:
        case Pod():
            return _pod_amounts(obj)
        case Node():
            return [
                ("status.allocatable", 0, obj.status.allocatable),
                ("status.capacity", 0, obj.status.capacity),
            ]
        case storage.PersistentVolume():
            return [("spec.capacity", 0, obj.spec.capacity)]
        case storage.PersistentVolumeClaim():
            return [
                ("spec.resources.requests", 0, obj.spec.resources.requests),
                ("status.capacity", 0, obj.status.capacity),
            ]
        case storage.CSIStorageCapacity():
            sizes = {"capacity": obj.capacity, "maximumVolumeSize": obj.maximum_volume_size}
            return [("", 0, {name: size for name, size in sizes.items() if size is not None})]
        case LimitRange() | ResourceQuota() | RuntimeClass():
            every = quantities(type(obj).__name__, _plain(obj))
            return [(path, 0, each) for path, each in every]
        case Queue():
            return [
                ("spec.guaranteed", 0, obj.spec.guaranteed),
                ("spec.max", 0, obj.spec.max),
            ]
        case ElasticQuota():
            return [("spec.min", 0, obj.spec.min), ("spec.max", 0, obj.spec.max)]
        case NodePool():
            status = obj.spec.template.status
            return [
                ("spec.template.status.allocatable", 0, status.allocatable),
                ("spec.template.status.capacity", 0, status.capacity),
                *device_fields.pool_amounts(obj),
            ]
        case ResourceSlice() | ResourceClaim() | ResourceClaimTemplate():
            return list(device_fields.amounts(obj))
    if (found := _pod_spec(obj)) is None:
        return []
    prefix = found[0].removesuffix("spec")
    amounts = _pod_amounts(Pod(spec=found[1]))
    pods = [(f"{prefix}{path}", index, each) for path, index, each in amounts]
    if isinstance(obj, StatefulSet):
        path = "spec.volumeClaimTemplates[{}].spec.resources.requests"
        for i, claim in enumerate(obj.spec.volume_claim_templates):
            pods.append((path, i, claim.spec.resources.requests))
    return pods


def _pod_amounts(pod: Pod) -> list[Amounts]:
    # Lists instead of generators: this runs for every container of every pod.
    spec, status = pod.spec, pod.status
    found: list[Amounts] = [("spec.overhead", 0, spec.overhead)]
    for i, container in enumerate(spec.containers):
        found += _both("spec.containers[{}].resources", i, container.resources)
    for i, container in enumerate(spec.init_containers):
        found += _both("spec.initContainers[{}].resources", i, container.resources)
    for i, volume in enumerate(spec.volumes):
        if volume.ephemeral and (template := volume.ephemeral.volume_claim_template):
            path = "spec.volumes[{}].ephemeral.volumeClaimTemplate.spec.resources.requests"
            found.append((path, i, template.spec.resources.requests))
    for field, statuses in (
        ("status.containerStatuses[{}]", status.container_statuses),
        ("status.initContainerStatuses[{}]", status.init_container_statuses),
    ):
        for i, each in enumerate(statuses):
            found += _both(f"{field}.resources", i, each.resources)
            found.append((f"{field}.allocatedResources", i, each.allocated_resources))
    found += _both("spec.resources", 0, spec.resources)
    found += _both("status.resources", 0, status.resources)
    found.append(("status.allocatedResources", 0, status.allocated_resources))
    return found


def _both(path: str, index: int, resources: ResourceRequirements | None) -> tuple[Amounts, ...]:
    if resources is None:
        return ()
    return (
        (f"{path}.requests", index, resources.requests),
        (f"{path}.limits", index, resources.limits),
    )


# Times

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def _invalid_time(obj: KubeObject) -> FieldError | None:
    meta = obj.metadata
    if meta.creation_timestamp is not None and not _is_time(meta.creation_timestamp):
        return _not_a_time("metadata.creationTimestamp", meta.creation_timestamp)
    if meta.deletion_timestamp is not None and not _is_time(meta.deletion_timestamp):
        return _not_a_time("metadata.deletionTimestamp", meta.deletion_timestamp)
    started = obj.status.start_time if isinstance(obj, Pod) else None
    if started is not None and not _is_time(started):
        return _not_a_time("status.startTime", started)
    return None


def _not_a_time(path: str, text: str) -> FieldError:
    return fe.invalid(path, text[:60], "must be a time such as 2026-01-31T12:00:00Z")


@lru_cache(maxsize=1024)
def _is_time(text: str) -> bool:
    if not _TIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


# Values

# Topology spreading reads the selectors of these; they may have no template.
_TEMPLATE_IS_OPTIONAL = (ReplicationController, ReplicaSet, StatefulSet)


def _value_errors(obj: KubeObject) -> FieldErrors:
    match obj:
        case Pod():
            yield from _placement_errors(obj.spec, "spec")
            return
        case Node():
            yield from _taint_errors(obj.spec.taints, "spec.taints")
        case NodePool():
            yield from _taint_errors(obj.spec.template.spec.taints, "spec.template.spec.taints")
            if (unknown := device_fields.unknown_counter(obj)) is not None:
                yield FieldError(unknown[0], "FieldValueInvalid", unknown[1])
        case storage.StorageClass():
            yield from fe.one_of(_plain(obj), "", "volumeBindingMode", volumes.BINDING_MODES)
        case ReplicationController() | ReplicaSet() | StatefulSet() | Deployment():
            yield from fe.not_negative({"replicas": obj.spec.replicas}, "spec", "replicas")
            yield from _too_many_pods({"spec.replicas": obj.spec.replicas})
            if isinstance(obj, StatefulSet):
                for i, claim in enumerate(obj.spec.volume_claim_templates):
                    if not claim.metadata.name:
                        yield fe.required(f"spec.volumeClaimTemplates[{i}].metadata.name")
        case workloads.Job():
            yield from _job_numbers(obj.spec, "spec")
        case workloads.CronJob():
            if (run := obj.spec.job_template) is None:
                yield fe.required("spec.jobTemplate")
            else:
                yield from _job_numbers(run.spec, "spec.jobTemplate.spec")
        case PodDisruptionBudget():
            yield from limits.budget_amounts(_plain(obj.spec))
        case PodGroup():
            yield from _by_rule(pod_group_rules.validate_pod_group(obj))
        case Workload():
            yield from _by_rule(pod_group_rules.validate_workload(obj))
        case Queue():
            yield from _by_rule(queues.validate_queue(obj))
        case ElasticQuota():
            yield from _by_rule(queues.validate_elastic_quota(obj))
        case ResourceSlice() | ResourceClaim() | ResourceClaimTemplate():
            for path, value, allowed in device_fields.enumerated(obj):
                if value and value not in allowed:
                    yield fe.not_supported(path, value, allowed)
    if (found := _pod_spec(obj)) is not None:
        yield from _placement_errors(found[1], found[0])
    elif (place := workloads.pod_template(obj)) and not isinstance(obj, _TEMPLATE_IS_OPTIONAL):
        yield fe.required(place[0])


def _job_numbers(spec: workloads.JobSpec, path: str) -> FieldErrors:
    yield from jobs.job_numbers(_plain(spec), path)
    counts = {"parallelism": spec.parallelism, "completions": spec.completions}
    yield from _too_many_pods({join_path(path, name): count for name, count in counts.items()})


def _too_many_pods(counts: Mapping[str, int | None]) -> FieldErrors:
    """Numbers of pods for which no machine has the memory: the limit is that of a NodePool."""
    for path, count in counts.items():
        if count is not None and count > workloads.MAX_PODS:
            problem = f"must be a whole number <= {workloads.MAX_PODS}, is {count}"
            yield FieldError(path, "FieldValueInvalid", problem)


def _plain(struct: Any) -> Fields:
    plain: Fields = msgspec.to_builtins(struct)
    return plain


def _by_rule(violations: Iterable[tuple[str, Any, str]]) -> FieldErrors:
    for path, value, rule in violations:
        yield fe.invalid(path, value, rule) if rule else fe.required(path)


def _taint_errors(taints: tuple[Taint, ...], path: str) -> Iterator[FieldError]:
    for i, taint in enumerate(taints):
        if taint.effect not in placement.EFFECTS:
            yield from fe.one_of(
                {"effect": taint.effect}, f"{path}[{i}]", "effect", placement.EFFECTS
            )


def _placement_errors(spec: PodSpec, path: str) -> FieldErrors:
    # Most pods have none of these fields.
    if (
        spec.topology_spread_constraints
        or spec.affinity is not None
        or spec.tolerations
        or spec.preemption_policy
        or spec.scheduling_group is not None
    ):
        parts = (
            spec.affinity,
            spec.topology_spread_constraints,
            spec.tolerations,
            spec.preemption_policy,
            spec.scheduling_group,
        )
        for error in _errors_of_parts(msgspec.json.encode(parts)):
            yield error._replace(field=path + error.field)


_PARTS = (
    "affinity",
    "topologySpreadConstraints",
    "tolerations",
    "preemptionPolicy",
    "schedulingGroup",
)


def _is_accepted(error: FieldError) -> bool:
    """Whether an API server would refuse what has a plain meaning without one."""
    return (
        error.reason in ("FieldValueForbidden", "FieldValueDuplicate")
        or error.field.endswith(".topologyKey")
        or error.message.startswith('Unsupported value: "":')
        or "exists in both matchLabelKeys" in error.message
    )


@lru_cache(maxsize=4096)
def _errors_of_parts(encoded: bytes) -> tuple[FieldError, ...]:
    """The errors of the placement of pods; their paths begin where the spec ends."""
    spec = dict(zip(_PARTS, msgspec.json.decode(encoded), strict=True))
    return tuple(e for e in placement.pod_placement(spec, "", {}) if not _is_accepted(e))
