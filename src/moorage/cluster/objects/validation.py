"""Validation: types of fields, quantities, names, labels, and the rules of each kind.

A kind that the scheduler or a controller reads is validated through its struct. Other fields are
stored as they are: unknown fields are accepted, as with `kubectl --validate=ignore`. Messages are
worded as the API server words them.
"""

import re
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import msgspec

from moorage.api import labels, pod_group_rules, quantity, queues, selectors
from moorage.api import validation as api_validation
from moorage.api.meta import KubeObject, LabelSelector, ObjectMeta
from moorage.api.pod import Pod, PodSpec
from moorage.api.pod_groups import PodGroup, Workload
from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import SelectorError
from moorage.cluster.objects import device_rules
from moorage.cluster.objects.structs import (
    Definition,
    ReplicationControllerObject,
    WorkloadObject,
    WorkloadSpec,
    struct_of,
)
from moorage.cluster.resources import NAMESPACES, RBAC, SERVICES, Resource
from moorage.cluster.status_errors import BadRequestError, InvalidError, StatusCause
from moorage.controllers.objects import SAFE_LETTERS, Object

_ANNOTATIONS_LIMIT = 256 * 1024


def validate(resource: Resource, obj: Object) -> KubeObject:
    """The object as its struct; raises BadRequestError or InvalidError."""
    try:
        for part in ("spec", "status"):  # Not all structs have both fields.
            if not isinstance(obj.get(part, {}), dict):
                raise msgspec.ValidationError(f"Expected `object` - at `$.{part}`")
        typed = msgspec.convert(obj, struct_of(resource))
    except msgspec.ValidationError as error:
        raise BadRequestError(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None
    causes = list(_metadata_causes(typed.metadata))
    if (fault := api_validation.invalid_quantity(typed)) is not None:
        causes.append(_cause(fault[0], "", fault[1]))
    elif not resource.custom and (rules := _RULES.get(resource.kind)) is not None:
        causes += [_cause(*each) for each in rules(typed)]
    if causes:
        raise invalid_object(resource, typed.name, causes)
    return typed


def validate_name(resource: Resource, name: str) -> None:
    """Raise InvalidError for an invalid name."""
    if resource is NAMESPACES:
        errors = _label_errors(name)
    elif resource is SERVICES:
        errors = _label_errors(name, _LABEL_1035, _LABEL_1035_RULE)
    elif resource.group == RBAC:
        errors = tuple(f"may not contain '{each}'" for each in ("/", "%") if each in name)
        errors += (f"may not be '{name}'",) if name in (".", "..") else ()
    else:
        errors = labels.subdomain_problems(name)
    if errors:
        raise invalid(resource, name, "metadata.name", name, "; ".join(errors))


def _metadata_causes(meta: ObjectMeta) -> Iterator[StatusCause]:
    for key, value in meta.labels.items():
        for rule in labels.key_problems(key):
            yield _cause("metadata.labels", key, rule)
        for rule in labels.value_problems(value):
            yield _cause("metadata.labels", value, rule)
    for key in meta.annotations:
        for rule in labels.key_problems(key.lower()):
            yield _cause("metadata.annotations", key, rule)
    if sum(len(k) + len(v) for k, v in meta.annotations.items()) > _ANNOTATIONS_LIMIT:
        rule = f"may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield StatusCause("FieldValueTooLong", f"Too long: {rule}", "metadata.annotations")
    for finalizer in meta.finalizers:
        for rule in labels.key_problems(finalizer):
            yield _cause("metadata.finalizers", finalizer, rule)
    for i, owner in enumerate(meta.owner_references):
        named = {"apiVersion": owner.api_version, "kind": owner.kind}
        for field, value in {**named, "name": owner.name, "uid": owner.uid}.items():
            if not value:
                yield _cause(f"metadata.ownerReferences[{i}].{field}", "", "must not be empty")


# Errors ----------------------------------------------------------------------------------------


def invalid(resource: Resource, name: str, field: str, value: Any, rule: str) -> InvalidError:
    """The error of an invalid value."""
    return invalid_object(resource, name, [_cause(field, value, rule)])


def required(resource: Resource, name: str, field: str, rule: str = "") -> InvalidError:
    """The error of a missing field."""
    text = f"Required value: {rule}" if rule else "Required value"
    return invalid_object(resource, name, [StatusCause("FieldValueRequired", text, field)])


def may_not_change(
    resource: Resource, name: str, field: str, rule: str = "field is immutable"
) -> InvalidError:
    """The error of a change to an immutable field."""
    cause = StatusCause("FieldValueForbidden", f"Forbidden: {rule}", field)
    return invalid_object(resource, name, [cause])


def invalid_object(resource: Resource, name: str, causes: list[StatusCause]) -> InvalidError:
    """The error of an object that violates rules."""
    lines = [f"{cause.field}: {cause.message}" for cause in causes]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return InvalidError(
        f'{resource.qualified_kind} "{name}" is invalid: {text}', resource, name, causes=causes
    )


def _cause(field: str, value: Any, rule: str) -> StatusCause:
    """The violation of a rule; an empty rule means that the field is required."""
    if not rule:
        return StatusCause("FieldValueRequired", "Required value", field)
    shown = msgspec.json.encode(value).decode() if value not in ("", None) else '""'
    return StatusCause("FieldValueInvalid", f"Invalid value: {shown[:200]}: {rule}", field)


# Names -----------------------------------------------------------------------------------------

_SUFFIX_LENGTH = 5
_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_LABEL_1035}')"
)
_MAX_LABEL = 63


def _label_errors(name: str, label: str = _LABEL, rule: str = _LABEL_RULE) -> tuple[str, ...]:
    """The errors of a DNS label, the rule for names of namespaces and containers."""
    too_long = f"must be no more than {_MAX_LABEL} characters"
    return (
        *((too_long,) if len(name) > _MAX_LABEL else ()),
        *(() if re.fullmatch(label, name) else (rule,)),
    )


def generate_name(prefix: str, random: Random) -> str:
    """A name from a `generateName`."""
    suffix = "".join(random.choices(SAFE_LETTERS, k=_SUFFIX_LENGTH))
    return prefix[: _MAX_LABEL - _SUFFIX_LENGTH] + suffix


# Rules of each kind: (field, value, rule) for each violation -----------------------------------

FieldErrors = Iterator[tuple[str, Any, str]]

_NOT_NEGATIVE = "must be greater than or equal to 0"


def _not_negative(path: str, value: int | None) -> FieldErrors:
    if value is not None and value < 0:
        yield path, value, _NOT_NEGATIVE


def _validate_pod(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, Pod)
    return _pod_spec(typed.spec, "spec")


def _pod_spec(spec: PodSpec, path: str) -> FieldErrors:
    if not spec.containers:
        yield f"{path}.containers", "", ""
    seen: set[str] = set()
    both = {"containers": spec.containers, "initContainers": spec.init_containers}
    for field, containers in both.items():
        for i, container in enumerate(containers):
            item = f"{path}.{field}[{i}]"
            for rule in _label_errors(container.name) if container.name else ("",):
                yield f"{item}.name", container.name, rule
            if container.name in seen:
                yield f"{item}.name", container.name, "names of containers must differ"
            seen.add(container.name)
            yield from _resources(container.resources.requests, container.resources.limits, item)
    grace = spec.termination_grace_period_seconds
    yield from _not_negative(f"{path}.terminationGracePeriodSeconds", grace)
    for i, constraint in enumerate(spec.topology_spread_constraints):
        item = f"{path}.topologySpreadConstraints[{i}]"
        if constraint.max_skew <= 0:
            yield f"{item}.maxSkew", constraint.max_skew, "must be greater than zero"
        if not constraint.topology_key:
            yield f"{item}.topologyKey", "", ""
        action = constraint.when_unsatisfiable
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            rule = 'supported values: "DoNotSchedule", "ScheduleAnyway"'
            yield f"{item}.whenUnsatisfiable", action, rule
    if (group := spec.scheduling_group) is not None:
        name = group.pod_group_name
        for rule in labels.subdomain_problems(name) if name else ("",):
            yield f"{path}.schedulingGroup.podGroupName", name, rule
    for key, value in (spec.node_selector or {}).items():
        for rule in (*labels.key_problems(key), *labels.value_problems(value)):
            yield f"{path}.nodeSelector", key, rule


def _resources(requests: dict[str, Any], limits: dict[str, Any], path: str) -> FieldErrors:
    for field, amounts in (("requests", requests), ("limits", limits)):
        for name, amount in amounts.items():
            item = f"{path}.resources.{field}[{name}]"
            for rule in labels.key_problems(name):
                yield item, name, rule
            nano = quantity.nano(amount)
            if nano < 0:
                yield item, amount, _NOT_NEGATIVE
            if nano > quantity.INT64_MAX * quantity.NANO:
                yield item, amount, "must fit into 64 bits"
            if field == "requests" and name in limits and nano > quantity.nano(limits[name]):
                rule = f"must be less than or equal to {name} limit of {limits[name]}"
                yield item, amount, rule


def _validate_workload(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, WorkloadObject | ReplicationControllerObject)
    spec = typed.spec
    yield from _not_negative("spec.replicas", spec.replicas)
    if isinstance(spec, WorkloadSpec):
        yield from _workload_numbers(spec)
    if spec.template is None:
        yield "spec.template", "", ""
        return
    template = Pod(metadata=spec.template.metadata, spec=spec.template.spec)
    if (fault := api_validation.invalid_quantity(template)) is not None:
        yield f"spec.template.{fault[0]}", "", fault[1]
        return
    yield from _pod_spec(spec.template.spec, "spec.template.spec")
    selector = spec.selector
    if isinstance(selector, LabelSelector):
        try:
            compiled = selectors.compile_label_selector(selector)
        except SelectorError as error:
            yield "spec.selector", msgspec.to_builtins(selector), str(error)
            return
    elif selector:
        compiled = selectors.selector_from_map(selector)
    else:
        return
    found = spec.template.metadata.labels
    if typed.kind != "Job" and not compiled.matches(found):
        rule = "`selector` does not match template `labels`"
        yield "spec.template.metadata.labels", found, rule


def _validate_selected_workload(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, WorkloadObject)
    selector = typed.spec.selector
    if selector is None:
        yield "spec.selector", "", ""
    elif not selector.match_labels and not selector.match_expressions:
        yield "spec.selector", {}, "empty selector is invalid here"
    yield from _validate_workload(typed)


def _int_or_percent(path: str, value: int | str | None) -> FieldErrors:
    if isinstance(value, str):
        valid = value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal()
    else:
        valid = value is None or value >= 0
    if not valid:
        yield path, value, "must be a whole number or a percentage (e.g. '1', '50%')"


def _workload_numbers(spec: WorkloadSpec) -> FieldErrors:
    for name, strategy in (("strategy", spec.strategy), ("updateStrategy", spec.update_strategy)):
        rolling, path = strategy.rolling_update, f"spec.{name}.rollingUpdate"
        yield from _int_or_percent(f"{path}.maxSurge", rolling.max_surge)
        yield from _int_or_percent(f"{path}.maxUnavailable", rolling.max_unavailable)
        yield from _not_negative(f"{path}.partition", rolling.partition)
    for field, number in (
        ("minReadySeconds", spec.min_ready_seconds),
        ("revisionHistoryLimit", spec.revision_history_limit),
        ("parallelism", spec.parallelism),
        ("completions", spec.completions),
        ("backoffLimit", spec.backoff_limit),
        ("activeDeadlineSeconds", spec.active_deadline_seconds),
        ("ttlSecondsAfterFinished", spec.ttl_seconds_after_finished),
        ("ordinals.start", spec.ordinals.start),
    ):
        yield from _not_negative(f"spec.{field}", number)
    for index, claim in enumerate(spec.volume_claim_templates):
        if not claim.metadata.name:
            yield f"spec.volumeClaimTemplates[{index}].metadata.name", "", ""


def _validate_budget(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, PodDisruptionBudget)
    spec = typed.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield "spec", {}, "minAvailable and maxUnavailable cannot be both set"
    yield from _int_or_percent("spec.minAvailable", spec.min_available)
    yield from _int_or_percent("spec.maxUnavailable", spec.max_unavailable)
    try:
        selectors.compile_label_selector(spec.selector)
    except SelectorError as error:
        yield "spec.selector", msgspec.to_builtins(spec.selector), str(error)


def _validate_pod_group(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, PodGroup)
    return pod_group_rules.validate_pod_group(typed)


def _validate_group_workload(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, Workload)
    return pod_group_rules.validate_workload(typed)


def _validate_queue(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, queues.Queue)
    return queues.validate_queue(typed)


def _validate_elastic_quota(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, queues.ElasticQuota)
    return queues.validate_elastic_quota(typed)


def _validate_definition(typed: KubeObject) -> FieldErrors:
    assert isinstance(typed, Definition)
    spec = typed.spec
    if typed.name != f"{spec.names.plural}.{spec.group}":
        yield "metadata.name", typed.name, 'must be spec.names.plural+"."+spec.group'
    if "." not in spec.group or labels.subdomain_problems(spec.group):
        yield "spec.group", spec.group, "should be a domain with at least one dot"
    if spec.scope not in ("Namespaced", "Cluster"):
        yield "spec.scope", spec.scope, 'supported values: "Cluster", "Namespaced"'
    for field, value in (("plural", spec.names.plural), ("kind", spec.names.kind)):
        if _label_errors(value.lower()):
            yield f"spec.names.{field}", value, "must be a DNS label"
    if sum(version.storage for version in spec.versions) != 1:
        yield "spec.versions", [], "must have exactly one version marked as storage version"
    for version in spec.versions:
        if _label_errors(version.name):
            yield "spec.versions[].name", version.name, "must be a DNS label"


_RULES: dict[str, Callable[[KubeObject], FieldErrors]] = {
    "Pod": _validate_pod,
    "Deployment": _validate_selected_workload,
    "ReplicaSet": _validate_selected_workload,
    "StatefulSet": _validate_selected_workload,
    "DaemonSet": _validate_selected_workload,
    "Job": _validate_workload,
    "ReplicationController": _validate_workload,
    "PodDisruptionBudget": _validate_budget,
    "CustomResourceDefinition": _validate_definition,
    "PodGroup": _validate_pod_group,
    "Workload": _validate_group_workload,
    "Queue": _validate_queue,
    "ElasticQuota": _validate_elastic_quota,
    "ResourceClaim": device_rules.validate_claim,
    "ResourceClaimTemplate": device_rules.validate_template,
    "ResourceSlice": device_rules.validate_slice,
    "DeviceClass": device_rules.validate_class,
}
