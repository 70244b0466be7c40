"""What happens when no node fits: post_filter plugins get a NoFeasibleNode, which says why, and
return a PostFiltered. A plugin that looks for a way out asks `failure.what_if`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Protocol

import numpy as np
from msgspec import Struct, field

from moorage.api.pod import Pod
from moorage.api.server_requests import Request
from moorage.framework.status import SUCCESS, Code, Mask, Status
from moorage.framework.views.feasible import FeasibleRows
from moorage.framework.views.nominated import NominatedPodsCheck
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.views.rejections import RejectionCounts
from moorage.framework.views.view import RowArray
from moorage.framework.what_if import WhatIf
from moorage.nodes.usage import Placed

KEEP = None  # Leave the pod's nominated node as it is.


class Candidate(Struct, frozen=True):
    """A node that the pod would fit if other pods left it."""

    node: str
    # The pods that would have to leave, the most important first.
    victims: tuple[Pod, ...]
    # How many of them a disruption budget protects, and those budgets.
    violations: int = 0
    budgets: tuple[str, ...] = ()


class Reviewer(Protocol):
    """An external reviewer of preemption: an extender with a preempt verb."""

    # Whether it is ignored when it fails.
    ignorable: bool

    def is_interested(self, pod: Pod) -> bool:
        """Whether it reviews preemption for a pod."""

    def review(self, pod: Pod, candidates: Mapping[str, Candidate]) -> Mapping[str, Candidate]:
        """The candidates by node that it leaves, perhaps with other victims; raises if it fails."""


class NoFeasibleNode(Struct, eq=False):
    """Why a pod fits no node: a status per node, and one for nodes that were not searched."""

    pre: PreFiltered
    filtered: FeasibleRows | None
    absent: Status
    # Runs filters again with pods added or removed.
    what_if: WhatIf
    # Verdicts on nodes with nominated pods; they come before those on the nodes as they are.
    check: NominatedPodsCheck | None = None
    # All of this together, unless the search was narrowed to some nodes.
    counts: RejectionCounts | None = None
    # The rows that were searched; None stands for all.
    searched: Mask | None = None
    # The node nominated to this pod, if any.
    nominated: str = ""
    # The reviewers of preemption, in the order in which they are called.
    reviewers: Sequence[Reviewer] = ()
    # The scheduler's own random source.
    random: Random = field(default_factory=lambda: Random(0))

    def status(self, row: int) -> Status:
        """Why the node in a row was rejected."""
        beside = SUCCESS if self.check is None else self.check.status(row)
        if beside is not SUCCESS:
            return beside
        was_searched = self.searched is None or self.searched[row]
        if self.filtered is None or not was_searched:
            return self.absent
        return self.filtered.status(row)

    def having(self, code: Code, rows: RowArray) -> Mask:
        """Which of these rows were rejected with a code."""
        if self.counts is not None:
            return self.counts.having(code)[rows]
        found = np.full(len(rows), self.absent.code is code)
        if self.filtered is not None and self.searched is not None:
            for position in np.flatnonzero(self.searched[rows]).tolist():
                found[position] = self.status(int(rows[position])).code is code
        return found


class GroupTrial(Protocol):
    """Tries the pods of a group again, with pods removed from nodes; nothing changes in the end."""

    # The nodes of the last trial that succeeded, and those that are nominated to the group's pods.
    nodes: set[str]
    nominated: set[str]

    def remove(self, placed: Iterable[Placed]) -> None:
        """Take pods away."""

    def restore(self, placed: Iterable[Placed]) -> None:
        """Put pods back that were taken away."""

    def status(self, *, anew: bool = False) -> Status:
        """SUCCESS if the group fits now, else why not.

        Unless `anew`, only pods on nodes to which pods were put back need to be tried again.
        """


class PostFiltered(Struct):
    """SUCCESS if something was done about it; `nominated` names a node, "" clears, None keeps.

    The core evicts the `victims`: those that wait on permit are sent back, the others are marked
    and deleted. `candidates` and `why` are for explanations, which call a `why` that is a function;
    both are read before the next decision. The plugins in `rejected_by` count
    among those that rejected the pod: events that they registered requeue it.
    """

    status: Status
    nominated: str | None = KEEP
    requests: tuple[Request, ...] = ()
    victims: tuple[Pod, ...] = ()
    candidates: Sequence[Candidate] = ()
    why: str | Callable[[], str] = ""
    rejected_by: tuple[str, ...] = ()
