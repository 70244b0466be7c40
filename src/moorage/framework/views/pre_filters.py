"""PreFilterStage: the pre_filter plugins of a template, run in order as far as results are not
cached. PreFiltered: their combined result.
"""

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from moorage.api.pod import Pod
from moorage.errors import PluginError
from moorage.framework import invoke
from moorage.framework.invoke import PluginMethod
from moorage.framework.state import NO_PLUGINS, CycleState
from moorage.framework.status import SKIP, SUCCESS, Code, Narrowed, Status, unresolvable
from moorage.framework.views.policy import CachePolicy, IndexedFilter

if TYPE_CHECKING:
    from moorage.framework.profile import Profile
    from moorage.framework.views.plugin_views import PluginViews
    from moorage.framework.views.uncached import UncachedScore

Result = Status | Narrowed
# Of objects, nodes, views of the placements, and affinity terms of pods on nodes. While they are
# the same, all that changes for plugins is the number of pods in domains, and on rows.
Versions = tuple[int, int, int, int]
# A plugin's name, its method, and its views if the result is cached.
Step = tuple[str, PluginMethod, "PluginViews | None"]


class PreFiltered(Struct, eq=False):
    """The combined result of the pre_filter plugins; reused for other pods, so never changed."""

    rejected: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    skipped: set[str] = set()
    # The plugins that come after one that ended the stage.
    unreached: frozenset[str] = NO_PLUGINS
    # The filters that do not skip the pod and are not cached by row.
    uncached: Sequence[IndexedFilter] = ()
    by_placement: Sequence[IndexedFilter] = ()

    def narrow(self, plugin: str, names: frozenset[str]) -> None:
        """Search only nodes that this plugin names, too."""
        self.narrowed_by.append(plugin)
        self.names = names if self.names is None else self.names & names
        if not self.names:
            by = self.narrowed_by
            reason = (
                f"node(s) didn't satisfy plugin {plugin}"
                if len(by) == 1
                else f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}] simultaneously"
            )
            self.rejected = unresolvable(reason)

    @property
    def absent(self) -> Status:
        """The status of nodes that narrowing left out."""
        by = " ".join(sorted(self.narrowed_by))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{by}]")


class PreFilterStage:
    """See the module. Unless it `retains` results, none outlives the cycle of one pod."""

    def __init__(
        self,
        profile: "Profile",
        policy: CachePolicy,
        views_of: Callable[[str], "PluginViews"],
        state: CycleState,
        *,
        retains: bool,
    ) -> None:
        self._profile = profile
        self._policy = policy
        self._views_of = views_of
        self._state = state
        self._cluster, self._node_changes = state.cluster, state.table.node_changes
        self._placements = state.table.placements
        self._retains = retains
        # Plugins that are not concerned with such pods at any point.
        self.idle: frozenset[str] = NO_PLUGINS
        # While its key is unchanged, a plugin would skip such pods again. None: it might not.
        self._skip_keys: dict[str, Hashable] | None = None
        self._with_skip_key: list[PluginMethod] = list(profile.skip_keys)
        # Grows when a skip key changed.
        self.epoch = 0
        self._versions: Versions | None = None
        self._result: PreFiltered | None = None
        self._all_steps: list[Step] | None = None
        # Plugins that skipped the pod, and would again as long as skip keys stay the same.
        self._skipping: frozenset[str] = NO_PLUGINS
        # The steps of the others, by idle and skipping plugins.
        self._steps: dict[frozenset[str], list[Step]] = {}
        self._scores: dict[frozenset[str], list[UncachedScore]] = {}
        # Results that reject and narrow nothing, by the same and the plugins that skipped the pod.
        self._results: dict[tuple[Hashable, ...], PreFiltered] = {}
        self._cached_skips: list[str] = []

    def run(self, state: CycleState, pod: Pod) -> PreFiltered:
        """The combined result for a pod."""
        if not self._retains:
            self.idle = state.idle = self._profile.idle(state.template)
            return self._run_steps(state, pod)
        # Skip keys depend on nothing else, so they are not computed while these are the same.
        versions = self.current_versions()
        if versions != self._versions:
            if self._skip_keys is None:
                idle = self._profile.idle(self._state.template)
                self.idle = state.idle = self._state.idle = idle
                self._with_skip_key = [m for m in self._with_skip_key if m.name not in idle]
            keys = {m.name: invoke.skip_key(m, state, pod) for m in self._with_skip_key}
            if keys != self._skip_keys:
                self._skip_keys, self._result, self._skipping = keys, None, NO_PLUGINS
                self.epoch += 1
            self._versions = versions
        return self._result or self._run_steps(state, pod)

    def current_versions(self) -> Versions:
        """What skip keys depend on."""
        cluster, placements = self._cluster, self._placements
        nodes, terms = self._node_changes.position, len(placements.terms.all)
        return cluster.version, nodes, placements.version, terms

    def repeated_steps(self) -> set[str]:
        """The plugins that have to run for every pod, as things stand."""
        uncached = {name for name, _, views in self._all_steps or () if views is None}
        return uncached - self.idle - self._skipping

    def settled(self) -> PreFiltered | None:
        """The result for all pods of the template, if it is known and still holds."""
        return self._result if self._versions == self.current_versions() else None

    def would_skip_again(self, plugin: str) -> bool:
        """Whether a plugin that skips the pod does so again, while skip keys stay the same."""
        keys = self._skip_keys
        return keys is not None and keys.get(plugin) is not None

    def uncached_scores(self) -> "list[UncachedScore]":
        """The score plugins that are not cached and not idle."""
        found = self._scores.get(self.idle)
        if found is None:
            uncached = self._policy.uncached_scores
            found = self._scores[self.idle] = [p for p in uncached if p.name not in self.idle]
        return found

    def _run_steps(self, state: CycleState, pod: Pod) -> PreFiltered:
        left_out = self.idle | self._skipping if self._skipping else self.idle
        steps = self._steps.get(left_out)
        if steps is None:
            steps = self._steps[left_out] = self._without(left_out)
        skipped: list[str] = []
        combined: PreFiltered | None = None
        postponed: Status | None = None
        retains = can_reuse = self._retains
        for name, method, views in steps:
            result = method.call(state, pod) if views is None else self._cached(views)
            if result is SUCCESS:
                if views is None:
                    can_reuse = False
                continue
            if result is not SKIP:
                invoke.check_pre_filtered(method, result)
            if retains and views is None:
                if self.would_skip_again(name) and is_skip(result):
                    self._skipping |= {name}
                else:
                    can_reuse = False
            if result is SKIP:
                skipped.append(name)
                continue
            combined = combined or PreFiltered()
            postponed = _combine(name, result, combined) or postponed
            if combined.rejected is not None:
                combined.unreached = self._after(name)
                self._complete(combined, [*left_out, *skipped])
                return combined
        if combined is None:
            combined = self._succeeded(left_out, skipped)
        else:
            combined.rejected = postponed
            self._complete(combined, [*left_out, *skipped])
        if can_reuse:
            self._result = combined
        return combined

    def _after(self, last: str) -> frozenset[str]:
        names = [plugin.name for plugin, _ in self._policy.pre_filters]
        return frozenset(names[names.index(last) + 1 :])

    def _without(self, left_out: frozenset[str]) -> list[Step]:
        if self._all_steps is None:
            self._all_steps = self._find_steps()
        return [step for step in self._all_steps if step[0] not in left_out]

    def _succeeded(self, left_out: frozenset[str], skipped: list[str]) -> PreFiltered:
        """The result if these plugins skipped the pod, and the others let it pass."""
        key: tuple[Hashable, ...] = (left_out, *skipped)
        found = self._results.get(key)
        if found is None:
            found = self._results[key] = PreFiltered()
            self._complete(found, [*left_out, *skipped])
        return found

    def _complete(self, combined: PreFiltered, skipped: list[str]) -> None:
        """Add which plugins skip the pod, and which filters are left to run."""
        left = combined.skipped = {*self._cached_skips, *skipped, *combined.skipped}
        policy = self._policy
        combined.uncached = [f for f in policy.uncached_filters if f[1].name not in left]
        combined.by_placement = [f for f in policy.placement_filters if f[1].name not in left]

    def _find_steps(self) -> list[Step]:
        """The plugins to run; cached results of success and SKIP are settled here, once."""
        steps: list[Step] = []
        is_settled = True
        for plugin, is_cached in self._policy.pre_filters:
            name, result = plugin.name, None
            method = self._profile.require(plugin, "pre_filter")
            if not is_cached:
                steps.append((name, method, None))
                continue
            views = self._views_of(name)
            if is_settled:
                with suppress(PluginError):  # Raised again in the plugin's turn.
                    result = self._cached(views)
            if result is SKIP:
                self._cached_skips.append(name)
            elif result is not SUCCESS:
                # A rejection ends the stage, so plugins after this one run in their turn.
                is_settled = False
                steps.append((name, method, views))
        return steps

    def _cached(self, views: "PluginViews") -> Result:
        result = views.pre_filtered
        self._state.adopt(views.state)
        return result


def _combine(plugin: str, result: Result, combined: PreFiltered) -> Status | None:
    """Add one plugin's result to the combined one; returns a rejection that lets others go on."""
    if isinstance(result, Narrowed):
        combined.narrow(plugin, result.names)
        return None
    match result.code:
        case Code.SUCCESS:
            return None
        case Code.SKIP:
            combined.skipped.add(plugin)
            return None
        case Code.UNSCHEDULABLE:
            return result.by(plugin)
        case Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            combined.rejected = result.by(plugin)
            return None
    text = result.message or f"returned {result.code.label}"
    raise PluginError(plugin, text, f'running PreFilter plugin "{plugin}": {text}')


def is_skip(result: Result) -> bool:
    """Whether a plugin skips the pod."""
    return result is SKIP or (isinstance(result, Status) and result.code is Code.SKIP)
