"""What happens when no node fits: Refusal says why to post_filter plugins, PostFiltered is theirs.

A plugin that wants to know what could be done asks the refusal: `what_if` about one node, `suppose`
about many at once.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework.answers import Filtered, PreFiltered
from moorage.framework.beside import Beside
from moorage.framework.effects import Request
from moorage.framework.reasons import Reasons
from moorage.framework.status import Code, Mask, Status, unschedulable
from moorage.framework.supposition import Supposition
from moorage.framework.what_if import WhatIf

KEEP = None  # Leave the pod's nominated node as it is.


@dataclass(frozen=True, slots=True)
class Candidate:
    """A node that the pod would fit if others left it."""

    node: str
    # Those who would have to leave, the most important first.
    victims: tuple[Pod, ...]
    # How many of them a disruption budget protects, and the budgets that do.
    violations: int = 0
    budgets: tuple[str, ...] = ()


class Reviewer(Protocol):
    """Somebody outside who has a word in preemption: an extender with a preempt verb."""

    # Whether it is passed over when it fails.
    ignorable: bool

    def is_interested(self, pod: Pod) -> bool:
        """Whether it wants to be asked about a pod."""

    def review(self, pod: Pod, candidates: Mapping[str, Candidate]) -> Mapping[str, Candidate]:
        """The candidates by node that it leaves, perhaps with other victims; raises if it fails."""


def _nothing_to_ask(row: int) -> WhatIf:
    raise LookupError("no cycle stands behind this refusal")


def _nothing_to_suppose(rows: NDArray[np.intp]) -> None:
    return None


@dataclass(slots=True)
class Refusal:
    """Why a pod fits no node: per-node statuses, and one for nodes that were not looked at."""

    pre: PreFiltered
    filtered: Filtered | None
    absent: Status
    # Verdicts on nodes that are promised to other pods; they come before those of the nodes as
    # they are.
    beside: Beside | None = None
    # All of this together, unless the search was narrowed to a few nodes.
    reasons: Reasons | None = None
    # The rows that were looked at; None stands for all.
    in_question: Mask | None = None
    # The node promised to this pod, if any.
    nominated: str = ""
    # Asks all filters again about the node in a row, with pods added or taken away; pods promised
    # to the node are taken into account as in the cycle itself.
    what_if: Callable[[int], WhatIf] = _nothing_to_ask
    # The same for many rows at once, but for the one promised to this pod; None if a filter cannot
    # be asked like that.
    suppose: Callable[[NDArray[np.intp]], Supposition | None] = _nothing_to_suppose
    # As long as it stays the same, what was found out for the pod's template holds for every row
    # whose pods and promises do not change; None if nothing holds for longer than this cycle.
    stamp: Hashable = None
    # Those who have a word in preemption, in the order in which they are asked.
    reviewers: Sequence[Reviewer] = ()
    # The scheduler's own dice.
    random: Random = field(default_factory=lambda: Random(0))

    def status(self, row: int) -> Status:
        """Why the node in a row was refused."""
        beside = None if self.beside is None else self.beside.status(row)
        if beside is not None:
            return beside
        looked_at = self.in_question is None or self.in_question[row]
        if self.filtered is None or not looked_at:
            return self.absent
        return self.filtered.status(row)

    def having(self, code: Code, rows: NDArray[np.intp]) -> Mask:
        """Which of these rows were refused with a code."""
        if self.reasons is not None:
            return self.reasons.having(code)[rows]
        found = np.full(len(rows), self.absent.code is code)
        if self.filtered is not None and self.in_question is not None:
            for place in np.flatnonzero(self.in_question[rows]).tolist():
                found[place] = self.status(int(rows[place])).code is code
        return found


@dataclass(slots=True)
class PostFiltered:
    """SUCCESS if something was done about it; `nominated` names a node, "" clears, None keeps.

    The `victims` are evicted for the pod, one way or another: those that wait on permit are sent
    back, the others are marked and deleted. `candidates` and `why` are for people who ask.
    """

    status: Status
    nominated: str | None = KEEP
    requests: tuple[Request, ...] = ()
    victims: tuple[Pod, ...] = ()
    candidates: Sequence[Candidate] = ()
    why: str = ""


def run(
    plugins: list[Callable[[], PostFiltered]],
) -> PostFiltered:
    """Ask each in turn until one has done something, or says that nothing can be done."""
    reasons: list[str] = []
    first = ""
    nominated: str | None = KEEP
    for ask in plugins:
        answer = ask()
        status = answer.status
        if status.code not in (Code.UNSCHEDULABLE, Code.PENDING):
            return answer
        first = first or status.plugin
        reasons += status.reasons
        if answer.nominated is not KEEP:
            nominated = answer.nominated
    return PostFiltered(unschedulable(*reasons).by(first), nominated)
