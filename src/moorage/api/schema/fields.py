"""Objects compared with the table of fields: unknown fields, and values of wrong types."""

from collections.abc import Callable
from typing import Any, NamedTuple

from moorage.api.schema import messages
from moorage.api.schema.messages import Field


class FieldTypeError(Exception):
    """A value of a wrong type, worded as Go's JSON decoder words it."""


class _Shape(NamedTuple):
    """What the value of a field has to be."""

    # The fields of a message; None for values.
    inner: "dict[str, _Shape] | None"
    accepts: Callable[[Any], bool]
    type: str
    message: str
    is_list: bool
    is_map: bool


Shapes = dict[str, _Shape]


def _is_integer(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: type(value) is int and low <= value <= high


def _is_text(value: Any) -> bool:
    return type(value) is str


_ACCEPTS: dict[str, Callable[[Any], bool]] = {
    "string": _is_text,
    "bytes": _is_text,
    "Time": _is_text,
    "MicroTime": _is_text,
    "int32": _is_integer(-(2**31), 2**31 - 1),
    "int64": _is_integer(-(2**63), 2**63 - 1),
    "bool": lambda value: type(value) is bool,
    "double": lambda value: type(value) in (int, float),
    "Quantity": lambda value: type(value) in (str, int, float),
    "IntOrString": lambda value: type(value) in (str, int),
    "Strings": lambda value: type(value) is list and all(type(each) is str for each in value),
}
_TYPE_META = ("apiVersion", "kind")
_compiled: dict[str, Shapes] = {}


def conform(name: str, obj: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The object without its unknown fields, and their paths; raises FieldTypeError.

    An object without unknown fields is returned as it is.
    """
    shapes = _shapes(name)
    if _fits(obj, shapes):
        return obj, []
    unknown: list[str] = []
    if shapes.keys() >= obj.keys() - set(_TYPE_META):
        _walk(obj, shapes, name, "", unknown)
    else:
        typed = {key: value for key, value in obj.items() if key not in _TYPE_META}
        _walk(typed, shapes, name, "", unknown)
    return (_without(obj, unknown) if unknown else obj), unknown


def _shapes(name: str) -> Shapes:
    found = _compiled.get(name)
    if found is None:
        found = _compiled[name] = {}  # Before its fields: a message may contain itself.
        for field in messages.message(name).fields:
            if field.is_inline:
                found.update(_shapes(field.type))
            else:
                found[field.name] = _shape(field, name.rpartition(".")[2])
        if any(each.name == "metadata" for each in messages.message(name).fields):
            text = Field(0, "", "string")
            found.update((each, _shape(text, "TypeMeta")) for each in _TYPE_META)
    return found


def _shape(field: Field, message: str) -> _Shape:
    inner = _shapes(field.type) if field.type in messages.table() else None
    accepts = _ACCEPTS.get(field.type, lambda value: True)
    return _Shape(inner, accepts, field.type, message, field.is_list, field.is_map)


def _fits(obj: dict[str, Any], shapes: Shapes) -> bool:
    """Whether all fields are known and have the right types: most objects, so without paths."""
    for key, value in obj.items():
        shape = shapes.get(key)
        if shape is None:
            return False
        inner, accepts, _, _, is_list, is_map = shape
        if is_list or is_map:
            if type(value) is not (list if is_list else dict):
                return False
            items: Any = value
            for each in items if is_list else items.values():
                if inner is None:
                    if not accepts(each):
                        return False
                elif type(each) is not dict or not _fits(each, inner):
                    return False
        elif inner is None:
            if not accepts(value):
                return False
        elif type(value) is not dict or not _fits(value, inner):
            return False
    return True


def _walk(obj: dict[str, Any], shapes: Shapes, message: str, path: str, unknown: list[str]) -> None:
    for key, value in obj.items():
        shape = shapes.get(key)
        here = f"{path}.{key}" if path else key
        if shape is None:
            unknown.append(here)
        elif value is None:
            continue
        elif shape.is_list:
            if type(value) is not list:
                raise _wrong(value, shape, here)
            for i, each in enumerate(value):
                _check(each, shape, f"{here}[{i}]", unknown)
        elif shape.is_map:
            if type(value) is not dict:
                raise _wrong(value, shape, here)
            for name, each in value.items():
                _check(each, shape, f"{here}.{name}", unknown)
        else:
            _check(value, shape, here, unknown)


def _check(value: Any, shape: _Shape, path: str, unknown: list[str]) -> None:
    if shape.inner is not None:
        if type(value) is dict:
            _walk(value, shape.inner, shape.type, path, unknown)
        elif value is not None:
            raise _wrong(value, shape, path)
    elif value is not None and not shape.accepts(value):
        raise _wrong(value, shape, path)


_GO_TYPES = {"Time": "string", "MicroTime": "string", "bytes": "[]uint8", "double": "float64"}


def _wrong(value: Any, shape: _Shape, path: str) -> FieldTypeError:
    got = {dict: "object", list: "array", str: "string", bool: "bool"}.get(type(value), "number")
    if got == "number" and shape.type.startswith("int"):
        got = f"number {value}"
    steps = ".".join(step.partition("[")[0] for step in path.split("."))
    want = _GO_TYPES.get(shape.type, shape.type.rpartition("/")[2])
    if shape.is_list and not path.endswith("]"):
        want = f"[]{want}"
    elif shape.is_map and type(value) is not dict:
        want = f"map[string]{want}"
    where = f"Go struct field {shape.message}.{steps} of type {want}"
    return FieldTypeError(f"json: cannot unmarshal {got} into {where}")


def _without(obj: dict[str, Any], paths: list[str]) -> dict[str, Any]:
    """A copy of the object without the fields of these paths."""
    dropped = set(paths)

    def copied(value: Any, path: str) -> Any:
        if isinstance(value, dict):
            below = {key: f"{path}.{key}" if path else key for key in value}
            return {
                key: copied(each, below[key])
                for key, each in value.items()
                if below[key] not in dropped
            }
        if isinstance(value, list):
            return [copied(each, f"{path}[{i}]") for i, each in enumerate(value)]
        return value

    found: dict[str, Any] = copied(obj, "")
    return found
