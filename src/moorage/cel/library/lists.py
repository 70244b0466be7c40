"""Functions on lists: Kubernetes' own, the lists extension version 3, and sets."""

from collections.abc import Callable
from functools import reduce
from itertools import pairwise
from typing import Any

from moorage.cel.library.operators import checked_int, checked_uint
from moorage.cel.library.times import add_durations
from moorage.cel.types import define, overload, tenths
from moorage.cel.values import (
    NUMBERS,
    CelDuration,
    CelRuntimeError,
    Uint,
    equal,
    no_such_overload,
    require_order,
    size_of,
    weight,
)

_ORDERED = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")


def _copy_cost(*lists: Any) -> int:
    # The reference concatenates lazily, at cost 1. Ours takes time and memory.
    return max(1, tenths(sum(map(size_of, lists))))


def _scan_cost(items: list[Any], *_: Any) -> int:
    return weight(items) - 1  # without the list itself


def _product_cost(a: list[Any], b: list[Any]) -> int:
    return 1 + _scan_cost(a) * _scan_cost(b)


define("+(list<A>, list<A>) -> list<A>", run=lambda a, b: a + b, cost=_copy_cost)

_ADDITIONS: dict[type, Callable[[Any, Any], Any]] = {
    int: lambda a, b: checked_int(a + b),
    Uint: lambda a, b: checked_uint(int(a) + b),
    float: lambda a, b: a + b,
    CelDuration: add_durations,
}


def _sum(items: list[Any]) -> Any:
    kind = type(items[0])
    if kind not in _ADDITIONS or any(type(item) is not kind for item in items):
        raise no_such_overload()
    return reduce(_ADDITIONS[kind], items)


def _ordered(items: list[Any]) -> list[Any]:
    """The items themselves, which can be compared."""
    if items:
        require_order(items)
    return items


def _nonempty(items: list[Any]) -> list[Any]:
    if not items:
        raise CelRuntimeError("min or max called on empty list")
    return _ordered(items)


def _is_sorted(items: list[Any]) -> bool:
    return all(a <= b for a, b in pairwise(_ordered(items)))


for _kind in _ORDERED:
    define(f"list<{_kind}>.isSorted() -> bool", run=_is_sorted, cost=_scan_cost)
    define(f"list<{_kind}>.min() -> {_kind}", run=lambda i: min(_nonempty(i)), cost=_scan_cost)
    define(f"list<{_kind}>.max() -> {_kind}", run=lambda i: max(_nonempty(i)), cost=_scan_cost)
    define(
        f"list<{_kind}>.sort() -> list<{_kind}>", run=lambda i: sorted(_ordered(i)), cost=_scan_cost
    )
define("list<int>.sum() -> int", run=lambda i: _sum(i) if i else 0, cost=_scan_cost)
define("list<uint>.sum() -> uint", run=lambda i: _sum(i) if i else Uint(0), cost=_scan_cost)
define("list<double>.sum() -> double", run=lambda i: _sum(i) if i else 0.0, cost=_scan_cost)
define(
    "list<duration>.sum() -> duration",
    run=lambda i: _sum(i) if i else CelDuration(0),
    cost=_scan_cost,
)


@overload("list<A>.indexOf(A) -> int", cost=_scan_cost)
def index_of(items: list[Any], item: Any) -> int:
    """The index of the first equal element, or -1."""
    return next((i for i, other in enumerate(items) if equal(item, other)), -1)


@overload("list<A>.lastIndexOf(A) -> int", cost=_scan_cost)
def last_index_of(items: list[Any], item: Any) -> int:
    """The index of the last equal element, or -1."""
    found = index_of(items[::-1], item)
    return found if found < 0 else len(items) - 1 - found


@overload("dyn.includes(dyn) -> bool", cost=lambda value, _: weight(value))
def includes(value: Any, item: Any) -> bool:
    """For an attribute that is a value or a list of values. The scheduler always has it."""
    return any(equal(item, v) for v in value) if isinstance(value, list) else equal(value, item)


@overload("list<A>.slice(int, int) -> list<A>", cost=_copy_cost)
def slice_(items: list[Any], start: int, end: int) -> list[Any]:
    """The elements from `start` to before `end`."""
    if not 0 <= start <= end <= len(items):
        raise CelRuntimeError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@overload("list<list<A>>.flatten() -> list<A>", "list<A>.flatten() -> list<A>", cost=_scan_cost)
@overload("list<dyn>.flatten(int) -> list<dyn>", cost=_scan_cost)
def flatten(items: list[Any], depth: int = 1) -> list[Any]:
    """The list with `depth` levels of nested lists dissolved."""
    if depth < 0:
        raise CelRuntimeError("level must be non-negative")
    # Nesting is bounded by that of the expression, and so are the rounds.
    while depth and any(isinstance(item, list) for item in items):
        items = [i for item in items for i in (item if isinstance(item, list) else [item])]
        depth -= 1
    return items


@overload("lists::range(int) -> list<int>", cost=lambda count: 1 + max(0, count))
def range_(count: int) -> list[int]:
    """The numbers from 0 to before `count`."""
    return list(range(count))


def _distinct_cost(items: list[Any]) -> int:
    return _scan_cost(items) * (1 if all(map(_has_hash, items)) else len(items))


def _has_hash(item: Any) -> bool:
    """Whether Python's equality of the value is CEL's."""
    return type(item) is str or type(item) in NUMBERS


@overload("list<A>.distinct() -> list<A>", cost=_distinct_cost)
def distinct(items: list[Any]) -> list[Any]:
    """The list without repetitions."""
    seen: set[Any] = set()
    result: list[Any] = []
    for item in items:
        if _has_hash(item):
            if item not in seen:
                seen.add(item)
                result.append(item)
        elif not any(equal(item, other) for other in result):
            result.append(item)
    return result


def _contains(items: list[Any], part: list[Any]) -> bool:
    return all(any(equal(item, other) for other in items) for item in part)


define("list<A>.reverse() -> list<A>", run=lambda items: items[::-1], cost=_copy_cost)
define("sets::contains(list<A>, list<A>) -> bool", run=_contains, cost=_product_cost)
define(
    "sets::equivalent(list<A>, list<A>) -> bool",
    run=lambda a, b: _contains(a, b) and _contains(b, a),
    cost=_product_cost,
)
define(
    "sets::intersects(list<A>, list<A>) -> bool",
    run=lambda a, b: any(equal(item, other) for item in a for other in b),
    cost=_product_cost,
)
