"""What if: filters asked again with pods added to a node, or taken away from it.

Works on a copy of the node and of the cycle's state, so that nothing needs to be put back.
"""

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING

from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.answers import FITS, Filtered, PreFiltered
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Status, error
from moorage.nodes.usage import Placed

if TYPE_CHECKING:
    from moorage.framework.profile import Profile

# Before which place somebody has refused the node for good, and with which status.
NOTHING = (FITS, SUCCESS)


class WhatIf:
    """One pod's question about one node, which may be promised to others.

    If it is known what all filters say of the node as it is (`filtered`), those are not asked again
    whose answer does not depend on pods.
    """

    def __init__(
        self,
        profile: "Profile",
        state: CycleState,
        pod: Pod,
        pre: PreFiltered,
        row: int,
        promised: Sequence[Placed] = (),
        filtered: Filtered | None = None,
    ) -> None:
        self._profile = profile
        self._pod = pod
        self._promised = promised
        questions = profile.questions(pre.skipped)
        self._told = questions.told
        self._filters = questions.asked
        self._settled: tuple[int, Status] = NOTHING
        if filtered is None:
            self._filters = tuple(
                (i, p) for i, p in enumerate(profile.filters) if p.name not in pre.skipped
            )
        else:
            self._settle(questions.settled, filtered, row)
        # Where nobody keeps account of pods there is nothing in the state to be corrected.
        self._state = state.clone() if self._told else state
        self.node = state.table.info(row).copy()

    def _settle(self, places: tuple[int, ...], filtered: Filtered, row: int) -> None:
        for place in places:
            if filtered.codes_at(place)[row]:
                self._settled = (place, filtered.status_at(place, row))
                return

    def add(self, other: Placed) -> None:
        """Suppose that a pod were there."""
        self.node.add(other.pod, other.usage)
        if self._told:
            self._tell("add_pod", other)

    def remove(self, other: Placed) -> None:
        """Suppose that a pod were gone."""
        self.node.remove(other.pod)
        if self._told:
            self._tell("remove_pod", other)

    def _tell(self, method: str, other: Placed) -> None:
        for plugin in self._told:
            known = self._profile.method(plugin, method)
            if known is not None:
                known(self._state, self._pod, other, self.node)

    def fork(self) -> "WhatIf":
        """The same question, to go on with in another way."""
        other = copy(self)
        other._state = self._state.clone() if self._told else self._state
        other.node = self.node.copy()
        return other

    def status(self) -> Status:
        """The first refusal, or SUCCESS. The pod must fit both beside promised pods and without."""
        if self._promised:
            beside = self.fork()
            for other in self._promised:
                beside.add(other)
            status = beside._ask()
            if not status.is_success:
                return status
        return self._ask()

    def _ask(self) -> Status:
        until, settled = self._settled
        for place, plugin in self._filters:
            if place > until:
                break
            method = self._profile.require(plugin, "filter")
            status = invoke.filter_one(method, self._state, self._pod, self.node)
            if status.is_rejected:
                return status.by(plugin.name)
            if not status.is_success:
                return error(method.error_text(status.message), plugin.name)
        return settled
