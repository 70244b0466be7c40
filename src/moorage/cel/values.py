"""Values of CEL expressions, their equality and order, and the two errors.

CEL's bool, int, double, string, bytes, null, list and map are Python's bool, int, float, str,
bytes, None, list and dict; the classes here are the rest. Python says `True == 1`, CEL does not:
compare values with `equal`.
"""

import math
import re
from dataclasses import dataclass
from functools import total_ordering
from typing import Any

from moorage.api import quantity
from moorage.errors import InputError, MoorageError

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
SECOND = 10**9  # nanoseconds


class CelCompileError(InputError):
    """An expression that is malformed, ill-typed or too large."""


class CelRuntimeError(MoorageError):
    """An evaluation that failed."""

    fatal = False  # A fatal error is not absorbed by `||`, `&&`, `all` and `exists`.


class CostLimitExceeded(CelRuntimeError):
    """An evaluation that used up its budget."""

    fatal = True

    def __init__(self) -> None:
        super().__init__("operation cancelled: actual cost limit exceeded")


def no_such_overload() -> CelRuntimeError:
    """The error of a function or operator that does not take values of these types."""
    return CelRuntimeError("no such overload")


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type as a value: the result of `type(x)`."""

    name: str


@dataclass(frozen=True, slots=True)
class OptionalValue:
    """`optional.of(value)`, or `optional.none()`: the constant NONE."""

    value: Any


NONE = OptionalValue(CelRuntimeError("optional.none() dereference"))


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A duration in nanoseconds."""

    nanoseconds: int

    def __post_init__(self) -> None:
        if not INT_MIN <= self.nanoseconds <= INT_MAX:
            raise CelRuntimeError("duration overflow")


# From 0001-01-01 to 9999-12-31, in seconds since 1970.
_FIRST_SECOND, _LAST_SECOND = -62135596800, 253402300799


@dataclass(frozen=True, slots=True, order=True)
class Timestamp:
    """An instant in nanoseconds since 1970, UTC."""

    nanoseconds: int

    def __post_init__(self) -> None:
        if not _FIRST_SECOND <= self.nanoseconds // SECOND <= _LAST_SECOND:
            raise CelRuntimeError("timestamp overflow")


@dataclass(frozen=True, slots=True, order=True)
class QuantityValue:
    """A Kubernetes quantity in nano-units."""

    nano: int

    @classmethod
    def parse(cls, text: str) -> "QuantityValue":
        """Read a quantity; raises CelRuntimeError."""
        try:
            if text != text.strip():
                raise ValueError
            return cls(quantity.nano(text))
        except ValueError:
            raise CelRuntimeError(
                "quantities must match the regular expression "
                "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
            ) from None


_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


@total_ordering
@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version. Build metadata is dropped: it takes no part in equality or order."""

    numbers: tuple[int, int, int]
    prerelease: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Semver":
        """Read a version; raises CelRuntimeError."""
        match = _SEMVER.fullmatch(text) if len(text) <= 1000 else None
        if match is None:
            raise CelRuntimeError(f'invalid semantic version "{text[:80]}"')
        major, minor, patch = (int(part) for part in match.group(1, 2, 3))
        parts = tuple(match[4].split(".")) if match[4] else ()
        if any(part.isdigit() and part != "0" and part[0] == "0" for part in parts):
            raise CelRuntimeError("Numeric PreRelease version must not contain leading zeroes")
        if max(major, minor, patch) > UINT_MAX:
            raise CelRuntimeError(f'invalid semantic version "{text[:80]}"')
        return cls((major, minor, patch), parts)

    def __lt__(self, other: "Semver") -> bool:
        return self._key() < other._key()

    def _key(self) -> tuple[Any, ...]:
        # A release is after its prereleases; numeric parts are before others.
        parts = [(0, int(p), "") if p.isdigit() else (1, 0, p) for p in self.prerelease]
        return self.numbers, not parts, parts


NUMBERS = frozenset((int, Uint, float))
# Python compares two values of one of these types as CEL does.
_PLAIN = frozenset((str, int, bool, bytes, Uint, float))
_ORDERED = _PLAIN | {Duration, Timestamp}


def equal(a: Any, b: Any) -> bool:
    """CEL's `==`: values of different types are unequal, except numbers."""
    kind, other = type(a), type(b)
    if kind is other and kind in _PLAIN:
        return bool(a == b)
    if kind in NUMBERS and other in NUMBERS:
        return bool(a == b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(
            has_key(b, key) and equal(value, lookup(b, key)) for key, value in a.items()
        )
    if kind is OptionalValue and other is OptionalValue:
        return a is b if NONE in (a, b) else equal(a.value, b.value)
    return kind is other and bool(a == b)


def compare(a: Any, b: Any) -> int:
    """-1, 0 or 1; raises for values that have no order."""
    kind, other = type(a), type(b)
    if (kind is other and kind in _ORDERED) or (kind in NUMBERS and other in NUMBERS):
        if a != a or b != b:
            raise CelRuntimeError("NaN values cannot be ordered")
        return int(a > b) - int(a < b)
    raise no_such_overload()


def has_key(mapping: dict[Any, Any], key: Any) -> bool:
    """CEL's `key in map`."""
    if type(key) is str:
        return key in mapping
    return any(equal(key, other) for other in mapping)


def lookup(mapping: dict[Any, Any], key: Any) -> Any:
    """CEL's `map[key]`."""
    if type(key) is str:
        try:
            return mapping[key]
        except KeyError:
            raise CelRuntimeError(f"no such key: {key}") from None
    for other, value in mapping.items():
        if equal(key, other):
            return value
    raise CelRuntimeError(f"no such key: {key}")


def at(items: list[Any], index: Any) -> Any:
    """CEL's `list[index]`."""
    if type(index) not in NUMBERS or not math.isfinite(index) or index != int(index):
        raise no_such_overload()
    if not 0 <= index < len(items):
        raise CelRuntimeError(f"index out of bounds: {index}")
    return items[int(index)]


def size_of(value: Any) -> int:
    """The size that costs are computed from; 1 for a value without a size."""
    return len(value) if isinstance(value, str | bytes | list | dict) else 1
