"""ResourceNumbers: the resources of every row as one number.

Rows whose nodes have the same allocatable amounts, and whose pods are as many and request the same,
have equal numbers. A cluster has few kinds of nodes and workloads few sizes of pods, so a number is
most often known from another row, and so is what plugins computed for it.
"""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from moorage.nodes.usage import Usage

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable

UNKNOWN = -1
# Beyond that, known ones are dropped: in a cluster with that many, few come again.
MOST_KNOWN = 1 << 16

Step = tuple[int, Usage, int]


class ResourceNumbers:
    """See the module. A number is never used again for other resources."""

    def __init__(self, table: "NodeTable") -> None:
        self._table = table
        self._of_row = [UNKNOWN] * table.capacity
        # By the amounts of a row, and by the number before a pod came (1) or left (-1).
        self._by_amounts: dict[tuple[int, ...], int] = {}
        self._by_step: dict[Step, int] = {}
        # The last step of rows whose number was not asked for since.
        self._steps: dict[int, Step] = {}
        # What the node of each row has allocatable: a number of its own, by which empty rows have
        # theirs.
        self._sizes = [UNKNOWN] * table.capacity
        self._by_size: dict[tuple[tuple[str, int], ...], int] = {}
        self._empty: dict[int, int] = {}
        self._last = UNKNOWN

    def of(self, row: int) -> int:
        """The number of a row."""
        number = self._of_row[row]
        return self._find(row) if number == UNKNOWN else number

    def _find(self, row: int) -> int:
        amounts = self._amounts(row)
        number = self._by_amounts.get(amounts)
        if number is None:
            if len(self._by_amounts) >= MOST_KNOWN:
                self._by_amounts.clear()
            number = self._by_amounts[amounts] = self._new()
        step = self._steps.pop(row, None)
        if step is not None:
            if len(self._by_step) >= MOST_KNOWN:
                self._by_step.clear()
            self._by_step[step] = number
        self._of_row[row] = number
        return number

    def _new(self) -> int:
        self._last += 1
        return self._last

    def _amounts(self, row: int) -> tuple[int, ...]:
        table = self._table
        return (
            self._sizes[row],
            len(table.placed[row]),
            *[amounts[row] for amounts in table.requested_columns.lists],
            *[amounts[row] for amounts in table.nonzero_columns.lists],
        )

    def pod_changed(self, row: int, usage: Usage, sign: int) -> None:
        """A pod came to a row (1), or left it (-1)."""
        number = self._of_row[row]
        if number == UNKNOWN:
            if self._steps:
                self._steps.pop(row, None)
            return
        step = (number, usage, sign)
        after = self._by_step.get(step)
        if after is None:
            self._of_row[row], self._steps[row] = UNKNOWN, step
        else:
            self._of_row[row] = after

    def pods_came(self, rows: Iterable[int]) -> None:
        """Many pods came to these rows."""
        for row in rows:
            self._of_row[row] = UNKNOWN
            self._steps.pop(row, None)

    def node_changed(self, row: int, allocatable: Mapping[str, int]) -> None:
        """The node of a row changed."""
        content = tuple(sorted(allocatable.items()))
        size = self._sizes[row] = self._by_size.setdefault(content, len(self._by_size))
        self._steps.pop(row, None)
        if self._table.placed[row]:
            self._of_row[row] = UNKNOWN
            return
        number = self._empty.get(size)
        if number is None:
            number = self._empty[size] = self._new()
        self._of_row[row] = number

    def grow(self, capacity: int) -> None:
        """Add rows up to a capacity."""
        more = [UNKNOWN] * (capacity - len(self._of_row))
        self._of_row += more
        self._sizes += more

    def restart(self) -> None:
        """Number all rows anew: what readers derived from the old numbers holds no more."""
        self._of_row = [UNKNOWN] * len(self._of_row)
        for known in (self._by_amounts, self._by_step, self._steps, self._empty):
            known.clear()
