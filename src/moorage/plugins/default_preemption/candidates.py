"""Find candidate nodes by dry runs, and choose the one where preemption does least harm.

Nodes where preemption may help are visited from a random one on. The search ends when there are
enough candidates, with at least one that violates no disruption budget.

The choice compares candidates by one criterion after the other; each keeps only the best. Of
candidates that are equal in all criteria the one that was visited first is chosen.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

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
FEW = 8
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


class Found(NamedTuple):
    """Rows that are candidates, those that violate no budget first, and the rank of each."""

    rows: mp.RowArray
    ranks: Ints


def find(
    rows: mp.RowArray, needed: int, results: DryRunResults, dry_run: Callable[[mp.RowArray], None]
) -> Found:
    """The candidates among rows visited in this order."""
    # Some of the first rows will not do. If most do not, larger blocks find the others sooner.
    size = max(needed + needed // 2, SMALLEST_BLOCK)
    while True:
        visited = rows[:size]
        ranks = results.ranks[visited]
        if ranks.item(ranks.argmin()) == UNTRIED:
            dry_run(visited[ranks == UNTRIED])
            ranks = results.ranks[visited]
        helps = (ranks < REJECTED).nonzero()[0]
        harmful = results.harmful
        if harmful < len(results.figures):
            helps, is_enough = _harmless_first(helps, ranks[helps] >= harmful, needed)
        else:
            helps, is_enough = helps[:needed], len(helps) >= needed
        if is_enough or size >= len(rows):
            return Found(visited[helps], ranks[helps])
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
