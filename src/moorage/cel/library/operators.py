"""Operators on numbers, `==`, `in`, `size`, `type`, and conversions between the basic types."""

import math
import re
from decimal import Decimal
from typing import Any

from moorage.cel.types import CLASSES, overload
from moorage.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelRuntimeError,
    TypeValue,
    Uint,
    equal,
    has_key,
    size_of,
)


def equality_cost(values: tuple[Any, ...], _: Any) -> int:
    """The cost of comparing two values."""
    return -(-min(map(size_of, values)) // 10)


@overload("==(A, A) -> bool", cost=equality_cost)
def eq(a: Any, b: Any) -> bool:
    return equal(a, b)


@overload("!=(A, A) -> bool", cost=equality_cost)
def ne(a: Any, b: Any) -> bool:
    return not equal(a, b)


def _int(value: int) -> int:
    if not INT_MIN <= value <= INT_MAX:
        raise CelRuntimeError("integer overflow")
    return value


def _uint(value: int) -> Uint:
    if not 0 <= value <= UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return Uint(value)


@overload("+(int, int) -> int")
def add_int(a: int, b: int) -> int:
    return _int(a + b)


@overload("-(int, int) -> int")
def subtract_int(a: int, b: int) -> int:
    return _int(a - b)


@overload("*(int, int) -> int")
def multiply_int(a: int, b: int) -> int:
    return _int(a * b)


@overload("/(int, int) -> int")
def divide_int(a: int, b: int) -> int:
    if b == 0:
        raise CelRuntimeError("division by zero")
    quotient = abs(a) // abs(b)  # Rounds toward zero, unlike Python's `//`.
    return _int(quotient if (a < 0) == (b < 0) else -quotient)


@overload("%(int, int) -> int")
def modulo_int(a: int, b: int) -> int:
    if b == 0:
        raise CelRuntimeError("modulus by zero")
    return int(math.copysign(1, a)) * (abs(a) % abs(b))  # The sign of the dividend.


@overload("-_(int) -> int")
def negate_int(a: int) -> int:
    return _int(-a)


@overload("+(uint, uint) -> uint")
def add_uint(a: Uint, b: Uint) -> Uint:
    return _uint(int(a) + b)


@overload("-(uint, uint) -> uint")
def subtract_uint(a: Uint, b: Uint) -> Uint:
    return _uint(int(a) - b)


@overload("*(uint, uint) -> uint")
def multiply_uint(a: Uint, b: Uint) -> Uint:
    return _uint(int(a) * b)


@overload("/(uint, uint) -> uint")
def divide_uint(a: Uint, b: Uint) -> Uint:
    if b == 0:
        raise CelRuntimeError("division by zero")
    return Uint(a // b)


@overload("%(uint, uint) -> uint")
def modulo_uint(a: Uint, b: Uint) -> Uint:
    if b == 0:
        raise CelRuntimeError("modulus by zero")
    return Uint(a % b)


@overload("+(double, double) -> double")
def add_double(a: float, b: float) -> float:
    return a + b


@overload("-(double, double) -> double")
def subtract_double(a: float, b: float) -> float:
    return a - b


@overload("*(double, double) -> double")
def multiply_double(a: float, b: float) -> float:
    return a * b


@overload("/(double, double) -> double")
def divide_double(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


@overload("-_(double) -> double")
def negate_double(a: float) -> float:
    return -a


@overload("!_(bool) -> bool")
def negate(a: bool) -> bool:  # noqa: FBT001
    return not a


@overload("in(A, list<A>) -> bool", cost=lambda values, _: size_of(values[1]))
def in_list(item: Any, items: list[Any]) -> bool:
    return any(equal(item, other) for other in items)


@overload("in(A, map<A, B>) -> bool")
def in_map(key: Any, mapping: dict[Any, Any]) -> bool:
    return has_key(mapping, key)


@overload(
    "size(string) -> int",
    "size(bytes) -> int",
    "size(list<A>) -> int",
    "size(map<A, B>) -> int",
    "string.size() -> int",
    "bytes.size() -> int",
    "list<A>.size() -> int",
    "map<A, B>.size() -> int",
)
def size(value: Any) -> int:
    return len(value)


@overload("dyn(A) -> dyn")
def dyn(value: Any) -> Any:
    return value


@overload("type(A) -> type<A>")
def type_of(value: Any) -> TypeValue:
    return TypeValue(type_name(value))


def type_name(value: Any) -> str:
    """CEL's name of a value's type."""
    for name, cls in CLASSES.items():
        if type(value) is cls or (cls is dict and isinstance(value, dict)):
            return name
    return type(value).__name__


@overload("int(int) -> int", "int(uint) -> int", "int(double) -> int", "int(string) -> int")
def to_int(value: int | float | str) -> int:
    if isinstance(value, str):
        return _int(_parse_integer(value, "int"))
    if isinstance(value, float) and not INT_MIN < value < INT_MAX:
        raise CelRuntimeError("integer overflow")
    return _int(int(value))


@overload("uint(uint) -> uint", "uint(int) -> uint", "uint(double) -> uint", "uint(string) -> uint")
def to_uint(value: int | float | str) -> Uint:
    if isinstance(value, str):
        return _uint(_parse_integer(value, "uint"))
    if isinstance(value, float) and not 0 <= value < UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return _uint(int(value))


def _parse_integer(text: str, kind: str) -> int:
    sign = "[+-]?" if kind == "int" else ""
    if len(text) > 100 or not re.fullmatch(sign + "[0-9]+", text, re.ASCII):
        raise CelRuntimeError(f'type conversion error from string to {kind}: "{text[:40]}"')
    return int(text)


_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)


@overload(
    "double(double) -> double",
    "double(int) -> double",
    "double(uint) -> double",
    "double(string) -> double",
)
def to_double(value: float | str) -> float:
    if isinstance(value, str) and (len(value) > 1000 or not _DOUBLE.fullmatch(value)):
        raise CelRuntimeError(f'type conversion error from string to double: "{value[:40]}"')
    return float(value)


@overload("bool(bool) -> bool", "bool(string) -> bool")
def to_bool(value: bool | str) -> bool:  # noqa: FBT001
    if isinstance(value, bool):
        return value
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise CelRuntimeError(f'type conversion error from string to bool: "{value[:40]}"')


@overload("string(string) -> string", "string(int) -> string", "string(uint) -> string")
def to_string(value: str | int) -> str:
    return str(int(value)) if isinstance(value, int) else value


@overload("string(bool) -> string")
def bool_to_string(value: bool) -> str:  # noqa: FBT001
    return "true" if value else "false"


@overload("string(double) -> string")
def double_to_string(value: float) -> str:
    """The shortest text that reads back as the value; with an exponent below -4 or from 6 on."""
    if not math.isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    power = len(digits) - 1 + exponent if value else 0
    if -4 <= power < 6:
        return f"{Decimal(repr(value)).normalize():f}"
    mantissa = str(digits[0]) + ("." + "".join(map(str, digits[1:]))).rstrip(".")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


@overload(
    "bytes(bytes) -> bytes", "bytes(string) -> bytes", cost=lambda v, _: -(-size_of(v[0]) // 10)
)
def to_bytes(value: bytes | str) -> bytes:
    return value.encode(errors="surrogatepass") if isinstance(value, str) else value


@overload("string(bytes) -> string", cost=lambda values, _: -(-size_of(values[0]) // 10))
def bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from None
