"""Points per topology domain, and how they become 0 to 100."""

from collections.abc import Iterable
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp


class Points:
    """Weighted counts per domain, one array for every topology key."""

    __slots__ = ("_by_key",)

    def __init__(self, weighted: Iterable[tuple[int, mp.DomainView]]) -> None:
        self._by_key: dict[str, NDArray[np.int64]] = {}
        for weight, view in weighted:
            points = self._by_key.get(view.column.key)
            if points is None:
                self._by_key[view.column.key] = weight * view.sums
            else:
                points += weight * view.sums

    def of(self, node: mp.NodeInfo) -> int:
        """A node's points: the sum over the domains that it is in."""
        domains = [(points, node.table.label(key)) for key, points in self._by_key.items()]
        return sum(int(points[column.codes[node.row]]) for points, column in domains)

    def of_all(self, rows: mp.Rows) -> mp.Scores:
        """The points of many nodes."""
        total: NDArray[np.int64] | None = None
        for key, points in self._by_key.items():
            spread = points.take(rows.domains(key))
            total = spread if total is None else total + spread
        return np.zeros(len(rows), dtype=np.int64) if total is None else total


class MinMax(Struct, frozen=True):
    """The least gets 0 and the most 100; where all are equal, all get 0.

    In floating point, division first, cut off and not rounded: 29 of 100 becomes 28.
    """

    def summarize(self, feasible: mp.Scores) -> tuple[int, int]:
        """The least and the most."""
        return (int(feasible.min()), int(feasible.max())) if len(feasible) else (0, 0)

    def apply(self, raw: Any, summary: tuple[int, int]) -> Any:
        """One score or an array of them."""
        least, most = summary
        if least == most:
            return raw * 0
        scaled = float(mp.BEST) * ((raw - least) / (most - least))
        return scaled.astype(np.int64) if isinstance(scaled, np.ndarray) else int(scaled)
