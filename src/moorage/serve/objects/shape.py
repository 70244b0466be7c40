"""Is this an object of its kind? Types of fields, quantities, labels and the fields it needs.

What a scheduler or a controller of ours reads is checked through its struct. Other fields are
kept as they come: unknown ones are nobody's business here, as with `kubectl --validate=ignore`.
"""

from collections.abc import Iterator

import msgspec

from moorage.api import admission, labels
from moorage.api.meta import KubeObject, ObjectMeta
from moorage.serve.controllers.objects import Object
from moorage.serve.objects import complaints, names, rules
from moorage.serve.objects.structs import struct_of
from moorage.serve.refusals import BadRequest, Cause
from moorage.serve.resources import Resource

_ANNOTATIONS_LIMIT = 256 * 1024


def check(resource: Resource, obj: Object) -> KubeObject:
    """The object as its struct; raises BadRequest for a wrong type, Invalid for a wrong value."""
    try:
        for part in ("spec", "status"):  # Structs that do not know a part do not look at it.
            if not isinstance(obj.get(part, {}), dict):
                raise msgspec.ValidationError(f"Expected `object` - at `$.{part}`")
        read = msgspec.convert(obj, struct_of(resource))
    except msgspec.ValidationError as error:
        raise BadRequest(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a '
            f"{resource.kind}: {error}"
        ) from None
    causes = list(_metadata_causes(read.metadata))
    if (fault := admission.bad_quantity(read)) is not None:
        causes.append(complaints.cause(fault[0], "", fault[1]))
    elif not resource.custom and (rule := rules.RULES.get(resource.kind)) is not None:
        causes += [complaints.cause(*each) for each in rule(read)]
    if causes:
        raise complaints.refuse(resource, read.name, causes)
    return read


def check_name(resource: Resource, name: str) -> None:
    """Refuse a name that is none."""
    wrong = names.problems(resource, name)
    if wrong:
        raise complaints.invalid(resource, name, "metadata.name", name, "; ".join(wrong))


def _metadata_causes(meta: ObjectMeta) -> Iterator[Cause]:
    for key, value in meta.labels.items():
        for wrong in labels.key_problems(key):
            yield complaints.cause("metadata.labels", key, wrong)
        for wrong in labels.value_problems(value):
            yield complaints.cause("metadata.labels", value, wrong)
    for key in meta.annotations:
        for wrong in labels.key_problems(key.lower()):
            yield complaints.cause("metadata.annotations", key, wrong)
    if sum(len(k) + len(v) for k, v in meta.annotations.items()) > _ANNOTATIONS_LIMIT:
        rule = f"may not be more than {_ANNOTATIONS_LIMIT} bytes"
        yield Cause("FieldValueTooLong", f"Too long: {rule}", "metadata.annotations")
    for finalizer in meta.finalizers:
        for wrong in labels.key_problems(finalizer):
            yield complaints.cause("metadata.finalizers", finalizer, wrong)
    for i, owner in enumerate(meta.owner_references):
        place = f"metadata.ownerReferences[{i}]"
        for field, value in (
            ("apiVersion", owner.api_version),
            ("kind", owner.kind),
            ("name", owner.name),
            ("uid", owner.uid),
        ):
            if not value:
                yield complaints.cause(f"{place}.{field}", "", "must not be empty")
