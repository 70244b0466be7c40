"""PluginViews: one plugin's cached results, for all templates that agree in what it reads."""

from functools import cached_property
from typing import TYPE_CHECKING, Any

from moorage.framework import invoke
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Narrowed, Status
from moorage.framework.views.filters import FilterView
from moorage.framework.views.scores import ScoreView
from moorage.nodes.template import PodTemplate

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class PluginViews:
    """One plugin's cached results: pre_filter, pre_score, its state, verdicts and scores.

    Shared by all templates that agree in what the plugin reads of a pod.
    """

    def __init__(self, profile: "Profile", plugin: Any, template: PodTemplate) -> None:
        self.state = CycleState.of(profile.cluster, template)
        self._profile = profile
        self._plugin = plugin
        self._skips_score: bool | None = None

    @cached_property
    def pre_filtered(self) -> Status | Narrowed:
        """The result of pre_filter."""
        method = self._profile.require(self._plugin, "pre_filter")
        state = self.state
        return invoke.check_pre_filtered(method, method.call(state, state.template.exemplar))

    def skips_score(self, fits: Mask) -> bool:
        """Whether pre_score skips the pod, which must not depend on the feasible rows."""
        if self._skips_score is None:
            skips, profile, plugin = False, self._profile, self._plugin
            if "pre_score" in profile.called_at[plugin.name]:
                method, pod = profile.require(plugin, "pre_score"), self.state.template.exemplar
                skips = invoke.skips_score(method, method.call(self.state, pod, fits))
            self._skips_score = skips
        return self._skips_score

    @cached_property
    def filter_view(self) -> FilterView:
        """The verdicts on every row."""
        return FilterView(self._profile, self._plugin, self.state)

    @cached_property
    def score_view(self) -> ScoreView:
        """The raw scores of every row."""
        return ScoreView(self._profile, self._plugin, self.state)
