"""Convert plain data to configuration structs, strictly, and back.

msgspec's decoder stops at the first error and writes paths as `$.profiles[0]`. This one reports all
errors with Kubernetes' texts. Plain data has JSON's types: dicts with string keys, lists, strings,
numbers, booleans, None.
"""

import base64
import binascii
import math
from functools import cache
from typing import Annotated, Any, TypeVar, dataclass_transform

from msgspec import UNSET, Meta, Struct, field, inspect

from moorage.api.config import durations, errors

Int32 = Annotated[int, Meta(ge=-(2**31), le=2**31 - 1)]
Int64 = Annotated[int, Meta(ge=-(2**63), le=2**63 - 1)]
Seconds = Annotated[float, Meta(extra={"wire": "duration"})]  # a Go duration in files

S = TypeVar("S", bound=Struct)


# Tells type checkers that subclasses are frozen too.
@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class ConfigData(Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Immutable data from a configuration file."""


class Reader:
    """Converts plain data to structs; collects `errors`.

    A field that cannot be converted keeps its default, so that the others are still checked. A
    caller must not use the struct if there are errors.
    """

    def __init__(self, prefix: str = "") -> None:
        self.errors: list[str] = []
        self._prefix = prefix

    def read(self, struct: type[S], plain: object) -> S:
        value = self._struct(struct, plain, "")
        return struct() if value is UNSET else value

    def _struct(self, struct: type[Struct], plain: object, path: str) -> Any:
        if not isinstance(plain, dict):
            return self._refuse(path, plain, "must be an object")
        fields = {member.encode_name: member for member in wire_fields(struct)}
        members: dict[str, Any] = {}
        for name, member in plain.items():
            here = errors.at(path, name)
            if name not in fields:
                self._report(f"strict decoding error: unknown field {errors.shown(here)}")
            elif member is not None:  # As in Go, null leaves a field at its default.
                members[fields[name].name] = self._value(fields[name].type, member, here)
        return struct(**{name: value for name, value in members.items() if value is not UNSET})

    def _value(self, kind: inspect.Type, plain: object, path: str) -> Any:
        match kind, plain:
            case (inspect.StructType(cls=struct), _):
                return self._struct(struct, plain, path)
            case (inspect.UnionType(types=types), _):
                kind = next(t for t in types if not isinstance(t, inspect.NoneType))
                return self._value(kind, plain, path)
            case (inspect.Metadata(), _):
                return self._duration(plain, path)
            case (inspect.AnyType(), _):
                return plain
            case (inspect.VarTupleType(item_type=item), list()):
                values = [self._value(item, value, f"{path}[{i}]") for i, value in enumerate(plain)]
                return tuple(value for value in values if value is not UNSET)
            case (inspect.DictType(value_type=item), dict()):
                return {key: self._value(item, plain[key], f"{path}[{key}]") for key in plain}
            case (inspect.StrType(), str()) | (inspect.BoolType(), bool()):
                return plain
            case (inspect.IntType() | inspect.FloatType(), bool()):
                pass  # In Python True is an int; in a file it is an error.
            case (inspect.IntType(ge=low, le=high), int() | float()) if _is_whole(plain):
                if (low is None or plain >= low) and (high is None or plain <= high):
                    return int(plain)
                return self._refuse(path, plain, f"must be {low} to {high}")
            case (inspect.FloatType(), int() | float()) if math.isfinite(plain):
                return float(plain)
            case (inspect.BytesType(), str()):
                return self._bytes(plain, path)
        return self._refuse(path, plain, f"must be {EXPECTED[type(kind)]}")

    def _duration(self, plain: object, path: str) -> Any:
        if not isinstance(plain, str):
            return self._refuse(path, plain, 'must be a duration such as "15s"')
        try:
            return durations.parse(plain)
        except ValueError as error:
            return self._refuse(path, plain, str(error))

    def _bytes(self, plain: str, path: str) -> Any:
        try:
            return base64.b64decode(plain, validate=True)
        except (binascii.Error, ValueError) as error:
            # Without the value, which may be a private key.
            return self._refuse(path, "...", f"illegal base64 data: {error}")

    def _refuse(self, path: str, plain: object, rule: str) -> Any:
        self._report(errors.invalid(path, plain, rule))
        return UNSET

    def _report(self, text: str) -> None:
        self.errors.append(self._prefix + text)


EXPECTED: dict[type[inspect.Type], str] = {
    inspect.VarTupleType: "a list",
    inspect.DictType: "an object",
    inspect.StrType: "a string",
    inspect.BoolType: "true or false",
    inspect.IntType: "an integer",
    inspect.FloatType: "a number",
    inspect.BytesType: "base64 text",
}


@cache
def wire_fields(struct: type[Struct]) -> tuple[inspect.Field, ...]:
    """The fields that exist in files; a field of a Python type such as Path does not."""
    info = inspect.type_info(struct)
    assert isinstance(info, inspect.StructType)
    return tuple(
        member for member in info.fields if not isinstance(member.type, inspect.CustomType)
    )


def write(value: object) -> Any:
    """A struct as plain data, without unset and empty fields."""
    match value:
        case Struct():
            members = {
                member.encode_name: _written(member.type, getattr(value, member.name))
                for member in wire_fields(type(value))
            }
            return {name: plain for name, plain in members.items() if plain is not None}
        case tuple() | list():
            return [write(item) for item in value]
        case dict():
            return {name: write(member) for name, member in value.items()}
        case bytes():
            return base64.b64encode(value).decode()
        case _:
            return value


def _written(kind: inspect.Type, value: Any) -> Any:
    if isinstance(kind, inspect.Metadata):
        return durations.text(value)
    plain = write(value)
    # Empty means the same as absent, except in fields that may be None.
    keeps_empty = isinstance(kind, inspect.UnionType | inspect.AnyType)
    return plain if keeps_empty or plain not in ("", [], {}) else None


def _is_whole(number: float) -> bool:
    return isinstance(number, int) or number.is_integer()
