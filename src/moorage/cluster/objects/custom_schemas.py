"""Structural schemas of custom resources: pruning, defaults and validation.

`custom_rules` evaluates their rules in CEL.
"""

import copy
import operator
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from moorage.api.schema import fields, messages
from moorage.cel.library import strings
from moorage.cel.values import CelRuntimeError
from moorage.cluster.objects.correlation import Correlation, has_keys, key_of
from moorage.cluster.objects.formats import has_format
from moorage.cluster.status_errors import StatusCause
from moorage.controllers.objects import Object

Schema = dict[str, Any]

_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_EMBEDDED = "x-kubernetes-embedded-resource"
_INT_OR_STRING = "x-kubernetes-int-or-string"
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata")
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
# By keyword the comparison that a value must pass, and its text.
_LIMITS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "minimum": (operator.ge, "greater than or equal to"),
    "maximum": (operator.le, "less than or equal to"),
}


def prune(obj: Object, schema: Schema) -> tuple[Object, list[str]]:
    """The object without fields that the schema does not specify, and their paths."""
    unknown: list[str] = []
    found = _pruned(obj, {**schema, _EMBEDDED: True}, "", unknown)
    return {key: each for key, _, each in found}, unknown


def _pruned_metadata(meta: dict[str, Any], path: str, unknown: list[str]) -> dict[str, Any]:
    """The metadata of an object, which every schema has in the same way."""
    pruned, others = fields.conform(f"{messages.META}.ObjectMeta", meta)
    unknown += [f"{path}.{each}" for each in others]
    return pruned


def _pruned(
    obj: dict[str, Any], schema: Schema, path: str, unknown: list[str]
) -> Iterator[tuple[str, Any, Any]]:
    """The specified fields of an object: name, value, and the pruned value."""
    properties = schema.get("properties") or {}
    more = schema.get("additionalProperties")
    kept = _OBJECT_FIELDS if schema.get(_EMBEDDED) else ()
    keeps_all = more is True or bool(schema.get(_PRESERVE))
    for key, value in obj.items():
        here = f"{path}.{key}" if path else key
        if key == "metadata" and kept and isinstance(value, dict):
            yield key, value, _pruned_metadata(value, here, unknown)
        elif key in properties:
            yield key, value, _prune_value(value, properties[key], here, unknown)
        elif isinstance(more, dict):
            yield key, value, _prune_value(value, more, here, unknown)
        elif keeps_all or key in kept:
            yield key, value, value
        else:
            unknown.append(here)


def _prune_value(value: Any, schema: Any, path: str, unknown: list[str]) -> Any:
    if not isinstance(schema, dict):
        return value
    if isinstance(value, dict):
        return {key: each for key, _, each in _pruned(value, schema, path, unknown)}
    items = schema.get("items")
    if isinstance(value, list) and isinstance(items, dict):
        return [_prune_value(each, items, f"{path}[{i}]", unknown) for i, each in enumerate(value)]
    return value


def fill_defaults(value: Any, schema: Any) -> Any:
    """The value with the defaults of its schema."""
    if not isinstance(schema, dict):
        return value
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        found = {key: fill_defaults(each, properties.get(key, more)) for key, each in value.items()}
        for key, inner in properties.items():
            if key not in found and isinstance(inner, dict) and "default" in inner:
                found[key] = fill_defaults(copy.deepcopy(inner["default"]), inner)
        return found
    if isinstance(value, list):
        return [fill_defaults(each, schema.get("items")) for each in value]
    return value


def causes(
    value: Any, schema: Any, path: str = "", before: Correlation | None = None
) -> Iterator[StatusCause]:
    """The rules of a schema that a value violates.

    Of an update, `before` is what the value replaces: unchanged parts are exempt.
    """
    found = list(_causes(value, schema, path, before))
    if found and (before is None or not before.is_unchanged):
        yield from found


def _causes(
    value: Any, schema: Any, path: str, before: Correlation | None
) -> Iterator[StatusCause]:
    if not isinstance(schema, dict):
        return
    if not _has_type(value, schema):
        want = "integer,string" if schema.get(_INT_OR_STRING) else schema.get("type")
        got = _type_name(value)
        yield _wrong_type(path, got, want)
        return
    yield from _value_causes(value, schema, path)
    if isinstance(value, dict):
        yield from _object_causes(value, schema, path, before)
    elif isinstance(value, list):
        items = schema.get("items")
        for i, each in enumerate(value):
            yield from causes(each, items, f"{path}[{i}]", before.index(i) if before else None)
    yield from _combination_causes(value, schema, path)


def _has_type(value: Any, schema: Schema) -> bool:
    if value is None:
        return bool(schema.get("nullable")) or "type" not in schema
    if schema.get(_INT_OR_STRING):
        return type(value) in (int, str)
    wanted = _TYPES.get(schema.get("type") or "")
    if wanted is None:
        return True
    if type(value) is float and schema.get("type") == "integer":
        return value.is_integer()
    return type(value) in wanted


def _type_name(value: Any) -> str:
    for name, types in _TYPES.items():
        if type(value) in types:
            return name
    return "null"


def _object_causes(
    value: dict[str, Any], schema: Schema, path: str, before: Correlation | None
) -> Iterator[StatusCause]:
    for name in schema.get("required") or ():
        if name not in value:
            yield StatusCause("FieldValueRequired", "Required value", _join(path, name))
    properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for key, each in value.items():
        if not path and key in _OBJECT_FIELDS:
            continue
        inner = before.key(key) if before else None
        yield from causes(each, properties.get(key, more), _join(path, key), inner)
    yield from _count_causes(len(value), schema, path, "Properties")


def _value_causes(value: Any, schema: Schema, path: str) -> Iterator[StatusCause]:
    options = schema.get("enum")
    if options and value not in options:
        listed = ", ".join(_shown(each) for each in options)
        text = f"Unsupported value: {_shown(value)}: supported values: {listed}"
        yield StatusCause("FieldValueNotSupported", text, path)
    if isinstance(value, str):
        yield from _text_causes(value, schema, path)
    elif isinstance(value, list):
        yield from _count_causes(len(value), schema, path, "Items")
    elif type(value) in (int, float):
        for keyword, (passes, words) in _LIMITS.items():
            limit = schema.get(keyword)
            if limit is None:
                continue
            strict = schema.get(f"exclusive{keyword.title()}") is True
            if not passes(value, limit) or (strict and value == limit):
                words = words.removesuffix(" or equal to") if strict else words
                yield _invalid(path, value, f"{_in_body(path)} should be {words} {limit}")
        multiple = schema.get("multipleOf")
        if multiple and value % multiple:
            yield _invalid(path, value, f"{_in_body(path)} should be a multiple of {multiple}")


def _text_causes(value: str, schema: Schema, path: str) -> Iterator[StatusCause]:
    low, high, pattern = (schema.get(each) for each in ("minLength", "maxLength", "pattern"))
    if low is not None and len(value) < low:
        rule = f"{_in_body(path)} should be at least {low} chars long"
        yield _invalid(path, value, rule)
    if high is not None and len(value) > high:
        text = f"Too long: may not be more than {high} bytes"
        yield StatusCause("FieldValueTooLong", text, path)
    if not has_format(value, schema.get("format")):
        yield _wrong_type(path, value, schema["format"])
    if pattern and not _matches(pattern, value):
        yield _invalid(path, value, f"{_in_body(path)} should match '{pattern}'")


def _matches(pattern: str, value: str) -> bool:
    # In linear time, because a definition comes from a client.
    try:
        return strings.matches(value, pattern)
    except CelRuntimeError:
        return True  # Kubernetes rejects such a definition; here it has no effect.


def _count_causes(count: int, schema: Schema, path: str, what: str) -> Iterator[StatusCause]:
    low, high = schema.get(f"min{what}"), schema.get(f"max{what}")
    if high is not None and count > high:
        text = f"Too many: {count}: must have at most {high} items"
        yield StatusCause("FieldValueTooMany", text, path)
    if low is not None and count < low:
        yield _invalid(path, count, f"{_in_body(path)} should have at least {low} {what.lower()}")


def _combination_causes(value: Any, schema: Schema, path: str) -> Iterator[StatusCause]:
    for each in schema.get("allOf") or ():
        yield from causes(value, each, path)
    for keyword in ("anyOf", "oneOf"):
        options = schema.get(keyword)
        if not options:
            continue
        valid = sum(not any(causes(value, each, path)) for each in options)
        if not valid:
            words = "at least one" if keyword == "anyOf" else "one and only one"
            tail = "" if keyword == "anyOf" else ". Found none valid"
            rule = f'"{path}" must validate {words} schema ({keyword}){tail}'
            yield _invalid(path, value, rule)
        elif keyword == "oneOf" and valid > 1:
            rule = f'"{path}" must validate one and only one schema (oneOf). Found {valid} valid'
            yield _invalid(path, value, f"{rule} alternatives")
    if isinstance(schema.get("not"), dict) and not any(causes(value, schema["not"], path)):
        yield _invalid(path, value, f'"{path}" must not validate the schema (not)')


def duplicates(value: Any, schema: Any, path: str = "") -> Iterator[StatusCause]:
    """Elements that a list repeats although it is a set, or has keys."""
    if not isinstance(schema, dict):
        return
    if isinstance(value, dict):
        properties, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for key, each in value.items():
            if key in properties:
                yield from duplicates(each, properties[key], _join(path, key))
            else:
                yield from duplicates(each, more, f"{path}[{key}]")
    elif isinstance(value, list):
        if has_keys(schema) or schema.get("x-kubernetes-list-type") == "set":
            yield from _repeated(value, schema, path)
        for i, each in enumerate(value):
            yield from duplicates(each, schema.get("items"), f"{path}[{i}]")


def _repeated(items: list[Any], schema: Schema, path: str) -> Iterator[StatusCause]:
    """The first repetition of each element that is repeated."""
    counts: dict[Any, int] = {}
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    for i, each in enumerate(items):
        key = (
            key_of(each, schema) if has_keys(schema) else msgspec.json.encode(each, order="sorted")
        )
        counts[key] = counts.get(key, 0) + 1
        if counts[key] == 2:
            shown = {name: each[name] for name in keys if name in each} if keys else each
            text = f"Duplicate value: {_shown(shown)}"
            yield StatusCause("FieldValueDuplicate", text, f"{path}[{i}]")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _in_body(path: str) -> str:
    return f"{path} in body"


def _shown(value: Any) -> str:
    return msgspec.json.encode(value).decode()[:200]


def _wrong_type(path: str, value: str, want: Any) -> StatusCause:
    text = f'Invalid value: {_shown(value)}: {_in_body(path)} must be of type {want}: "{value}"'
    return StatusCause("FieldValueTypeInvalid", text, path)


def _invalid(path: str, value: Any, rule: str) -> StatusCause:
    return StatusCause("FieldValueInvalid", f"Invalid value: {_shown(value)}: {rule}", path)
