"""Reading: what one plugin makes of the part of a pod that it reads.

All templates that agree in that part share it: what the plugin said beforehand, what it wrote into
the state, and its kept verdicts and scores. Only for plugins whose answers may be kept.
"""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.memo import FilterMemo, ScoreMemo
from moorage.framework.state import CycleState
from moorage.framework.status import SKIP, SUCCESS, Mask, Narrowed, Status

if TYPE_CHECKING:
    from moorage.api.pod import Pod
    from moorage.framework.profile import Profile


class Reading:
    """See the module."""

    __slots__ = (
        "_pod",
        "_pre_filtered",
        "_pre_scored",
        "_profile",
        "_scores",
        "_verdicts",
        "holders",
        "plugin",
        "read",
        "state",
    )

    def __init__(self, profile: "Profile", plugin: Any, state: CycleState, read: Hashable) -> None:
        self.plugin = plugin
        self.state = state
        # What the plugin reads, and how many stand on what it makes of that.
        self.read = read
        self.holders = 0
        self._profile = profile
        self._pod: Pod = state.template.exemplar
        self._pre_filtered: Status | Narrowed | None = None
        self._pre_scored: Status | None = None
        self._verdicts: FilterMemo | None = None
        self._scores: ScoreMemo | None = None

    @property
    def pre_filtered(self) -> Status | Narrowed:
        """What the plugin says of the pod before it looks at nodes."""
        if self._pre_filtered is None:
            self._pre_filtered = invoke.pre_filter(
                self._profile.require(self.plugin, "pre_filter"), self.state, self._pod
            )
        return self._pre_filtered

    def pre_scored(self, fits: Mask) -> Status:
        """What it says before it scores; it may not depend on which rows fit."""
        if self._pre_scored is None:
            asked = self._profile.has_pre_score(self.plugin)
            method = self._profile.method(self.plugin, "pre_score") if asked else None
            said = SUCCESS
            if method is not None:
                said = invoke.pre_score(method, self.state, self._pod, fits)
            self._pre_scored = said
        return self._pre_scored

    @property
    def verdicts(self) -> FilterMemo:
        """Its kept verdicts."""
        if self._verdicts is None:
            self._verdicts = FilterMemo(self.plugin, self.state, self._pod, self._profile)
        return self._verdicts

    @property
    def scores(self) -> ScoreMemo:
        """Its kept scores."""
        if self._scores is None:
            self._scores = ScoreMemo(self.plugin, self.state, self._pod, self._profile)
        return self._scores


def all_skipping(readings: Iterable[Reading], state: CycleState) -> frozenset[str] | None:
    """The plugins that skip the pod beforehand; None if one of them has more to say.

    What they wrote is taken over into `state`.
    """
    found = []
    for reading in readings:
        try:
            said = reading.pre_filtered
        except PluginError:
            return None  # It is told when it is this plugin's turn.
        state.adopt(reading.state)
        if said is SKIP:
            found.append(reading.plugin.name)
        elif said is not SUCCESS:
            return None
    return frozenset(found)
