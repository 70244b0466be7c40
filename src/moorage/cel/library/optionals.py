"""Optional values."""

from typing import Any

from moorage.cel.types import overload
from moorage.cel.values import NONE, CelRuntimeError, OptionalValue, no_such_overload


@overload("optional::of(A) -> optional<A>")
def of(value: Any) -> OptionalValue:
    return OptionalValue(value)


@overload("optional::ofNonZeroValue(A) -> optional<A>")
def of_non_zero_value(value: Any) -> OptionalValue:
    plain = value is None or isinstance(value, bool | int | float | str | bytes | list | dict)
    return NONE if plain and not value else OptionalValue(value)


@overload("optional::none() -> optional<A>")
def none() -> OptionalValue:
    return NONE


@overload("optional<A>.hasValue() -> bool")
def has_value(optional: OptionalValue) -> bool:
    return optional is not NONE


@overload("optional<A>.value() -> A")
def value(optional: OptionalValue) -> Any:
    if optional is NONE:
        raise CelRuntimeError("optional.none() dereference")
    return optional.value


@overload("optional<A>.or(optional<A>) -> optional<A>")
def or_(optional: OptionalValue, other: OptionalValue) -> OptionalValue:
    return other if optional is NONE else optional


@overload("optional<A>.orValue(A) -> A")
def or_value(optional: OptionalValue, other: Any) -> Any:
    return other if optional is NONE else optional.value


@overload("list<A>.first() -> optional<A>")
def first(items: list[Any]) -> OptionalValue:
    return OptionalValue(items[0]) if items else NONE


@overload("list<A>.last() -> optional<A>")
def last(items: list[Any]) -> OptionalValue:
    return OptionalValue(items[-1]) if items else NONE


@overload(
    "optional::unwrap(list<optional<A>>) -> list<A>", "list<optional<A>>.unwrapOpt() -> list<A>"
)
def unwrap(items: list[Any]) -> list[Any]:
    if not all(isinstance(item, OptionalValue) for item in items):
        raise no_such_overload()
    return [item.value for item in items if item is not NONE]
