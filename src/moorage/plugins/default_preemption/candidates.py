"""Find candidate nodes by dry runs, and choose the one where preemption does least harm.

Nodes where preemption may help are visited from a random one on. The search ends when there are
enough candidates, with at least one that violates no disruption budget.

The choice compares candidates by one criterion after the other; each keeps only the best. Of
candidates that are equal in all criteria the one that was visited first is chosen.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.default_preemption.results import HELPS, VIOLATIONS, DryRunResults, figures

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


def find(
    rows: mp.RowArray, needed: int, results: DryRunResults, dry_run: Callable[[mp.RowArray], None]
) -> mp.RowArray:
    """The candidates among rows visited in this order, those that violate no budget first."""
    harmless: list[int] = []
    harmful: list[int] = []
    start = 0
    # Some of the first rows will not do. If most do not, larger blocks find the others sooner.
    size = max(needed + needed // 2, SMALLEST_BLOCK)
    while start < len(rows):
        visited = rows[start : start + size]
        start, size = start + size, 2 * size
        dry_run(visited[~results.known[visited]])
        found = visited[results.codes[visited] == HELPS]
        violates = results.figures[VIOLATIONS][found] > 0
        end = _end(violates, len(harmless), len(harmful), needed)
        harmless += found[:end][~violates[:end]].tolist()
        harmful += found[:end][violates[:end]].tolist()
        if end is not None:
            break
    return np.array(harmless[:needed] + harmful[:needed], dtype=np.intp)


def _end(violates: mp.Mask, harmless: int, harmful: int, needed: int) -> int | None:
    """How many of these candidates it takes until there are enough; None if all do not suffice."""
    if not harmful and not violates.any():
        missing = needed - harmless
        return missing if len(violates) >= missing else None
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
    return _best(results.figures.take(rows, axis=1))


def choose(candidates: Sequence[mp.Candidate]) -> Choice:
    """The best of candidates whose victims a reviewer may have changed."""
    return _best(np.array([figures(each) for each in candidates], dtype=np.float64).T)


def _best(compared: NDArray[np.float64]) -> Choice:
    left = np.arange(compared.shape[1])
    if len(left) == 1:
        return Choice(0, ONLY)
    for line, reason in zip(compared, REASONS, strict=True):
        found = line[left]
        left = left[found == found.min()]
        if len(left) == 1:
            return Choice(int(left[0]), reason)
    others = len(left) - 1
    text = "another" if others == 1 else f"{others} others"
    return Choice(int(left[0]), TIE.format(others=text))
