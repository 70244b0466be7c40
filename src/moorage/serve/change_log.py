"""The latest changes of one resource, for watches that come back and lists that go on."""

from typing import NamedTuple

from moorage.serve import refusals
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import Resource

ADDED, MODIFIED, DELETED = "ADDED", "MODIFIED", "DELETED"


class Stored(NamedTuple):
    """An object, its JSON, and the version of its last change."""

    object: Object
    body: bytes
    version: int


class Change(NamedTuple):
    """One thing that happened. A deletion's object is the last one, under the new version."""

    type: str
    resource: Resource
    object: Object
    before: Object | None
    version: int
    stored: Stored
    stored_before: Stored | None


class ChangeLog:
    """Changes in order of version; old ones are forgotten."""

    def __init__(self, size: int, floor: int) -> None:
        self.floor = floor  # changes up to this version are no longer here
        self.first = 0  # the position of the oldest change, counted from the beginning of time
        self._size = size
        self._changes: list[Change] = []

    @property
    def end(self) -> int:
        """The position that the next change will have."""
        return self.first + len(self._changes)

    def append(self, change: Change) -> None:
        self._changes.append(change)
        if len(self._changes) > 2 * self._size:  # In bulk: a list's head is costly to cut.
            self.floor = self._changes[self._size - 1].version
            self.first += self._size
            del self._changes[: self._size]

    def position_after(self, version: int) -> int:
        """Where the changes after that version begin; raises Gone if some are forgotten."""
        if version < self.floor:
            raise refusals.too_old(version, self.floor)
        low, high = 0, len(self._changes)
        while low < high:
            middle = (low + high) // 2
            if self._changes[middle].version <= version:
                low = middle + 1
            else:
                high = middle
        return self.first + low

    def at(self, position: int) -> Change | None:
        """The change at a position; None if that is not there yet. Forgotten ones raise Gone."""
        index = position - self.first
        if index < 0:
            raise refusals.too_old(0, self.floor)
        return self._changes[index] if index < len(self._changes) else None

    def since(self, version: int) -> list[Change]:
        """The changes after that version."""
        return self._changes[self.position_after(version) - self.first :]
