"""Kinds of nodes: those that several constraints together cannot tell apart.

To a constraint by hostname nodes differ in how many pods they have, to any other in their domain.
So one pod more makes one node another kind, while most others stay what they are; there are few
kinds even where there are many nodes.
"""

from collections.abc import Sequence
from math import prod

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp

# More nodes than this are not looked at one by one.
MANY = 16

# What tells nodes apart for a constraint: domains, pods per row, or nothing.
Trait = mp.LabelColumn | mp.RowView | None


class Kinds:
    """See the module."""

    __slots__ = ("_cursors", "_nodes", "_table", "_traits", "of_row", "rows", "sizes")

    def __init__(self, traits: Sequence[Trait], table: mp.NodeTable) -> None:
        self._traits = traits
        self._table = table
        self._nodes = mp.Cursor(table.node_changes)
        views = [trait for trait in traits if isinstance(trait, mp.RowView)]
        self._cursors = [mp.Cursor(view.moved) for view in views]
        self._count()

    def _count(self) -> None:
        """Look at all rows."""
        for cursor in (self._nodes, *self._cursors):
            cursor.changed()
            cursor.commit()
        # How many values each trait has, how many rows there are of each kind, and which.
        self.sizes = self._now_sizes()
        self.of_row: NDArray[np.intp] = np.zeros(self._table.capacity, dtype=np.intp)
        for trait, size in zip(self._traits, self.sizes, strict=True):
            self.of_row *= size
            if isinstance(trait, mp.RowView):
                self.of_row += trait.counts
            elif trait is not None:
                self.of_row += trait.codes
        self.rows: NDArray[np.int64] = np.bincount(self.of_row, minlength=prod(self.sizes))

    def _now_sizes(self) -> list[int]:
        return [_size(trait) for trait in self._traits]

    def refresh(self) -> None:
        """Look at the rows that have other pods, or another node, than at the last look."""
        moved = self._moved()
        if moved is None or len(moved) > MANY:
            self._count()
            return
        for row in moved:
            kind = 0
            for trait, size in zip(self._traits, self.sizes, strict=True):
                kind *= size
                if isinstance(trait, mp.RowView):
                    kind += trait.counts.item(row)
                elif trait is not None:
                    kind += trait.codes.item(row)
            self.rows[self.of_row.item(row)] -= 1
            self.rows[kind] += 1
            self.of_row[row] = kind
        for cursor in self._cursors:
            cursor.commit()

    def _moved(self) -> set[int] | None:
        """The rows to look at again; None for all."""
        if not self._nodes.is_current or self.sizes != self._now_sizes():
            return None
        moved: set[int] = set()
        for cursor in self._cursors:
            rows = cursor.changed()
            if rows is None:
                return None
            moved.update(rows)
        return moved


def _size(trait: Trait) -> int:
    if isinstance(trait, mp.RowView):
        return 1 << trait.most.bit_length()  # With room for more pods.
    return 1 if trait is None else len(trait.values)
