"""Profile: one scheduler name: its plugins in order, their weights, and how they are asked."""

from collections.abc import Hashable, Mapping, Set
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.errors import ConfigError, PluginError
from moorage.framework import invoke, points, post_filter
from moorage.framework.awaiting import Awaiting
from moorage.framework.cluster import Cluster
from moorage.framework.effects import Request
from moorage.framework.hints import EVERYTHING, Events, HintMap
from moorage.framework.invoke import CallMeter, PluginMethod, measured
from moorage.framework.keeping import KEPT, SETTLED, Keeping, depends_of
from moorage.framework.post_filter import PostFiltered, Refusal
from moorage.framework.sheets import Sheets
from moorage.framework.state import CycleState
from moorage.framework.status import SKIP, SUCCESS, Code, Status, error
from moorage.framework.template import PodTemplate

LONGEST_WAIT_SECONDS = 15 * 60.0

NODE = points.Depends.NODE
# From near to far; a filter that looks at nodes elsewhere may still look at its own node's pods.
REACHES = (
    NODE,
    points.Depends.USAGE,
    points.Depends.NODES,
    points.Depends.PLACEMENTS,
    points.Depends.ANYTHING,
)


class Questions(NamedTuple):
    """What a filter is asked for again when pods come or go."""

    # Places of filters that look at nodes only: what they said holds.
    settled: tuple[int, ...]
    # The other filters, with their places.
    asked: tuple[tuple[int, Any], ...]
    # Plugins that have to be told who comes and goes.
    told: tuple[Any, ...]
    # The furthest that any of the filters looks.
    reach: points.Depends
    # Those of them that have the whole-cluster form, with their places.
    whole: tuple[tuple[int, PluginMethod], ...]
    # Whether all of them have it, and look at nothing but nodes and usage.
    in_columns: bool


class Profile:
    """See the module."""

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
        self.meter: CallMeter | None = None
        self.loops = invoke.Loops()
        self._at = {point: [p for p, _ in plugins.get(point, [])] for point in points.POINTS}
        self._methods: dict[tuple[str, str], PluginMethod | None] = {}
        # The methods of the points that run for every pod, in the order of the plugins.
        self._chain = {
            name: self.methods(point, name)[:: -1 if name == "unreserve" else 1]
            for point, name in (
                ("pre_enqueue", "pre_enqueue"),
                ("queue_sort", "queue_sort"),
                ("post_filter", "post_filter"),
                ("reserve", "reserve"),
                ("reserve", "unreserve"),
                ("permit", "permit"),
                ("post_bind", "post_bind"),
            )
        }
        self.pre_filters = self._at["pre_filter"]
        self.filters = self._at["filter"]
        scores = plugins.get("score", [])
        self.score_places = {p.name: i for i, (p, _) in enumerate(scores)}
        # Whose answers are kept for a template, and whose for a family of them.
        self.by_template = Keeping(self._at, scores, KEPT)
        self.by_family = Keeping(self._at, scores, SETTLED)
        self._pre_scores = {p.name for p in self._at["pre_score"]}
        beforehand = {p.name: p for p in (*self._at["pre_filter"], *self._at["pre_score"])}.values()
        # Plugins that are not kept, but say how long they would skip a pod.
        self.skipping = [
            p for p in beforehand if depends_of(p) not in KEPT and hasattr(p, "skip_key")
        ]
        # Plugins whose answers are kept, and whether one may look at all nodes beforehand.
        asked = {p.name: p for p, _ in scores} | {
            p.name: p for at in ("pre_filter", "filter") for p in self._at[at]
        }
        self.kept = [p for p in asked.values() if depends_of(p) in KEPT]
        self.looks_at_nodes = any(depends_of(p) is points.Depends.NODES for p in self.kept)
        prepares = [self.method(plugin, "prepare") for plugin in self.plugins()]
        self._preparing = [method for method in prepares if method is not None]
        self._prepared = f"prepared for {name}"
        self.hints = HintMap(self._events())
        self._questions: dict[frozenset[str], Questions] = {}
        self.sheets = Sheets(self)

    def __getstate__(self) -> dict[str, Any]:
        # What is kept can be worked out again, and what plugins said of it need not pickle.
        # A meter belongs to the process.
        kept = {name: value for name, value in self.__dict__.items() if name != "sheets"}
        return kept | {"meter": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.sheets = Sheets(self)

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
        for method in self.called_methods():
            method.meter = meter

    def called_methods(self) -> list[PluginMethod]:
        """The plugin methods that were looked up so far."""
        return [method for method in self._methods.values() if method is not None]

    def methods(self, point: str, name: str) -> list[PluginMethod]:
        """A method of all plugins of an extension point that have it, in order."""
        found = [self.method(plugin, name) for plugin in self._at[point]]
        return [method for method in found if method is not None]

    # Queue

    # What runs for every pod calls its meter itself, if there is one: `measured` costs a call.

    def run_pre_enqueue(self, pod: Pod) -> Status | None:
        """The first status that keeps the pod out of the queue, or None."""
        meter = self.meter
        began = 0.0 if meter is None else meter.begin()
        rejected = None
        for method in self._chain["pre_enqueue"]:
            status = invoke.status_of(method, pod)
            if not status.is_success:
                rejected = status
                break
        if meter is not None:
            meter.end_point("PreEnqueue", began, rejected)
        return rejected

    def queue_key(self, pod: Pod, queued_at: float) -> Any:
        """The sort key of a pod in the active queue; the smallest is scheduled first."""
        try:
            return False, self._chain["queue_sort"][0](pod, queued_at)
        except PluginError:  # Its pod comes after all others.
            return True, queued_at

    def _events(self) -> dict[str, Events]:
        rejecting = [point.name for point in points.POINTS.values() if point.rejects]
        plugins = {p.name: p for point in rejecting for p in self._at[point]}
        return {
            name: _events_of(self.method(plugin, "events_to_register"))
            for name, plugin in plugins.items()
        }

    def prepare(self, template: PodTemplate) -> None:
        """Work out what follows from a template alone, before it is asked about."""
        if self._prepared not in template.compiled:
            template.compiled[self._prepared] = True
            for prepare in self._preparing:
                with suppress(PluginError):  # Reported when the plugin runs.
                    prepare(template)
            self.sheets.prepare(template)

    # Decision

    @property
    def has_scores(self) -> bool:
        return bool(self.score_places)

    def has_pre_score(self, plugin: Any) -> bool:
        """Whether a score plugin's pre_score is switched on."""
        return plugin.name in self._pre_scores

    def questions(self, skipped: Set[str]) -> Questions:
        """Whom to ask again what if, and whom to tell, when some plugins are left out."""
        known = self._questions.get(frozenset(skipped))
        if known is None:
            known = self._questions[frozenset(skipped)] = self._ask_about(skipped)
        return known

    def _ask_about(self, skipped: Set[str]) -> Questions:
        filters = [(i, p) for i, p in enumerate(self.filters) if p.name not in skipped]
        told = [
            p
            for p in self.pre_filters
            if p.name not in skipped and (hasattr(p, "add_pod") or hasattr(p, "remove_pod"))
        ]
        asked = [(i, p) for i, p in filters if depends_of(p) not in SETTLED or p in told]
        settled = [i for i, p in filters if (i, p) not in asked]
        in_columns = not told and all(
            depends_of(p) is points.Depends.USAGE and hasattr(p, "filter_all") for _, p in asked
        )
        further = [points.Depends.PLACEMENTS] if told else []
        reach = max(
            [*further, *(depends_of(p) for _, p in filters)], key=REACHES.index, default=NODE
        )
        whole = [(i, m) for i, p in asked if (m := self.method(p, "filter_all")) is not None]
        return Questions(tuple(settled), tuple(asked), tuple(told), reach, tuple(whole), in_columns)

    def stamp(self, skipped: Set[str]) -> Hashable:
        """What stays the same for as long as answers hold for rows that do not change.

        None if somebody looks at more than the cluster: no answer holds then.
        """
        table, reach = self.cluster.table, self.questions(skipped).reach
        nodes = table.node_changes.position
        match reach:
            case points.Depends.NODE | points.Depends.USAGE:
                return frozenset(skipped)
            case points.Depends.NODES:
                return frozenset(skipped), nodes
            case points.Depends.PLACEMENTS:
                promises = self.cluster.promise_changes.position
                version = self.cluster.version
                return frozenset(skipped), nodes, table.changes.position, promises, version
        return None

    @measured("PostFilter")
    def run_post_filters(self, state: CycleState, pod: Pod, refusal: Refusal) -> PostFiltered:
        """Ask whether something can be done about a refusal."""
        methods = self._chain["post_filter"]
        return post_filter.run([partial(_post_filter, m, state, pod, refusal) for m in methods])

    @property
    def has_post_filters(self) -> bool:
        return bool(self._at["post_filter"])

    def report_preemption(self, plugin: str, pod: Pod, *, over: bool) -> str:
        """Let a plugin know how far its victims are; returns what went wrong, if anything."""
        method = "preemption_finished" if over else "preemption_started"
        for each in self.methods("post_filter", method):
            if each.name == plugin:
                try:
                    each(pod)
                except PluginError as failure:
                    return str(failure)
        return ""

    # Reserve and permit

    def run_reserve(self, state: CycleState, pod: Pod, node: NodeName) -> Status:
        """Reserve with every plugin, in order, until one rejects the pod."""
        meter = self.meter
        began = 0.0 if meter is None else meter.begin()
        status = SUCCESS
        for method in self._chain["reserve"]:
            if method.name not in state.idle:
                status = invoke.status_of(method, state, pod, node)
                if not status.is_success:
                    break
        else:
            status = SUCCESS  # Without a plugin's name.
        if meter is not None:
            meter.end_point("Reserve", began, status)
        return status

    def run_unreserve(self, state: CycleState, pod: Pod, node: NodeName) -> list[str]:
        """Undo with every plugin, in reverse order; returns the failures."""
        return self._run_all("unreserve", state, pod, node)

    @measured("Permit")
    def run_permit(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> tuple[Status, dict[str, float]]:
        """The first rejection or SUCCESS, and how long the plugins want to wait, by name."""
        waits: dict[str, float] = {}
        for method in self._chain["permit"]:
            if method.name in state.idle:
                continue
            status = invoke.status_of(method, state, pod, node)
            if status.code is Code.WAIT:
                waits[method.name] = min(status.wait_seconds or 0.0, LONGEST_WAIT_SECONDS)
            elif not status.is_success:
                return status, {}
        return SUCCESS, waits

    # Bind

    @measured("PreBindPreFlight")
    def run_pre_flight(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> tuple[Status, list[Any]]:
        """Which pre_bind plugins have something to do; SKIP if none has."""
        busy = []
        for plugin in self._at["pre_bind"]:
            if plugin.name in state.idle:
                continue
            method = self.method(plugin, "pre_bind_pre_flight")
            if method is None:
                busy.append(plugin)
                continue
            status = invoke.status_of(method, state, pod, node)
            if status.code is Code.ERROR:
                return status, []
            if status.code not in (Code.SUCCESS, Code.SKIP):
                text = (
                    f'PreBindPreFlight {plugin.name} returned "{status.code.label}", which is '
                    "unsupported. It is supposed to return Success, Skip, or Error status"
                )
                return error(text, plugin.name), []
            if not status.is_skip:
                busy.append(plugin)
        return (SUCCESS if busy else SKIP), busy

    @measured("PreBind")
    def run_pre_bind(
        self, plugin: Any, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]:
        """The result of one plugin's pre_bind."""
        return invoke.pre_bind(self.require(plugin, "pre_bind"), state, pod, node)

    @measured("PreBind")
    def run_pre_bind_next(
        self, plugin: Any, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]:
        """The result of one plugin's pre_bind_next, after its requests succeeded."""
        return invoke.pre_bind(self.require(plugin, "pre_bind_next"), state, pod, node)

    @property
    def binds(self) -> list[Any]:
        return self._at["bind"]

    def run_bind(
        self, plugin: Any, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Request:
        """The result of one bind plugin, which may also be an extender."""
        method = self._methods.get((plugin.name, "bind")) or self.require(plugin, "bind")
        meter = self.meter
        began = 0.0 if meter is None else meter.begin()
        result = invoke.bind(method, state, pod, node)
        if meter is not None:
            meter.end_point("Bind", began, result)
        return result

    def run_post_bind(self, state: CycleState, pod: Pod, node: NodeName) -> list[str]:
        """Call every plugin after the pod is bound; returns the failures."""
        return self._run_all("post_bind", state, pod, node)

    def _run_all(self, name: str, state: CycleState, pod: Pod, node: NodeName) -> list[str]:
        """Call a method of every plugin, also after one failed; returns the failures."""
        meter = self.meter
        began = 0.0 if meter is None else meter.begin()
        failures: list[str] = []
        for method in self._chain[name]:
            if method.name not in state.idle:
                try:
                    method(state, pod, node)
                except PluginError as failure:
                    failures.append(str(failure))
        if meter is not None:
            meter.end_point(points.METHODS[name].label, began, failures)
        return failures


def _post_filter(
    method: PluginMethod, state: CycleState, pod: Pod, refusal: Refusal
) -> PostFiltered:
    try:
        result = method(state, pod, refusal)
    except PluginError as failure:
        return PostFiltered(error(str(failure), method.name))
    if isinstance(result, Status):
        result = PostFiltered(result)
    if not isinstance(result, PostFiltered):
        text = f"returned {result!r}, which is neither a Status nor a PostFiltered"
        return PostFiltered(error(method.error_text(text), method.name))
    result.status = result.status.by(method.name)
    return result


def _events_of(method: PluginMethod | None) -> Events:
    """The changes that could cure a plugin's refusals."""
    if method is None:
        return EVERYTHING
    try:
        registered = method()
    except PluginError as failure:
        raise ConfigError([str(failure)]) from failure
    if not isinstance(registered, Mapping):
        reason = "has to return a mapping of ClusterEvents to hint functions"
        raise ConfigError([method.error_text(reason)])
    return registered
