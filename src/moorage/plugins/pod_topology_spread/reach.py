"""Reach: in how many domains of a topology key there are feasible nodes.

Hardly ever does that change from one pod to the next. So one feasible node of each domain is
remembered as a witness: while all of them are feasible still, so are all domains.
"""

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp

# Up to so many witnesses are asked one by one.
FEW = 16


class Reach:
    """See the module."""

    __slots__ = ("_codes", "_nodes", "_witnesses")

    def __init__(self, nodes: mp.DomainSums) -> None:
        # All nodes of the cluster per domain, whether they count for a constraint or not.
        self._nodes = nodes
        self._witnesses: NDArray[np.intp] = np.zeros(0, dtype=np.intp)
        self._codes = self._witnesses

    def size(self, feasible: mp.Mask) -> int:
        """The number of domains; nodes without the label are of the domain of the empty value."""
        nodes, witnesses = self._nodes, self._witnesses
        if nodes.absent == 0 and len(witnesses) == nodes.nonzero and self._stand(feasible):
            return len(witnesses)
        return self._look_around(feasible)

    def _stand(self, feasible: mp.Mask) -> bool:
        witnesses, codes = self._witnesses, self._nodes.column.codes
        if len(witnesses) > FEW:
            return bool(feasible[witnesses].all() and (codes[witnesses] == self._codes).all())
        both = zip(witnesses.tolist(), self._codes.tolist(), strict=True)
        return all(feasible.item(row) and codes.item(row) == code for row, code in both)

    def _look_around(self, feasible: mp.Mask) -> int:
        column = self._nodes.column
        rows = np.flatnonzero(feasible)
        last_seen = np.full(len(column.values), -1)
        last_seen[column.codes[rows]] = rows
        self._codes = np.flatnonzero(last_seen >= 0)
        self._witnesses = last_seen[self._codes]
        empty = column.code_of.get("")
        merged = empty is not None and last_seen[0] >= 0 and last_seen[empty] >= 0
        return len(self._codes) - bool(merged)
