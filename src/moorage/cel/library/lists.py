"""Functions on lists: Kubernetes' own, the lists extension version 3, and sets."""

from collections.abc import Callable
from functools import cmp_to_key, reduce
from itertools import pairwise
from typing import Any

from moorage.cel.library import operators, times
from moorage.cel.types import overload
from moorage.cel.values import (
    NUMBERS,
    CelRuntimeError,
    CostLimitExceeded,
    Duration,
    Uint,
    compare,
    equal,
    no_such_overload,
    size_of,
)

_LONGEST = 1_000_000
_ORDERED = (
    "int",
    "uint",
    "double",
    "bool",
    "duration",
    "timestamp",
    "string",
    "bytes",
)


def _length(values: tuple[Any, ...], _: Any) -> int:
    """One per element, and a traversal of each string."""
    items = values[0]
    if isinstance(items, list):
        return sum(1 if not isinstance(i, str | bytes) else 1 + len(i) // 10 for i in items)
    return -(-size_of(items) // 10)


def _product(values: tuple[Any, ...], _: Any) -> int:
    return 1 + len(values[0]) * len(values[1])


def _tenth(_: tuple[Any, ...], result: Any) -> int:
    return max(1, -(-len(result) // 10))


@overload("+(list<A>, list<A>) -> list<A>", cost=_tenth)
def add(a: list[Any], b: list[Any]) -> list[Any]:
    # The reference concatenates lazily at cost 1; a copy is charged and bounded.
    if len(a) + len(b) > _LONGEST:
        raise CostLimitExceeded
    return a + b


@overload(*(f"list<{name}>.isSorted() -> bool" for name in _ORDERED), cost=_length)
def is_sorted(items: list[Any]) -> bool:
    return all(compare(a, b) <= 0 for a, b in pairwise(items))


@overload("list<int>.sum() -> int", cost=_length)
def sum_int(items: list[Any]) -> Any:
    return _sum(items, 0)


@overload("list<uint>.sum() -> uint", cost=_length)
def sum_uint(items: list[Any]) -> Any:
    return _sum(items, Uint(0))


@overload("list<double>.sum() -> double", cost=_length)
def sum_double(items: list[Any]) -> Any:
    return _sum(items, 0.0)


@overload("list<duration>.sum() -> duration", cost=_length)
def sum_duration(items: list[Any]) -> Any:
    return _sum(items, Duration(0))


_ADDITIONS: dict[type, Callable[[Any, Any], Any]] = {
    int: operators.add_int,
    Uint: operators.add_uint,
    float: operators.add_double,
    Duration: times.add_durations,
}


def _sum(items: list[Any], zero: Any) -> Any:
    """The sum; `zero` is that of an empty list."""
    if not items:
        return zero
    kind = type(items[0])
    if kind not in _ADDITIONS or any(type(item) is not kind for item in items):
        raise no_such_overload()
    return reduce(_ADDITIONS[kind], items)


def _extreme(items: list[Any], sign: int, name: str) -> Any:
    if not items:
        raise CelRuntimeError(f"{name} called on empty list")
    best = items[0]
    for item in items:  # The first one too: it must have an order.
        if compare(item, best) == sign:
            best = item
    return best


@overload(*(f"list<{name}>.min() -> {name}" for name in _ORDERED), cost=_length)
def min_(items: list[Any]) -> Any:
    return _extreme(items, -1, "min")


@overload(*(f"list<{name}>.max() -> {name}" for name in _ORDERED), cost=_length)
def max_(items: list[Any]) -> Any:
    return _extreme(items, 1, "max")


@overload("list<A>.indexOf(A) -> int", cost=_length)
def index_of(items: list[Any], item: Any) -> int:
    return next((i for i, other in enumerate(items) if equal(item, other)), -1)


@overload("list<A>.lastIndexOf(A) -> int", cost=_length)
def last_index_of(items: list[Any], item: Any) -> int:
    found = index_of(items[::-1], item)
    return found if found < 0 else len(items) - 1 - found


@overload("dyn.includes(dyn) -> bool", cost=_length)
def includes(value: Any, item: Any) -> bool:
    """For attributes that are a value or a list of values."""
    return any(equal(item, v) for v in value) if isinstance(value, list) else equal(value, item)


@overload("list<A>.slice(int, int) -> list<A>", cost=_tenth)
def slice_(items: list[Any], start: int, end: int) -> list[Any]:
    if start < 0 or end < 0:
        raise CelRuntimeError(f"cannot slice({start}, {end}), negative indexes not supported")
    if start > end:
        raise CelRuntimeError(f"cannot slice({start}, {end}), start index must be less than end")
    if end > len(items):
        raise CelRuntimeError(f"cannot slice({start}, {end}), list is length {len(items)}")
    return items[start:end]


@overload("list<list<A>>.flatten() -> list<A>", "list<A>.flatten() -> list<A>", cost=_tenth)
def flatten(items: list[Any]) -> list[Any]:
    return flatten_to(items, 1)


@overload("list<dyn>.flatten(int) -> list<dyn>", cost=_tenth)
def flatten_to(items: list[Any], depth: int) -> list[Any]:
    if depth < 0:
        raise CelRuntimeError("level must be non-negative")
    # One level per round; nesting is bounded by that of the expression.
    while depth and any(isinstance(item, list) for item in items):
        if sum(map(size_of, items)) > _LONGEST:
            raise CostLimitExceeded
        items = [i for item in items for i in (item if isinstance(item, list) else [item])]
        depth -= 1
    return items


@overload("lists::range(int) -> list<int>", cost=lambda _, result: 1 + len(result))
def range_(count: int) -> list[int]:
    if count > _LONGEST:
        raise CostLimitExceeded
    return list(range(count))


@overload("list<A>.reverse() -> list<A>", cost=_tenth)
def reverse(items: list[Any]) -> list[Any]:
    return items[::-1]


@overload("list<A>.distinct() -> list<A>", cost=_length)
def distinct(items: list[Any]) -> list[Any]:
    seen: set[Any] = set()
    result: list[Any] = []
    for item in items:
        # Only strings and numbers have a hash that agrees with CEL's equality.
        if type(item) is str or type(item) in NUMBERS:
            if item not in seen:
                seen.add(item)
                result.append(item)
        elif not any(equal(item, other) for other in result):
            if len(result) > 1000:  # The search is quadratic.
                raise CostLimitExceeded
            result.append(item)
    return result


@overload(*(f"list<{name}>.sort() -> list<{name}>" for name in _ORDERED), cost=_length)
def sort(items: list[Any]) -> list[Any]:
    if len(items) == 1:
        compare(items[0], items[0])  # Must have an order.
    return sorted(items, key=cmp_to_key(compare))


@overload("sets::contains(list<A>, list<A>) -> bool", cost=_product)
def sets_contains(items: list[Any], part: list[Any]) -> bool:
    return all(any(equal(item, other) for other in items) for item in part)


@overload("sets::equivalent(list<A>, list<A>) -> bool", cost=_product)
def sets_equivalent(a: list[Any], b: list[Any]) -> bool:
    return sets_contains(a, b) and sets_contains(b, a)


@overload("sets::intersects(list<A>, list<A>) -> bool", cost=_product)
def sets_intersects(a: list[Any], b: list[Any]) -> bool:
    return any(equal(item, other) for item in a for other in b)
