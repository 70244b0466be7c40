"""Amounts: what nodes offer and what their pods take of it, in numbers, for many rows at once.

`Amounts` are the questions, `AmountTable` has the answers for all of its rows.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from moorage.nodes.changes import ChangeLog
from moorage.nodes.interning import Mask
from moorage.nodes.lines import Counted, Lines
from moorage.nodes.offers import Offers
from moorage.nodes.resources import Floats, Ints, ResourceColumns
from moorage.nodes.room import Room

# So many kinds of arrays of floats are kept.
MOST_LINES = 16


class Amounts:
    """What plugins may ask of the amounts of several rows; every answer has an entry per row."""

    __slots__ = ()

    _amounts: "AmountTable"
    _index: Any

    def __len__(self) -> int:
        return len(self.active)

    @property
    def active(self) -> Mask:
        """Rows that have a node."""
        active: Mask = self._amounts.active_rows[self._index]
        return active

    @property
    def pod_count(self) -> Ints:
        """Number of pods on each node."""
        counts: Ints = self._amounts.pod_counts[self._index]
        return counts

    def allocatable(self, resource: str) -> Ints:
        """What each node offers of a resource (cpu in milli, the rest in units)."""
        amounts: Ints = self._amounts.allocatable_columns[resource][self._index]
        return amounts

    def offers(self, resources: tuple[str, ...]) -> Offers:
        """The same of several, to calculate with in floats."""
        return self._amounts.offers(resources).at(self._index)

    def requested(self, resource: str) -> Ints:
        """What each node's pods request of a resource."""
        amounts: Ints = self._amounts.requested_columns[resource][self._index]
        return amounts

    def nonzero_requested(self, resource: str) -> Ints:
        """As `requested`, with a default for containers that request no cpu or memory."""
        amounts: Ints = self._amounts.nonzero_columns[resource][self._index]
        return amounts

    def counted(self, resources: Counted) -> Floats:
        """The one or the other of several, a line each, as floats; not to be written to."""
        amounts: Floats = self._amounts.counted(resources)[..., self._index]
        return amounts

    def left(self, resources: Counted, times: int = 1) -> Floats:
        """What that leaves of what nodes offer, likewise, or so many times as much."""
        amounts: Floats = self._amounts.left(resources, times)[..., self._index]
        return amounts

    def has_room(self, resources: Counted, amounts: Sequence[int]) -> bool:
        """Whether every node is known to have so much left; if not, one has to look.

        Of "pods", every pod takes one.
        """
        return False


class AmountTable(Amounts):
    """The amounts of all rows, and a log of changed rows."""

    __slots__ = (
        "_amounts",
        "_index",
        "_lines",
        "_offers",
        "_room",
        "active_rows",
        "allocatable_columns",
        "capacity",
        "changes",
        "nonzero_columns",
        "pod_counts",
        "requested_columns",
    )

    def __init__(self, capacity: int) -> None:
        self._amounts = self
        self._index = slice(None)
        self.capacity = capacity
        self.active_rows: Mask = np.zeros(capacity, dtype=np.bool_)
        self.pod_counts: Ints = np.zeros(capacity, dtype=np.int64)
        self.allocatable_columns = ResourceColumns(capacity)
        self.requested_columns = ResourceColumns(capacity)
        self.nonzero_columns = ResourceColumns(capacity)
        self.changes = ChangeLog()
        self._lines: dict[tuple[Counted, bool, int], Lines] = {}
        self._room = Room()
        self._offers: dict[tuple[str, ...], Offers] = {}

    # Of all rows there is nothing to pick.

    def __len__(self) -> int:
        return self.capacity

    def offers(self, resources: tuple[str, ...]) -> Offers:
        """What nodes offer of several resources; kept until a node changes."""
        offers = self._offers.get(resources)
        if offers is None:
            offers = Offers.of(self.allocatable_columns, resources, self.active_rows)
            self._offers[resources] = offers
        return offers

    def counted(self, resources: Counted) -> Floats:
        return self._lines_of(resources, leaves=False, times=1).current(self)

    def left(self, resources: Counted, times: int = 1) -> Floats:
        return self._lines_of(resources, leaves=True, times=times).current(self)

    def _lines_of(self, resources: Counted, *, leaves: bool, times: int) -> Lines:
        lines = self._lines.get((resources, leaves, times))
        if lines is None:
            if len(self._lines) >= MOST_LINES:
                self._lines.clear()
            lines = Lines(resources, leaves=leaves, times=times)
            self._lines[resources, leaves, times] = lines
        return lines

    def has_room(self, resources: Counted, amounts: Sequence[int]) -> bool:
        return self._room.is_for(resources, amounts, self)

    def _grow(self, capacity: int) -> None:
        more = capacity - self.capacity
        self.active_rows = np.concatenate([self.active_rows, np.zeros(more, dtype=np.bool_)])
        self.pod_counts = np.concatenate([self.pod_counts, np.zeros(more, dtype=np.int64)])
        for resources in (self.allocatable_columns, self.requested_columns, self.nonzero_columns):
            resources.grow(capacity)
        self._offers.clear()
        self.capacity = capacity
        # Arrays that others keep per row have the wrong length now.
        self.changes.forget()
