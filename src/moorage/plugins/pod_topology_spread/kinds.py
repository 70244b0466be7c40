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

    __slots__ = ("_nodes_seen", "_positions", "_table", "_traits", "of_row", "rows", "sizes")

    def __init__(self, traits: Sequence[Trait], table: mp.NodeTable) -> None:
        self._traits = traits
        self._table = table
        self._count()

    def _count(self) -> None:
        """Look at all rows."""
        self._nodes_seen = self._table.node_changes.position
        self._positions = self._now()
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

    def _now(self) -> list[int]:
        return [t.moved.position for t in self._traits if isinstance(t, mp.RowView)]

    def _now_sizes(self) -> list[int]:
        return [_size(trait) for trait in self._traits]

    def refresh(self) -> None:
        """Look at the rows that have other pods, or another node, than at the last look."""
        moved = self._moved()
        if moved is None or len(moved) > MANY:
            self._count()
            return
        self._positions = self._now()
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

    def _moved(self) -> set[int] | None:
        """The rows to look at again; None for all."""
        if self._nodes_seen != self._table.node_changes.position:
            return None
        if self.sizes != self._now_sizes():
            return None
        moved: set[int] = set()
        views = [trait for trait in self._traits if isinstance(trait, mp.RowView)]
        for view, position in zip(views, self._positions, strict=True):
            rows = view.moved.since(position)
            if rows is None:
                return None
            moved.update(rows)
        return moved


def _size(trait: Trait) -> int:
    if isinstance(trait, mp.RowView):
        return 1 << trait.most.bit_length()  # With room for more pods.
    return 1 if trait is None else len(trait.values)
