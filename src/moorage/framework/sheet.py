"""Sheet: one template under one profile: which rows fit, why the others do not, and every score.

Plugins whose answers may be kept are memos, combined by `Fitting` and `Totals`; the others are
asked in every cycle, unless they skip the pod and said how long that holds.
"""

from collections.abc import Hashable, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import calls, invoke
from moorage.framework.answers import (
    Asked,
    Filtered,
    PreFiltered,
    Scored,
    Volatile,
    first_refusals,
)
from moorage.framework.beside import Beside
from moorage.framework.family import Family
from moorage.framework.fitting import Fitting
from moorage.framework.invoke import CallMeter, measured
from moorage.framework.keeping import Keeping
from moorage.framework.leaders import Leaders
from moorage.framework.memo import FollowedMemo
from moorage.framework.points import ALWAYS
from moorage.framework.reading import Reading, all_skipping
from moorage.framework.reasons import Reasons
from moorage.framework.score_column import ScoreColumn
from moorage.framework.state import NOBODY, CycleState
from moorage.framework.status import SKIP, SUCCESS, Code, Codes, Mask, Narrowed, Status
from moorage.framework.template import PodTemplate
from moorage.framework.totals import Totals
from moorage.framework.volatile import Sum

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class Sheet:
    """See the module."""

    def __init__(
        self,
        profile: "Profile",
        keeping: Keeping,
        template: PodTemplate,
        family: Family,
        own: Mapping[str, Reading],
    ) -> None:
        self.profile = profile
        self._keeping = keeping
        self.template = template
        # What plugins that look at nodes only make of the template, and those that look at usage.
        self.family = family
        self.own = own
        self.state = CycleState(profile.cluster, template, 0.0, below=family.state)
        # How long the plugins that are not kept would skip the pod, by the latest look. While that
        # holds: what all pre_filter plugins said together, and whether all such scores are skipped.
        self._pulse: tuple[int, int, int] | None = None
        self._stamps: dict[str, Hashable] = {}
        self._stamping: list[Any] | None = None
        # Who has nothing to do with such pods, and who of the others is asked every time.
        self._idle: frozenset[str] = NOBODY
        self._busy = keeping.busy(NOBODY)
        self._pre_filtered: PreFiltered | None = None
        self._skips_scores = False
        # Who skipped the pod at the last look, and the filters that are to be asked then.
        self._skipped: set[str] = set()
        self._asking = (
            self._not_skipping(keeping.volatile_filters),
            self._not_skipping(keeping.followed_filters),
        )
        # Those of the kept pre_filter plugins who skip the pod, if none of them has more to say.
        self._kept_skips: frozenset[str] | None = None
        self._nodes_seen = profile.cluster.table.node_changes.position
        self._fitting: Fitting | None = None
        # The filters that take part though they look beyond the node, and all that ever did.
        self._followed: Asked = ()
        self._followers: dict[str, FollowedMemo] = {}
        self._filtered: Filtered | None = None
        self._totals: Totals | None = None
        self._totals_seen = -1
        # Verdicts on nodes that are promised to others, once there are any, and all refusals.
        self.beside: Beside | None = None
        self.reasons: Reasons | None = None

    @property
    def meter(self) -> CallMeter | None:
        return self.profile.meter

    @property
    def combined(self) -> int:
        """How often verdicts were combined anew for all nodes."""
        return 0 if self._fitting is None else self._fitting.combined

    @property
    def is_new(self) -> bool:
        """Whether nothing was kept for such a pod."""
        return self._fitting is None

    def _reading(self, plugin: Any) -> Reading:
        return self.own.get(plugin.name) or self.family.readings[plugin.name]

    # Before the nodes

    @measured("PreFilter")
    def run_pre_filters(self, state: CycleState, pod: Pod) -> PreFiltered:
        """Ask every pre_filter plugin, in order, as far as answers are not kept."""
        cluster, table = state.cluster, state.table
        pulse = (cluster.version, table.node_changes.position, table.placements.terms.version)
        if pulse != self._pulse:
            if self.profile.looks_at_nodes:
                self._forget_nodes()
            stamps = self._look_at_stamps(state, pod)
            if stamps != self._stamps:
                self._stamps = stamps
                self._pre_filtered, self._skips_scores = None, False
            self._pulse = pulse
        return self._pre_filtered or self._ask_pre_filters(state, pod)

    def _look_at_stamps(self, state: CycleState, pod: Pod) -> dict[str, Hashable]:
        """How long those who skip such pods would do so; who always does is asked only once."""
        if self._stamping is not None:
            return {plugin.name: self._stamp_of(plugin, state, pod) for plugin in self._stamping}
        stamps: dict[str, Hashable] = {}
        idle: list[str] = []
        self._stamping = []
        for plugin in self.profile.skipping:
            stamp = self._stamp_of(plugin, state, pod)
            if stamp is ALWAYS:
                idle.append(plugin.name)
            else:
                self._stamping.append(plugin)
                stamps[plugin.name] = stamp
        self._leave_out(frozenset(idle))
        self.state.idle = state.idle = self._idle
        return stamps

    def _leave_out(self, idle: frozenset[str]) -> None:
        """Ask those no more who have nothing to do with such pods."""
        if idle != self._idle:
            self._idle = idle
            self._busy = self._keeping.busy(idle)

    def _ask_pre_filters(self, state: CycleState, pod: Pod) -> PreFiltered:
        if self._kept_skips is None:
            self._kept_skips = self._look_at_kept()
        if self._kept_skips is None:
            return self._ask_in_order(state, pod)
        result, remembered, holds = (
            PreFiltered(skipped={*self._kept_skips, *self._idle}),
            None,
            True,
        )
        for plugin in self._busy[0]:
            said = self._pre_filter(plugin, state, pod)
            if said is SKIP:
                result.skipped.add(plugin.name)
                holds = holds and self._would_again(plugin, said)
                continue
            holds = False
            if said is SUCCESS:
                continue
            remembered = _take(plugin, said, result) or remembered
            if result.rejected is not None:
                return result
        return self._summed_up(result, remembered, holds=holds)

    def _look_at_kept(self) -> frozenset[str] | None:
        """Those of the kept pre_filter plugins who skip the pod; None if one has more to say."""
        by_nodes = self.family.skips
        if by_nodes is None:
            return None
        own = [self.own[plugin.name] for plugin in self._keeping.usage_pre_filters]
        by_usage = all_skipping(own, self.state)
        if not by_usage:
            return None if by_usage is None else by_nodes
        return by_nodes | by_usage

    def _ask_in_order(self, state: CycleState, pod: Pod) -> PreFiltered:
        """The same where a plugin whose answer is kept has more to say."""
        result, remembered, holds = PreFiltered(skipped=set(self._idle)), None, True
        for plugin, kept in self._keeping.pre_filters:
            if plugin.name in self._idle:
                continue
            if kept:
                reading = self._reading(plugin)
                said = reading.pre_filtered
                self.state.adopt(reading.state)
            else:
                said = self._pre_filter(plugin, state, pod)
                holds = holds and self._would_again(plugin, said)
            remembered = _take(plugin, said, result) or remembered
            if result.rejected is not None:
                return result
        return self._summed_up(result, remembered, holds=holds)

    def _summed_up(
        self, result: PreFiltered, remembered: Status | None, *, holds: bool
    ) -> PreFiltered:
        result.rejected = remembered
        if result.skipped != self._skipped:
            self._skipped = set(result.skipped)
            self._asking = (
                self._not_skipping(self._keeping.volatile_filters),
                self._not_skipping(self._keeping.followed_filters),
            )
        result.volatile, result.followed = self._asking
        if holds:
            self._pre_filtered = result
        return result

    def _not_skipping(self, filters: Sequence[tuple[int, Any]]) -> Asked:
        return tuple([each for each in filters if each[1].name not in self._skipped])

    def _pre_filter(self, plugin: Any, state: CycleState, pod: Pod) -> Status | Narrowed:
        return invoke.pre_filter(self.profile.require(plugin, "pre_filter"), state, pod)

    def _stamp_of(self, plugin: Any, state: CycleState, pod: Pod) -> Hashable:
        """What has to stay the same for a plugin to skip the pod again; None if nothing would."""
        try:
            stamp: Hashable = self.profile.require(plugin, "skip_key")(state, pod)
        except PluginError:
            return None
        return stamp

    def _would_again(self, plugin: Any, said: Status | Narrowed) -> bool:
        """Whether a plugin that is not kept would skip the pod again, as things stand."""
        return _skips(said) and self._stamps.get(plugin.name) is not None

    def _forget_nodes(self) -> None:
        """What plugins worked out about all nodes together holds until one of them changes."""
        position = self.profile.cluster.table.node_changes.position
        if position != self._nodes_seen:
            self._nodes_seen = position
            before, self.family = self.family, self.profile.sheets.family(self.template)
            self.profile.sheets.leave(before)
            self.state.stand_on(self.family.state)
            self._pre_filtered = self._kept_skips = None
            self._fitting = self._totals = self.reasons = None

    # Which nodes fit

    @measured("Filter")
    def run_filters(self, state: CycleState, pod: Pod, pre: PreFiltered) -> Filtered:
        """Every row's verdict, first refusal first."""
        fitting = self._fitting
        if fitting is None or self._followed != pre.followed:
            fitting = self._new_fitting(pre)
        fitting.refresh(state, pod)
        fits, said = fitting.fits, list[Volatile]()
        for place, plugin in pre.volatile:
            method = self.profile.method(plugin, "filter_all")
            if method is not None:
                verdicts = invoke.filter_rows(method, state, pod, state.table)
                if not verdicts.refuses:
                    continue
                codes, status_of = verdicts.codes, verdicts.status_of
                has_erred = bool(verdicts.troubles)
            else:
                # Asked one by one, so only about nodes that nobody refused or left out before.
                open_ = first_refusals(fitting.first, said) > place
                if pre.names is not None and plugin.name in self._keeping.fleeting:
                    open_ &= state.table.named(pre.names)
                codes, book = self._ask_each(plugin, state, pod, open_)
                status_of, has_erred = book.status, book.erred
            fits = fits & (codes == 0)
            said.append(Volatile(place, codes, status_of, has_erred, int(np.count_nonzero(fits))))
        if said:
            return Filtered(self.profile.filters, fitting, fits, said)
        if self._filtered is None or self._filtered.fits is not fits:
            self._filtered = Filtered(self.profile.filters, fitting, fits, ())
        return self._filtered

    def _new_fitting(self, pre: PreFiltered) -> Fitting:
        skips = self._kept_skips
        if skips is None:
            kept = [plugin for plugin, is_kept in self._keeping.pre_filters if is_kept]
            skips = frozenset(p.name for p in kept if _skips(self._reading(p).pre_filtered))
        own = [
            (place, self.own[plugin.name].verdicts)
            for place, plugin in self._keeping.usage_filters
            if plugin.name not in skips
        ]
        own += [(place, self._following(plugin)) for place, plugin in pre.followed]
        memos = sorted([*self.family.memos(skips), *own], key=itemgetter(0))
        table = self.state.table
        log = table.changes if self._keeping.keeps_usage else table.node_changes
        self._followed = pre.followed
        self._fitting = Fitting(table, memos, log)
        self._totals = self.reasons = None
        return self._fitting

    def _following(self, plugin: Any) -> FollowedMemo:
        memo = self._followers.get(plugin.name)
        if memo is None:
            pod = self.template.exemplar
            memo = FollowedMemo(plugin, self.state, pod, self.profile)
            self._followers[plugin.name] = memo
        return memo

    def _ask_each(
        self, plugin: Any, state: CycleState, pod: Pod, open_: Mask
    ) -> tuple[Codes, calls.Book]:
        book = calls.Book()
        rows = np.flatnonzero(open_)
        self.profile.loops.add(plugin.name, "filter", len(rows))
        codes = np.zeros(len(open_), dtype=np.int64)
        method = self.profile.require(plugin, "filter")
        for row, code in calls.filter_loop(method, state, pod, rows.tolist(), book).items():
            codes[row] = code
        return codes, book

    def refresh_reasons(
        self, filtered: Filtered, beside: Beside | None, own: int | None
    ) -> Reasons:
        """Why every row is refused, for a pod that was itself promised the `own` row."""
        assert self._fitting is not None
        if self.reasons is None:
            self.reasons = Reasons(self.state.cluster)
        fitting = self._fitting
        epoch = (fitting.combined, fitting.news, 0 if beside is None else beside.epoch)
        self.reasons.refresh(filtered, beside, own, epoch if filtered.is_kept else None)
        return self.reasons

    # How good they are

    @measured("Score")
    def run_scores(self, state: CycleState, pod: Pod, fits: Mask) -> Scored:
        """Weighted, normalised scores of the rows that fit."""
        fitting = self._fitting
        assert fitting is not None, "filters come first"
        totals = self._totals
        # What a family gives every row holds until a node changes.
        if totals is None or self._totals_seen != state.table.node_changes.position:
            totals = self._new_totals(fitting, fits)
        totals.refresh(fits)
        if fits is fitting.fits:
            scored = Scored(totals.values, totals.parts, totals.leaders)
        else:
            scored = Scored(*totals.among(fits), Leaders())
        return scored if self._skips_scores else self._add_volatile(state, pod, fits, scored)

    def _new_totals(self, fitting: Fitting, fits: Mask) -> Totals:
        given = self.family.scores(fits)
        columns = [ScoreColumn(*each) for each in given.differing]
        for plugin, weight in self._keeping.usage_scores:
            reading = self.own[plugin.name]
            if not reading.pre_scored(fits).is_skip:
                columns.append(ScoreColumn(plugin, weight, reading.scores))
            self.state.adopt(reading.state)
        places = self.profile.score_places
        if given.differing:
            columns.sort(key=lambda column: places[column.plugin.name])
        # All rows are new to it.
        fitting.changed = None
        self._totals = Totals(self.state.table, fitting, columns, given.same, places)
        self._totals_seen = given.position
        return self._totals

    def _add_volatile(self, state: CycleState, pod: Pod, fits: Mask, scored: Scored) -> Scored:
        holds = True
        added: Sum | None = None
        for each in self._busy[1]:
            plugin = each.plugin
            said = SUCCESS
            if each.has_pre_score:
                method = self.profile.require(plugin, "pre_score")
                said = invoke.pre_score(method, state, pod, fits)
            holds = holds and self._would_again(plugin, said)
            if said is not SKIP and said.code is not Code.SKIP:
                added = added or Sum(self.profile, state, pod, fits, scored)
                added.add(each)
        self._skips_scores = holds
        if added is None:
            return scored
        # A score plugin that runs last may be configured first; people see that order.
        parts = scored.parts.beside(added.parts, self.profile.score_places)
        return Scored(added.totals, parts, added.leaders)


def _take(plugin: Any, said: Status | Narrowed, result: PreFiltered) -> Status | None:
    """Add what one plugin said to what all said; a refusal that waits for the others comes back."""
    if isinstance(said, Narrowed):
        result.narrow(plugin.name, said.names)
        return None
    match said.code:
        case Code.SUCCESS:
            return None
        case Code.SKIP:
            result.skipped.add(plugin.name)
            return None
        case Code.UNSCHEDULABLE:
            return said.by(plugin.name)
        case Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            result.rejected = said.by(plugin.name)
            return None
    text = said.message or f"returned {said.code.label}"
    text = f'running PreFilter plugin "{plugin.name}": {text}'
    raise PluginError(plugin.name, text)


def _skips(said: Status | Narrowed) -> bool:
    return isinstance(said, Status) and said.code is Code.SKIP
