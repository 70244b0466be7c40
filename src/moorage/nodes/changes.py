"""ChangeLog: which rows changed since somebody last looked.

Anything that is cached per row keeps a position in a log and asks for the rows behind it. The log
forgets its older half when it grows long; whoever stayed away that long starts over.
"""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

T = TypeVar("T")

LONGEST = 1 << 16


@dataclass(slots=True)
class Log(Generic[T]):
    """An append-only list with a position that only grows."""

    longest: int | None = None
    _changed: list[T] = field(default_factory=list)
    _forgotten: int = 0
    position: int = 0

    def add(self, changed: T) -> None:
        """Note a change."""
        self._changed.append(changed)
        self.position += 1
        if len(self._changed) > (self.longest or LONGEST):
            half = len(self._changed) // 2
            del self._changed[:half]
            self._forgotten += half

    def forget(self) -> None:
        """Everything may have changed: whoever kept anything starts over."""
        self._changed.clear()
        self.position += 1
        self._forgotten = self.position

    def since(self, position: int) -> list[T] | None:
        """What changed behind a position, oldest first, or None if that is forgotten."""
        if position < self._forgotten:
            return None
        return self._changed[position - self._forgotten :]


ChangeLog = Log[int]  # of rows
DomainLog = Log[tuple[int, int]]  # of topology domains, each with a row in it
KeyLog = Log[str]  # of objects
