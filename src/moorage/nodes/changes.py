"""ChangeLog and Cursor: what changed, in order, and how far one reader has read.

Everything that is derived from rows or objects reads a log through a cursor of its own and
recomputes what changed. A log is bounded: a reader that falls behind the oldest entry recomputes
everything.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Generic, TypeVar

T = TypeVar("T")

LONGEST = 1 << 16
UNREAD = -1
# Up to so many changed rows are recomputed one by one; an array operation is faster for more.
# Measured: the two cost the same at 6 to 14 rows, depending on the reader.
FEW_ROWS = 8


class ChangeLog(Generic[T]):
    """The latest changes, and an end position that only grows."""

    __slots__ = ("entries", "position")

    def __init__(self, longest: int | None = None) -> None:
        # They end at `position`; empty if everything may have changed instead.
        self.entries: deque[T] = deque(maxlen=longest or LONGEST)
        self.position = 0

    def add(self, changed: T) -> None:
        """Append a change."""
        self.entries.append(changed)
        self.position += 1

    def extend(self, changed: Sequence[T]) -> None:
        """Append changes."""
        self.entries.extend(changed)
        self.position += len(changed)

    def forget(self) -> None:
        """Everything may have changed: every reader starts over."""
        self.entries.clear()
        self.position += 1


@dataclass(slots=True)
class Cursor(Generic[T]):
    """One reader's position in a log.

    A reader calls `changed`, does its work, then calls `commit`. If the work raises, there is no
    commit, and the next `changed` starts over: everything may have changed.
    """

    log: ChangeLog[T]
    position: int = UNREAD
    _end: int = UNREAD

    @property
    def is_current(self) -> bool:
        """Whether nothing changed since the last `commit`."""
        return self.position == self.log.position

    def changed(self) -> Sequence[T] | None:
        """The changes since the last `commit`, oldest first; None if everything may have."""
        log, position = self.log, self.position
        end = self._end = log.position
        self.position = UNREAD
        if position == end:
            return []
        entries, count = log.entries, end - position
        if position == UNREAD or count > len(entries):
            return None
        if count == 1:
            return [entries[-1]]
        return [*islice(reversed(entries), count)][::-1]

    def take(self) -> Sequence[T] | None:
        """As `changed` and `commit`, for a reader whose work cannot raise."""
        log, position = self.log, self.position
        if position + 1 == log.position and log.entries:
            self.position = log.position
            return [log.entries[-1]]
        found = self.changed()
        self.position = self._end
        return found

    def commit(self) -> None:
        """The changes that `changed` returned last have been taken in."""
        self.position = self._end

    def restart(self) -> None:
        """Return everything at the next `changed`."""
        self.position = UNREAD


RowLog = ChangeLog[int]
DomainLog = ChangeLog[tuple[int, int]]  # of topology domains, each with a row in it
KeyLog = ChangeLog[str]  # of objects, by key
