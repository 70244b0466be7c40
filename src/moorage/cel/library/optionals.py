"""Optional values."""

from typing import Any

from moorage.cel.types import define, overload
from moorage.cel.values import (
    NONE,
    ZERO_TIME,
    CelDuration,
    CelRuntimeError,
    OptionalValue,
    no_such_overload,
)


def _of_non_zero_value(value: Any) -> OptionalValue:
    plain = value is None or isinstance(value, int | float | str | bytes | list | dict)
    zero = value in (CelDuration(0), ZERO_TIME) if not plain else not value
    return NONE if zero else OptionalValue(value)


def _value(optional: OptionalValue) -> Any:
    if optional is NONE:
        raise CelRuntimeError("optional.none() dereference")
    return optional.value


@overload("optional::unwrap(list<optional<A>>) -> list<A>")
@overload("list<optional<A>>.unwrapOpt() -> list<A>")
def unwrap(items: list[Any]) -> list[Any]:
    """The values of the optionals that have one."""
    if not all(isinstance(item, OptionalValue) for item in items):
        raise no_such_overload()
    return [item.value for item in items if item is not NONE]


define("optional::of(A) -> optional<A>", run=OptionalValue)
define("optional::ofNonZeroValue(A) -> optional<A>", run=_of_non_zero_value)
define("optional::none() -> optional<A>", run=lambda: NONE)
define("optional<A>.hasValue() -> bool", run=lambda optional: optional is not NONE)
define("optional<A>.value() -> A", run=_value)
define("optional<A>.or(optional<A>) -> optional<A>", run=lambda a, b: b if a is NONE else a)
define("optional<A>.orValue(A) -> A", run=lambda a, b: b if a is NONE else a.value)
define("list<A>.first() -> optional<A>", run=lambda i: OptionalValue(i[0]) if i else NONE)
define("list<A>.last() -> optional<A>", run=lambda i: OptionalValue(i[-1]) if i else NONE)
