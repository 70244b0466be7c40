"""ChangeLog: which rows changed since somebody last looked.

Anything that is cached per row keeps a position in a log and asks for the rows behind it. The log
forgets its older half when it grows long; whoever stayed away that long starts over.
"""

from dataclasses import dataclass, field

LONGEST = 1 << 16


@dataclass(slots=True)
class ChangeLog:
    """An append-only list of rows with a position that only grows."""

    _rows: list[int] = field(default_factory=list)
    _forgotten: int = 0
    position: int = 0

    def add(self, row: int) -> None:
        """Note that a row changed."""
        self._rows.append(row)
        self.position += 1
        if len(self._rows) > LONGEST:
            half = len(self._rows) // 2
            del self._rows[:half]
            self._forgotten += half

    def forget(self) -> None:
        """Every row may have changed: whoever kept anything starts over."""
        self._rows.clear()
        self.position += 1
        self._forgotten = self.position

    def since(self, position: int) -> list[int] | None:
        """Rows that changed behind a position, oldest first, or None if that is forgotten."""
        if position < self._forgotten:
            return None
        return self._rows[position - self._forgotten :]
