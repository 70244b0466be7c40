"""Values of CEL expressions, their equality and order, and the two errors.

CEL's bool, int, double, string, bytes, null, list and map are Python's bool, int, float, str,
bytes, None, list and dict; the classes here are the rest. Python says `True == 1`, CEL does not:
compare values with `equal`.
"""

import copy
import math
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from moorage.api import quantity
from moorage.errors import InputError, MoorageError

INT_MIN, INT_MAX, UINT_MAX = -(2**63), 2**63 - 1, 2**64 - 1
SECOND = 10**9  # nanoseconds
COST_LIMIT = 1_000_000

# What a closure runs on: the remaining budget, the device, and a slot per variable.
Frame = list[Any]
Code = Callable[[Frame], Any]


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
class CelDuration:
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


ZERO_TIME = Timestamp(_FIRST_SECOND * SECOND)

_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)"
    r"(?:-([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?(?:\+[0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*)?"
)


@dataclass(frozen=True, slots=True, order=True)
class Semver:
    """A semantic version. Build metadata is dropped: it takes no part in equality or order."""

    numbers: tuple[int, int, int]
    release: bool  # A release is after its prereleases.
    prerelease: tuple[tuple[bool, int, str], ...]  # Numeric parts are before others.

    @classmethod
    def parse(cls, text: str) -> "Semver":
        """Read a version; raises CelRuntimeError."""
        match = _SEMVER.fullmatch(text) if len(text) <= 1000 else None
        parts = match[4].split(".") if match and match[4] else []
        numbers = [int(part) for part in match.group(1, 2, 3)] if match else [-1]
        zeros = any(part.isdigit() and part[0] == "0" and part != "0" for part in parts)
        if zeros or not 0 <= max(numbers) <= UINT_MAX:
            raise CelRuntimeError(f'invalid semantic version "{text[:80]}"')
        keys = [(not p.isdigit(), int(p) if p.isdigit() else 0, p) for p in parts]
        major, minor, patch = numbers
        return cls((major, minor, patch), not parts, tuple(keys))


NUMBERS = frozenset((int, Uint, float))
# Python compares two values of one of these types as CEL does.
_PLAIN = frozenset((str, int, bool, bytes, Uint, float))
_ORDERED = _PLAIN | {CelDuration, Timestamp}


def equal(a: Any, b: Any) -> bool:
    """CEL's `==`: values of different types are unequal, except numbers."""
    kind, other = type(a), type(b)
    if kind is other and kind in _PLAIN:
        return bool(a == b)
    if kind in NUMBERS and other in NUMBERS:
        return bool(a == b)
    if isinstance(a, list) and isinstance(b, list):
        if len(a) != len(b):
            return False
        return a.has_all(b) if isinstance(a, SetList) else all(map(equal, a, b))
    if isinstance(a, dict) and isinstance(b, dict):
        return len(a) == len(b) and all(
            has_key(b, key) and equal(value, lookup(b, key)) for key, value in a.items()
        )
    if kind is OptionalValue and other is OptionalValue:
        return a is b if a is NONE or b is NONE else equal(a.value, b.value)
    return kind is other and bool(a == b)


def require_order(items: list[Any]) -> None:
    """Raise unless all values can be compared with one another."""
    kinds = set(map(type, items))
    if not (kinds <= NUMBERS or (len(kinds) == 1 and kinds <= _ORDERED)):
        raise no_such_overload()
    if float in kinds and any(item != item for item in items):
        raise CelRuntimeError("NaN values cannot be ordered")


class SetList(list[Any]):
    """A list whose order has no meaning (`x-kubernetes-list-type: set`)."""

    def by_key(self, items: list[Any]) -> dict[Any, Any]:
        """Items by what identifies them: for a set, themselves."""
        return {_hashable(item): item for item in items}

    def has_all(self, items: list[Any]) -> bool:
        """Whether each item equals the element that it is identified with."""
        own = self.by_key(self)
        return all(key in own and equal(own[key], i) for key, i in self.by_key(items).items())

    def __add__(self, items: list[Any]) -> "SetList":
        """The union: elements of this list keep their places, new ones are appended."""
        merged = copy.copy(self)
        merged[:] = {**self.by_key(self), **self.by_key(items)}.values()
        return merged


class KeyedList(SetList):
    """A list of objects that are identified by keys (`x-kubernetes-list-type: map`)."""

    def __init__(self, items: Iterable[Any] = (), keys: tuple[str, ...] = ()) -> None:
        super().__init__(items)
        self.keys = keys

    def by_key(self, items: list[Any]) -> dict[Any, Any]:
        """Items by the values of their keys."""
        return {_hashable([item.get(key) for key in self.keys]): item for item in items}


def _hashable(value: Any) -> Any:
    if isinstance(value, dict):
        return frozenset((key, _hashable(each)) for key, each in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else (type(value), value)


class BoolMap(dict[Any, Any]):
    """A map with bool keys. Python takes True for 1, so that keys must be searched."""


def make_map(pairs: Iterable[tuple[Any, Any]]) -> dict[Any, Any]:
    """A map; raises for a key that is repeated or cannot be one."""
    result: dict[Any, Any] = {}
    bools = False
    for key, value in pairs:
        if type(key) is float or not isinstance(key, str | int):
            raise CelRuntimeError("unsupported map key type")
        if key in result:
            raise CelRuntimeError(f"Failed with repeated key: {key}")
        result[key] = value
        bools = bools or type(key) is bool
    return BoolMap(result) if bools else result


def has_key(mapping: dict[Any, Any], key: Any) -> bool:
    """CEL's `key in map`."""
    if type(key) is str or (type(key) in NUMBERS and type(mapping) is not BoolMap):
        return key in mapping
    return any(equal(key, other) for other in mapping) if type(mapping) is BoolMap else False


def lookup(mapping: dict[Any, Any], key: Any) -> Any:
    """CEL's `map[key]`."""
    if type(key) is str or has_key(mapping, key):
        try:
            return mapping[key]
        except KeyError:
            pass
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


def weight(value: Any) -> int:
    """How much there is to compare or to write: elements at any depth, and tens of characters.

    Lists may contain one another, so that few of them stand for a huge tree.
    """
    total, pending = 0, [value]
    while pending:
        item = pending.pop()
        kind = type(item)
        total += 1
        if isinstance(item, list):
            pending += item
        elif kind is str or kind is bytes:
            total += len(item) // 10
        elif kind is OptionalValue:
            pending.append(item.value)
        elif isinstance(item, dict):
            pending += [*item.keys(), *item.values()]
        if total > COST_LIMIT:
            raise CostLimitExceeded
    return total


def parses(parse: Callable[..., Any], *args: Any) -> bool:
    """Whether a function accepts the arguments, as in `isQuantity`."""
    try:
        parse(*args)
    except CelRuntimeError:
        return False
    return True
