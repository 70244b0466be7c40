"""Validation: types of fields, quantities, names, labels, and the rules of each kind.

A kind that the scheduler or a controller reads is validated through its struct. Other fields are
stored as they are: unknown fields are accepted, as with `kubectl --validate=ignore`. Messages are
worded as the API server words them.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from random import Random
from typing import Any

import msgspec

from moorage.api import labels, quantity, selectors, validation
from moorage.api.meta import KubeObject, LabelSelector, ObjectMeta
from moorage.api.pod import Pod, PodSpec
from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import SelectorError
from moorage.serve.controllers.objects import Object
from moorage.serve.objects.structs import (
    Definition,
    ReplicationControllerObject,
    WorkloadObject,
    WorkloadSpec,
    struct_of,
)
from moorage.serve.resources import NAMESPACES, SERVICES, Resource
from moorage.serve.status_errors import BadRequestError, InvalidError, StatusCause


def invalid(resource: Resource, name: str, field: str, value: Any, rule: str) -> InvalidError:
    """The refusal of one field's value."""
    return invalid_object(resource, name, [cause(field, value, rule)])


def required(resource: Resource, name: str, field: str, rule: str = "") -> InvalidError:
    """The refusal of a field's absence."""
    text = f"Required value: {rule}" if rule else "Required value"
    return invalid_object(resource, name, [StatusCause("FieldValueRequired", text, field)])


def may_not_change(
    resource: Resource, name: str, field: str, rule: str = "field is immutable"
) -> InvalidError:
    """The refusal of a change."""
    return invalid_object(
        resource, name, [StatusCause("FieldValueForbidden", f"Forbidden: {rule}", field)]
    )


def invalid_object(resource: Resource, name: str, causes: list[StatusCause]) -> InvalidError:
    """One refusal for everything that is wrong."""
    lines = [f"{cause.field}: {cause.message}" for cause in causes]
    text = lines[0] if len(lines) == 1 else f"[{', '.join(lines)}]"
    return InvalidError(
        f'{resource.qualified_kind} "{name}" is invalid: {text}', resource, name, causes=causes
    )


def cause(field: str, value: Any, rule: str) -> StatusCause:
    """One thing that is wrong; without a rule, that it is missing."""
    if not rule:
        return StatusCause("FieldValueRequired", "Required value", field)
    shown = msgspec.json.encode(value).decode() if value not in ("", None) else '""'
    return StatusCause("FieldValueInvalid", f"Invalid value: {shown[:200]}: {rule}", field)


# Letters and digits that do not easily make words.
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_LONGEST_PREFIX = 63 - _SUFFIX_LENGTH

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_is_label = re.compile(_LABEL).fullmatch
_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and "
    "must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used "
    f"for validation is '{_LABEL}')"
)
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_is_label_1035 = re.compile(_LABEL_1035).fullmatch
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an "
    "alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', "
    f"regex used for validation is '{_LABEL_1035}')"
)
_LONGEST_LABEL = 63


def _name_errors(resource: Resource, name: str) -> tuple[str, ...]:
    """What is wrong with an object's name."""
    if resource is NAMESPACES:
        return _dns_label_errors(name)
    if resource is SERVICES:
        return _label_errors(name, _is_label_1035, _LABEL_1035_RULE)
    return labels.subdomain_problems(name)


def _dns_label_errors(name: str) -> tuple[str, ...]:
    """What is wrong with a DNS label, the rule for namespaces and containers."""
    return _label_errors(name, _is_label, _LABEL_RULE)


def _label_errors(name: str, is_label: Callable[[str], object], rule: str) -> tuple[str, ...]:
    found = []
    if len(name) > _LONGEST_LABEL:
        found.append(f"must be no more than {_LONGEST_LABEL} characters")
    if not is_label(name):
        found.append(rule)
    return tuple(found)


def generate_name(prefix: str, random: Random) -> str:
    """A name from a `generateName`."""
    suffix = "".join(random.choices(_LETTERS, k=_SUFFIX_LENGTH))
    return prefix[:_LONGEST_PREFIX] + suffix


_ANNOTATIONS_LIMIT = 256 * 1024


def validate(resource: Resource, obj: Object) -> KubeObject:
    """The object as its struct; raises BadRequestError or InvalidError."""
    try:
        for part in ("spec", "status"):  # Structs that do not know a part do not look at it.
            if not isinstance(obj.get(part, {}), dict):
                raise msgspec.ValidationError(f"Expected `object` - at `$.{part}`")
        read = msgspec.convert(obj, struct_of(resource))
    except msgspec.ValidationError as error:
        raise BadRequestError(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None
    causes = list(_metadata_causes(read.metadata))
    if (fault := validation.invalid_quantity(read)) is not None:
        causes.append(cause(fault[0], "", fault[1]))
    elif not resource.custom and (rule := _RULES.get(resource.kind)) is not None:
        causes += [cause(*each) for each in rule(read)]
    if causes:
        raise invalid_object(resource, read.name, causes)
    return read


def validate_name(resource: Resource, name: str) -> None:
    """Refuse a name that is none."""
    wrong = _name_errors(resource, name)
    if wrong:
        raise invalid(resource, name, "metadata.name", name, "; ".join(wrong))


def _metadata_causes(meta: ObjectMeta) -> Iterator[StatusCause]:
    for key, value in meta.labels.items():
        for wrong in labels.key_problems(key):
            yield cause("metadata.labels", key, wrong)
        for wrong in labels.value_problems(value):
            yield cause("metadata.labels", value, wrong)
    for key in meta.annotations:
        for wrong in labels.key_problems(key.lower()):
            yield cause("metadata.annotations", key, wrong)
    if sum(len(k) + len(v) for k, v in meta.annotations.items()) > _ANNOTATIONS_LIMIT:
        rule = f"may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield StatusCause("FieldValueTooLong", f"Too long: {rule}", "metadata.annotations")
    for finalizer in meta.finalizers:
        for wrong in labels.key_problems(finalizer):
            yield cause("metadata.finalizers", finalizer, wrong)
    for i, owner in enumerate(meta.owner_references):
        place = f"metadata.ownerReferences[{i}]"
        for field, value in (
            ("apiVersion", owner.api_version),
            ("kind", owner.kind),
            ("name", owner.name),
            ("uid", owner.uid),
        ):
            if not value:
                yield cause(f"{place}.{field}", "", "must not be empty")


FieldErrors = Iterable[tuple[str, Any, str]]


def _pod(read: KubeObject) -> FieldErrors:
    assert isinstance(read, Pod)
    return _pod_spec(read.spec, "spec")


def _pod_spec(spec: PodSpec, path: str) -> Iterator[tuple[str, Any, str]]:
    if not spec.containers:
        yield f"{path}.containers", "", ""
    seen: set[str] = set()
    for field, containers in (
        ("containers", spec.containers),
        ("initContainers", spec.init_containers),
    ):
        for i, container in enumerate(containers):
            place = f"{path}.{field}[{i}]"
            if not container.name:
                yield f"{place}.name", "", ""
            for wrong in _dns_label_errors(container.name) if container.name else ():
                yield f"{place}.name", container.name, wrong
            if container.name in seen:
                yield f"{place}.name", container.name, "names of containers must differ"
            seen.add(container.name)
            yield from _resources(container.resources.requests, container.resources.limits, place)
    grace = spec.termination_grace_period_seconds
    if grace is not None and grace < 0:
        field = f"{path}.terminationGracePeriodSeconds"
        yield field, grace, "must be greater than or equal to 0"
    for i, constraint in enumerate(spec.topology_spread_constraints):
        place = f"{path}.topologySpreadConstraints[{i}]"
        if constraint.max_skew <= 0:
            yield f"{place}.maxSkew", constraint.max_skew, "must be greater than zero"
        if not constraint.topology_key:
            yield f"{place}.topologyKey", "", ""
        if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            yield (
                f"{place}.whenUnsatisfiable",
                constraint.when_unsatisfiable,
                'supported values: "DoNotSchedule", "ScheduleAnyway"',
            )
    for key, value in (spec.node_selector or {}).items():
        for wrong in (*labels.key_problems(key), *labels.value_problems(value)):
            yield f"{path}.nodeSelector", key, wrong


def _resources(
    asked: dict[str, Any], limits: dict[str, Any], path: str
) -> Iterator[tuple[str, Any, str]]:
    for field, amounts in (("requests", asked), ("limits", limits)):
        for name, amount in amounts.items():
            place = f"{path}.resources.{field}[{name}]"
            for wrong in labels.key_problems(name):
                yield place, name, wrong
            nano = quantity.nano(amount)
            if nano < 0:
                yield place, amount, "must be greater than or equal to 0"
            if nano > quantity.INT64_MAX * quantity.NANO:
                yield place, amount, "must fit into 64 bits"
            if field == "requests" and name in limits and nano > quantity.nano(limits[name]):
                rule = f"must be less than or equal to {name} limit of {limits[name]}"
                yield place, amount, rule


def _workload(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, WorkloadObject | ReplicationControllerObject)
    spec = read.spec
    if spec.replicas is not None and spec.replicas < 0:
        yield "spec.replicas", spec.replicas, "must be greater than or equal to 0"
    if isinstance(spec, WorkloadSpec):
        yield from _numbers(spec)
    if spec.template is None:
        yield "spec.template", "", ""
        return
    template = Pod(metadata=spec.template.metadata, spec=spec.template.spec)
    if (fault := validation.invalid_quantity(template)) is not None:
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
    if read.kind != "Job" and not compiled.matches(spec.template.metadata.labels):
        yield (
            "spec.template.metadata.labels",
            spec.template.metadata.labels,
            "`selector` does not match template `labels`",
        )


def _selected_workload(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, WorkloadObject)
    if read.spec.selector is None:
        yield "spec.selector", "", ""
    elif not read.spec.selector.match_labels and not read.spec.selector.match_expressions:
        yield "spec.selector", {}, "empty selector is invalid here"
    yield from _workload(read)


_SHARE = "must be a whole number or a percentage (e.g. '1', '50%')"


def _is_share(value: int | str | None) -> bool:
    """Whether it is a number, or a percentage that can be read; nothing is fine, too."""
    if isinstance(value, str):
        return value.endswith("%") and value[:-1].isascii() and value[:-1].isdecimal()
    return value is None or value >= 0


def _numbers(spec: WorkloadSpec) -> Iterator[tuple[str, Any, str]]:
    """What controllers reckon with."""
    for name, strategy in (("strategy", spec.strategy), ("updateStrategy", spec.update_strategy)):
        rolling, path = strategy.rolling_update, f"spec.{name}.rollingUpdate"
        for field, share in (
            ("maxSurge", rolling.max_surge),
            ("maxUnavailable", rolling.max_unavailable),
        ):
            if not _is_share(share):
                yield f"{path}.{field}", share, _SHARE
        if rolling.partition is not None and rolling.partition < 0:
            yield f"{path}.partition", rolling.partition, "must be greater than or equal to 0"
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
        if number is not None and number < 0:
            yield f"spec.{field}", number, "must be greater than or equal to 0"
    for index, claim in enumerate(spec.volume_claim_templates):
        if not claim.metadata.name:
            yield f"spec.volumeClaimTemplates[{index}].metadata.name", "", ""


def _budget(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, PodDisruptionBudget)
    spec = read.spec
    if spec.min_available is not None and spec.max_unavailable is not None:
        yield "spec", {}, "minAvailable and maxUnavailable cannot be both set"
    for field, value in (
        ("minAvailable", spec.min_available),
        ("maxUnavailable", spec.max_unavailable),
    ):
        if not _is_share(value):
            yield f"spec.{field}", value, _SHARE
    try:
        selectors.compile_label_selector(spec.selector)
    except SelectorError as error:
        yield "spec.selector", msgspec.to_builtins(spec.selector), str(error)


def _definition(read: KubeObject) -> Iterator[tuple[str, Any, str]]:
    assert isinstance(read, Definition)
    spec = read.spec
    if read.name != f"{spec.names.plural}.{spec.group}":
        yield "metadata.name", read.name, 'must be spec.names.plural+"."+spec.group'
    if "." not in spec.group or labels.subdomain_problems(spec.group):
        yield "spec.group", spec.group, "should be a domain with at least one dot"
    if spec.scope not in ("Namespaced", "Cluster"):
        yield "spec.scope", spec.scope, 'supported values: "Cluster", "Namespaced"'
    for field, value in (("plural", spec.names.plural), *(("kind", k) for k in (spec.names.kind,))):
        if _dns_label_errors(value.lower()):
            yield f"spec.names.{field}", value, "must be a DNS label"
    if sum(version.storage for version in spec.versions) != 1:
        yield "spec.versions", [], "must have exactly one version marked as storage version"
    for version in spec.versions:
        if _dns_label_errors(version.name):
            yield "spec.versions[].name", version.name, "must be a DNS label"


_RULES: dict[str, Callable[[KubeObject], FieldErrors]] = {
    "Pod": _pod,
    "Deployment": _selected_workload,
    "ReplicaSet": _selected_workload,
    "StatefulSet": _selected_workload,
    "DaemonSet": _selected_workload,
    "Job": _workload,
    "ReplicationController": _workload,
    "PodDisruptionBudget": _budget,
    "CustomResourceDefinition": _definition,
}
