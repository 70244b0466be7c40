"""Quantities and semantic versions."""

from typing import Any

from moorage.cel.types import define, overload, traversal
from moorage.cel.values import (
    INT_MAX,
    INT_MIN,
    CelRuntimeError,
    QuantityValue,
    Semver,
    parses,
)

_NANO = 10**9


def _is_integer(value: QuantityValue) -> bool:
    return value.nano % _NANO == 0 and INT_MIN <= value.nano // _NANO <= INT_MAX


def _as_integer(value: QuantityValue) -> int:
    if not _is_integer(value):
        raise CelRuntimeError("cannot convert value to integer")
    return value.nano // _NANO


def _as_approximate_float(value: QuantityValue) -> float:
    try:
        return value.nano / _NANO
    except OverflowError:
        return float("inf") if value.nano > 0 else float("-inf")


def _nano(value: QuantityValue | int) -> int:
    return value.nano if isinstance(value, QuantityValue) else value * _NANO


def _compare(a: Any, b: Any) -> int:
    return int(a > b) - int(a < b)


@overload("semver(string) -> semver", "semver(string, bool) -> semver", cost=traversal)
def semver(text: str, normalize: bool = False) -> Semver:  # noqa: FBT001, FBT002 - an argument in CEL
    """Read a version; normalized, "v01.2" is "1.2.0"; raises CelRuntimeError."""
    if not normalize:
        return Semver.parse(text)
    parts = text.removeprefix("v").split(".", 2)
    for index, part in enumerate(parts):
        if len(part) > 1:
            rest = part.lstrip("0")
            parts[index] = rest if rest[:1].isdecimal() else f"0{rest}"
    if len(parts) < 3 and ("+" in parts[-1] or "-" in parts[-1]):
        raise CelRuntimeError("short version cannot contain PreRelease/Build meta data")
    return Semver.parse(".".join([*parts, "0", "0"][:3]))


define("quantity(string) -> quantity", run=QuantityValue.parse, cost=traversal)
define("isQuantity(string) -> bool", run=lambda t: parses(QuantityValue.parse, t), cost=traversal)
define("sign(quantity) -> int", run=lambda value: _compare(value.nano, 0))
define("quantity.isInteger() -> bool", run=_is_integer)
define("quantity.asInteger() -> int", run=_as_integer)
define("quantity.asApproximateFloat() -> double", run=_as_approximate_float)
for _other in ("quantity", "int"):
    define(f"quantity.add({_other}) -> quantity", run=lambda a, b: QuantityValue(a.nano + _nano(b)))
    define(f"quantity.sub({_other}) -> quantity", run=lambda a, b: QuantityValue(a.nano - _nano(b)))
define("quantity.isGreaterThan(quantity) -> bool", run=lambda a, b: a.nano > b.nano)
define("quantity.isLessThan(quantity) -> bool", run=lambda a, b: a.nano < b.nano)
define("quantity.compareTo(quantity) -> int", run=lambda a, b: _compare(a.nano, b.nano))
define("semver.isGreaterThan(semver) -> bool", run=lambda a, b: a > b)
define("semver.isLessThan(semver) -> bool", run=lambda a, b: a < b)
define("semver.compareTo(semver) -> int", run=_compare)
define(
    "isSemver(string) -> bool",
    "isSemver(string, bool) -> bool",
    run=lambda *args: parses(semver, *args),
    cost=traversal,
)
define("semver.major() -> int", run=lambda version: version.numbers[0])
define("semver.minor() -> int", run=lambda version: version.numbers[1])
define("semver.patch() -> int", run=lambda version: version.numbers[2])
