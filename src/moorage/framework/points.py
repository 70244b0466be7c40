"""The plugin contract: the methods of plugins, in the order in which a pod meets them.

`Contract` is the only definition. The checks at start-up (`registry`), `check_plugin`, the
configuration's points, metrics and `--profile` are derived from `METHODS` and `POINTS`, which are
read off it.

A plugin is any class with a `name` and the methods of the points that it takes part in; there is
no base class. Every point that looks at nodes has two forms: a per-node form, which always works,
and a whole-cluster form ending in `_all`, which returns arrays for many rows. Where both exist
they must agree (`moorage.testing.check_plugin` compares them); the framework calls the form that
is cheaper for the number of rows at hand.

A plugin may also have these attributes:

`depends`     what its filter and score results depend on apart from the pod (see `Depends`).
              Without it nothing is assumed and nothing is cached.
`columns`     the node columns that it reads.
`normalizer`  how raw scores become 0..100, in a form that can be updated row by row (see
              `Normalizer`); the alternative is a `normalize_score` method.
`reads_kinds` names of the kinds that it reads besides Node and Pod, as `("StorageClass",)`; the
              live scheduler watches these. Without it, the plugin may read any kind.
`permissions` API access (`Permission`) that the requests of its pre_bind or bind need.
"""

from __future__ import annotations  # The framework's modules import this one.

import inspect
import math
from collections.abc import Callable, Collection, Hashable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage.api.config import structs
from moorage.api.meta import KubeObject
from moorage.errors import shown
from moorage.framework.status import REJECTED, Code, is_number

if TYPE_CHECKING:
    from moorage.api.meta import NodeName
    from moorage.api.pod import Pod
    from moorage.api.pod_groups import PodGroup
    from moorage.api.server_requests import Request
    from moorage.framework.cluster import Cluster, Rejection
    from moorage.framework.events import Events
    from moorage.framework.post_filter import GroupTrial, NoFeasibleNode, PostFiltered
    from moorage.framework.state import CycleState
    from moorage.framework.status import Mask, Narrowed, Scores, Status, Verdicts
    from moorage.nodes.groups import GroupKey, Groups
    from moorage.nodes.info import NodeInfo
    from moorage.nodes.pod_groups import GroupPlacement
    from moorage.nodes.rows import Rows
    from moorage.nodes.table import NodeTable
    from moorage.nodes.template import PodTemplate
    from moorage.nodes.usage import Placed

RowArray = NDArray[np.intp]


class Always(Enum):
    """For `skip_key`: the plugin does nothing for pods of this template, at any time."""

    ALWAYS = "always"


ALWAYS = Always.ALWAYS


class Depends(Enum):
    """What a filter or score result depends on, and so how long it may be cached."""

    NODE = "that node's object"
    RESOURCES = "what that node has allocatable, what its pods request, and how many they are"
    USAGE = "that node's object and the pods on it"
    NODES = "node objects anywhere"
    PLACEMENTS = "pods, nodes and other objects anywhere"
    ANYTHING = "more than the cluster"


# Answers of these change with the pods on the node.
BY_PODS = (Depends.USAGE, Depends.RESOURCES)


def depends_of(plugin: Any) -> Depends:
    """What a plugin's results depend on; nothing is cached for one that does not say."""
    depends = getattr(plugin, "depends", Depends.ANYTHING)
    return depends if isinstance(depends, Depends) else Depends.ANYTHING


class Method(NamedTuple):
    """One method of the contract."""

    name: str
    # The parameters without `self`.
    arguments: tuple[str, ...]
    # The extension point as Kubernetes spells it in metrics; empty if Kubernetes has no such point.
    label: str
    # How an error is worded, with {plugin} and {reason}.
    error: str
    # The status codes that the method may return; empty if it does not return a Status.
    codes: tuple[Code, ...]

    @property
    def twin(self) -> str:
        """The per-node method that returns the same for one node, of a whole-cluster form."""
        return self.name.removesuffix("_all") if self.name.endswith("_all") else ""


METHODS: dict[str, Method] = {}

SUCCESS_OR_SKIP = (Code.SUCCESS, Code.SKIP)
SUCCESS_OR_REJECTED = (Code.SUCCESS, *REJECTED)

FILTER_ERROR = 'running "{plugin}" filter plugin: {reason}'
SCORE_ERROR = 'running Score plugins: plugin "{plugin}" failed with: {reason}'
NORMALIZE_ERROR = 'running Normalize on Score plugins: plugin "{plugin}" failed with: {reason}'

AnyFunction = TypeVar("AnyFunction", bound=Callable[..., Any])


def method(
    label: str = "", error: str = "", codes: tuple[Code, ...] = ()
) -> Callable[[AnyFunction], AnyFunction]:
    """Register a method of the contract."""

    def register(function: AnyFunction) -> AnyFunction:
        name = function.__name__
        _, *arguments = inspect.signature(function).parameters
        usual = f'running {label} plugin "{{plugin}}"' if label else f'plugin "{{plugin}}": {name}'
        wording = error or usual + ": {reason}"
        METHODS[name] = Method(name, tuple(arguments), label, wording, codes)
        return function

    return register


class Plugin(Protocol):
    """The one attribute that every plugin has."""

    name: str


class Contract(Protocol):
    """All methods that a plugin may have."""

    @method()
    def attach(self, cluster: Cluster) -> None:
        """Called once, when the profile is made, with the cluster that it decides about.

        For a plugin whose pre_enqueue or hint functions read objects; all other methods get the
        cluster with the state of a cycle.
        """

    @method("PreEnqueue", codes=SUCCESS_OR_REJECTED)
    def pre_enqueue(self, pod: Pod) -> Status:
        """May this pod enter the queue? Anything but SUCCESS keeps it gated."""

    @method(error='running QueueSort plugin "{plugin}": {reason}')
    def queue_sort(self, pod: Pod, queued_at: float) -> Any:
        """The order of the active queue, as a sort key: the smallest key is scheduled first.

        `queued_at` is when the pod entered the queue, the last time.
        """

    @method(error='running QueueSort plugin "{plugin}": {reason}')
    def queue_path(self, pod: Pod) -> tuple[str, ...]:
        """The partition of the queue in which a pod waits, as a path in a tree of partitions.

        For a queue_sort plugin whose order changes while pods wait. `queue_sort` orders the pods of
        one partition; the order of partitions is decided when a pod is popped. A path leads to
        pods or to longer paths, not to both. Needs the next two methods as well.
        """

    @method(error='running QueueSort plugin "{plugin}": {reason}')
    def queue_path_key(self, path: tuple[str, ...]) -> Any:
        """The present sort key of a path among the paths with the same parent."""

    @method(error='running QueueSort plugin "{plugin}": {reason}')
    def queue_path_changes(self) -> Sequence[tuple[str, ...]] | None:
        """The paths whose keys may have changed since the last call.

        None: pods may have other paths as well; all are placed again. Called before every pop.
        """

    @method(
        "PreFilter",
        codes=(*SUCCESS_OR_SKIP, Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE),
    )
    def pre_filter(self, state: CycleState, pod: Pod) -> Status | Narrowed:
        """Called once per pod, before any node; stores what filter needs in the state.

        SKIP omits the plugin's filter in this cycle; `only_nodes(names)` restricts the search.
        """

    @method("PreFilterExtensionAddPod", 'running AddPod on PreFilter plugin "{plugin}": {reason}')
    def add_pod(self, state: CycleState, pod: Pod, other: Placed, node: NodeInfo) -> None:
        """Update the stored state as if a pod were added to a node."""

    @method(
        "PreFilterExtensionRemovePod", 'running RemovePod on PreFilter plugin "{plugin}": {reason}'
    )
    def remove_pod(self, state: CycleState, pod: Pod, other: Placed, node: NodeInfo) -> None:
        """Update the stored state as if a pod were removed from a node."""

    @method("Filter", FILTER_ERROR, SUCCESS_OR_REJECTED)
    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        """Does the pod fit this node?"""

    @method("Filter", FILTER_ERROR, REJECTED)
    def filter_all(self, state: CycleState, pod: Pod, table: Rows) -> Verdicts:
        """The same for many rows; the entries of rows without a node are ignored.

        A plugin that depends on usage must read it from `table`: the rows may be hypothetical, with
        pods added or removed.
        """

    @method("Filter", FILTER_ERROR)
    def filter_changes(
        self, state: CycleState, pod: Pod, since: Any
    ) -> tuple[Any, RowArray | None]:
        """Which rows may have another verdict than at the last call?

        For a filter that depends on PLACEMENTS: with this method its verdicts are cached per
        template. Called in every cycle, after a pre_filter that did not return SKIP. Returns a
        pair: any value, which is passed as `since` to the next call for the template (None at
        first), and the rows to filter again, None for all. Rows whose node object changed need not
        be among them.
        """

    @method("Filter", FILTER_ERROR)
    def filter_copies(self, state: CycleState, pod: Pod, table: Rows) -> NDArray[np.int64]:
        """How many equal pods there is room for on each row, for a filter that reads usage.

        With it, the members of a pod group need not be tried in every placement. The entries of
        rows that the filter rejects are ignored.
        """

    @method("PostFilter")
    def post_filter(
        self, state: CycleState, pod: Pod, failure: NoFeasibleNode
    ) -> PostFiltered | Status:
        """No node fits: can something be done? Preemption is the usual answer.

        The failure says why, and what would happen if pods left a node. The core evicts the pods
        that the result names as victims.
        """

    @method()
    def post_filter_group(
        self, cluster: Cluster, group: PodGroup, pods: Sequence[Pod], trial: GroupTrial
    ) -> tuple[Pod, ...] | Status:
        """A pod group does not fit: the pods to evict for it; none if that is under way.

        For a plugin that also has post_filter, with the gate WorkloadAwarePreemption. The trial
        says whether the group would fit if pods left their nodes.
        """

    @method()
    def preemption_started(self, pod: Pod) -> None:
        """The eviction of the victims of a post_filter plugin starts, in the same cycle.

        A plugin that also has pre_enqueue can keep the pod gated until it is finished.
        """

    @method()
    def preemption_finished(self, pod: Pod) -> None:
        """The last victim is being deleted, or a deletion failed."""

    @method("PlacementGenerate")
    def placement_generate(self, cluster: Cluster, group: PodGroup) -> list[GroupPlacement] | None:
        """The parts of the cluster in which all pods of a group may be; None: all nodes."""

    @method("PlacementScore")
    def placement_score(
        self, cluster: Cluster, group: PodGroup, placement: GroupPlacement, pods: Sequence[Pod]
    ) -> int:
        """How good is a placement that takes these pods? 0..100 if nothing normalises it."""

    @method("PlacementScoreExtensionNormalize")
    def normalize_placement_score(self, scores: list[int]) -> list[int]:
        """The raw scores of all placements to 0..100."""

    @method("PreScore", codes=SUCCESS_OR_SKIP)
    def pre_score(self, state: CycleState, pod: Pod, feasible: Mask) -> Status:
        """Called once per pod, when the feasible rows are known.

        SKIP omits the plugin's score in this cycle. If results are cached (`depends` is NODE, USAGE
        or NODES) they must not depend on `feasible`.
        """

    @method("Score", SCORE_ERROR)
    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        """How good is this node? 0..100, or any integer if the plugin normalises."""

    @method("Score", SCORE_ERROR)
    def score_all(self, state: CycleState, pod: Pod, table: Rows) -> Scores:
        """The same for many rows."""

    @method()
    def group_keys(self, state: CycleState, pod: Pod) -> tuple[GroupKey, ...] | None:
        """What rows have to agree in for `filter` and `score` to say the same of them.

        For a plugin that depends on PLACEMENTS, with `filter_groups` if it filters, `score_groups`
        and a normalizer if it scores. Called after pre_filter, also if that returned SKIP. Neither
        is called again for pods of the template until an object or a node changes, or a view of the
        placements becomes empty, has its first pod or is dropped: `filter_groups` and
        `score_groups` get the same state. None: this pod's rows have to be evaluated one by one.
        """

    @method("Filter", FILTER_ERROR)
    def filter_groups(self, state: CycleState, pod: Pod, groups: Groups) -> list[bool]:
        """Does the pod fit the rows of each group?"""

    @method("Score", SCORE_ERROR)
    def score_groups(self, state: CycleState, pod: Pod, groups: Groups) -> list[int] | None:
        """The raw score of each group; None to skip the pod. Takes the place of pre_score, too.

        After None it is not called again before `group_keys` is.

        The groups have all feasible rows. The normalizer's summary must not depend on how many rows
        have a score.
        """

    @method("ScoreExtensionNormalize", NORMALIZE_ERROR)
    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores:
        """The raw scores of all feasible nodes to 0..100."""

    @method("Reserve", codes=SUCCESS_OR_REJECTED)
    def reserve(self, state: CycleState, pod: Pod, node: NodeName) -> Status:
        """The pod is about to be bound to the node: reserve what it needs, or reject it."""

    @method("Unreserve")
    def unreserve(self, state: CycleState, pod: Pod, node: NodeName) -> tuple[Request, ...] | None:
        """Undo reserve, as the pod is not bound; must not fail.

        Requests that it returns undo what pre_bind wrote; they are repeated until they succeed.
        """

    @method("Permit", codes=(*SUCCESS_OR_REJECTED, Code.WAIT))
    def permit(self, state: CycleState, pod: Pod, node: NodeName) -> Status:
        """The last decision before binding: SUCCESS, a rejection, or `wait(seconds)`."""

    @method("PreBind")
    def pre_bind(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]:
        """What has to happen before the pod is bound: a Status, or requests to the API server.

        Binding continues when all requests succeeded; one that fails fails the attempt.
        """

    @method("PreBind")
    def pre_bind_next(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]:
        """The next step, after the requests of pre_bind succeeded.

        SUCCESS ends pre_bind, further requests are performed first, and `Awaiting` waits for
        changes of objects; then this method is called again. `state.now` is the time of the call,
        so that a plugin can implement a timeout. A plugin with this method may return `Awaiting`
        from pre_bind.
        """

    @method("PreBindPreFlight", 'running PreBindPreFlight "{plugin}": {reason}', SUCCESS_OR_SKIP)
    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node: NodeName) -> Status:
        """Will pre_bind have anything to do? SUCCESS or SKIP."""

    @method("Bind", codes=(*SUCCESS_OR_REJECTED, Code.SKIP))
    def bind(self, state: CycleState, pod: Pod, node: NodeName) -> Status | Request:
        """Bind the pod: a request to the API server, a Status, or SKIP for the next plugin."""

    @method("PostBind")
    def post_bind(self, state: CycleState, pod: Pod, node: NodeName) -> None:
        """The pod is bound; for information."""

    @method(error='initializing plugin "{plugin}": events_to_register: {reason}')
    def events_to_register(self) -> Events:
        """The cluster events that may make a rejected pod schedulable, with hint functions."""

    @method()
    def explain_rejection(self, rejection: Rejection) -> str:
        """The details behind a reason that this plugin gave, as a sentence; empty if it has none.

        A reason is counted across nodes, so it has no names and numbers. `moorage explain` shows
        this sentence below the reasons. It is not part of a decision.
        """

    @method()
    def explain_reservation(
        self, state: CycleState, pod: Pod, node: NodeInfo
    ) -> list[dict[str, Any]]:
        """What reserve would take on this node, as plain data, for explanations."""

    @method()
    def reads(self, pod: Pod) -> Hashable:
        """The part of the pod that filter and score results depend on, as a hashable value.

        Pods with equal values share cached results. Without this method results depend on
        everything but name, UID, group, status and the names of claims. A plugin that reads claims
        depends on objects outside the node: declare `Depends.PLACEMENTS`.
        """

    @method()
    def prepare(self, template: PodTemplate) -> None:
        """Called when the first pod of a template arrives, outside its scheduling cycle.

        The plugin computes what follows from the pod alone and stores it in `template.compiled`
        under a name of its own. It is an optimisation: a cycle may run without it.
        """

    @method()
    def nodes_key(self, pod: Pod, table: NodeTable) -> Hashable:
        """What results for a pod read of all nodes together, as a hashable value.

        For plugins that depend on NODES. While it stays equal, a change of a node object matters
        for the results of that node only; without this method, for those of all nodes.
        """

    @method()
    def skip_key(self, state: CycleState, pod: Pod) -> Hashable:
        """How long a plugin would skip pods of a template.

        While the returned hashable value stays equal, the plugin would return SKIP from pre_filter
        and pre_score again, so it is not called. None: call it every time. ALWAYS: the plugin does
        nothing for such pods and is called at no point but bind, for good. Only ALWAYS matters if
        the plugin's results are cached. Any other value may depend on the pod, on nodes and other
        objects, and on affinity terms of placed pods; it is requested again when one of these
        changes.
        """


# The extension points of the configuration, with the methods by which a plugin takes part.
POINTS = {
    point: [name for name in (point, f"{point}_all") if name in METHODS]
    for point in structs.POINTS
    if point in METHODS
}
# Those whose plugins can reject a pod, so that a cluster event may make it fit.
REJECTING = ("pre_enqueue", "placement_generate", "pre_filter", "filter", "reserve", "permit")


# The points that read what a plugin computed at another one; each with that one.
PREPARED_AT = {
    "filter": "pre_filter",
    "post_filter": "pre_filter",
    "score": "pre_score",
    "reserve": "pre_filter",
    "pre_bind": "reserve",
}


def is_unprepared(plugin: object, called_at: Collection[str]) -> bool:
    """Whether a profile calls a plugin at a point, but not at the one that prepares it.

    Such a plugin computes what it lacks, or fails, so nothing of what it says is cached, and it is
    called for every pod.
    """
    return any(
        point in called_at and before not in called_at and implements(plugin, before)
        for point, before in PREPARED_AT.items()
    )


def implements(plugin: object, point: str) -> bool:
    """Whether a plugin takes part in an extension point."""
    return any(callable(getattr(plugin, name, None)) for name in POINTS.get(point, ()))


def follows_up(plugin: object) -> bool:
    """Whether a pre_bind plugin has another step after its requests were performed."""
    return callable(getattr(plugin, "pre_bind_next", None))


class Awaiting(Struct, frozen=True, kw_only=True):
    """Call pre_bind_next when one of these objects changes, or after so many seconds.

    Objects are kinds with keys: `namespace/name`, or a bare name for a cluster-scoped one.
    """

    seconds: float
    objects: tuple[tuple[type[KubeObject], str], ...] = ()

    def __post_init__(self) -> None:
        if not (is_number(self.seconds) and 0 < self.seconds < math.inf):
            text = f"the seconds of Awaiting have to be a positive number, is {shown(self.seconds)}"
            raise TypeError(text)
        objects: tuple[tuple[object, object], ...] = self.objects
        for kind, key in objects:
            if not (isinstance(kind, type) and isinstance(key, str)):
                text = f"an object of Awaiting has to be a kind and a key, is {shown((kind, key))}"
                raise TypeError(text)


class Permission(NamedTuple):
    """API access that requests of a plugin need: verbs on a resource, for all or some names."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


class Normalizer(Protocol):
    """Raw scores to 0..100, by way of a small summary of the feasible ones.

    `apply` accepts one integer as well as an array. While the summary stays equal, a changed raw
    score changes the normalised score of its own row only.
    """

    def summarize(self, feasible: Scores) -> Hashable: ...

    def apply(self, raw: Any, summary: Any) -> Any: ...


BEST = 100


class ByMax(Struct, frozen=True):
    """In proportion to the largest raw score; reversed, the largest gets 0.

    Where all raw scores are 0 they stay 0, or all become 100 when reversed.
    """

    reverse: bool = False

    def summarize(self, feasible: Scores) -> int:
        """The largest raw score, at least 0."""
        return max(int(feasible.max(initial=0)), 0)

    def apply(self, raw: Any, summary: int) -> Any:
        """One score or an array of them."""
        if summary == 0:
            if not self.reverse:
                return raw
            return np.full_like(raw, BEST) if isinstance(raw, np.ndarray) else BEST
        scaled = BEST * raw // summary
        return BEST - scaled if self.reverse else scaled
