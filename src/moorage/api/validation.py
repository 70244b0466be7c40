"""Validation of single objects: quantities, enumerated fields, numbers, times, required fields.

Objects from manifests have not passed an API server's validation. Without these checks invalid
values would change decisions silently: `operator: exists` tolerates nothing, a negative number of
replicas means none, maxSkew 0 makes every pod unschedulable.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from functools import lru_cache

from moorage.api import (
    device_fields,
    labels,
    pod_group_rules,
    quantity,
    queues,
    selectors,
    storage,
    workloads,
)
from moorage.api.devices import ResourceClaim, ResourceClaimTemplate, ResourceSlice
from moorage.api.meta import KubeObject, LabelSelector, NodeSelectorTerm
from moorage.api.node import Node, NodePool, Taint
from moorage.api.pod import Affinity, Pod, PodAffinity, PodSpec, ResourceRequirements, Toleration
from moorage.api.pod_groups import PodGroup, Workload
from moorage.api.policy import PodDisruptionBudget
from moorage.api.quantity import Quantity
from moorage.api.queues import ElasticQuota, Queue
from moorage.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"

FieldError = tuple[str, str]
"""A field's path, and what is wrong with its value."""


def field_error(obj: KubeObject) -> FieldError | None:
    """The first invalid field of an object; None if the object is valid."""
    return invalid_quantity(obj) or _unknown_value(obj) or _invalid_value(obj)


def join_path(path: str, name: str) -> str:
    """`requests.cpu`, but `requests[nvidia.com/gpu]`, as Kubernetes writes it."""
    if not path:
        return name
    return f"{path}.{name}" if re.fullmatch(r"[\w-]+", name) else f"{path}[{name}]"


def _pod_spec(obj: KubeObject) -> tuple[str, PodSpec] | None:
    """The spec of a pod, or of the pods that a workload creates, and its path."""
    if isinstance(obj, Pod):
        return "spec", obj.spec
    path, template = workloads.pod_template(obj) or ("", None)
    return None if template is None else (f"{path}.spec", template.spec)


def _pod_affinities(affinity: Affinity, path: str) -> Iterator[tuple[str, PodAffinity]]:
    if affinity.pod_affinity is not None:
        yield f"{path}.podAffinity", affinity.pod_affinity
    if affinity.pod_anti_affinity is not None:
        yield f"{path}.podAntiAffinity", affinity.pod_anti_affinity


# Quantities

Amounts = tuple[str, int, Mapping[str, Quantity]]
"""A field path with `{}` for an index, the index, and quantities by name."""


def invalid_quantity(obj: KubeObject) -> FieldError | None:
    """The first field whose quantity does not parse, is negative, or does not fit into 64 bits."""
    for path, index, amounts in _amounts(obj):
        for name, amount in amounts.items():
            try:
                nano = quantity.nano(amount)
            except ValueError as error:
                return join_path(path.format(index), name), str(error)
            step = quantity.MICRO if name == "cpu" else quantity.NANO
            if nano < 0:
                problem = f"must be greater than or equal to 0, is {str(amount)[:60]}"
            elif nano > quantity.INT64_MAX * step:  # Kubernetes would compute with 0.
                problem = f"must fit into 64 bits, is {str(amount)[:60]}"
            else:
                continue
            return join_path(path.format(index), name), problem
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
    return [(f"{prefix}{path}", index, each) for path, index, each in amounts]


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


# Enumerated fields

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATION_OPERATORS = ("Equal", "Exists", "Lt", "Gt")
PREEMPTION_POLICIES = ("Never", "PreemptLowerPriority")

_VALID_TOLERATIONS = {
    (operator, effect) for operator in ("", *TOLERATION_OPERATORS) for effect in ("", *EFFECTS)
}

EnumField = tuple[str, str | None, tuple[str, ...]]
"""A field's path, its value, and the allowed values."""


def _unknown_value(obj: KubeObject) -> FieldError | None:
    for path, value, allowed in _enum_fields(obj):
        if value and value not in allowed:
            return path, f'must be {", ".join(allowed[:-1])} or {allowed[-1]}, is "{value[:60]}"'
    if isinstance(obj, NodePool):
        return device_fields.unknown_counter(obj)
    return _invalid_percentage(obj) if isinstance(obj, PodDisruptionBudget) else None


def _enum_fields(obj: KubeObject) -> Iterable[EnumField]:
    match obj:
        case Node():
            return _taint_fields(obj.spec.taints, "spec.taints")
        case NodePool():
            return _taint_fields(obj.spec.template.spec.taints, "spec.template.spec.taints")
        case storage.StorageClass():
            modes = ("Immediate", "WaitForFirstConsumer")
            return [("volumeBindingMode", obj.volume_binding_mode, modes)]
        case ResourceSlice() | ResourceClaim() | ResourceClaimTemplate():
            return device_fields.enumerated(obj)
    if (found := _pod_spec(obj)) is None:
        return ()
    path, spec = found
    # Most pods have none of these fields, and this runs for every pod.
    if (
        spec.topology_spread_constraints
        or spec.affinity is not None
        or spec.preemption_policy not in (None, "", *PREEMPTION_POLICIES)
    ):
        return _pod_fields(spec, path)
    return _toleration_fields(spec.tolerations, path) if spec.tolerations else ()


def _taint_fields(taints: tuple[Taint, ...], path: str) -> Iterator[EnumField]:
    for i, taint in enumerate(taints):
        yield f"{path}[{i}].effect", taint.effect, EFFECTS


def _pod_fields(spec: PodSpec, path: str) -> Iterator[EnumField]:
    yield from _toleration_fields(spec.tolerations, path)
    for i, each in enumerate(spec.topology_spread_constraints):
        here, policies = f"{path}.topologySpreadConstraints[{i}]", ("Honor", "Ignore")
        actions = ("DoNotSchedule", "ScheduleAnyway")
        yield f"{here}.whenUnsatisfiable", each.when_unsatisfiable, actions
        yield f"{here}.nodeAffinityPolicy", each.node_affinity_policy, policies
        yield f"{here}.nodeTaintsPolicy", each.node_taints_policy, policies
        yield from _selector_fields(each.label_selector, f"{here}.labelSelector")
    if spec.affinity is not None:
        yield from _affinity_fields(spec.affinity, f"{path}.affinity")
    if spec.preemption_policy:
        yield f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTION_POLICIES


def _toleration_fields(tolerations: tuple[Toleration, ...], path: str) -> Iterator[EnumField]:
    for i, each in enumerate(tolerations):
        if (each.operator, each.effect) not in _VALID_TOLERATIONS:
            yield f"{path}.tolerations[{i}].operator", each.operator, TOLERATION_OPERATORS
            yield f"{path}.tolerations[{i}].effect", each.effect, EFFECTS


def _affinity_fields(affinity: Affinity, path: str) -> Iterator[EnumField]:
    if (nodes := affinity.node_affinity) is not None:
        here = f"{path}.nodeAffinity"
        terms = nodes.required.node_selector_terms if nodes.required is not None else ()
        for i, term in enumerate(terms):
            yield from _term_fields(term, f"{here}.{REQUIRED}.nodeSelectorTerms[{i}]")
        for i, preferred in enumerate(nodes.preferred or ()):
            yield from _term_fields(preferred.preference, f"{here}.{PREFERRED}[{i}].preference")
    for here, pods in _pod_affinities(affinity, path):
        for i, required in enumerate(pods.required):
            selector_path = f"{here}.{REQUIRED}[{i}].labelSelector"
            yield from _selector_fields(required.label_selector, selector_path)
        for i, weighted in enumerate(pods.preferred):
            selector_path = f"{here}.{PREFERRED}[{i}].podAffinityTerm.labelSelector"
            yield from _selector_fields(weighted.pod_affinity_term.label_selector, selector_path)


def _term_fields(term: NodeSelectorTerm, path: str) -> Iterator[EnumField]:
    for i, each in enumerate(term.match_expressions):
        yield f"{path}.matchExpressions[{i}].operator", each.operator, selectors.NODE_OPERATORS


def _selector_fields(selector: LabelSelector | None, path: str) -> Iterator[EnumField]:
    for i, each in enumerate(selector.match_expressions if selector is not None else ()):
        yield f"{path}.matchExpressions[{i}].operator", each.operator, selectors.LABEL_OPERATORS


def _invalid_percentage(budget: PodDisruptionBudget) -> FieldError | None:
    spec = budget.spec
    for field, value in (
        ("minAvailable", spec.min_available),
        ("maxUnavailable", spec.max_unavailable),
    ):
        if isinstance(value, str) and not value.removesuffix("%").isdecimal():
            return f"spec.{field}", f'must be a whole number or a percentage, is "{value[:60]}"'
    return None


# Numbers, times and required fields

# Topology spreading reads the selectors of these; they may have no template.
_TEMPLATE_IS_OPTIONAL = (ReplicationController, ReplicaSet, StatefulSet)

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


def _invalid_value(obj: KubeObject) -> FieldError | None:
    # This runs for every pod, and most have only times to check.
    meta = obj.metadata
    if meta.creation_timestamp is not None and not _is_time(meta.creation_timestamp):
        return _not_a_time("metadata.creationTimestamp", meta.creation_timestamp)
    if meta.deletion_timestamp is not None and not _is_time(meta.deletion_timestamp):
        return _not_a_time("metadata.deletionTimestamp", meta.deletion_timestamp)
    if isinstance(obj, Pod):
        started = obj.status.start_time
        if started is not None and not _is_time(started):
            return _not_a_time("status.startTime", started)
        spec = obj.spec
        if (
            not spec.topology_spread_constraints
            and spec.affinity is None
            and spec.scheduling_group is None
        ):
            return None
    return next(_value_errors(obj), None)


def _value_errors(obj: KubeObject) -> Iterator[FieldError]:
    match obj:
        case ReplicationController() | ReplicaSet() | StatefulSet() | Deployment():
            yield from _negative("spec.replicas", obj.spec.replicas)
        case workloads.Job():
            yield from _job_errors(obj.spec, "spec")
        case workloads.CronJob():
            if (run := obj.spec.job_template) is None:
                yield "spec.jobTemplate", "is missing"
            else:
                yield from _job_errors(run.spec, "spec.jobTemplate.spec")
        case PodDisruptionBudget():
            yield from _negative("spec.minAvailable", obj.spec.min_available)
            yield from _negative("spec.maxUnavailable", obj.spec.max_unavailable)
        case PodGroup():
            yield from map(_by_rule, pod_group_rules.validate_pod_group(obj))
        case Workload():
            yield from map(_by_rule, pod_group_rules.validate_workload(obj))
        case Queue():
            yield from map(_by_rule, queues.validate_queue(obj))
        case ElasticQuota():
            yield from map(_by_rule, queues.validate_elastic_quota(obj))
    if (found := _pod_spec(obj)) is not None:
        yield from _pod_errors(found[1], found[0])
    elif (place := workloads.pod_template(obj)) and not isinstance(obj, _TEMPLATE_IS_OPTIONAL):
        yield place[0], "is missing"


def _job_errors(spec: workloads.JobSpec, path: str) -> Iterator[FieldError]:
    yield from _negative(f"{path}.parallelism", spec.parallelism)
    yield from _negative(f"{path}.completions", spec.completions)
    if spec.completion_mode == "Indexed" and spec.completions is None:
        yield f"{path}.completions", "is missing; an Indexed job needs it"


def _by_rule(violation: tuple[str, object, str]) -> FieldError:
    path, value, rule = violation
    return path, f"{rule}, is {value}" if rule and value != "" else rule or "is missing"


def _pod_errors(spec: PodSpec, path: str) -> Iterator[FieldError]:
    if (group := spec.scheduling_group) is not None:
        name = group.pod_group_name
        for rule in labels.subdomain_problems(name) if name else ("is missing",):
            yield f"{path}.schedulingGroup.podGroupName", rule
    for i, each in enumerate(spec.topology_spread_constraints):
        here = f"{path}.topologySpreadConstraints[{i}]"
        if each.max_skew < 1:
            yield f"{here}.maxSkew", f"must be 1 or more, is {_given(each.max_skew)}"
        if each.min_domains is not None and each.min_domains < 1:
            yield f"{here}.minDomains", f"must be 1 or more, is {each.min_domains}"
    if spec.affinity is None:
        return
    here = f"{path}.affinity"
    if (nodes := spec.affinity.node_affinity) is not None:
        if nodes.required is not None and not nodes.required.node_selector_terms:
            problem = "must have at least one node selector term"
            yield f"{here}.nodeAffinity.{REQUIRED}.nodeSelectorTerms", problem
        for i, preferred in enumerate(nodes.preferred or ()):
            yield from _weight_error(f"{here}.nodeAffinity.{PREFERRED}[{i}]", preferred.weight)
    for field, pods in _pod_affinities(spec.affinity, here):
        for i, weighted in enumerate(pods.preferred):
            yield from _weight_error(f"{field}.{PREFERRED}[{i}]", weighted.weight)


def _weight_error(path: str, weight: int) -> Iterator[FieldError]:
    if not 1 <= weight <= 100:
        yield f"{path}.weight", f"must be in the range 1-100, is {_given(weight)}"


def _given(number: int) -> str:
    """A number as text; a number that was absent in the manifest has become 0."""
    return str(number) if number else "0 or missing"


def _negative(path: str, number: int | str | None) -> Iterator[FieldError]:
    if isinstance(number, int) and number < 0:
        yield path, f"must be 0 or more, is {number}"


def _not_a_time(path: str, text: str) -> FieldError:
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
