"""Inquiry: one pod's questions about nodes as they might be, in the middle of its cycle."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from moorage.api import claims
from moorage.api.pod import Pod
from moorage.framework.answers import Filtered, PreFiltered
from moorage.framework.points import Depends
from moorage.framework.profile import Profile
from moorage.framework.promises import Promises
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Status
from moorage.framework.supposition import Supposition
from moorage.framework.what_if import WhatIf

Rows = NDArray[np.intp]


@dataclass(slots=True)
class Inquiry:
    """See the module."""

    profile: Profile
    state: CycleState
    pod: Pod
    pre: PreFiltered
    # What all filters say of the nodes as they are, once they were asked.
    filtered: Filtered | None
    promises: Promises
    # The row that is promised to this very pod.
    own: int | None

    @property
    def stamp(self) -> Hashable:
        """What stays the same for as long as answers hold for rows that do not change.

        Pods of one template may have other claims, which is no matter as long as nobody who looks
        further than the node and its pods takes part.
        """
        skipped = self.pre.skipped
        stamp = self.profile.stamp(skipped)
        if stamp is None or self.profile.questions(skipped).reach is not Depends.PLACEMENTS:
            return stamp
        return stamp, *claims.names_of(self.pod)

    def what_if(self, row: int) -> WhatIf:
        """All filters asked again about a row, beside promised pods and without them."""
        others = self.promises.beside(self.pod, row)
        return WhatIf(
            self.profile, self.state, self.pod, self.pre, row, others, filtered=self.filtered
        )

    def suppose(self, rows: Rows) -> Supposition | None:
        """The same for many rows at once; None if a filter cannot be asked like that."""
        questions = self.profile.questions(self.pre.skipped)
        if self.filtered is None or not questions.in_columns:
            return None
        numbers = self.promises.numbers(self.pod, rows)
        if self.own is not None:
            # Nobody has to leave room for himself; that row is asked about by itself.
            assert self.own not in rows, "asked about many rows, among them the pod's own"
        supposed = Supposition(questions, self.filtered, self.state, self.pod, rows)
        supposed.promise(numbers, self.promises.book)
        return supposed

    def beside(self, row: int) -> Status:
        """Whether the pod fits a row if those were there to whom it is promised."""
        others = self.promises.beside(self.pod, row)
        if not others:
            return SUCCESS
        question = WhatIf(self.profile, self.state, self.pod, self.pre, row, filtered=self.filtered)
        for other in others:
            question.add(other)
        return question.status()
