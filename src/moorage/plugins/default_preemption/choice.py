"""Choice: of several nodes where preemption helps, the one where it does least harm.

The criteria are asked in order; each keeps only the best, until one is left. What nothing tells
apart is decided by the order in which the nodes were looked at.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.default_preemption.trials import Rows, Trials, figures

# For each criterion, why who is best in it is chosen.
REASONS = (
    "it goes against the fewest disruption budgets",
    "the most important pod that has to leave is less important than elsewhere",
    "the priorities of the pods that have to leave add up to the least",
    "the fewest pods have to leave",
    "the most important pod that has to leave was started last",
)
ONLY = "there is no other node where it helps"
TIE = "nothing tells it from {others}, and it was looked at first"


class Choice(NamedTuple):
    """A place among the candidates, and why it is that one."""

    place: int
    why: str


def among_rows(rows: Rows, trials: Trials) -> Choice:
    """The best of some rows, all of which are candidates."""
    return _best(
        trials.violations[rows],
        trials.top_priority[rows],
        trials.priority_sum[rows],
        trials.victim_count[rows],
        -trials.started_at[rows],
    )


def among(candidates: Sequence[mp.Candidate]) -> Choice:
    """The same for candidates that somebody else has had a word in."""
    columns = np.array([figures(each) for each in candidates], dtype=object).T
    return _best(*(column.astype(np.int64) for column in columns[:4]), -columns[4].astype(float))


def _best(*columns: NDArray[Any]) -> Choice:
    places = np.arange(len(columns[0]))
    if len(places) == 1:
        return Choice(0, ONLY)
    for column, reason in zip(columns, REASONS, strict=True):
        found = column[places]
        places = places[found == found.min()]
        if len(places) == 1:
            return Choice(int(places[0]), reason)
    others = len(places) - 1
    word = "another" if others == 1 else f"{others} others"
    return Choice(int(places[0]), TIE.format(others=word))
