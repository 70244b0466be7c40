"""Decision: the result of a scheduling cycle."""

from itertools import compress

import numpy as np
from msgspec import Struct

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.core import diagnosis
from moorage.core.diagnosis import Diagnosis
from moorage.core.journal import ScoredNode
from moorage.framework.post_filter import PostFiltered
from moorage.framework.profile import Profile
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Status
from moorage.framework.views.feasible import FeasibleRows
from moorage.framework.views.grouped import GroupedScores
from moorage.framework.views.nominated import NominatedPodsCheck
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.views.totals import Scored
from moorage.framework.views.view import RowArray
from moorage.framework.what_if import WhatIf
from moorage.nodes.template import PodTemplate

# Shared by the facts of all decisions for which no filter rejected a node; never changed.
NO_REJECTIONS: dict[str, int] = {}


class Decision(Struct, gc=False):
    """The result of a cycle: a node, or why there is none."""

    pod: Pod
    profile: Profile
    template: PodTemplate
    state: CycleState
    nodes: int
    pre: PreFiltered
    status: Status = SUCCESS
    node: NodeName = NodeName("")
    row: int = -1
    diagnosis: Diagnosis | None = None
    post_filter: PostFiltered | None = None
    # The node nominated to the pod; "" clears the nomination, None leaves it.
    nominated: str | None = ""
    filtered: FeasibleRows | None = None
    # Questions about nodes as they might be, once there were any.
    what_if: WhatIf | None = None
    # Verdicts on nodes with nominated pods, if there are any.
    check: NominatedPodsCheck | None = None
    # The rejected rows that a sampling walk visited; None if all rows were searched.
    rejected: RowArray | None = None
    feasible_count: int = 0
    scored: Scored | GroupedScores | None = None

    @property
    def message(self) -> str:
        """The rejection in one sentence, with what post_filter plugins added."""
        if self.diagnosis is None:
            return self.status.message
        added = self.post_filter.status.message if self.post_filter is not None else ""
        return diagnosis.with_post_filter(self.diagnosis.message, added)

    def verdict(self, row: int) -> Status:
        """Why a row was rejected."""
        beside = SUCCESS if self.check is None else self.check.status(row)
        if beside is not SUCCESS:
            return beside
        assert self.filtered is not None
        return self.filtered.status(row)

    def best_nodes(self, count: int) -> tuple[ScoredNode, ...]:
        """The nodes with the highest totals: the selected one, which is one of them, and others."""
        scored, names = self.scored, self.state.table.names
        if scored is None:
            return ()
        totals = scored.totals
        first = [int(row) for row in (-totals).argsort(kind="stable")[:count] if totals[row] >= 0]
        rows = [*dict.fromkeys((self.row, *first))][:count]
        return tuple([ScoredNode(names[r], scored.total(r), scored.scores(r)) for r in rows])

    @property
    def rejected_beside_nominated(self) -> dict[int, Status]:
        """Nodes that the pod does not fit beside the pods nominated to them."""
        if self.check is None:
            return {}
        rows = np.flatnonzero(self.check.rejects).tolist()
        return {row: self.check.status(row) for row in rows}

    def rejected_by(self) -> dict[str, int]:
        """How many nodes each filter plugin rejected."""
        if self.filtered is None or not self.filtered.rejected_by:
            return NO_REJECTIONS
        counts = self.filtered.rejected_by
        names = self.filtered.names
        return dict(compress(zip(names, counts, strict=False), counts))
