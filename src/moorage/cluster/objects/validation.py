"""Validation of requests: types of fields, then the rules of `api.validation`.

A kind that the scheduler or a controller reads has a struct, which checks the types of the fields
that it has. Other fields are stored as they are. Kinds of alpha groups and Moorage's own have their
rules here.
"""

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from random import Random
from typing import Any

import msgspec

from moorage.api import labels, pod_group_rules, quantity, queues
from moorage.api import validation as api_validation
from moorage.api.meta import KubeObject
from moorage.api.pod_groups import PodGroup, Workload
from moorage.api.validation.field_errors import FieldError
from moorage.api.validation.names import MAX_LABEL, label_problems
from moorage.cluster.objects import definition_rules, device_rules
from moorage.cluster.objects.structs import Definition, struct_of
from moorage.cluster.resources import Resource
from moorage.cluster.status_errors import BadRequestError, InvalidError, StatusCause
from moorage.cluster.store import CACHED_BYTES
from moorage.controllers.objects import SAFE_LETTERS, Object

_QUANTITY_RULE = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
)


def decode(resource: Resource, obj: Object) -> KubeObject:
    """The object as its struct; raises BadRequestError if a field has the wrong type."""
    try:
        for part in ("spec", "status"):  # Not all structs have both fields.
            if not isinstance(obj.get(part, {}), dict):
                raise msgspec.ValidationError(f"Expected `object` - at `$.{part}`")
        typed = msgspec.convert(obj, struct_of(resource))
        for _, amounts in api_validation.quantities(resource.built_in_kind, obj):
            for amount in amounts.values():
                _check_quantity(amount)
    except msgspec.ValidationError as error:
        raise BadRequestError(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None
    return typed


def _check_quantity(amount: Any) -> None:
    try:
        quantity.nano(amount)
    except (ValueError, TypeError):
        raise msgspec.ValidationError(_QUANTITY_RULE) from None


def validate(resource: Resource, obj: Object) -> KubeObject:
    """The object as its struct; raises BadRequestError or InvalidError."""
    typed = decode(resource, obj)
    validate_rules(resource, obj, typed)
    return typed


def validate_rules(
    resource: Resource, obj: Object, typed: KubeObject, before: Object | None = None
) -> None:
    """Raise InvalidError for invalid values, and for changes of `before` that are not allowed."""
    kind = resource.built_in_kind
    of_quantities, of_spec = _errors(kind, obj)
    errors = list(of_quantities)
    if not errors:
        errors += api_validation.validate_metadata(kind, obj)
        errors += of_spec
        if before is not None:
            errors += api_validation.validate_update(kind, before, obj)
    causes = [StatusCause(error.reason, error.message, error.field) for error in errors]
    if (rules := _RULES.get(kind)) is not None:
        causes += [_cause(*each) for each in rules(typed)]
    if kind == "CustomResourceDefinition":
        causes += definition_rules.validate(obj)
    if causes:
        raise invalid_object(resource, typed.name, causes)


Errors = tuple[Iterable[FieldError], Iterable[FieldError]]


def _errors(kind: str, obj: Object) -> Errors:
    """The errors of quantities, and of everything else but the metadata."""
    if kind != "Pod":
        return _quantity_errors(kind, obj), api_validation.validate_spec(kind, obj)
    text = msgspec.json.encode(obj.get("spec", {}))
    # Only these keys refer to the labels of the pod.
    labels = obj["metadata"].get("labels", {}) if b"matchLabelKeys" in text else {}
    check = _pod_spec_errors if len(text) <= CACHED_BYTES else _pod_spec_errors.__wrapped__
    of_quantities, of_spec = check(text, msgspec.json.encode(labels))
    return (*of_quantities, *_quantity_errors(kind, {"status": obj.get("status")})), of_spec


@lru_cache(maxsize=1024)
def _pod_spec_errors(spec: bytes, labels: bytes) -> Errors:
    """The errors of a spec in JSON: the pods of a workload have equal ones."""
    pod = {"spec": msgspec.json.decode(spec), "metadata": {"labels": msgspec.json.decode(labels)}}
    return tuple(_quantity_errors("Pod", pod)), tuple(api_validation.validate_spec("Pod", pod))


def _quantity_errors(kind: str, obj: Object) -> Iterator[FieldError]:
    for path, amounts in api_validation.quantities(kind, obj):
        yield from api_validation.readable(amounts, path)


def validate_update(resource: Resource, old: Object, new: Object) -> None:
    """Raise InvalidError for changes that are not allowed."""
    errors = api_validation.validate_update(resource.built_in_kind, old, new)
    if causes := [StatusCause(error.reason, error.message, error.field) for error in errors]:
        raise invalid_object(resource, new["metadata"]["name"], causes)


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
    # An API server lists equal errors once in the text.
    lines = list(dict.fromkeys(f"{cause.field}: {cause.message}" for cause in causes))
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


_SUFFIX_LENGTH = 5


def generate_name(prefix: str, random: Random) -> str:
    """A name from a `generateName`."""
    suffix = "".join(random.choices(SAFE_LETTERS, k=_SUFFIX_LENGTH))
    return prefix[: MAX_LABEL - _SUFFIX_LENGTH] + suffix


def generate_uid(random: Random) -> str:
    """A UUID of version 4; `uuid.UUID` takes three times as long, and every object has one."""
    bits = random.getrandbits(128) & ~_VERSION_BITS | _VERSION_4
    text = f"{bits:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


_VERSION_BITS = 0xF000 << 64 | 0xC000 << 48
_VERSION_4 = 0x4000 << 64 | 0x8000 << 48


# Rules of each kind: (field, value, rule) for each violation -----------------------------------

FieldErrors = Iterator[tuple[str, Any, str]]


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
        if label_problems(value.lower()):
            yield f"spec.names.{field}", value, "must be a DNS label"
    if sum(version.storage for version in spec.versions) != 1:
        yield "spec.versions", [], "must have exactly one version marked as storage version"
    for version in spec.versions:
        if label_problems(version.name):
            yield "spec.versions[].name", version.name, "must be a DNS label"


_RULES: dict[str, Callable[[KubeObject], FieldErrors]] = {
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
