"""Trials: what a dry run found on each row, for one kind of pod, kept until the row changes.

The figures that nodes are compared by are columns, so that looking through thousands of candidates
takes a few array operations; who the victims are is looked up for the one that is chosen.
"""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.default_preemption import importance, victims
from moorage.plugins.default_preemption.crowds import Crowds

Rows = NDArray[np.intp]
Ints = NDArray[np.int64]

HELPS = 0
SINGLY = -1
MOST_TOGETHER = 64
# Makes every priority positive, so that fewer victims of negative priority are better than more.
OFFSET = 1 << 31


class Victims(NamedTuple):
    """Who would have to leave some rows, for when somebody wants to know."""

    table: mp.NodeTable
    crowds: Crowds
    # For each of these rows, who of its pods is a victim, and what was violated where.
    chosen: NDArray[np.bool_]
    places: Rows
    violated: list[victims.Violated]

    def candidate(self, row: int, i: int) -> mp.Candidate:
        """All about a row, which is the i-th of these."""
        crowd = self.crowds.on(row)
        leaving = [crowd[place].pod for place in np.flatnonzero(self.chosen[i]).tolist()]
        violated = self.violated[int(self.places[i])]
        return victims.candidate(self.table.name(row), leaving, violated)


class Trials:
    """See the module."""

    def __init__(self, capacity: int) -> None:
        self.fresh: mp.Mask = np.zeros(capacity, dtype=np.bool_)
        # HELPS, or why not, as an index into the statuses.
        self.codes: Ints = np.zeros(capacity, dtype=np.int64)
        # What candidates are compared by, in this order; see `choice`.
        self.violations: Ints = np.zeros(capacity, dtype=np.int64)
        self.top_priority: Ints = np.zeros(capacity, dtype=np.int64)
        self.priority_sum: Ints = np.zeros(capacity, dtype=np.int64)
        self.victim_count: Ints = np.zeros(capacity, dtype=np.int64)
        self.started_at: NDArray[np.float64] = np.zeros(capacity)
        # Who the victims are: row by row, or together with many others, at which place there.
        self._candidates: dict[int, mp.Candidate] = {}
        self._together: list[Victims] = []
        self._found_in: Ints = np.full(capacity, SINGLY)
        self._found_at: Ints = np.zeros(capacity, dtype=np.int64)
        self._statuses: list[mp.Status] = [mp.SUCCESS]
        self._code_of: dict[mp.Status, int] = {}

    def forget(self, rows: Sequence[int]) -> None:
        """Look at these rows again when they are next asked for."""
        if rows:
            self.fresh[rows] = False

    @property
    def is_littered(self) -> bool:
        """Whether too much is kept of rows that were tried together long ago."""
        return len(self._together) > MOST_TOGETHER

    def candidate(self, row: int) -> mp.Candidate:
        """The victims on a row where preemption helps."""
        together = int(self._found_in[row])
        if together == SINGLY:
            return self._candidates[row]
        return self._together[together].candidate(row, int(self._found_at[row]))

    def record(self, row: int, outcome: mp.Candidate | mp.Status) -> None:
        """Take note of what was found on a row."""
        self.fresh[row] = True
        if isinstance(outcome, mp.Status):
            self.codes[row] = self._code(outcome)
            return
        self.codes[row] = HELPS
        self._candidates[row] = outcome
        self._found_in[row] = SINGLY
        (
            self.violations[row],
            self.top_priority[row],
            self.priority_sum[row],
            self.victim_count[row],
            self.started_at[row],
        ) = figures(outcome)

    def record_refused(self, rows: Rows, status: mp.Status) -> None:
        """The same for many rows where preemption does not help, and why."""
        self.fresh[rows] = True
        self.codes[rows] = self._code(status)

    def record_together(self, rows: Rows, found: Victims) -> None:
        """The same for many rows where it helps, and whose figures are noted."""
        self.fresh[rows] = True
        self.codes[rows] = HELPS
        self._found_in[rows] = len(self._together)
        self._found_at[rows] = np.arange(len(rows))
        self._together.append(found)

    def refusals(self, rows: Rows) -> Counter[mp.Status]:
        """Why preemption does not help on these rows, and how often that is the reason."""
        codes, counts = np.unique(self.codes[rows], return_counts=True)
        found = zip(codes.tolist(), counts.tolist(), strict=True)
        return Counter({self._statuses[code]: n for code, n in found if code != HELPS})

    def _code(self, status: mp.Status) -> int:
        code = self._code_of.get(status)
        if code is None:
            code = self._code_of[status] = len(self._statuses)
            self._statuses.append(status)
        return code


class Candidates(Sequence[mp.Candidate]):
    """Candidates in order; who the victims are is worked out for those that are asked for."""

    def __init__(self, trials: Trials, rows: Rows) -> None:
        self._trials = trials
        self._rows = rows.tolist()

    def __len__(self) -> int:
        return len(self._rows)

    @overload
    def __getitem__(self, place: int) -> mp.Candidate: ...

    @overload
    def __getitem__(self, place: slice) -> list[mp.Candidate]: ...

    def __getitem__(self, place: int | slice) -> mp.Candidate | list[mp.Candidate]:
        if isinstance(place, slice):
            return [self._trials.candidate(row) for row in self._rows[place]]
        return self._trials.candidate(self._rows[place])


def figures(candidate: mp.Candidate) -> tuple[int, int, int, int, float]:
    """What a candidate is compared by: violations, top priority, sum, number, start."""
    leaving = candidate.victims
    total = sum(victim.priority + OFFSET for victim in leaving)
    highest = max(victim.priority for victim in leaving)
    started = min(importance.started_at(v) for v in leaving if v.priority == highest)
    return candidate.violations, leaving[0].priority, total, len(leaving), started
