"""Dry run: victims on many rows at once.

The same steps as on one node (see `victims`), each for all rows together: the pods of lower
priority leave, and come back place by place. It takes a few array operations per place, however
many rows there are. The results are the same, pod by pod.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.default_preemption import victims
from moorage.plugins.default_preemption.budgets import Budgets
from moorage.plugins.default_preemption.crowds import Crowds
from moorage.plugins.default_preemption.trials import OFFSET, Rows, Trials, Victims

Ints = NDArray[np.int64]
# A row of the matrix per row of the table, a column per place in the order of importance.
Matrix = NDArray[np.bool_]


@dataclass(slots=True)
class DryRun:
    """Many rows, tried together."""

    table: mp.NodeTable
    rows: Rows
    supposed: mp.Supposition
    # Who is there, who of them may have to leave, and whose eviction violates a budget.
    crowds: Crowds
    numbers: Ints
    lower: Matrix
    violating: Matrix
    violated: list[victims.Violated]

    @classmethod
    def of(
        cls, pod: mp.Pod, rows: Rows, supposed: mp.Supposition, crowds: Crowds, budgets: Budgets
    ) -> "DryRun":
        """The pods on some rows, as far as they matter to a pod that wants to go there."""
        width = int((crowds.numbers[rows] != 0).sum(axis=1).max(initial=1))
        numbers = crowds.numbers[rows, :width]
        lower = (numbers != 0) & (crowds.priorities[rows, :width] < pod.priority)
        violating = np.zeros_like(lower)
        violated: list[victims.Violated] = [{}] * len(rows)
        if budgets:
            violated = [_violated(crowds, row, pod, budgets) for row in rows.tolist()]
            for i, found in enumerate(violated):
                if found:
                    uids = [each.pod.uid for each in crowds.on(int(rows[i]))]
                    violating[i, : len(uids)] = [uid in found for uid in uids]
        return cls(crowds.table, rows, supposed, crowds, numbers, lower, violating, violated)

    def run(self, trials: Trials) -> None:
        """Find the victims, or why there are none, for all rows."""
        leaving: mp.Mask = np.any(self.lower, axis=1)
        self._shift(np.where(self.lower, self.numbers, 0), -1)
        helps = leaving & self.supposed.fits()
        self._record_refused(trials, leaving, helps)
        victim = np.zeros_like(self.lower)
        for chosen in (self.violating, ~self.violating):
            self._let_stay(self.lower & chosen & helps[:, None], victim)
        self._record(trials, helps, victim)

    def _shift(self, numbers: Ints, sign: int) -> None:
        self.supposed.shift(numbers, self.crowds.book, sign)

    def _let_stay(self, coming: Matrix, victim: Matrix) -> None:
        """Let pods come back, the most important first, where the pod fits all the same."""
        for place in np.flatnonzero(coming.any(axis=0)).tolist():
            numbers = np.where(coming[:, place], self.numbers[:, place], 0)
            self._shift(numbers, 1)
            numbers[self.supposed.fits()] = 0
            if numbers.any():
                self._shift(numbers, -1)
                victim[:, place] |= numbers != 0

    def _record_refused(self, trials: Trials, leaving: mp.Mask, helps: mp.Mask) -> None:
        if not helps.all():
            for status, places in self.supposed.refusals():
                trials.record_refused(self.rows[places], status)
            trials.record_refused(self.rows[~leaving], victims.NO_VICTIMS)

    def _record(self, trials: Trials, helps: mp.Mask, victim: Matrix) -> None:
        found = victim.any(axis=1)
        for i in np.flatnonzero(helps & ~found).tolist():
            row = int(self.rows[i])
            trials.record(row, victims.none_needed(self.table.name(row)))
        places = np.flatnonzero(found)
        rows, victim = self.rows[places], victim[places]
        self._record_figures(trials, rows, victim, self.violating[places])
        trials.record_together(
            rows, Victims(self.table, self.crowds, victim, places, self.violated)
        )

    def _record_figures(
        self, trials: Trials, rows: Rows, victim: Matrix, violating: Matrix
    ) -> None:
        """Take note of what candidates are compared by."""
        width = victim.shape[1]
        priorities = self.crowds.priorities[rows, :width]
        # The first victim is the most important one.
        top = priorities[np.arange(len(rows)), victim.argmax(axis=1)]
        on_top = victim & (priorities == top[:, None])
        started_at = np.where(on_top, self.crowds.started_at[rows, :width], np.inf)
        trials.violations[rows] = (victim & violating).sum(axis=1)
        trials.top_priority[rows] = top
        trials.priority_sum[rows] = np.where(victim, priorities + OFFSET, 0).sum(axis=1)
        trials.victim_count[rows] = victim.sum(axis=1)
        trials.started_at[rows] = started_at.min(axis=1, initial=np.inf)


def _violated(crowds: Crowds, row: int, pod: mp.Pod, budgets: Budgets) -> victims.Violated:
    lower = [each.pod for each in crowds.on(row) if each.pod.priority < pod.priority]
    return budgets.violated_by(lower)
