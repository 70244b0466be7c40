"""The score: weighted counts per domain, added up; normalised to 0 to 100."""

from collections.abc import Iterable
from operator import add
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp

# Up to so many scores are compared one by one.
FEW_SCORES = 128

Weighted = Iterable[tuple[int, mp.DomainView]]


class AffinityScores:
    """Weighted counts per domain of every topology key."""

    def __init__(self, weighted: Weighted) -> None:
        self._views: dict[mp.LabelColumn, list[tuple[int, mp.DomainView]]] = {}
        for weight, view in weighted:
            self._views.setdefault(view.column, []).append((weight, view))

    def of(self, node: mp.NodeInfo) -> int:
        """A node's points: the sum over the domains that it is in."""
        domains = [(views, column.codes.item(node.row)) for column, views in self._views.items()]
        return sum([w * view.sums.item(code) for views, code in domains for w, view in views])

    def of_all(self, rows: mp.Rows) -> mp.Scores:
        """The points of many nodes."""
        columns = self._views.items()
        return sum(
            [_by_domain(views).take(rows.domains(column.key)) for column, views in columns],
            np.zeros(len(rows), dtype=np.int64),
        )

    @property
    def group_keys(self) -> tuple[mp.GroupKey, ...]:
        """What nodes with equal points agree in: their domain, or the pods in it."""
        keys: list[mp.GroupKey] = []
        for column, views in self._views.items():
            keys += [column] if column.has_few_values else [view for _, view in views]
        return tuple(keys)

    def of_groups(self, groups: mp.Groups) -> list[int]:
        """The points of groups of nodes; without the label, a node has none."""
        points: list[int] | None = None
        for column, views in self._views.items():
            if column.has_few_values:
                by_domain = _by_domain(views).tolist()
                parts = [[*map(by_domain.__getitem__, groups.of(column))]]
            else:
                parts = [
                    [weight * count if count > 0 else 0 for count in groups.of(view)]
                    for weight, view in views
                ]
            for part in parts:
                points = part if points is None else [*map(add, points, part)]
        return points or [0] * len(groups)


def _by_domain(weighted: Weighted) -> NDArray[np.int64]:
    (weight, view), *others = weighted
    return sum([w * other.sums for w, other in others], weight * view.sums)


class MinMax(Struct, frozen=True):
    """The least gets 0 and the most 100; where all are equal, all get 0.

    In floating point, division first, cut off and not rounded: 29 of 100 becomes 28.
    """

    def summarize(self, feasible: mp.Scores) -> tuple[int, int]:
        """The least and the most."""
        if len(feasible) <= FEW_SCORES:
            scores = feasible.tolist()
            return min(scores, default=0), max(scores, default=0)
        return int(feasible.min()), int(feasible.max())

    def apply(self, raw: Any, summary: tuple[int, int]) -> Any:
        """One score or an array of them."""
        least, most = summary
        if least == most:
            return raw * 0
        scaled = float(mp.BEST) * ((raw - least) / (most - least))
        return scaled.astype(np.int64) if isinstance(scaled, np.ndarray) else int(scaled)
