"""OpenAPI schemas of messages: the names, types and merge rules of fields, without descriptions."""

from collections.abc import Iterable, Iterator
from functools import cache
from typing import Any

from moorage.api.schema import messages
from moorage.api.schema.messages import Field, Message
from moorage.cluster.resources import BUILT_IN

Json = dict[str, Any]

_APIMACHINERY = "io.k8s.apimachinery.pkg"
_EXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1"
_PREFIXES = {
    "meta.k8s.io": f"{_APIMACHINERY}.apis.meta",
    "apiextensions.k8s.io": "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions",
    "apiregistration.k8s.io": "io.k8s.kube-aggregator.pkg.apis.apiregistration",
}
_SCALARS: dict[str, Json] = {
    "string": {"type": "string"},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "bool": {"type": "boolean"},
    "bytes": {"type": "string", "format": "byte"},
    "double": {"type": "number", "format": "double"},
    "Strings": {"type": "array", "items": {"type": "string"}},
}
# Special types by the name of their schema. In version 2 of OpenAPI a schema has one type.
_SPECIAL: dict[str, tuple[str, Json]] = {
    "Quantity": (f"{_APIMACHINERY}.api.resource.Quantity", {"type": "string"}),
    "Time": (f"{_APIMACHINERY}.apis.meta.v1.Time", {"type": "string", "format": "date-time"}),
    "MicroTime": (
        f"{_APIMACHINERY}.apis.meta.v1.MicroTime",
        {"type": "string", "format": "date-time"},
    ),
    "IntOrString": (
        f"{_APIMACHINERY}.util.intstr.IntOrString",
        {"type": "string", "format": "int-or-string"},
    ),
    "Raw": (f"{_APIMACHINERY}.runtime.RawExtension", {"type": "object"}),
    "OrArray": (f"{_EXTENSIONS}.JSONSchemaPropsOrArray", {}),
    "OrBool": (f"{_EXTENSIONS}.JSONSchemaPropsOrBool", {}),
    "OrStringArray": (f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray", {}),
}
_EITHER: dict[str, Json] = {
    "Quantity": {"oneOf": [{"type": "string"}, {"type": "number"}]},
    "IntOrString": {
        "format": "int-or-string",
        "oneOf": [{"type": "integer"}, {"type": "string"}],
    },
}
TYPE_FIELDS = {
    "apiVersion": {"type": "string", "description": "APIVersion defines the version of the kind."},
    "kind": {"type": "string", "description": "Kind is the name of the type of this object."},
}
# Descriptions of the fields that every object has.
_METADATA = "Standard object's metadata."
_DESCRIPTIONS = {
    "metadata": _METADATA,
    "spec": "The desired state of the object.",
    "status": "The observed state of the object.",
    "name": "Name is unique within a namespace.",
    "generateName": "GenerateName is the prefix of a name that the server generates.",
    "namespace": "Namespace is the space within which the name is unique.",
    "labels": "Labels are keys and values that selectors match.",
    "annotations": "Annotations are keys and values for tools; selectors do not match them.",
    "uid": "UID is unique in time and space; the server sets it.",
    "resourceVersion": "ResourceVersion changes with every write of the object.",
    "generation": "Generation is the number of the changes of the desired state.",
    "creationTimestamp": "CreationTimestamp is a timestamp of the creation of the object.",
    "deletionTimestamp": "DeletionTimestamp is the time after which the object is removed.",
    "finalizers": "Finalizers have to be empty before the object is removed.",
    "ownerReferences": "OwnerReferences list the objects on which this one depends.",
    "managedFields": "ManagedFields record which manager owns which field.",
}
OBJECT_META, DELETE_OPTIONS = f"{messages.META}.ObjectMeta", f"{messages.META}.DeleteOptions"
_KINDS = {DELETE_OPTIONS, *(f"{each.api_version}.{each.kind}" for each in BUILT_IN)}


def schema_name(name: str) -> str:
    """The name of a message's schema, such as `io.k8s.api.apps.v1.Deployment`."""
    if name in _SPECIAL:
        return _SPECIAL[name][0]
    api_version, _, kind = name.rpartition(".")
    group, _, version = api_version.rpartition("/")
    prefix = _PREFIXES.get(group) or f"io.k8s.api.{group.partition('.')[0] or 'core'}"
    return f"{prefix}.{version}.{kind}"


def reachable(names: Iterable[str]) -> set[str]:
    """The messages and special types that the messages consist of, and these messages."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            if name not in _SPECIAL:
                fields = _flat_fields(messages.message(name))
                waiting += [each.type for each in fields if each.type not in _SCALARS]
    return found


def schema(name: str, root: str) -> Json:
    """The schema of a message or a special type; references begin with `root`."""
    if name in _SPECIAL:
        is_v3 = root.startswith("#/components")
        return _EITHER[name] if is_v3 and name in _EITHER else _SPECIAL[name][1]
    return _message_schema(name, root)


@cache
def _message_schema(name: str, root: str) -> Json:
    message = messages.message(name)
    fields = list(_flat_fields(message))
    found: Json = {"type": "object", "description": f"{message.kind}."}
    properties = {each.name: _property(each, root) for each in fields}
    if name == OBJECT_META or name in _KINDS:
        for field, value in properties.items():
            if field in _DESCRIPTIONS:
                value["description"] = _DESCRIPTIONS[field]
    if name in _KINDS:
        properties = {**TYPE_FIELDS, **properties}
    if properties:
        found["properties"] = properties
    if required := [each.name for each in fields if each.is_required]:
        found["required"] = required
    if message.is_atomic:
        found["x-kubernetes-map-type"] = "atomic"
    return found


def _flat_fields(message: Message) -> Iterator[Field]:
    """The fields that JSON has, with those of inlined messages."""
    for each in message.fields:
        if each.is_inline:
            yield from _flat_fields(messages.message(each.type))
        else:
            yield each


def _property(field: Field, root: str) -> Json:
    value = _SCALARS.get(field.type) or {"$ref": f"{root}{schema_name(field.type)}"}
    if field.is_list:
        found: Json = {"type": "array", "items": value}
        if field.list_keys == ("set",):
            found["x-kubernetes-list-type"] = "set"
        elif field.list_keys:
            found["x-kubernetes-list-type"] = "map"
            found["x-kubernetes-list-map-keys"] = list(field.list_keys)
        else:
            found["x-kubernetes-list-type"] = "atomic"
    elif field.is_map:
        found = {"type": "object", "additionalProperties": value}
    elif "$ref" in value and root.startswith("#/components"):
        # As in Kubernetes' documents: next to a reference other keys would be ignored.
        found = {"allOf": [value], "default": {}} if not field.is_pointer else {"allOf": [value]}
        if field.type in _SPECIAL:
            found.pop("default", None)
    else:
        found = dict(value)
    if field.is_atomic:
        found["x-kubernetes-map-type"] = "atomic"
    if field.patch_strategy:
        found["x-kubernetes-patch-strategy"] = ",".join(field.patch_strategy)
    if field.patch_key:
        found["x-kubernetes-patch-merge-key"] = field.patch_key
    return found


def custom_schema(stated: Json | None, root: str) -> Json:
    """The schema of a custom resource: that of its definition, with the fields of every object."""
    preserve = "x-kubernetes-preserve-unknown-fields"
    found = dict(stated or {"type": "object", preserve: True})
    metadata: Json = {"$ref": f"{root}{schema_name(OBJECT_META)}"}
    if root.startswith("#/components"):
        metadata = {"allOf": [metadata], "description": _METADATA}
    elif found.get(preserve):
        # As in an API server: kubectl refuses unknown fields beside any that the schema names.
        return {"type": "object"}
    found["properties"] = {**TYPE_FIELDS, **found.get("properties", {}), "metadata": metadata}
    return found
