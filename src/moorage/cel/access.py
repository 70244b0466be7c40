"""Access to parts of values: `a.b`, `a[b]`, `a.?b`, `has(a.b)`."""

from typing import Any

from moorage.cel.values import (
    NONE,
    CelRuntimeError,
    Code,
    Frame,
    OptionalValue,
    at,
    lookup,
    no_such_overload,
)


def path(slot: int, keys: list[str]) -> Code:
    """A variable and constant string keys; one and three keys are the usual `a.b` and device."""
    if len(keys) == 1:
        (only,) = keys

        def run(frame: Frame) -> Any:
            try:
                return frame[slot][only]
            except (KeyError, TypeError):
                return _walk(frame[slot], keys)
    elif len(keys) == 3:
        first, second, third = keys

        def run(frame: Frame) -> Any:
            try:
                return frame[slot][first][second][third]
            except (KeyError, TypeError):
                return _walk(frame[slot], keys)
    else:

        def run(frame: Frame) -> Any:
            return _walk(frame[slot], keys)

    return run


def _walk(value: Any, keys: list[str]) -> Any:
    for key in keys:
        value = get(value, key)
    return value


def get(container: Any, key: Any) -> Any:
    """`container[key]`."""
    if isinstance(container, dict):
        return lookup(container, key)
    if isinstance(container, list):
        return at(container, key)
    if isinstance(container, OptionalValue):
        return find(container, key)
    raise no_such_overload()


def find(container: Any, key: Any) -> OptionalValue:
    """`container[?key]`."""
    if isinstance(container, OptionalValue):
        return container if container is NONE else find(container.value, key)
    if not isinstance(container, dict | list):
        raise no_such_overload()
    try:
        return OptionalValue(get(container, key))
    except CelRuntimeError:
        return NONE


def present(container: Any, name: str) -> bool:
    """`has(container.name)`."""
    if isinstance(container, OptionalValue):
        return container is not NONE and present(container.value, name)
    if not isinstance(container, dict):
        raise no_such_overload()
    return find(container, name) is not NONE


def unwrapped(value: Any) -> Any:
    """The value of an optional; raises for other values."""
    if not isinstance(value, OptionalValue):
        raise no_such_overload()
    return value.value
