"""Victims on many rows at once.

The same steps as on one node (see `victims`), each for all rows together: the pods of lower
priority are removed, then added back in order of importance. A step takes a few array operations,
however many rows there are. The results are the same, pod by pod.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.default_preemption import victims
from moorage.plugins.default_preemption.results import OFFSET, BlockVictims, DryRunResults, Figures
from moorage.plugins.default_preemption.sorted_pods import Ints, SortedPods
from moorage.plugins.disruption_budgets import Budgets, Violated

# A line per row of the table, a column per position in the order of importance.
Matrix = NDArray[np.bool_]


@dataclass(slots=True)
class PreemptionDryRun:
    """Many rows, tried together."""

    table: mp.NodeTable
    rows: mp.RowArray
    what_if: mp.HypotheticalVerdicts
    # The pods, those of lower priority, and those whose eviction violates a budget.
    pods: SortedPods
    numbers: Ints
    lower: Matrix
    violating: Matrix
    violated: list[Violated]
    # How many pods have a lower priority, for each row; empty without budgets.
    lowers: list[int]

    @classmethod
    def of(
        cls,
        pod: mp.Pod,
        rows: mp.RowArray,
        what_if: mp.HypotheticalVerdicts,
        pods: SortedPods,
        budgets: Budgets,
    ) -> "PreemptionDryRun":
        """A dry run of a preemptor on some rows."""
        width = int((pods.numbers[rows] != 0).sum(axis=1).max(initial=1))
        numbers = pods.numbers[rows, :width]
        lower = (numbers != 0) & (pods.priorities[rows, :width] < pod.priority)
        violating = np.zeros_like(lower)
        violated: list[Violated] = [{}] * len(rows)
        lowers: list[int] = []
        if budgets:
            lowers = lower.sum(axis=1).tolist()
            for i, row in enumerate(rows.tolist()):
                # Those of lower priority are the last in the order of importance.
                placed = pods.placed[row]
                found = budgets.violated_by(placed[len(placed) - lowers[i] :])
                if found:
                    violated[i] = found
                    violating[i, : len(placed)] = [each.pod.uid in found for each in placed]
        return cls(pods.table, rows, what_if, pods, numbers, lower, violating, violated, lowers)

    def run(self, results: DryRunResults) -> None:
        """Find the victims, or why there are none, for all rows."""
        leaving: mp.Mask = np.any(self.lower, axis=1)
        self._shift(np.where(self.lower, self.numbers, 0), -1)
        helps = leaving & self.what_if.fits()
        if not helps.all():
            for status, places in self.what_if.rejections():
                results.record_rejected(self.rows[places], status)
            results.record_rejected(self.rows[~leaving], victims.NO_VICTIMS)
        victim = np.zeros_like(self.lower)
        for chosen in (self.violating, ~self.violating):
            self._add_back(self.lower & chosen & helps[:, None], victim)
        self._record(results, helps, victim)

    def _shift(self, numbers: Ints, sign: int) -> None:
        self.what_if.shift(numbers, self.pods.usages, sign)

    def _add_back(self, added: Matrix, victim: Matrix) -> None:
        """Add pods back, the most important first; mark those with which the pod does not fit."""
        for place in np.flatnonzero(added.any(axis=0)).tolist():
            numbers = np.where(added[:, place], self.numbers[:, place], 0)
            self._shift(numbers, 1)
            numbers[self.what_if.fits()] = 0
            if numbers.any():
                self._shift(numbers, -1)
                victim[:, place] |= numbers != 0

    def _record(self, results: DryRunResults, helps: mp.Mask, victim: Matrix) -> None:
        found = victim.any(axis=1)
        for i in np.flatnonzero(helps & ~found).tolist():
            row = int(self.rows[i])
            results.record(row, victims.none_needed(self.table.name(row)))
        places = np.flatnonzero(found)
        rows, victim = self.rows[places], victim[places]
        block = BlockVictims(self.table, self.pods, victim, places, self.violated, self.lowers)
        results.record_block(rows, self._figures(rows, victim, self.violating[places]), block)

    def _figures(self, rows: mp.RowArray, victim: Matrix, violating: Matrix) -> list[Figures]:
        """What candidates are compared by."""
        width = victim.shape[1]
        priorities = self.pods.priorities[rows, :width]
        # The first victim is the most important one.
        top = priorities[np.arange(len(rows)), victim.argmax(axis=1)]
        on_top = victim & (priorities == top[:, None])
        started_at = np.where(on_top, self.pods.started_at[rows, :width], np.inf)
        columns = (
            (victim & violating).sum(axis=1),
            top,
            np.where(victim, priorities + OFFSET, 0).sum(axis=1),
            victim.sum(axis=1),
            -started_at.min(axis=1, initial=np.inf),
        )
        return [*zip(*[column.tolist() for column in columns], strict=True)]
