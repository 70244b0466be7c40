"""SelectorIndex: things that select pods, found by a pod's labels without asking each of them.

A thing is listed under one label that its selector requires. Only selectors that require no label
at all (they are few: empty ones, and those that only rule out) are candidates for every pod.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from moorage.api import selectors
from moorage.api.selectors import Selector

T = TypeVar("T")

# A key with its value, a key with any value, or nothing that could be looked up.
Slot = tuple[str, str | None] | None
UNLISTED: Slot = None


class SelectorIndex(Generic[T]):
    """See the module."""

    __slots__ = ("_listed",)

    def __init__(self) -> None:
        self._listed: dict[str | None, dict[Slot, list[T]]] = {}

    def add(self, thing: T, namespace: str | None, selector: Selector) -> None:
        """List a thing that selects pods of one namespace, or (None) perhaps of several."""
        listed = self._listed.setdefault(namespace, {})
        for slot in _slots(selector):
            listed.setdefault(slot, []).append(thing)

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> list[T]:
        """The things that may select a pod; each still has to be asked."""
        found: list[T] = []
        for where in (namespace, None):
            listed = self._listed.get(where)
            if listed is None:
                continue
            found += listed.get(UNLISTED, ())
            for key, value in labels.items():
                found += listed.get((key, value), ())
                found += listed.get((key, None), ())
        return found


def _slots(selector: Selector) -> list[Slot]:
    """Where to list a selector: a pod that it matches has exactly one of these."""
    required = None
    for requirement in selector.requirements:
        if requirement.operator == selectors.IN:
            return [(requirement.key, value) for value in requirement.values]
        if requirement.operator == selectors.EXISTS:
            required = requirement.key
    return [UNLISTED if required is None else (required, None)]
