"""Search: dry runs on as many nodes as it takes to find good candidates.

Nodes that preemption may help are visited from a random one on. Once there are enough candidates,
and one at least that violates no disruption budget, the others are left alone.
"""

from collections.abc import Callable

import numpy as np

from moorage import plugin as mp
from moorage.plugins.default_preemption.trials import HELPS, Rows, Trials

# Up to so many rows are tried one by one, and at once.
FEW = 8
# At least so many rows are tried at once; trying many together is cheaper than one by one.
SMALLEST_BLOCK = 64


def enough(nodes: int, percentage: int, absolute: int) -> int:
    """How many candidates are enough for that many nodes that may help."""
    return min(max(nodes * percentage // 100, absolute), nodes)


def candidates(rows: Rows, wanted: int, trials: Trials, try_out: Callable[[Rows], None]) -> Rows:
    """The candidates among rows visited in this order, those that harm no budget first."""
    harmless: list[int] = []
    harmful: list[int] = []
    start = 0
    # Not all of the first ones will do; and if most do not, the others are looked at quickly.
    size = max(wanted + wanted // 2, SMALLEST_BLOCK)
    while start < len(rows):
        visited = rows[start : start + size]
        start, size = start + size, 2 * size
        try_out(visited[~trials.fresh[visited]])
        found = visited[trials.codes[visited] == HELPS]
        violates = trials.violations[found] > 0
        end = _end(violates, len(harmless), len(harmful), wanted)
        harmless += found[:end][~violates[:end]].tolist()
        harmful += found[:end][violates[:end]].tolist()
        if end is not None:
            break
    return np.array(harmless[:wanted] + harmful[:wanted], dtype=np.intp)


def _end(violates: mp.Mask, harmless: int, harmful: int, wanted: int) -> int | None:
    """How many of these candidates it takes until there are enough; None if all do not suffice."""
    if not harmful and not violates.any():
        missing = wanted - harmless
        return missing if len(violates) >= missing else None
    good = harmless + np.cumsum(~violates)
    bad = np.minimum(harmful + np.cumsum(violates), wanted)
    enough_now = (good > 0) & (np.minimum(good, wanted) + bad >= wanted)
    return int(enough_now.argmax()) + 1 if enough_now.any() else None
