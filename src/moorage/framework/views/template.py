"""TemplateViews: everything that is cached for one pod template under one profile.

    table.changes, node_changes      (and filter_changes of plugins that look beyond the node)
      |                  |
    FilterView ...     ScoreView ...        one per plugin, shared by templates where possible
      |                  |
    FeasibleView  -->  NormalizedView ...   the normalizers that summarise feasible scores
      |      |           |
      |      +-------> TotalView            weighted sums of feasible rows, the best rows
      |
    RejectionCounts <-- NominatedPodsCheck  why every row is rejected; room for nominated pods

Plugins that cannot be cached run in every cycle, unless they skip the pod and their `skip_key` is
unchanged.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.invoke import measured
from moorage.framework.state import CALLED_AT, CycleState
from moorage.framework.status import SKIP, SUCCESS, Mask, Scores
from moorage.framework.views.feasible import FeasibleRows, FeasibleView, open_rows
from moorage.framework.views.filters import FilterView, PlacementFilterView, RowStatuses
from moorage.framework.views.grouped import ByGroup, GroupedViews
from moorage.framework.views.nominated import NominatedPodsCheck
from moorage.framework.views.plugin_views import PluginViews
from moorage.framework.views.policy import IndexedFilter, groups_rows, is_never_cached
from moorage.framework.views.pre_filters import PreFiltered, PreFilterStage, Versions
from moorage.framework.views.rejections import RejectionCounts
from moorage.framework.views.repeated import RepeatedTotals
from moorage.framework.views.resources import ResourceViews
from moorage.framework.views.scores import ScoreRangeError
from moorage.framework.views.totals import Scored, TotalView
from moorage.framework.views.uncached import UncachedScore
from moorage.nodes.template import PodTemplate

if TYPE_CHECKING:
    from moorage.framework.profile import Profile
    from moorage.framework.what_if import WhatIf


# What pre_filter plugins, filters and scores say of a pod.
Repeated = tuple[PreFiltered, FeasibleView, Scored]
# A plugin's name, its weight, and its scores in one cycle.
AddedScores = tuple[str, int, Scores]


class TemplateViews:
    """See the module.

    `by_node` are the views of plugins that read node objects only, `own` those of plugins that read
    usage. Without `own` views nothing is retained for the template: it is the mode in which
    templates that are seen once are evaluated, all that agree in `by_node` on the same graph;
    plugins that are not in `by_node` then run in every cycle.
    """

    def __init__(
        self,
        profile: "Profile",
        template: PodTemplate,
        by_node: Mapping[str, PluginViews],
        own: Mapping[str, PluginViews] | None,
    ) -> None:
        self.profile = profile
        self.template = template
        self.meter = profile.meter
        self.retains = own is not None
        self._own = own or {}
        self._policy = profile.by_row if self.retains else profile.seen_once(by_node)
        self._use(by_node)

    def _use(self, by_node: Mapping[str, PluginViews]) -> None:
        """Build the graph on the views of plugins that read node objects only."""
        profile = self.profile
        self._views = {**by_node, **self._own}
        self.state = CycleState.of(profile.cluster, self.template)
        self.state[CALLED_AT] = profile.called_at
        self._position = self.state.table.node_changes.position
        self._pre_filters = PreFilterStage(
            profile, self._policy, self._views.__getitem__, self.state, retains=self.retains
        )
        self._feasible: FeasibleView | None = None
        self._pre: PreFiltered | None = None
        # The filters in it that look beyond the node.
        self._by_placement: Sequence[IndexedFilter] = ()
        # Views that are not shared with other templates: by placement, or evaluated every time.
        self._not_shared: dict[str, FilterView] = {}
        self._total: TotalView | None = None
        # Those of the filters, and of the scores once they are there.
        self._by_resources: ResourceViews | None = None
        # The totals as long as only the resources of rows change, and what pre_filter plugins said.
        self._repeated: RepeatedTotals | None = None
        self._repeats_after: PreFiltered | None = None
        # Whether no plugin has to be called for the next pod.
        self._repeats_alone = False
        # The uncached scores that may not skip the next pod, as long as skip keys stay the same.
        self._active_scores: Sequence[UncachedScore] = ()
        self._active_scores_at = -1
        # Rows are evaluated by group, as long as skip keys stay the same.
        self._grouped: GroupedViews | None = None
        self._grouped_at = -1
        self._uses_groups = False
        self._check: NominatedPodsCheck | None = None
        self._rejections: RejectionCounts | None = None

    @property
    def is_new(self) -> bool:
        """Whether nothing is cached for the template yet."""
        return not self.retains or self._feasible is None

    @property
    def rebuilds(self) -> int:
        """How often verdicts were combined for all rows."""
        return 0 if self._feasible is None else self._feasible.rebuilds

    # Pre-filter

    def pre_filter(self, state: CycleState, pod: Pod) -> PreFiltered:
        """The result of the pre_filter plugins."""
        profile = self.profile
        if not self.retains:
            self._check = self._rejections = None  # They belong to another template.
        elif profile.reads_all_nodes and self._position != state.table.node_changes.position:
            # What a plugin computed over all nodes together may not hold any more.
            self._renew(profile.views.by_node(self.template))
            state.stand_on(self.state)
        return self._pre_filters.run(state, pod)

    def _renew(self, by_node: Mapping[str, PluginViews]) -> None:
        """Replace the views of plugins that read node objects only, where they are others."""
        changed = {name for name, views in by_node.items() if views is not self._views[name]}
        self._position = self.state.table.node_changes.position
        if not changed:
            return
        if changed.isdisjoint(self._policy.filtering):
            self._views.update(by_node)
            self._total = self._by_resources = self._repeated = self._grouped = None
        else:
            self._use(by_node)

    # Filter

    def filter(self, state: CycleState, pod: Pod, pre: PreFiltered) -> FeasibleRows:
        """Every row's verdict."""
        feasible, repeated, self._pre = self._feasible, self._repeated, pre
        if feasible is None or repeated is None or not self._can_repeat(repeated, pre):
            self._repeated = None
            if feasible is None or self._by_placement != pre.by_placement:
                feasible = self._build_feasible(pre)
            by_resources = self._by_resources
            if by_resources is not None:
                by_resources.refresh()
            feasible.refresh(state, pod)
        if pre.uncached:
            return self._filter_uncached(state, pod, pre, feasible)
        return feasible

    def _build_feasible(self, pre: PreFiltered) -> FeasibleView:
        by_placement = [
            (index, self._view(plugin, PlacementFilterView)) for index, plugin in pre.by_placement
        ]
        filters = sorted([*self._cached_filters(pre), *by_placement], key=lambda each: each[0])
        self._by_placement = pre.by_placement
        self._feasible = FeasibleView(self.state.table, self.profile.filter_names, filters)
        self._total = self._rejections = self._repeated = self._grouped = None
        if self.retains:
            by_filter = [view for _, view in filters]
            self._by_resources = ResourceViews.of(self.state.table, by_filter)
        return self._feasible

    def _cached_filters(self, pre: PreFiltered) -> list[tuple[int, FilterView]]:
        return [
            (index, self._views[plugin.name].filter_view)
            for index, plugin in self._policy.filters
            if plugin.name not in pre.skipped
        ]

    def _view(self, plugin: Any, kind: type[FilterView]) -> FilterView:
        view = self._not_shared.get(plugin.name)
        if view is None:
            view = self._not_shared[plugin.name] = kind(self.profile, plugin, self.state)
        return view

    def _filter_uncached(
        self, state: CycleState, pod: Pod, pre: PreFiltered, feasible: FeasibleView
    ) -> FeasibleRows:
        """The verdicts together with those of filters that run in every cycle."""
        rejecting: list[tuple[int, RowStatuses]] = []
        for index, plugin in pre.uncached:
            view = self._not_shared.get(plugin.name) or self._view(plugin, FilterView)
            if view.has_array_form:
                view.evaluate(state, pod)
            else:
                earlier = [f for f in (*feasible.filters, *rejecting) if f[0] < index]
                only = pre.names if is_never_cached(plugin) else None
                view.evaluate_each(state, pod, open_rows(state.table, earlier, only))
            if view.codes is not None:
                rejecting.append((index, view))
        if not rejecting:
            return feasible
        filters = sorted([*feasible.filters, *rejecting], key=lambda each: each[0])
        rows = FeasibleRows(feasible.names, filters)
        rows.combine(state.table.active_rows, state.table.node_count)
        return rows

    # Score

    def score(self, state: CycleState, pod: Pod, fits: Mask) -> Scored:
        """The weighted, normalised scores of the rows that fit."""
        feasible = self._feasible
        assert feasible is not None, "filters run first"
        total = self._total or self._build_total(feasible, fits)
        repeats = self._repeated is not None and fits is feasible.fits
        failures: list[PluginError] = []
        if not repeats:
            total.refresh(state, pod)
            failures = total.failures(fits)
        added = self._score_uncached(state, pod, fits, failures)
        scored = total.scored if fits is feasible.fits else total.among(fits)
        if repeats and not added:
            return scored
        self._repeated = None
        if not added:
            if scored is total.scored and not self._by_placement:
                self._find_repeated(feasible, total)
            return scored
        if repeats:
            total.refresh(state, pod)  # What is added to are the columns of plugins.
            scored = total.scored
        return scored.plus(added)

    def _build_total(self, feasible: FeasibleView, fits: Mask) -> TotalView:
        scores = []
        for plugin, weight in self._policy.scores:
            views = self._views[plugin.name]
            is_skipped = views.skips_score(fits)
            self.state.adopt(views.state)
            if not is_skipped and weight is not None:
                scores.append((weight, views.score_view))
        self._total = TotalView.of(scores, feasible, self.profile.score_order)
        if self.retains:
            filters = [view for _, view in feasible.filters if isinstance(view, FilterView)]
            by_score = [view for _, view in scores]
            self._by_resources = ResourceViews.of(self.state.table, [*filters, *by_score])
        return self._total

    def _score_uncached(
        self, state: CycleState, pod: Pod, fits: Mask, failures: list[PluginError]
    ) -> list[AddedScores]:
        """The scores of plugins that run in every cycle.

        Raises if one of them fails, or if there were failures before; of several failures, the one
        of the first score plugin.
        """
        stage, retains = self._pre_filters, self.retains
        is_known = self._active_scores_at == stage.epoch
        active: list[UncachedScore] = []
        scoring: list[UncachedScore] = []
        more_are_idle = state.idle is not stage.idle  # For this pod, not for all of the template.
        for plugin in self._active_scores if is_known else stage.uncached_scores():
            if more_are_idle and plugin.name in state.idle:
                active.append(plugin)  # With the next pod it may have something to do.
                continue
            method = plugin.pre_score
            if method is not None:
                status = method.call(state, pod, fits)
                if status is not SUCCESS and (status is SKIP or invoke.skips_score(method, status)):
                    if retains and not stage.would_skip_again(plugin.name):
                        active.append(plugin)
                    continue
            if plugin.scores:
                scoring.append(plugin)
            if retains:
                active.append(plugin)
        added: list[AddedScores] = []
        for plugin in scoring:
            try:
                added.append((plugin.name, plugin.weight, plugin.of(state, pod, fits)))
            except PluginError as failure:
                failures.append(failure)
        if failures:
            raise self._first(failures)
        if retains:
            self._active_scores, self._active_scores_at = active, stage.epoch
            if active or self._by_placement:
                self._group(active)
        return added

    def _first(self, failures: list[PluginError]) -> PluginError:
        """The failure that counts. Scores out of range are found when all are there."""
        order = self.profile.score_order
        return min(failures, key=lambda f: (isinstance(f, ScoreRangeError), order[f.plugin]))

    # By groups of rows

    def _group(self, scores: Sequence[UncachedScore]) -> None:
        """From now on evaluate groups of rows, if all plugins that look beyond the node can."""
        stage = self._pre_filters
        self._uses_groups = True
        if self._grouped is not None and self._grouped_at == stage.epoch:
            return
        pre, total = self._pre, self._total
        assert pre is not None
        assert total is not None
        self._grouped = None
        if pre.uncached or pre.names is not None:
            return
        able = [*[groups_rows(p) for _, p in pre.by_placement], *[s.can_group for s in scores]]
        if not able or not all(able):
            return
        # What filters say of groups is not a part of these.
        totals = self.profile.views.shared_totals(self._cached_filters(pre), total.scores)
        scoring = [score for score in scores if score.scores]
        self._grouped = GroupedViews(self.profile, totals, pre.by_placement, scoring)
        self._grouped_at = stage.epoch

    def decide(self, state: CycleState, pod: Pod) -> ByGroup | None:
        """The results for a pod, if they can be found by groups of rows."""
        grouped, meter = self._grouped, self.meter
        if grouped is None or not self._uses_groups:
            return None
        started = 0.0 if meter is None else meter.now()
        versions = self._pre_filters.current_versions()
        if grouped.versions != versions and not self._ask(grouped, state, pod, versions):
            return None
        decided = grouped.decide(state, pod, meter, started)
        if decided is None:
            self._uses_groups = False  # Until a pod finds nodes otherwise.
        return decided

    def _ask(self, grouped: GroupedViews, state: CycleState, pod: Pod, versions: Versions) -> bool:
        """Run the pre_filter plugins and find the groups; returns whether the pod has any."""
        stage = self._pre_filters
        if self.profile.reads_all_nodes and self._position != state.table.node_changes.position:
            self._renew(self.profile.views.by_node(self.template))
            if self._grouped is not grouped:
                return False
        pre = stage.run(state, pod)
        if stage.epoch != self._grouped_at or pre.by_placement != self._by_placement:
            self._grouped = None
            return False
        if pre.rejected is not None or pre.names is not None or pre.uncached:
            return False
        # Other plugins may do more in pre_filter than to prepare for groups.
        holds = stage.repeated_steps() <= grouped.names
        self._uses_groups = grouped.ask(state, pod, pre, versions if holds else None)
        return self._uses_groups

    # Equal pods, one after the other

    def repeat(self) -> Repeated | None:
        """The results for one more pod, if all that changed are resources of rows, to known ones.

        It is what the methods above return, in a fraction of the time.
        """
        repeated, meter = self._repeated, self.meter
        if repeated is None or not self._repeats_alone:
            return None
        started = 0.0 if meter is None else meter.now()
        pre, stage, feasible = self._repeats_after, self._pre_filters, repeated.feasible
        if pre is None or stage.settled() is not pre:
            return None
        pre_filtered = 0.0 if meter is None else meter.now()
        if feasible.count < 2 or not feasible.is_current:
            return None
        filtered = 0.0 if meter is None else meter.now()
        if not repeated.take_changes():
            return None
        if meter is not None:
            meter.repeated(started, pre_filtered, filtered)
        return pre, feasible, repeated.total.scored

    def _can_repeat(self, repeated: RepeatedTotals, pre: PreFiltered) -> bool:
        """Whether what is cached says the same of one more pod, for which other plugins run."""
        meter = self.meter
        if pre is not self._repeats_after or (meter is not None and meter.is_sampling):
            return False
        return repeated.holds and repeated.take_changes()

    def _find_repeated(self, feasible: FeasibleView, total: TotalView) -> None:
        """Find out whether with the result of the pre_filter plugins only resources matter."""
        pre, by_resources = self._pre, self._by_resources
        if pre is None or by_resources is None or pre.names is not None:
            return
        is_settled = self._pre_filters.settled() is pre
        self._repeats_alone = is_settled and not pre.uncached and not self._active_scores
        self._repeats_after = pre
        self._repeated = RepeatedTotals.of(feasible, total, by_resources)

    # Nominated pods and rejections

    def check_nominated(self, what_if: "WhatIf") -> NominatedPodsCheck:
        """Whether the pod fits beside the pods that are nominated to nodes."""
        if self._check is None:
            self._check = NominatedPodsCheck(self.profile.cluster)
            self._rejections = None
        self._check.refresh_for(what_if)
        return self._check

    def count_rejections(
        self, filtered: FeasibleRows, check: NominatedPodsCheck | None
    ) -> RejectionCounts:
        """Why every row is rejected, and how many rows for each reason."""
        assert self._feasible is not None
        if self._rejections is None or self._rejections.check is not check:
            self._rejections = RejectionCounts(self.state.table, self._feasible, check)
        self._rejections.refresh_for(filtered)
        return self._rejections


class MeasuredViews(TemplateViews):
    """The same under a profile with a meter, which measures the extension points."""

    pre_filter = measured("PreFilter")(TemplateViews.pre_filter)
    filter = measured("Filter")(TemplateViews.filter)
    score = measured("Score")(TemplateViews.score)
