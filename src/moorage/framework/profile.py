"""Profile: one scheduler name: its plugins in order, their weights, and how their methods run."""

from collections.abc import Iterable, Mapping, Set
from contextlib import suppress
from typing import Any

from moorage import plugin_reports
from moorage.api.pod import Pod
from moorage.errors import ConfigError, PluginError
from moorage.framework import invoke, points, what_if
from moorage.framework.cluster import Cluster
from moorage.framework.events import EVERYTHING, ClusterEvent, Events
from moorage.framework.invoke import CallMeter, PluginMethod, measured
from moorage.framework.points import depends_of
from moorage.framework.state import NO_PLUGINS, CycleState
from moorage.framework.status import Status
from moorage.framework.views.cache import ViewCache
from moorage.framework.views.policy import BY_ROW, CachePolicy
from moorage.framework.what_if import WhatIfPlan
from moorage.nodes.template import PodTemplate

BUILT_IN = "moorage.plugins."
NAN_KEY = "a key of queue_sort is not a number (NaN); the pod comes after all others"


class Profile:
    """See the module."""

    # Measures the profile's calls, in this process; see `measure`.
    meter: CallMeter | None = None

    def __init__(
        self,
        name: str,
        plugins: Mapping[str, list[tuple[Any, int]]],
        cluster: Cluster,
        percentage: int | None = None,
    ) -> None:
        self.name = name
        self.cluster = cluster
        self.percentage = percentage
        self.loops = invoke.Loops()
        self._at = {point: [p for p, _ in plugins.get(point, [])] for point in points.POINTS}
        self._methods: dict[tuple[str, str], PluginMethod | None] = {}
        self._by_point: dict[tuple[str, str], list[PluginMethod]] = {}
        # The methods of the points that run for every pod, in the order of the plugins.
        chained = ("pre_enqueue", "queue_sort", "post_filter", "reserve", "permit")
        self.chain = {at: self.methods(at, at) for at in (*chained, "bind", "post_bind")}
        self.chain["unreserve"] = self.methods("reserve", "unreserve")[::-1]
        # The keys of our own plugins are integers and times.
        sorters = [type(plugin).__module__ for plugin in self._at["queue_sort"]]
        self._checks_queue_keys = not all(name.startswith(BUILT_IN) for name in sorters)
        self.pre_filters = self._at["pre_filter"]
        self.filters = self._at["filter"]
        self.pre_binds = self._at["pre_bind"]
        self.has_post_filters = bool(self._at["post_filter"])
        self.filter_names = [plugin.name for plugin in self.filters]
        scores = plugins.get("score", [])
        self.has_scores = bool(scores)
        self.score_order = {p.name: i for i, (p, _) in enumerate(scores)}
        self.placement_generator = next(iter(self._at["placement_generate"]), None)
        self.placement_scores = plugins.get("placement_score", [])
        self.called_at = {
            p.name: frozenset(at for at, found in self._at.items() if p in found)
            for p in self.plugins()
        }
        self.unprepared = {
            p.name for p in self.plugins() if points.is_unprepared(p, self.called_at[p.name])
        }
        first = {p.name: p for p in (*self._at["pre_filter"], *self._at["pre_score"])}.values()
        keys = [
            self.method(plugin, "skip_key")
            for plugin in first
            if plugin.name not in self.unprepared
        ]
        self._skip_keys = [method for method in keys if method is not None]
        # Those of plugins whose results are not cached.
        self.skip_keys = [m for m in self._skip_keys if depends_of(m.plugin) not in BY_ROW]
        self._idle = f"idle of {name}"
        self._idle_sets: dict[frozenset[str], frozenset[str]] = {}
        # Plugins whose results are cached, and whether one of them reads all nodes together.
        asked = {p.name: p for p, _ in scores} | {
            p.name: p for at in ("pre_filter", "filter") for p in self._at[at]
        }
        self.cached = [
            p for p in asked.values() if depends_of(p) in BY_ROW and p.name not in self.unprepared
        ]
        self.reads_all_nodes = any(depends_of(p) is points.Depends.NODES for p in self.cached)
        # What is cached for a template, and what for templates that are seen once, by the plugins
        # whose results are shared.
        self._scores = scores
        by_row = {p.name for p in self.cached}
        self.by_row = CachePolicy(self, self._at, scores, by_row, is_for_template=True)
        self._seen_once: dict[frozenset[str], CachePolicy] = {}
        prepares = [self.method(plugin, "prepare") for plugin in self.plugins()]
        self._preparing = [method for method in prepares if method is not None]
        self._prepared = f"prepared for {name}"
        for plugin in self.plugins():
            if (attach := self.method(plugin, "attach")) is not None:
                _at_start(attach, cluster)
        rejecting = {p.name: p for point in points.REJECTING for p in self._at[point]}
        # The cluster events that may make a rejected pod schedulable, by plugin.
        self.events = {name: self._events_of(p) for name, p in rejecting.items()}
        self._what_if_plans: dict[frozenset[str], WhatIfPlan] = {}
        self._active: dict[frozenset[str], frozenset[str]] = {}
        self.views = ViewCache(self)

    def __getstate__(self) -> dict[str, Any]:
        # Views are rebuilt, and what plugins put into them need not pickle. A meter stays here.
        state = {name: v for name, v in self.__dict__.items() if name not in ("views", "meter")}
        return {**state, "_what_if_plans": {}}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.views = ViewCache(self)

    def plugins(self) -> list[Any]:
        """Every plugin that takes part in some point, once."""
        return list({p.name: p for at in self._at.values() for p in at}.values())

    def method(self, plugin: Any, name: str) -> PluginMethod | None:
        """A method of one of the profile's plugins; None if the plugin does not have it."""
        key = plugin.name, name
        if key not in self._methods:
            found = self._methods[key] = invoke.method_of(plugin, name)
            if found is not None:
                found.meter = self.meter
        return self._methods[key]

    def require(self, plugin: Any, name: str) -> PluginMethod:
        """The same for a method that the plugin is known to have."""
        method = self._methods.get((plugin.name, name)) or self.method(plugin, name)
        assert method is not None, f"{plugin.name} has no method {name}"
        return method

    def measure(self, meter: CallMeter) -> None:
        """Report all calls of plugins and of extension points to a meter from now on."""
        self.meter = meter
        self._active.clear()
        self.views = ViewCache(self)
        for method in self.called_methods():
            method.meter = meter

    def called_methods(self) -> list[PluginMethod]:
        """The plugin methods that were looked up so far."""
        return [method for method in self._methods.values() if method is not None]

    def methods(self, point: str, name: str) -> list[PluginMethod]:
        """A method of all plugins of an extension point that have it, in order."""
        found = self._by_point.get((point, name))
        if found is None:
            methods = [self.method(plugin, name) for plugin in self._at[point]]
            found = [method for method in methods if method is not None]
            self._by_point[point, name] = found
        return found

    def active_points(self, idle: frozenset[str]) -> frozenset[str]:
        """The points with a plugin that is not idle; all that have plugins if there is a meter."""
        found = self._active.get(idle)
        if found is None:
            left = idle if self.meter is None else NO_PLUGINS
            points_left = [at for at, found in self._at.items() if {p.name for p in found} - left]
            found = self._active[idle] = frozenset(points_left)
        return found

    # Queue

    @measured("PreEnqueue")
    def run_pre_enqueue(self, pod: Pod) -> Status | None:
        """The first status that keeps the pod out of the queue, or None."""
        for method in self.chain["pre_enqueue"]:
            status = invoke.result_of(method, Status, pod)
            if not status.is_success:
                return status
        return None

    def queue_key(self, pod: Pod, queued_at: float) -> Any:
        """The sort key of a pod in the active queue; the smallest is scheduled first."""
        try:
            key = self.chain["queue_sort"][0].call(pod, queued_at)
        except PluginError:  # Its pod comes after all others.
            return True, queued_at
        if self._checks_queue_keys and _has_nan(key):  # No order holds among such keys.
            plugin_reports.warning(self.chain["queue_sort"][0].name, NAN_KEY)
            return True, queued_at
        return False, key

    def queue_path_methods(self) -> list[PluginMethod]:
        """The methods by which the queue_sort plugin partitions the queue; empty if it does not."""
        names = ("queue_path", "queue_path_key", "queue_path_changes")
        sorters = self._at["queue_sort"]
        found = [self.method(sorters[0], name) for name in names] if sorters else []
        return [method for method in found if method is not None] if all(found) else []

    def _events_of(self, plugin: Any) -> Events:
        method = self.method(plugin, "events_to_register")
        if method is None:
            return EVERYTHING
        registered = _at_start(method)
        if not isinstance(registered, Mapping) or not all(
            isinstance(event, ClusterEvent) and (hint is None or callable(hint))
            for event, hint in registered.items()
        ):
            reason = "has to return a mapping of ClusterEvents to hint functions"
            raise ConfigError([method.error_text(reason)])
        return registered

    def idle(self, template: PodTemplate) -> frozenset[str]:
        """The plugins that do nothing for pods of a template, at any time."""
        idle: frozenset[str] | None = template.compiled.get(self._idle)
        if idle is None:
            state, pod = CycleState.of(self.cluster, template, 0.0), template.exemplar
            keys = [(m.name, invoke.skip_key(m, state, pod)) for m in self._skip_keys]
            found = frozenset([name for name, key in keys if key is points.ALWAYS])
            # One object for all templates with the same: its hash is computed once.
            idle = template.compiled[self._idle] = self._idle_sets.setdefault(found, found)
        return idle

    def prepare(self, template: PodTemplate) -> None:
        """Run the prepare methods for a template, before its first cycle."""
        if self._prepared not in template.compiled:
            template.compiled[self._prepared] = True
            for prepare in self._preparing:
                with suppress(PluginError):  # Reported when the plugin runs.
                    prepare.call(template)
            self.idle(template)
            self.views.prepare(template)

    # Decision

    def seen_once(self, shared: Iterable[str]) -> CachePolicy:
        """The policy for templates that are seen once; results of some plugins are shared."""
        names = frozenset(shared)
        policy = self._seen_once.get(names)
        if policy is None:
            policy = CachePolicy(self, self._at, self._scores, names, is_for_template=False)
            self._seen_once[names] = policy
        return policy

    def what_if_plan(self, skipped: Set[str]) -> WhatIfPlan:
        """Which filters run again when pods come or go, for pods that these plugins skip."""
        plan = self._what_if_plans.get(frozenset(skipped))
        if plan is None:
            plan = self._what_if_plans[frozenset(skipped)] = what_if.plan(self, skipped)
        return plan


def _at_start(method: PluginMethod, *args: Any) -> Any:
    """Call a plugin while the profile is made; a failure is an error of the configuration."""
    try:
        return method.call(*args)
    except PluginError as failure:
        raise ConfigError([str(failure)]) from failure


def _has_nan(key: Any) -> bool:
    """Whether a sort key is NaN, or has one."""
    if isinstance(key, tuple | list):
        return any(map(_has_nan, key))
    return isinstance(key, float) and key != key
