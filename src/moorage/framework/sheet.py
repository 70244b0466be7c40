"""Sheet: one template under one profile: which rows fit, why the others do not, and every score.

Plugins whose answers may be kept are memos, combined by `Fitting` and `Totals`; the others are
asked in every cycle, unless they skip the pod and said how long that holds.
"""

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any

import numpy as np

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import calls
from moorage.framework.answers import (
    Filtered,
    Part,
    Parts,
    PreFiltered,
    Scored,
    Volatile,
    first_refusals,
)
from moorage.framework.beside import Beside
from moorage.framework.fitting import Fitting
from moorage.framework.leaders import Leaders
from moorage.framework.points import ALWAYS
from moorage.framework.reading import Reading, pre_filter, pre_score
from moorage.framework.reasons import Reasons
from moorage.framework.score_column import (
    ScoreColumn,
    check_range,
    normalised,
    normalizing,
    summarized,
)
from moorage.framework.state import CycleState
from moorage.framework.status import SUCCESS, Code, Codes, Mask, Narrowed, Scores, Status
from moorage.framework.template import PodTemplate
from moorage.framework.totals import Totals

if TYPE_CHECKING:
    from moorage.framework.profile import Profile


class Sheet:
    """See the module."""

    def __init__(self, profile: "Profile", template: PodTemplate, state: CycleState) -> None:
        self.profile = profile
        self.template = template
        self.state = state
        self._readings: dict[str, Reading] = {}
        # How long the plugins that are not kept would skip the pod, by the latest look. While that
        # holds: what all pre_filter plugins said together, and whether all such scores are skipped.
        self._stamps: dict[str, Hashable] = {}
        self._stamping: list[Any] = []
        self._always_skipping: frozenset[str] | None = None
        self._pre_filtered: PreFiltered | None = None
        self._skips_scores = False
        # Those of the kept pre_filter plugins who skip the pod, if none of them has more to say.
        self._kept_skips: frozenset[str] | None = None
        self._nodes_seen = -1
        self._fitting: Fitting | None = None
        self._filtered: Filtered | None = None
        self._totals: Totals | None = None
        # Verdicts on nodes that are promised to others, once there are any, and all refusals.
        self.beside: Beside | None = None
        self.reasons: Reasons | None = None

    @property
    def combined(self) -> int:
        """How often verdicts were combined anew for all nodes."""
        return 0 if self._fitting is None else self._fitting.combined

    def _reading(self, plugin: Any) -> Reading:
        reading = self._readings.get(plugin.name)
        if reading is None:
            reading = self._readings[plugin.name] = self.profile.sheets.reading(
                plugin, self.template
            )
        return reading

    # Before the nodes

    def run_pre_filters(self, state: CycleState, pod: Pod) -> PreFiltered:
        """Ask every pre_filter plugin, in order, as far as answers are not kept."""
        if self.profile.looking_at_nodes:
            self._forget_nodes()
        stamps = self._look_at_stamps(state, pod)
        if stamps != self._stamps:
            self._stamps = stamps
            self._pre_filtered, self._skips_scores = None, False
        return self._pre_filtered or self._ask_pre_filters(state, pod)

    def _look_at_stamps(self, state: CycleState, pod: Pod) -> dict[str, Hashable]:
        """How long those who skip such pods would do so; who always does is asked only once."""
        if self._always_skipping is not None:
            return {plugin.name: _stamp(plugin, state, pod) for plugin in self._stamping}
        said = {plugin.name: _stamp(plugin, state, pod) for plugin in self.profile.skipping}
        always = frozenset([name for name, stamp in said.items() if stamp is ALWAYS])
        self._stamping = [each for each in self.profile.skipping if each.name not in always]
        self._always_skipping = always
        return {name: stamp for name, stamp in said.items() if stamp is not ALWAYS}

    def _ask_pre_filters(self, state: CycleState, pod: Pod) -> PreFiltered:
        quiet, holds = self._kept_skips, True
        result = PreFiltered(skipped=set(quiet or ()))
        kept_skips: list[str] | None = []
        remembered: Status | None = None
        for plugin, kept in self.profile.pre_filters:
            if not kept:
                said = pre_filter(plugin, state, pod)
                holds = holds and self._would_again(plugin, said)
            elif quiet is not None:
                continue
            else:
                reading = self._reading(plugin)
                said = reading.pre_filtered
                self.state.adopt(reading.state)
            code = said.code if isinstance(said, Status) else None
            if code is Code.SUCCESS:
                continue
            if code is Code.SKIP:
                result.skipped.add(plugin.name)
                if kept and kept_skips is not None:
                    kept_skips.append(plugin.name)
                continue
            kept_skips = None if kept else kept_skips
            if isinstance(said, Narrowed):
                result.narrow(plugin.name, said.names)
                if result.rejected is not None:
                    return result
            elif code is Code.UNSCHEDULABLE:
                remembered = said.by(plugin.name)
            elif code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
                result.rejected = said.by(plugin.name)
                return result
            else:
                text = said.message or f"returned {said.code.label}"
                text = f'running PreFilter plugin "{plugin.name}": {text}'
                raise PluginError(plugin.name, text)
        result.rejected = remembered
        if quiet is None and kept_skips is not None:
            self._kept_skips = frozenset(kept_skips)
        result.volatile = tuple(
            [each for each in self.profile.volatile_filters if each[1].name not in result.skipped]
        )
        # Who skips the pod for good has nothing to do with it later on either.
        idle = result.skipped.intersection(self._always_skipping or ())
        self.state.idle = state.idle = frozenset(idle)
        if holds:
            self._pre_filtered = result
        return result

    def _would_again(self, plugin: Any, said: Status | Narrowed) -> bool:
        """Whether a plugin that is not kept would skip the pod again, as things stand."""
        if not _skips(said):
            return False
        always = self._always_skipping or ()
        return plugin.name in always or self._stamps.get(plugin.name) is not None

    def _forget_nodes(self) -> None:
        """What plugins worked out about all nodes together holds until one of them changes."""
        position = self.state.table.node_changes.position
        if position != self._nodes_seen:
            self._nodes_seen = position
            for name in self.profile.looking_at_nodes:
                self._readings.pop(name, None)
            self._pre_filtered = self._kept_skips = None
            self._fitting = self._totals = self.reasons = None

    # Which nodes fit

    def run_filters(self, state: CycleState, pod: Pod, pre: PreFiltered) -> Filtered:
        """Every row's verdict, first refusal first."""
        fitting = self._fitting or self._new_fitting()
        fitting.refresh()
        filters = self.profile.filters
        if not pre.volatile:
            if self._filtered is None or self._filtered.fits is not fitting.fits:
                self._filtered = Filtered(filters, fitting, fitting.fits, ())
            return self._filtered
        fits, said = fitting.fits, list[Volatile]()
        for place, plugin in pre.volatile:
            if hasattr(plugin, "filter_all"):
                verdicts = calls.filter_rows(plugin, state, pod, state.table)
                codes, status_of = verdicts.codes, verdicts.status_of
                has_erred = bool(verdicts.troubles)
            else:
                # Asked one by one, so only about nodes that nobody refused or left out before.
                open_ = first_refusals(fitting.first, said) > place
                if pre.names is not None:
                    open_ &= state.table.named(pre.names)
                codes, book = self._ask_each(plugin, state, pod, open_)
                status_of, has_erred = book.status, book.erred
            fits = fits & (codes == 0)
            said.append(Volatile(place, codes, status_of, has_erred, int(np.count_nonzero(fits))))
        return Filtered(filters, fitting, fits, said)

    def _new_fitting(self) -> Fitting:
        skips = self._kept_skips
        if skips is None:
            kept = [plugin for plugin, is_kept in self.profile.pre_filters if is_kept]
            skips = frozenset(p.name for p in kept if _skips(self._reading(p).pre_filtered))
        memos = [
            (place, self._reading(plugin).verdicts)
            for place, plugin in self.profile.kept_filters
            if plugin.name not in skips
        ]
        self._fitting = Fitting(self.state.table, memos)
        return self._fitting

    def _ask_each(
        self, plugin: Any, state: CycleState, pod: Pod, open_: Mask
    ) -> tuple[Codes, calls.Book]:
        book = calls.Book()
        rows = np.flatnonzero(open_)
        self.profile.loops.add(plugin.name, "filter", len(rows))
        codes = np.zeros(len(open_), dtype=np.int64)
        for row, code in calls.filter_loop(plugin, state, pod, rows.tolist(), book).items():
            codes[row] = code
        return codes, book

    def refresh_reasons(
        self, filtered: Filtered, beside: Beside | None, own: int | None
    ) -> Reasons:
        """Why every row is refused, for a pod that was itself promised the `own` row."""
        assert self._fitting is not None
        if self.reasons is None:
            self.reasons = Reasons(self.state.cluster)
        epoch = (self._fitting.combined, 0 if beside is None else beside.epoch)
        self.reasons.refresh(filtered, beside, own, epoch if filtered.is_kept else None)
        return self.reasons

    # How good they are

    def run_scores(self, state: CycleState, pod: Pod, fits: Mask) -> Scored:
        """Weighted, normalised scores of the rows that fit."""
        fitting = self._fitting
        assert fitting is not None, "filters come first"
        totals = self._totals or self._new_totals(fitting, fits)
        totals.refresh(fits)
        if fits is fitting.fits:
            scored = Scored(totals.values, totals.parts, totals.leaders)
        else:
            scored = Scored(*totals.among(fits), Leaders())
        return scored if self._skips_scores else self._add_volatile(state, pod, fits, scored)

    def _new_totals(self, fitting: Fitting, fits: Mask) -> Totals:
        columns = []
        for plugin, weight in self.profile.kept_scores:
            reading = self._reading(plugin)
            if not reading.pre_scored(fits).is_skip:
                columns.append(ScoreColumn(plugin, weight, reading.scores))
            self.state.adopt(reading.state)
        # All rows are new to it.
        fitting.changed = None
        self._totals = Totals(self.state.table, fitting, columns)
        return self._totals

    def _add_volatile(self, state: CycleState, pod: Pod, fits: Mask, scored: Scored) -> Scored:
        holds = True
        added: list[Part] = []
        totals = scored.totals
        for plugin, weight in self.profile.volatile_scores:
            asked = self.profile.has_pre_score(plugin)
            said = pre_score(plugin, state, pod, fits) if asked else SUCCESS
            holds = holds and self._would_again(plugin, said)
            if said.is_skip:
                continue
            scores = self._normalised(plugin, state, pod, fits)
            check_range(plugin, scores, fits)
            totals = totals + (scores if weight == 1 else scores * weight)
            added.append((plugin.name, weight, scores))
        self._skips_scores = holds
        if not added:
            return scored
        np.copyto(totals, -1, where=~fits)
        # A score plugin that runs last may be configured first; people see that order.
        places = self.profile.score_places
        parts = sorted([*scored.parts.all, *added], key=lambda part: places[part[0]])
        return Scored(totals, Parts(parts), Leaders())

    def _normalised(self, plugin: Any, state: CycleState, pod: Pod, fits: Mask) -> Scores:
        raw = self._raw(plugin, state, pod, fits)
        if getattr(plugin, "normalizer", None) is not None:
            scores: Scores = normalised(plugin, raw, summarized(plugin, raw[fits]))
            return scores
        if hasattr(plugin, "normalize_score"):
            try:
                raw = raw.copy()
                raw[fits] = plugin.normalize_score(state, pod, raw[fits])
            except Exception as trouble:  # As above.
                raise normalizing(plugin, trouble) from trouble
        return raw

    def _raw(self, plugin: Any, state: CycleState, pod: Pod, fits: Mask) -> Scores:
        if hasattr(plugin, "score_all"):
            return calls.score_rows(plugin, state, pod, state.table)
        raw = np.zeros(len(fits), dtype=np.int64)
        rows = np.flatnonzero(fits).tolist()
        self.profile.loops.add(plugin.name, "score", len(rows))
        for row in rows:
            raw[row] = calls.score_one(plugin, state, pod, state.table.info(row))
        return raw


def _skips(said: Status | Narrowed) -> bool:
    return isinstance(said, Status) and said.code is Code.SKIP


def _stamp(plugin: Any, state: CycleState, pod: Pod) -> Hashable:
    """What has to stay the same for a plugin to skip the pod again; None if nothing would do."""
    try:
        stamp: Hashable = plugin.skips_while(state, pod)
    except Exception:  # A plugin may raise anything; then it is asked every time.
        return None
    return stamp
