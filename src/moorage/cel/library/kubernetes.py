"""Quantities and semantic versions."""

from typing import Any

from moorage.cel.types import overload, traversal
from moorage.cel.values import (
    INT_MAX,
    INT_MIN,
    CelRuntimeError,
    QuantityValue,
    Semver,
)

_NANO = 10**9


@overload("quantity(string) -> quantity", cost=traversal())
def quantity(text: str) -> QuantityValue:
    return QuantityValue.parse(text)


@overload("isQuantity(string) -> bool", cost=traversal())
def is_quantity(text: str) -> bool:
    return _parses(QuantityValue.parse, text)


@overload("sign(quantity) -> int")
def sign(value: QuantityValue) -> int:
    return (value.nano > 0) - (value.nano < 0)


@overload("quantity.isInteger() -> bool")
def is_integer(value: QuantityValue) -> bool:
    return value.nano % _NANO == 0 and INT_MIN <= value.nano // _NANO <= INT_MAX


@overload("quantity.asInteger() -> int")
def as_integer(value: QuantityValue) -> int:
    if not is_integer(value):
        raise CelRuntimeError("cannot convert value to integer")
    return value.nano // _NANO


@overload("quantity.asApproximateFloat() -> double")
def as_approximate_float(value: QuantityValue) -> float:
    try:
        return value.nano / _NANO
    except OverflowError:
        return float("inf") if value.nano > 0 else float("-inf")


@overload("quantity.add(quantity) -> quantity", "quantity.add(int) -> quantity")
def add(value: QuantityValue, other: QuantityValue | int) -> QuantityValue:
    return QuantityValue(value.nano + _nano(other))


@overload("quantity.sub(quantity) -> quantity", "quantity.sub(int) -> quantity")
def subtract(value: QuantityValue, other: QuantityValue | int) -> QuantityValue:
    return QuantityValue(value.nano - _nano(other))


def _nano(value: QuantityValue | int) -> int:
    return value.nano if isinstance(value, QuantityValue) else value * _NANO


@overload("quantity.isGreaterThan(quantity) -> bool", "semver.isGreaterThan(semver) -> bool")
def is_greater_than(a: Any, b: Any) -> bool:
    return bool(a > b)


@overload("quantity.isLessThan(quantity) -> bool", "semver.isLessThan(semver) -> bool")
def is_less_than(a: Any, b: Any) -> bool:
    return bool(a < b)


@overload("quantity.compareTo(quantity) -> int", "semver.compareTo(semver) -> int")
def compare_to(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


@overload("semver(string) -> semver", "semver(string, bool) -> semver", cost=traversal())
def semver(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002
    return Semver.parse(_normalized(text) if normalize else text)


@overload("isSemver(string) -> bool", "isSemver(string, bool) -> bool", cost=traversal())
def is_semver(text: str, normalize: bool = False) -> bool:  # noqa: FBT001, FBT002
    return _parses(lambda t: semver(t, normalize), text)


def _normalized(text: str) -> str:
    """Without "v" and leading zeros, and with three numbers: "v01.2" is "1.2.0"."""
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            parts[index] = rest if rest[:1].isdecimal() else f"0{rest}"
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise CelRuntimeError("short version cannot contain PreRelease/Build meta data")
    return ".".join([*parts, "0", "0"][:3])


@overload("semver.major() -> int")
def major(version: Semver) -> int:
    return version.numbers[0]


@overload("semver.minor() -> int")
def minor(version: Semver) -> int:
    return version.numbers[1]


@overload("semver.patch() -> int")
def patch(version: Semver) -> int:
    return version.numbers[2]


def _parses(parse: Any, text: str) -> bool:
    try:
        parse(text)
    except CelRuntimeError:
        return False
    return True
