"""Arithmetic, `==`, `in`, `size`, `type`, and conversions between the basic types."""

import math
import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from moorage.cel.types import define, overload, tenths, traversal, type_name
from moorage.cel.values import (
    INT_MAX,
    INT_MIN,
    UINT_MAX,
    CelRuntimeError,
    OptionalValue,
    TypeValue,
    Uint,
    equal,
    has_key,
    size_of,
    weight,
)


def checked_int(value: int) -> int:
    """The value; raises if it does not fit 64 bits."""
    if not INT_MIN <= value <= INT_MAX:
        raise CelRuntimeError("integer overflow")
    return value


def checked_uint(value: int) -> Uint:
    """The value; raises if it is negative or does not fit 64 bits."""
    if not 0 <= value <= UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return Uint(value)


def _divide(a: int, b: int) -> int:
    if b == 0:
        raise CelRuntimeError("division by zero")
    quotient = abs(a) // abs(b)  # Rounds toward zero, unlike Python's `//`.
    return quotient if (a < 0) == (b < 0) else -quotient


def _modulo(a: int, b: int) -> int:
    if b == 0:
        raise CelRuntimeError("modulus by zero")
    return abs(a) % abs(b) * (-1 if a < 0 else 1)  # The sign of the dividend.


def _divide_double(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or a != a else math.copysign(math.inf, a) * math.copysign(1, b)


def _define_arithmetic(kind: str, checked: Callable[[int], int]) -> None:
    # `int(a)`, so that the result of uints is checked before it becomes one.
    define(f"+({kind}, {kind}) -> {kind}", run=lambda a, b: checked(int(a) + int(b)))
    define(f"-({kind}, {kind}) -> {kind}", run=lambda a, b: checked(int(a) - int(b)))
    define(f"*({kind}, {kind}) -> {kind}", run=lambda a, b: checked(int(a) * int(b)))
    define(f"/({kind}, {kind}) -> {kind}", run=lambda a, b: checked(_divide(int(a), int(b))))
    define(f"%({kind}, {kind}) -> {kind}", run=lambda a, b: checked(_modulo(int(a), int(b))))


_define_arithmetic("int", checked_int)
_define_arithmetic("uint", checked_uint)
define("+(double, double) -> double", run=lambda a, b: a + b)
define("-(double, double) -> double", run=lambda a, b: a - b)
define("*(double, double) -> double", run=lambda a, b: a * b)
define("/(double, double) -> double", run=_divide_double)
define("-_(int) -> int", run=lambda a: checked_int(-a))
define("-_(double) -> double", run=lambda a: -a)
define("!_(bool) -> bool", run=lambda a: not a)


def _equality_cost(a: Any, b: Any) -> int:
    if isinstance(a, list | dict | OptionalValue):
        return tenths(min(weight(a), weight(b)))
    return tenths(min(size_of(a), size_of(b)))


define("==(A, A) -> bool", run=equal, cost=_equality_cost)
define("!=(A, A) -> bool", run=lambda a, b: not equal(a, b), cost=_equality_cost)
define(
    "in(A, list<A>) -> bool",
    run=lambda item, items: any(equal(item, other) for other in items),
    cost=lambda item, items: weight(items),
)
define("in(A, map<A, B>) -> bool", run=lambda key, mapping: has_key(mapping, key))
for _kind in ("string", "bytes", "list<A>", "map<A, B>"):
    define(f"size({_kind}) -> int", f"{_kind}.size() -> int", run=len)
define("dyn(A) -> dyn", run=lambda value: value)
define("type(A) -> type<A>", run=lambda value: TypeValue(type_name(value)))


def _unconvertible(text: str, kind: str) -> CelRuntimeError:
    return CelRuntimeError(f'type conversion error from string to {kind}: "{text[:40]}"')


@overload("int(int) -> int", "int(uint) -> int", "int(double) -> int", "int(string) -> int")
def to_int(value: int | float | str) -> int:
    """`int(value)`."""
    if isinstance(value, str) and not re.fullmatch(r"[+-]?[0-9]{1,100}", value):
        raise _unconvertible(value, "int")
    if isinstance(value, float) and not INT_MIN < value < INT_MAX:
        raise CelRuntimeError("integer overflow")
    return checked_int(int(value))


@overload("uint(uint) -> uint", "uint(int) -> uint", "uint(double) -> uint", "uint(string) -> uint")
def to_uint(value: int | float | str) -> Uint:
    """`uint(value)`."""
    if isinstance(value, str) and not re.fullmatch(r"[0-9]{1,100}", value):
        raise _unconvertible(value, "uint")
    if isinstance(value, float) and not 0 <= value < UINT_MAX:
        raise CelRuntimeError("unsigned integer overflow")
    return checked_uint(int(value))


_DOUBLE = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|inf|infinity|nan)", re.IGNORECASE
)


@overload(*(f"double({kind}) -> double" for kind in ("double", "int", "uint", "string")))
def to_double(value: float | str) -> float:
    """`double(value)`."""
    if isinstance(value, str) and (len(value) > 1000 or not _DOUBLE.fullmatch(value)):
        raise _unconvertible(value, "double")
    return float(value)


@overload("bool(bool) -> bool", "bool(string) -> bool")
def to_bool(value: bool | str) -> bool:  # noqa: FBT001 - the value itself
    """`bool(value)`."""
    if value in (True, "1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in (False, "0", "f", "F", "FALSE", "false", "False"):
        return False
    raise _unconvertible(str(value), "bool")


@overload("string(double) -> string")
def double_to_string(value: float) -> str:
    """The shortest text that reads back as the value; with an exponent below -4 or from 6 on."""
    if not math.isfinite(value):
        return "NaN" if value != value else "+Inf" if value > 0 else "-Inf"
    number = Decimal(repr(value)).normalize()
    sign, digits, _ = number.as_tuple()
    power = number.adjusted() if value else 0
    if -4 <= power < 6:
        return f"{number:f}"
    mantissa = f"{digits[0]}.{''.join(map(str, digits[1:]))}".rstrip(".")
    return f"{'-' if sign else ''}{mantissa}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _bytes_to_string(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelRuntimeError("invalid UTF-8 in bytes, cannot convert to string") from None


define("string(string) -> string", run=lambda text: text)
define("string(int) -> string", "string(uint) -> string", run=lambda number: str(int(number)))
define("string(bool) -> string", run=lambda value: "true" if value else "false")
define("string(bytes) -> string", run=_bytes_to_string, cost=traversal)
define("bytes(bytes) -> bytes", run=lambda value: value)
define("bytes(string) -> bytes", run=lambda text: text.encode(errors="replace"), cost=traversal)
