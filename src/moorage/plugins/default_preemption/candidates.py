"""Find candidate nodes by dry runs, and choose the one where preemption does least harm.

Nodes where preemption may help are visited from a random one on. The search ends when there are
enough candidates, with at least one that violates no disruption budget.

The choice compares candidates by one criterion after the other; each keeps only the best. Of
candidates that are equal in all criteria the one that was visited first is chosen.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from moorage import plugin as mp
from moorage.plugins.default_preemption.results import (
    REJECTED,
    UNTRIED,
    DryRunResults,
    Figures,
    figures,
)
from moorage.plugins.default_preemption.sorted_pods import Ints

# Up to so many rows are tried one by one, without array operations.
FEW = 16
# At least so many rows are tried at once; trying many together is cheaper than one by one.
SMALLEST_BLOCK = 64

# For each criterion, why the node that is best in it is chosen.
REASONS = (
    "it violates the fewest disruption budgets",
    "the highest priority of its victims is lower than elsewhere",
    "the sum of its victims' priorities is the lowest",
    "it has the fewest victims",
    "its victim with the highest priority started last",
)
ONLY = "preemption helps on no other node"
TIE = "it equals {others} in every criterion and was evaluated first"


def enough(nodes: int, percentage: int, absolute: int) -> int:
    """How many candidates are enough if preemption may help on that many nodes."""
    return min(max(nodes * percentage // 100, absolute), nodes)


class Found:
    """Rows with their ranks. Those where preemption helps are candidates, up to a number.

    Most often only the best of them is read, so the others are looked for when they are.
    """

    __slots__ = ("_harmful", "_most", "_ranks", "_visited", "best", "rank")

    def __init__(
        self, visited: mp.RowArray, ranks: Ints, most: int, best: int, harmful: int
    ) -> None:
        self._visited = visited
        self._ranks = ranks
        self._most = most
        # From which rank on candidates violate budgets.
        self._harmful = harmful
        # The row of the first candidate of the best rank; None if there is no candidate. It is the
        # best of all rows, unless there are enough candidates before it.
        self.best: int | None = None
        if best >= most > 0 and np.count_nonzero(ranks[:best] < REJECTED) >= most:
            best = self._helps().item(int(self.ranks.argmin()))
        self.rank = ranks.item(best) if most else REJECTED
        if self.rank < REJECTED:
            self.best = visited.item(best)

    def _helps(self) -> mp.RowArray:
        helps = (self._ranks < REJECTED).nonzero()[0][: self._most]
        if self._harmful == REJECTED:
            return helps
        violates = self._ranks[helps] >= self._harmful
        return np.concatenate((helps[~violates], helps[violates]))

    @property
    def rows(self) -> mp.RowArray:
        """The rows of the candidates, those that violate no budget first."""
        return self._visited[self._helps()]

    @property
    def ranks(self) -> Ints:
        """The ranks of the candidates."""
        return self._ranks[self._helps()]


def find(
    rows: mp.RowArray, needed: int, results: DryRunResults, dry_run: Callable[[mp.RowArray], None]
) -> Found:
    """The candidates among rows visited in this order."""
    # Some of the first rows will not do. If most do not, larger blocks find the others sooner.
    size = max(needed + needed // 2, SMALLEST_BLOCK)
    while True:
        visited = rows[:size]
        ranks = results.ranks.take(visited)
        best = int(ranks.argmin())
        if ranks.item(best) == UNTRIED:
            dry_run(visited[ranks == UNTRIED])
            ranks = results.ranks.take(visited)
            best = int(ranks.argmin())
        harmful = results.harmful if results.has_harmful else REJECTED
        found = Found(visited, ranks, needed, best, harmful)
        # If none is needed, all rows are tried and none is a candidate, as in kube-scheduler.
        is_enough = 0 < needed <= int(np.count_nonzero(ranks < REJECTED))
        if is_enough and found.rank >= harmful:
            # All of these violate budgets: the search goes on to a candidate that does not.
            helps = (ranks < REJECTED).nonzero()[0]
            violates = ranks[helps] >= harmful
            helps, is_enough = _harmless_first(helps, violates, needed)
            visited, ranks = visited[helps], ranks[helps]
            found = Found(visited, ranks, len(helps), int(ranks.argmin()), harmful)
        if is_enough or size >= len(rows):
            return found
        size *= 3


def _harmless_first(helps: mp.RowArray, violates: mp.Mask, needed: int) -> tuple[mp.RowArray, bool]:
    """The candidates that violate no budget, then the others; and whether they are enough."""
    good = np.cumsum(~violates)
    bad = np.minimum(np.cumsum(violates), needed)
    enough_now = (good > 0) & (np.minimum(good, needed) + bad >= needed)
    is_enough = bool(enough_now.any())
    if is_enough:
        end = int(enough_now.argmax()) + 1
        helps, violates = helps[:end], violates[:end]
    return np.concatenate((helps[~violates][:needed], helps[violates][:needed])), is_enough


class Choice(NamedTuple):
    """The position of the chosen candidate, and why it was chosen."""

    position: int
    why: str


class Candidates(Sequence[mp.Candidate]):
    """Candidates in order; their victims are looked up when a candidate is read."""

    def __init__(self, results: DryRunResults, found: Found) -> None:
        self._results = results
        self._found = found

    @cached_property
    def _rows(self) -> mp.RowArray:
        return self._found.rows

    def __len__(self) -> int:
        return len(self._rows)

    def __getitem__(self, index: Any) -> Any:
        """One candidate, or a list of those in a slice."""
        if isinstance(index, slice):
            return [self._results.candidate(row) for row in self._rows[index].tolist()]
        return self._results.candidate(int(self._rows[index]))

    def why(self) -> str:
        """Why the best is the best."""
        return best(self._found.ranks, self._results.figures).why


def choose(candidates: Sequence[mp.Candidate]) -> Choice:
    """The best of candidates whose victims a reviewer may have changed."""
    found = [figures(each) for each in candidates]
    distinct = sorted(set(found))
    return best(np.array([distinct.index(each) for each in found]), distinct)


def best(ranks: Ints, compared: Sequence[Figures]) -> Choice:
    """The first candidate of the best rank; `compared` are the figures of every rank."""
    if len(ranks) == 1:
        return Choice(0, ONLY)
    position = int(ranks.argmin())
    first = ranks.item(position)
    ties = int(np.count_nonzero(ranks == first)) - 1
    if ties:
        text = "another" if ties == 1 else f"{ties} others"
        return Choice(position, TIE.format(others=text))
    # Of all others, the next best is equal in the most criteria.
    second = int(ranks[ranks != first].min())
    pairs = zip(compared[first], compared[second], strict=True)
    return Choice(position, REASONS[[one != other for one, other in pairs].index(True)])
