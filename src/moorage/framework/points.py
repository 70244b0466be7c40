"""The plugin contract: the extension points as Protocols, in the order in which a pod meets them.

This is the only definition of the contract. The checks at start-up (`registry`), `check_plugin`,
the configuration's points, metrics and `--profile` are derived from `METHODS` and `POINTS` below,
which are read off the Protocols.

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
from enum import Enum
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from moorage.framework.status import REJECTED, Code

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

    from moorage.api.meta import NodeName
    from moorage.api.pod import Pod
    from moorage.framework.declarations import Rejection
    from moorage.framework.effects import Awaiting, Request
    from moorage.framework.events import Events
    from moorage.framework.post_filter import NoFeasibleNode, PostFiltered
    from moorage.framework.state import CycleState
    from moorage.framework.status import (
        Mask,
        Narrowed,
        Scores,
        ScoresByGroup,
        SparseScores,
        Status,
        Verdicts,
    )
    from moorage.framework.template import PodTemplate
    from moorage.nodes.info import NodeInfo
    from moorage.nodes.table import Rows
    from moorage.nodes.usage import Placed

RowArray = NDArray[np.intp]


class Always(Enum):
    """For `skip_key`: the plugin does nothing for pods of this template, at any time."""

    ALWAYS = "always"


ALWAYS = Always.ALWAYS


class Depends(Enum):
    """What a filter or score result depends on, and so how long it may be cached."""

    NODE = "that node's object"
    USAGE = "that node's object and the pods on it"
    NODES = "node objects anywhere"
    PLACEMENTS = "pods, nodes and other objects anywhere"
    ANYTHING = "more than the cluster"


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
    # The per-node method that returns the same for one node, if this is a whole-cluster form.
    twin: str
    # The status codes that the method may return; empty if it does not return a Status.
    codes: tuple[Code, ...]


class Point(NamedTuple):
    """One extension point of the configuration."""

    name: str
    # A plugin takes part in the point if it has one of these methods.
    methods: tuple[str, ...]
    # Whether a plugin of the point can reject a pod, so that a cluster event may make it fit.
    rejects: bool


METHODS: dict[str, Method] = {}
POINTS: dict[str, Point] = {}

SUCCESS_OR_REJECTED = (Code.SUCCESS, *REJECTED)

FILTER_ERROR = 'running "{plugin}" filter plugin: {reason}'
SCORE_ERROR = 'running Score plugins: plugin "{plugin}" failed with: {reason}'
NORMALIZE_ERROR = 'running Normalize on Score plugins: plugin "{plugin}" failed with: {reason}'
# For methods that Kubernetes does not have.
OTHER_ERROR = 'plugin "{plugin}": {method}: {reason}'

AnyProtocol = TypeVar("AnyProtocol", bound=type)


def part_of(
    point: str = "",
    *,
    label: str = "",
    error: str = "",
    twin: str = "",
    codes: tuple[Code, ...] = (),
    rejects: bool = False,
) -> Callable[[AnyProtocol], AnyProtocol]:
    """Register the methods of a Protocol; with `point` they make a plugin take part in it.

    `label` may contain {method}, the method's name in CamelCase.
    """

    def register(protocol: AnyProtocol) -> AnyProtocol:
        own = [name for name in vars(protocol) if not name.startswith("_")]
        for name in own:
            camel = "".join(word.capitalize() for word in name.split("_"))
            _, *arguments = inspect.signature(getattr(protocol, name)).parameters
            spelt = label.format(method=camel)
            wording = error or (f'running {spelt} plugin "{{plugin}}": {{reason}}' if spelt else "")
            wording = (wording or OTHER_ERROR).replace("{method}", camel if error else name)
            METHODS[name] = Method(name, tuple(arguments), spelt, wording, twin, codes)
        if point:
            known = POINTS.get(point, Point(point, (), rejects))
            POINTS[point] = known._replace(methods=(*known.methods, own[0]))
        return protocol

    return register


class Plugin(Protocol):
    """The one attribute that every plugin has."""

    name: str


@part_of("pre_enqueue", label="{method}", rejects=True, codes=SUCCESS_OR_REJECTED)
@runtime_checkable
class PreEnqueue(Protocol):
    """May this pod enter the queue? Anything but SUCCESS keeps it gated."""

    def pre_enqueue(self, pod: Pod) -> Status: ...


@part_of("queue_sort", error='running QueueSort plugin "{plugin}": {reason}')
@runtime_checkable
class QueueSort(Protocol):
    """The order of the active queue, as a sort key: the smallest key is scheduled first.

    `queued_at` is when the pod entered the queue, the last time.
    """

    def queue_sort(self, pod: Pod, queued_at: float) -> Any: ...


@part_of(
    "pre_filter",
    label="{method}",
    rejects=True,
    codes=(
        Code.SUCCESS,
        Code.SKIP,
        Code.UNSCHEDULABLE,
        Code.UNSCHEDULABLE_AND_UNRESOLVABLE,
    ),
)
@runtime_checkable
class PreFilter(Protocol):
    """Called once per pod, before any node; stores what filter needs in the state.

    SKIP omits the plugin's filter in this cycle; `only_nodes(names)` restricts the search.
    """

    def pre_filter(self, state: CycleState, pod: Pod) -> Status | Narrowed: ...


@part_of(
    label="PreFilterExtension{method}",
    error='running {method} on PreFilter plugin "{plugin}": {reason}',
)
@runtime_checkable
class PreFilterExtensions(Protocol):
    """Update the stored state as if a pod were added to a node, or removed from it."""

    def add_pod(self, state: CycleState, pod: Pod, other: Placed, node: NodeInfo) -> None: ...

    def remove_pod(self, state: CycleState, pod: Pod, other: Placed, node: NodeInfo) -> None: ...


@part_of("filter", label="Filter", error=FILTER_ERROR, rejects=True, codes=SUCCESS_OR_REJECTED)
@runtime_checkable
class Filter(Protocol):
    """Does the pod fit this node?"""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status: ...


@part_of("filter", label="Filter", error=FILTER_ERROR, twin="filter", codes=REJECTED)
@runtime_checkable
class FilterAll(Protocol):
    """The same for many rows; the entries of rows without a node are ignored.

    A plugin that depends on usage must read it from `table`: the rows may be hypothetical, with
    pods added or removed.
    """

    def filter_all(self, state: CycleState, pod: Pod, table: Rows) -> Verdicts: ...


@part_of(label="Filter", error=FILTER_ERROR)
@runtime_checkable
class FilterChanges(Protocol):
    """Which rows may have another verdict than at the last call?

    For a filter that depends on PLACEMENTS: with this method its verdicts are cached per template.
    Called in every cycle, after a pre_filter that did not return SKIP. Returns a pair: any value,
    which is passed as `since` to the next call for the template (None at first), and the rows to
    filter again, None for all. Rows whose node object changed need not be among them.
    """

    def filter_changes(
        self, state: CycleState, pod: Pod, since: Any
    ) -> tuple[Any, RowArray | None]: ...


@part_of("post_filter", label="{method}")
@runtime_checkable
class PostFilter(Protocol):
    """No node fits: can something be done? Preemption is the usual answer.

    The refusal says why, and answers what would happen if pods left a node. The core evicts the
    pods that the result names as victims.
    """

    def post_filter(
        self, state: CycleState, pod: Pod, failure: NoFeasibleNode
    ) -> PostFiltered | Status: ...


@part_of()
@runtime_checkable
class PreemptionProgress(Protocol):
    """For a post_filter plugin: how far the eviction of its victims is.

    It starts in the same cycle, and is finished when the last victim is being deleted, or when a
    deletion failed. A plugin that is also a PreEnqueue can keep the pod gated in between.
    """

    def preemption_started(self, pod: Pod) -> None: ...

    def preemption_finished(self, pod: Pod) -> None: ...


@part_of("pre_score", label="{method}", codes=(Code.SUCCESS, Code.SKIP))
@runtime_checkable
class PreScore(Protocol):
    """Called once per pod, when the feasible rows are known.

    SKIP omits the plugin's score in this cycle. If results are cached (`depends` is NODE, USAGE or
    NODES) they must not depend on `feasible`.
    """

    def pre_score(self, state: CycleState, pod: Pod, feasible: Mask) -> Status: ...


@part_of("score", label="Score", error=SCORE_ERROR)
@runtime_checkable
class Score(Protocol):
    """How good is this node? 0..100, or any integer if the plugin normalises."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int: ...


@part_of("score", label="Score", error=SCORE_ERROR, twin="score")
@runtime_checkable
class ScoreAll(Protocol):
    """The same for many rows."""

    def score_all(self, state: CycleState, pod: Pod, table: Rows) -> Scores: ...


@part_of(label="Score", error=SCORE_ERROR)
@runtime_checkable
class ScoreCompact(Protocol):
    """The same for the whole cluster as `ScoresByGroup` or `SparseScores`; None: call `score_all`.

    For a plugin with a normalizer that depends on PLACEMENTS.
    """

    def score_compact(self, state: CycleState, pod: Pod) -> ScoresByGroup | SparseScores | None: ...


class Normalizer(Protocol):
    """Raw scores to 0..100, by way of a small summary of the feasible ones.

    `apply` accepts one integer as well as an array. While the summary stays equal, a changed raw
    score changes the normalised score of its own row only.
    """

    def summarize(self, feasible: Scores) -> Hashable: ...

    def apply(self, raw: Any, summary: Any) -> Any: ...


@part_of(label="ScoreExtensionNormalize", error=NORMALIZE_ERROR)
@runtime_checkable
class NormalizeScore(Protocol):
    """The raw scores of all feasible nodes to 0..100."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores: ...


@part_of("reserve", label="{method}", rejects=True, codes=SUCCESS_OR_REJECTED)
@runtime_checkable
class Reserve(Protocol):
    """The pod is about to be bound to the node: reserve what it needs, or reject it.

    `unreserve` undoes it if the pod is not bound; it must not fail.
    """

    def reserve(self, state: CycleState, pod: Pod, node: NodeName) -> Status: ...

    def unreserve(self, state: CycleState, pod: Pod, node: NodeName) -> None: ...


@part_of("permit", label="{method}", rejects=True, codes=(*SUCCESS_OR_REJECTED, Code.WAIT))
@runtime_checkable
class Permit(Protocol):
    """The last decision before binding: SUCCESS, a rejection, or `wait(seconds)`."""

    def permit(self, state: CycleState, pod: Pod, node: NodeName) -> Status: ...


@part_of("pre_bind", label="{method}")
@runtime_checkable
class PreBind(Protocol):
    """What has to happen before the pod is bound: a Status, or requests to the API server.

    Binding continues when all requests succeeded; one that fails fails the attempt.
    """

    def pre_bind(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]: ...


@part_of(label="PreBind")
@runtime_checkable
class PreBindNext(Protocol):
    """The next step, after the requests of pre_bind succeeded.

    SUCCESS ends pre_bind, further requests are performed first, and `Awaiting` waits for changes
    of objects; then this method is called again. `state.now` is the time of the call, so that a
    plugin can implement a timeout. A plugin with this method may return `Awaiting` from pre_bind.
    """

    def pre_bind_next(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]: ...


@part_of(
    label="{method}",
    error='running PreBindPreFlight "{plugin}": {reason}',
    codes=(Code.SUCCESS, Code.SKIP),
)
@runtime_checkable
class PreBindPreFlight(Protocol):
    """Will pre_bind have anything to do? SUCCESS or SKIP."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node: NodeName) -> Status: ...


@part_of("bind", label="{method}", codes=(*SUCCESS_OR_REJECTED, Code.SKIP))
@runtime_checkable
class Bind(Protocol):
    """Bind the pod: a request to the API server, a Status, or SKIP for the next plugin."""

    def bind(self, state: CycleState, pod: Pod, node: NodeName) -> Status | Request: ...


@part_of("post_bind", label="{method}")
@runtime_checkable
class PostBind(Protocol):
    """The pod is bound; for information."""

    def post_bind(self, state: CycleState, pod: Pod, node: NodeName) -> None: ...


@part_of(error='initializing plugin "{plugin}": events_to_register: {reason}')
@runtime_checkable
class EventsToRegister(Protocol):
    """The cluster events that may make a rejected pod schedulable, with a hint function each."""

    def events_to_register(self) -> Events: ...


@part_of()
@runtime_checkable
class ExplainRejection(Protocol):
    """The details behind a reason that this plugin gave, as a sentence; empty if it has none.

    A reason is counted across nodes, so it has no names and numbers. `moorage explain` shows this
    sentence below the reasons. It is not part of a decision.
    """

    def explain_rejection(self, rejection: Rejection) -> str: ...


@part_of()
@runtime_checkable
class Reads(Protocol):
    """The part of the pod that filter and score results depend on, as a hashable value.

    Pods with equal values share cached results. Without this method results depend on everything
    but name, UID, status and the names of claims. A plugin that reads claims depends on objects
    outside the node: declare `Depends.PLACEMENTS`.
    """

    def reads(self, pod: Pod) -> Hashable: ...


@part_of()
@runtime_checkable
class Prepare(Protocol):
    """Called when the first pod of a template arrives, outside its scheduling cycle.

    The plugin computes what follows from the pod alone and stores it in `template.compiled` under
    a name of its own. It is an optimisation: a cycle may run without it.
    """

    def prepare(self, template: PodTemplate) -> None: ...


@part_of()
@runtime_checkable
class SkipKey(Protocol):
    """For a plugin whose results are not cached: how long it would skip pods of a template.

    While the returned hashable value stays equal, the plugin would return SKIP from pre_filter and
    pre_score again, so it is not called. None: call it every time. ALWAYS: the plugin does nothing
    for such pods and is called at no point but bind. The value may depend on the pod, on nodes and
    other objects, and on affinity terms of placed pods; it is requested again when one of these
    changes.
    """

    def skip_key(self, state: CycleState, pod: Pod) -> Hashable: ...


def implements(plugin: object, point: str) -> bool:
    """Whether a plugin takes part in an extension point."""
    known = POINTS.get(point)
    return known is not None and any(
        callable(getattr(plugin, method, None)) for method in known.methods
    )


def follows_up(plugin: object) -> bool:
    """Whether a pre_bind plugin has another step after its requests were performed."""
    return callable(getattr(plugin, "pre_bind_next", None))
