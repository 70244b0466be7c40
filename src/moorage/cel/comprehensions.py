"""Macros with variables at run time: loops over lists and maps, and single bindings."""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import Any

from moorage.cel.types import type_name
from moorage.cel.values import (
    NONE,
    CelRuntimeError,
    Code,
    Frame,
    OptionalValue,
    make_map,
    no_such_overload,
    require_order,
)

# Operand, slots of the variables, filter, body.
Loop = Callable[[Code, list[int], Code | None, Code], Code]


def _each(frame: Frame, value: Any, slots: list[int]) -> Iterable[Any]:
    """Set the variables to each element in turn; yields the element or key."""
    if len(slots) == 1:
        if not isinstance(value, list | dict):
            raise CelRuntimeError(f"got '{type_name(value)}', expected iterable type")
        (slot,) = slots
        for item in value:
            frame[slot] = item
            yield item
        return
    first, second = slots
    if isinstance(value, list):
        pairs: Iterable[tuple[Any, Any]] = enumerate(value)
    elif isinstance(value, dict):
        pairs = value.items()
    else:
        raise CelRuntimeError(f"got '{type_name(value)}', expected iterable type")
    for frame[first], frame[second] in pairs:
        yield frame[first]


def _holds(code: Code | None, frame: Frame) -> bool:
    if code is None:
        return True
    verdict = code(frame)
    if type(verdict) is not bool:
        raise no_such_overload()
    return verdict


def _quantifier(*, decisive: bool) -> Loop:
    """`exists` (decisive is True), `all` (False): an error counts if no element is decisive."""

    def make(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
        def run(frame: Frame) -> bool:
            error: CelRuntimeError | None = None
            for _ in _each(frame, operand(frame), slots):
                try:
                    if _holds(body, frame) is decisive:
                        return decisive
                except CelRuntimeError as problem:
                    if problem.fatal:
                        raise
                    error = error or problem
            if error is not None:
                raise error
            return not decisive

        return run

    return make


def _exists_one(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
    def run(frame: Frame) -> bool:
        # A list, so that an error in the last element counts too.
        return [_holds(body, frame) for _ in _each(frame, operand(frame), slots)].count(True) == 1

    return run


def _filter(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
    return lambda frame: [
        item for item in _each(frame, operand(frame), slots) if _holds(body, frame)
    ]


def _map(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
    return lambda frame: [
        body(frame) for _ in _each(frame, operand(frame), slots) if _holds(where, frame)
    ]


def _transform_map(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
    return lambda frame: make_map(
        (key, body(frame)) for key in _each(frame, operand(frame), slots) if _holds(where, frame)
    )


def _transform_map_entry(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
    def entries(frame: Frame) -> Iterable[tuple[Any, Any]]:
        for _ in _each(frame, operand(frame), slots):
            if _holds(where, frame):
                entry = body(frame)
                if not isinstance(entry, dict):
                    raise no_such_overload()
                yield from entry.items()

    return lambda frame: make_map(entries(frame))


def _sort_by(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
    def run(frame: Frame) -> list[Any]:
        keyed = [(body(frame), item) for item in _each(frame, operand(frame), slots)]
        if keyed:
            require_order([key for key, _ in keyed])
        keyed.sort(key=itemgetter(0))
        return [item for _, item in keyed]

    return run


def _bind(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
    (slot,) = slots

    def run(frame: Frame) -> Any:
        frame[slot] = operand(frame)
        return body(frame)

    return run


def _opt_map(*, flat: bool) -> Loop:
    def make(operand: Code, slots: list[int], where: Code | None, body: Code) -> Code:
        (slot,) = slots

        def run(frame: Frame) -> Any:
            value = operand(frame)
            if not isinstance(value, OptionalValue):
                raise no_such_overload()
            if value is NONE:
                return NONE
            frame[slot] = value.value
            return body(frame) if flat else OptionalValue(body(frame))

        return run

    return make


LOOPS: dict[str, Loop] = {
    "all": _quantifier(decisive=False),
    "exists": _quantifier(decisive=True),
    "exists_one": _exists_one,
    "existsOne": _exists_one,
    "filter": _filter,
    "map": _map,
    "transformList": _map,
    "transformMap": _transform_map,
    "transformMapEntry": _transform_map_entry,
    "sortBy": _sort_by,
    "bind": _bind,
    "optMap": _opt_map(flat=False),
    "optFlatMap": _opt_map(flat=True),
}
