"""Plain data as an object, and back: shapes are checked, nulls and keys are tidied."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from moorage.api.kinds import Kind
from moorage.api.manifests import complaints, faults
from moorage.api.manifests.complaints import Origin
from moorage.api.meta import KubeObject

T = TypeVar("T", bound=KubeObject)


def decode(document: Mapping[str, Any], struct: type[T], where: str) -> T:
    """A document as an object of a kind that is not Kubernetes'; complaints name the field."""
    try:
        return msgspec.convert(plain := tidy(document), struct)
    except msgspec.ValidationError as error:
        meta = plain.get("metadata")
        name = meta.get("name", "") if isinstance(meta, Mapping) else ""
        who = f"{struct.__name__} {name}".rstrip()
        fault = faults.translate(str(error), plain)
        raise complaints.complaint(Origin(where), who, *fault) from None


def convert(origin: Origin, document: Mapping[str, Any], kind: Kind) -> KubeObject:
    """A document as an object of a kind that is read."""
    try:
        return msgspec.convert(document, kind.struct)
    except msgspec.ValidationError:
        plain = tidy(document)  # Few documents need it, so it waits until one does.
    try:
        return msgspec.convert(plain, kind.struct)
    except msgspec.ValidationError as error:
        who, fault = complaints.who(kind.name, plain), faults.translate(str(error), plain)
        raise complaints.complaint(origin, who, *fault) from None


def dump(obj: KubeObject) -> dict[str, Any]:
    """An object as JSON would have it, without the fields that say nothing."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return document


_MAPS_OF_TEXT = {"labels", "annotations", "matchLabels", "nodeSelector", "parameters"}
_MAPS_OF_QUANTITIES = {"requests", "limits", "overhead", "allocatedResources"}


def tidy(node: Any, inside: object = "") -> Any:
    """A null is an absent field or, inside a map, an empty value; keys of maps are text."""
    if isinstance(node, list | tuple):
        return [tidy(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    empty = "" if inside in _MAPS_OF_TEXT else 0 if inside in _MAPS_OF_QUANTITIES else None
    plain = {_key(key): empty if each is None else tidy(each, key) for key, each in node.items()}
    return {key: each for key, each in plain.items() if each is not None}


def _key(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)
