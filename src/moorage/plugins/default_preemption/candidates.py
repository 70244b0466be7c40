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
from moorage.plugins.default_preemption.results import REJECTED, DryRunResults, Figures, figures
from moorage.plugins.default_preemption.sorted_pods import Ints

# Up to so many rows are tried one by one, without array operations.
FEW = 8
# At least so many rows are tried at once; trying many together is cheaper than one by one.
SMALLEST_BLOCK = 64
NO_ROWS: mp.RowArray = np.zeros(0, dtype=np.intp)

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


def find(
    rows: mp.RowArray, needed: int, results: DryRunResults, dry_run: Callable[[mp.RowArray], None]
) -> mp.RowArray:
    """The candidates among rows visited in this order, those that violate no budget first."""
    harmless, harmful = NO_ROWS, NO_ROWS
    start = 0
    # Some of the first rows will not do. If most do not, larger blocks find the others sooner.
    size = max(needed + needed // 2, SMALLEST_BLOCK)
    while start < len(rows):
        visited = rows[start : start + size]
        start, size = start + size, 2 * size
        ranks = results.ranks[visited]
        if ranks.min() < 0:
            dry_run(visited[ranks < 0])
            ranks = results.ranks[visited]
        helps = ranks < REJECTED
        found, harmful_from = visited[helps], results.harmful
        if harmful_from == len(results.figures):
            harmless = _appended(harmless, found[: needed - len(harmless)])
            if len(harmless) == needed:
                break
            continue
        violates = ranks[helps] >= harmful_from
        end = _end(violates, len(harmless), len(harmful), needed)
        harmless = _appended(harmless, found[:end][~violates[:end]])
        harmful = _appended(harmful, found[:end][violates[:end]])
        if end is not None:
            break
    return _appended(harmless[:needed], harmful[:needed])


def _appended(rows: mp.RowArray, more: mp.RowArray) -> mp.RowArray:
    if not len(rows) or not len(more):
        return rows if len(rows) else more
    return np.concatenate((rows, more))


def _end(violates: mp.Mask, harmless: int, harmful: int, needed: int) -> int | None:
    """How many of these candidates it takes until there are enough; None if all do not suffice."""
    good = harmless + np.cumsum(~violates)
    bad = np.minimum(harmful + np.cumsum(violates), needed)
    enough_now = (good > 0) & (np.minimum(good, needed) + bad >= needed)
    return int(enough_now.argmax()) + 1 if enough_now.any() else None


class Choice(NamedTuple):
    """The position of the chosen candidate, and why it was chosen."""

    position: int
    why: str


def choose_row(rows: mp.RowArray, results: DryRunResults) -> Choice:
    """The best of some rows, all of which are candidates."""
    return _best(results.ranks[rows], results.figures)


def choose(candidates: Sequence[mp.Candidate]) -> Choice:
    """The best of candidates whose victims a reviewer may have changed."""
    found = [figures(each) for each in candidates]
    distinct = sorted(set(found))
    return _best(np.array([distinct.index(each) for each in found]), distinct)


def _best(ranks: Ints, compared: Sequence[Figures]) -> Choice:
    """The first candidate of the best rank; `compared` are the figures of every rank."""
    if len(ranks) == 1:
        return Choice(0, ONLY)
    position = int(ranks.argmin())
    best = ranks.item(position)
    others = ranks[ranks != best]
    ties = len(ranks) - len(others) - 1
    if ties:
        text = "another" if ties == 1 else f"{ties} others"
        return Choice(position, TIE.format(others=text))
    # Of all others, the next best is equal in the most criteria.
    pairs = zip(compared[best], compared[int(others.min())], strict=True)
    return Choice(position, REASONS[[one != other for one, other in pairs].index(True)])
