"""Newcomers: the sheet of a family, for pods that are the first of their template.

What is found out about a template that may never come up again is not kept: whoever looks at more
than node objects is asked anew for every newcomer, on the ground of what the family has in common.
"""

from typing import TYPE_CHECKING

from moorage.api.pod import Pod
from moorage.framework.answers import PreFiltered
from moorage.framework.family import Family
from moorage.framework.invoke import measured
from moorage.framework.points import ALWAYS
from moorage.framework.sheet import Sheet
from moorage.framework.state import CycleState
from moorage.framework.template import PodTemplate

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class Newcomers(Sheet):
    """See the module."""

    def __init__(self, profile: "Profile", template: PodTemplate, family: Family) -> None:
        super().__init__(profile, profile.by_family, template, family, {})
        # Those who may have nothing to do with a pod at all.
        self._choosy = list(profile.skipping)

    @property
    def is_new(self) -> bool:
        return True

    @measured("PreFilter")
    def run_pre_filters(self, state: CycleState, pod: Pod) -> PreFiltered:
        """Ask every pre_filter plugin that looks at more than node objects."""
        # What the last one left behind.
        self.beside = self.reasons = None
        self._skips_scores = False
        self._leave_out(frozenset(self._find_idle(state, pod)))
        state.idle = self._idle
        return self._ask_pre_filters(state, pod)

    def _find_idle(self, state: CycleState, pod: Pod) -> list[str]:
        """Who has nothing to do with such pods at all."""
        idle = []
        for plugin in self._choosy:
            stamp = self._stamp_of(plugin, state, pod)
            if stamp is ALWAYS:
                idle.append(plugin.name)
            elif stamp is not None:
                # It has something to do with everybody, now or later: not worth asking again.
                self._choosy = [each for each in self._choosy if each is not plugin]
        return idle
