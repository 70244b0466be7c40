"""The extension points, in the order in which a pod meets them.

A plugin is any class with a `name` and the methods of the points that it takes part in; there is
no base class. A point without a method is one that the plugin takes no part in. Every point that
looks at nodes has two forms: a per-node form, which people read and which always works, and a
whole-cluster form ending in `_all`, which answers for many rows at once with arrays. Where both
exist they have to agree (`moorage.testing.check_plugin` proves it), and the framework uses
whichever is cheaper for the number of rows at hand.

Besides its methods a plugin may state:

`depends`     what its filter and score answers depend on beside the pod (see `Depends`); without
              it nothing is assumed and nothing is kept.
`reads(pod)`  the part of the pod that its answers depend on, as a hashable value; pods that agree
              in it share kept answers. Without it: everything but name, UID, status and the names
              of claims. Who looks at claims looks at objects elsewhere: his answers depend on
              PLACEMENTS and are not kept.
`prepare(template)`  called when the first pod of a template has arrived, while there is time: to
              work out what follows from the pod alone, and keep it in `template.compiled` under a
              name of its own. A pod that nobody knew before is asked about without it.
`skips_while(state, pod)`  for a plugin whose answers are not kept: a hashable value; as long as it
              stays the same, the plugin would skip pods of the same template again, in pre_filter
              and pre_score, and so is not asked. None: ask every time. ALWAYS: such pods are none
              of its business; it is not asked about them at any point but bind. The value may
              follow from the pod, nodes, other objects, and terms that pods on nodes state; it is
              not asked for again before one of these changes.
`columns`     the node columns that it reads.
`normalizer`  how raw scores become 0..100, in a form that can be kept up to date row by row; the
              alternative is a `normalize_score` method that sees all scores of the cycle.
`events_to_register()`  the changes that could cure its refusals, with a hint function each.
`reads_kinds` names of the kinds that it reads besides Node and Pod, as `("StorageClass",)`; the
              live scheduler watches these. Without it, the plugin may read any kind.
`permissions` API access (`Permission`) that the requests of its pre_bind or bind need.
"""

from collections.abc import Hashable
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from moorage.api.meta import NodeName
from moorage.api.pod import Pod
from moorage.framework.awaiting import Awaiting
from moorage.framework.effects import Request
from moorage.framework.hints import Events
from moorage.framework.state import CycleState
from moorage.framework.status import ByKind, FewRows, Mask, Narrowed, Scores, Status, Verdicts
from moorage.nodes.info import NodeInfo
from moorage.nodes.table import Rows
from moorage.nodes.usage import Placed

if TYPE_CHECKING:
    from moorage.framework.declarations import Rejection
    from moorage.framework.post_filter import PostFiltered, Refusal


class Always(Enum):
    """For `skips_while`: the plugin has nothing to do with pods of this template."""

    ALWAYS = "whatever happens"


ALWAYS = Always.ALWAYS


class Depends(Enum):
    """How far an answer reaches, and so how long it may be kept."""

    NODE = "that node's object"
    USAGE = "that node's object and the pods on it"
    NODES = "node objects anywhere"
    PLACEMENTS = "pods, nodes and other objects anywhere"
    ANYTHING = "more than the cluster"


class Plugin(Protocol):
    """What every plugin has."""

    name: str


@runtime_checkable
class PreEnqueue(Protocol):
    """May this pod be tried at all? Anything but SUCCESS holds it back, outside the queue."""

    def pre_enqueue(self, pod: Pod) -> Status: ...


@runtime_checkable
class QueueSort(Protocol):
    """The order of the active queue, as a sort key: smaller is tried sooner.

    `queued_at` is when the pod came (back) into the queue.
    """

    def queue_sort(self, pod: Pod, queued_at: float) -> Any: ...


@runtime_checkable
class PreFilter(Protocol):
    """Look at the pod once, before any node; keep what filter needs in the state.

    SKIP takes the plugin's filter out of this cycle; `only_nodes(names)` narrows the search.
    """

    def pre_filter(self, state: CycleState, pod: Pod) -> Status | Narrowed: ...


@runtime_checkable
class PreFilterExtensions(Protocol):
    """Correct the kept state as if a pod were added to, or taken from, a node."""

    def add_pod(self, state: CycleState, pod: Pod, other: Placed, node: NodeInfo) -> None: ...

    def remove_pod(self, state: CycleState, pod: Pod, other: Placed, node: NodeInfo) -> None: ...


@runtime_checkable
class Filter(Protocol):
    """Does the pod fit this node?"""

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status: ...


@runtime_checkable
class FilterAll(Protocol):
    """The same for many rows at once; rows without a node may get any answer.

    A plugin that looks at usage has to read it off `table`: the rows may be as they would be if
    pods had come or gone.
    """

    def filter_all(self, state: CycleState, pod: Pod, table: Rows) -> Verdicts: ...


@runtime_checkable
class FilterNews(Protocol):
    """Where may the verdict be another than at the last look?

    For a filter whose answers depend on PLACEMENTS: they are kept with the template all the same
    if it can tell. Asked in every cycle, after a pre_filter that did not skip the pod. `told` is
    what the last answer for the template was paired with, None at first; the rows are those to
    ask about again, None for all. Rows whose node object changed need not be among them.
    """

    def filter_news(
        self, state: CycleState, pod: Pod, told: Any
    ) -> tuple[Any, "RowArray | None"]: ...


@runtime_checkable
class PreScore(Protocol):
    """Look at the pod once more, when it is known which rows are feasible.

    SKIP takes the plugin's score out of this cycle. A plugin whose answers are kept (NODE, USAGE,
    NODES) must not let them depend on `feasible`.
    """

    def pre_score(self, state: CycleState, pod: Pod, feasible: Mask) -> Status: ...


@runtime_checkable
class Score(Protocol):
    """How good is this node? 0..100, or anything if the plugin normalises."""

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int: ...


@runtime_checkable
class ScoreAll(Protocol):
    """The same for many rows at once."""

    def score_all(self, state: CycleState, pod: Pod, table: Rows) -> Scores: ...


@runtime_checkable
class ScoreBriefly(Protocol):
    """The same for the whole cluster in few words, if that can be said: by kinds of rows, or for a
    few rows beside one score for all others. None: ask `score_all`.

    For a plugin with a normalizer whose answers depend on PLACEMENTS.
    """

    def score_briefly(self, state: CycleState, pod: Pod) -> ByKind | FewRows | None: ...


class Normalizer(Protocol):
    """Raw scores to 0..100 by way of a small summary of the feasible ones.

    `apply` works on one integer as well as on an array. While the summary stays the same, a row
    whose raw score changes is the only one whose normalised score does.
    """

    def summarize(self, feasible: Scores) -> Hashable: ...

    def apply(self, raw: Any, summary: Any) -> Any: ...


@runtime_checkable
class NormalizeScore(Protocol):
    """Raw scores of the feasible nodes to 0..100, all of them together."""

    def normalize_score(self, state: CycleState, pod: Pod, scores: Scores) -> Scores: ...


@runtime_checkable
class PostFilter(Protocol):
    """No node fits: can something be done? (Preemption is the usual answer.)

    The refusal says why, and can be asked what would be if pods left a node. Whom the answer names
    as victims the core evicts.
    """

    def post_filter(
        self, state: CycleState, pod: Pod, refusal: "Refusal"
    ) -> "PostFiltered | Status": ...


@runtime_checkable
class Evicting(Protocol):
    """A post_filter plugin may want to know how far the eviction of its victims is.

    It begins in the same cycle, and is over once the last victim has begun to leave, or when it
    failed. A plugin that is also a PreEnqueue can hold the pod back meanwhile.
    """

    def evictions_begun(self, pod: Pod) -> None: ...

    def evictions_over(self, pod: Pod) -> None: ...


@runtime_checkable
class Reserve(Protocol):
    """The pod is about to be bound to the node: take what it needs, or refuse."""

    def reserve(self, state: CycleState, pod: Pod, node: NodeName) -> Status: ...

    def unreserve(self, state: CycleState, pod: Pod, node: NodeName) -> None: ...


@runtime_checkable
class Permit(Protocol):
    """A last word: SUCCESS, a refusal, or `wait(seconds)`."""

    def permit(self, state: CycleState, pod: Pod, node: NodeName) -> Status: ...


@runtime_checkable
class PreBind(Protocol):
    """What has to be done before the pod is bound: a Status, or requests to the world.

    The pod goes on when all requests have been carried out; one that fails fails the attempt.
    """

    def pre_bind(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]: ...


@runtime_checkable
class PreBindNext(Protocol):
    """What comes next, once pre_bind's requests have been carried out?

    SUCCESS is the end of it, further requests are carried out first, and with `Awaiting` the pod
    waits until the world has followed; then this is asked again. `state.now` is the time of the
    question, so a plugin can tell when it has waited long enough. A plugin that has this may
    return `Awaiting` from pre_bind, too.
    """

    def pre_bind_next(
        self, state: CycleState, pod: Pod, node: NodeName
    ) -> Status | Awaiting | tuple[Request, ...]: ...


@runtime_checkable
class PreBindPreFlight(Protocol):
    """Will pre_bind have anything to do? SUCCESS or SKIP."""

    def pre_bind_pre_flight(self, state: CycleState, pod: Pod, node: NodeName) -> Status: ...


@runtime_checkable
class Bind(Protocol):
    """Bind the pod: a request to the world, a Status, or SKIP for the next plugin to take it."""

    def bind(self, state: CycleState, pod: Pod, node: NodeName) -> Status | Request: ...


@runtime_checkable
class PostBind(Protocol):
    """The pod is bound; take note."""

    def post_bind(self, state: CycleState, pod: Pod, node: NodeName) -> None: ...


@runtime_checkable
class EventsToRegister(Protocol):
    """The changes that could cure a refusal of this plugin."""

    def events_to_register(self) -> Events: ...


@runtime_checkable
class ExplainRejection(Protocol):
    """The details behind a reason that this plugin gave, as a sentence; empty if it has none.

    A reason is counted across nodes, so it has no names and numbers. `moorage explain` shows this
    sentence below the reasons. It is not part of a decision.
    """

    def explain_rejection(self, rejection: "Rejection") -> str: ...


# Extension point -> the methods that make a plugin take part in it (any of them does).
METHODS: dict[str, tuple[str, ...]] = {
    "pre_enqueue": ("pre_enqueue",),
    "queue_sort": ("queue_sort",),
    "pre_filter": ("pre_filter",),
    "filter": ("filter", "filter_all"),
    "post_filter": ("post_filter",),
    "pre_score": ("pre_score",),
    "score": ("score", "score_all"),
    "reserve": ("reserve",),
    "permit": ("permit",),
    "pre_bind": ("pre_bind",),
    "bind": ("bind",),
    "post_bind": ("post_bind",),
}


def implements(plugin: object, point: str) -> bool:
    """Whether a plugin takes part in an extension point."""
    return any(callable(getattr(plugin, method, None)) for method in METHODS.get(point, ()))


def follows_up(plugin: object) -> bool:
    """Whether a pre_bind plugin wants to be asked what comes next."""
    return callable(getattr(plugin, "pre_bind_next", None))


RowArray = NDArray[np.intp]
