"""Profile: one scheduler name: its plugins in order, their weights, and how they are asked."""

from collections.abc import Hashable, Mapping, Set
from typing import Any, NamedTuple

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.errors import PLUGIN_EXCEPTIONS, ConfigError
from moorage.framework import asking, calls, points, post_filter
from moorage.framework.awaiting import Awaiting
from moorage.framework.cluster import Cluster
from moorage.framework.effects import Request
from moorage.framework.hints import EVERYTHING, Events, HintMap
from moorage.framework.keeping import KEPT, SETTLED, Keeping, depends_of
from moorage.framework.post_filter import PostFiltered, Refusal
from moorage.framework.sheets import Sheets
from moorage.framework.state import CycleState
from moorage.framework.status import SKIP, SUCCESS, Code, Status, error
from moorage.framework.template import PodTemplate

LONGEST_WAIT_SECONDS = 15 * 60.0

# Points whose plugins can refuse a pod, and so can be cured by a change.
REFUSING = ("pre_enqueue", "pre_filter", "filter", "reserve", "permit")

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
    # Whether those that are asked can answer for many rows at once.
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
        self.loops = calls.Loops()
        self._at = {point: [p for p, _ in plugins.get(point, [])] for point in points.METHODS}
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
            p for p in beforehand if depends_of(p) not in KEPT and hasattr(p, "skips_while")
        ]
        # Plugins whose answers are kept, and whether one may look at all nodes beforehand.
        asked = {p.name: p for p, _ in scores} | {
            p.name: p for at in ("pre_filter", "filter") for p in self._at[at]
        }
        self.kept = [p for p in asked.values() if depends_of(p) in KEPT]
        self.looks_at_nodes = any(depends_of(p) is points.Depends.NODES for p in self.kept)
        self._preparing = [p for p in self.plugins() if hasattr(p, "prepare")]
        self._prepared = f"prepared for {name}"
        self.hints = HintMap(self._events())
        self._questions: dict[frozenset[str], Questions] = {}
        self.sheets = Sheets(self)

    def __getstate__(self) -> dict[str, Any]:
        # What is kept can be worked out again, and what plugins said of it need not pickle.
        return {name: value for name, value in self.__dict__.items() if name != "sheets"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.sheets = Sheets(self)

    def plugins(self) -> list[Any]:
        """Every plugin that takes part in some point, once."""
        return list({p.name: p for at in self._at.values() for p in at}.values())

    # Queue

    def run_pre_enqueue(self, pod: Pod) -> Status | None:
        """The first plugin's refusal to let the pod into the queue, or None."""
        for plugin in self._at["pre_enqueue"]:
            status = asking.ask(plugin, "pre_enqueue", pod)
            if not status.is_success:
                return status
        return None

    def queue_key(self, pod: Pod, queued_at: float) -> Any:
        """The place of a pod in the active queue; smaller is sooner."""
        try:
            return False, self._at["queue_sort"][0].queue_sort(pod, queued_at)
        except PLUGIN_EXCEPTIONS:  # A plugin may raise anything; its pod is tried after all others.
            return True, queued_at

    def _events(self) -> dict[str, Events]:
        refusing = {p.name: p for point in REFUSING for p in self._at[point]}
        return {name: _events_of(plugin) for name, plugin in refusing.items()}

    def prepare(self, template: PodTemplate) -> None:
        """Work out what follows from a template alone, before it is asked about."""
        if self._prepared not in template.compiled:
            template.compiled[self._prepared] = True
            for plugin in self._preparing:
                try:
                    plugin.prepare(template)
                except PLUGIN_EXCEPTIONS:  # Reported when the plugin runs.
                    continue
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
        return Questions(tuple(settled), tuple(asked), tuple(told), reach, in_columns)

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

    def run_post_filters(self, state: CycleState, pod: Pod, refusal: Refusal) -> PostFiltered:
        """Ask whether something can be done about a refusal."""
        asked = [asking.post_filter(p, state, pod, refusal) for p in self._at["post_filter"]]
        return post_filter.run(asked)

    @property
    def has_post_filters(self) -> bool:
        return bool(self._at["post_filter"])

    def tell_evictions(self, plugin: str, pod: Pod, *, over: bool) -> str:
        """Let a plugin know how far its victims are; returns what went wrong, if anything."""
        method = "evictions_over" if over else "evictions_begun"
        for each in self._at["post_filter"]:
            if each.name == plugin and hasattr(each, method):
                try:
                    getattr(each, method)(pod)
                except PLUGIN_EXCEPTIONS as trouble:  # A plugin may raise anything.
                    return f'plugin "{plugin}": {method}: {calls.describe(trouble)}'
        return ""

    # Reserve and permit

    def run_reserve(self, state: CycleState, pod: Pod, node: NodeName) -> Status:
        """Reserve with every plugin, in order, until one refuses."""
        for plugin in self._at["reserve"]:
            if plugin.name in state.idle:
                continue
            status = asking.ask(plugin, "reserve", state, pod, node)
            if not status.is_success:
                return status
        return SUCCESS

    def run_unreserve(self, state: CycleState, pod: Pod, node: NodeName) -> list[str]:
        """Undo with every plugin, in reverse order; returns what went wrong on the way."""
        trouble = []
        for plugin in reversed(self._at["reserve"]):
            if plugin.name in state.idle or not hasattr(plugin, "unreserve"):
                continue
            try:
                plugin.unreserve(state, pod, node)
            except PLUGIN_EXCEPTIONS as raised:  # The others must undo theirs all the same.
                trouble.append(
                    f'running Unreserve plugin "{plugin.name}": {calls.describe(raised)}'
                )
        return trouble

    def run_permit(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> tuple[Status, dict[str, float]]:
        """The plugins' last word, and how long those wait that ask for it."""
        waits: dict[str, float] = {}
        for plugin in self._at["permit"]:
            if plugin.name in state.idle:
                continue
            status = asking.ask(plugin, "permit", state, pod, node)
            if status.code is Code.WAIT:
                waits[plugin.name] = min(status.wait_seconds or 0.0, LONGEST_WAIT_SECONDS)
            elif not status.is_success:
                return status, {}
        return SUCCESS, waits

    # Bind

    def run_pre_flight(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> tuple[Status, list[Any]]:
        """Which pre_bind plugins have something to do; SKIP if none has."""
        busy = []
        for plugin in self._at["pre_bind"]:
            if plugin.name in state.idle:
                continue
            if not hasattr(plugin, "pre_bind_pre_flight"):
                busy.append(plugin)
                continue
            status = asking.ask(plugin, "pre_bind_pre_flight", state, pod, node)
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

    def run_pre_bind(
        self, plugin: Any, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]:
        """What one pre_bind plugin says or asks for."""
        return asking.pre_bound(
            plugin, "pre_bind", asking.call(plugin, "pre_bind", state, pod, node)
        )

    def run_pre_bind_next(
        self, plugin: Any, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]:
        """What a pre_bind plugin says or asks for, now that its requests were carried out."""
        return asking.pre_bound(
            plugin, "pre_bind_next", asking.call(plugin, "pre_bind_next", state, pod, node)
        )

    @property
    def binds(self) -> list[Any]:
        return self._at["bind"]

    def run_bind(
        self, plugin: Any, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Request:
        """What one bind plugin says or asks for."""
        answer = asking.call(plugin, "bind", state, pod, node)
        if isinstance(answer, Status | Request):
            return answer
        return asking.strange(plugin, "bind", answer)

    def run_post_bind(self, state: CycleState, pod: Pod, node: NodeName) -> list[str]:
        """Tell everybody; returns what went wrong on the way."""
        trouble = []
        for plugin in self._at["post_bind"]:
            if plugin.name in state.idle:
                continue
            try:
                plugin.post_bind(state, pod, node)
            except PLUGIN_EXCEPTIONS as raised:  # The pod stays bound.
                trouble.append(f'running PostBind plugin "{plugin.name}": {calls.describe(raised)}')
        return trouble


def _events_of(plugin: Any) -> Events:
    """The changes that could cure a plugin's refusals."""
    if not hasattr(plugin, "events_to_register"):
        return EVERYTHING
    problem = f'initializing plugin "{plugin.name}": events_to_register: '
    try:
        registered = plugin.events_to_register()
    except PLUGIN_EXCEPTIONS as trouble:  # A plugin may raise anything.
        raise ConfigError([problem + calls.describe(trouble)]) from trouble
    if not isinstance(registered, Mapping):
        problem += "has to return a mapping of ClusterEvents to hint functions"
        raise ConfigError([problem])
    return registered
