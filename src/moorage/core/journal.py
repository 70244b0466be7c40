"""Journal: the facts, what happened to which pod and when.

The journal is data, not a log: simulations compare it byte for byte, explanations and metrics are
made from it, and an InvariantError prints the history of its pod.
"""

from collections import deque
from collections.abc import Iterable
from itertools import takewhile
from typing import Any

import msgspec
from msgspec import Struct


class Fact(
    Struct, frozen=True, kw_only=True, tag_field="fact", tag=True, omit_defaults=True, gc=False
):
    """An entry of the journal, most often about a pod."""

    at: float
    pod: str = ""
    uid: str = ""


class Queued(Fact, frozen=True, kw_only=True):
    """A pod entered a queue: active, backoff, unschedulable or gated."""

    queue: str
    event: str


class Popped(Fact, frozen=True, kw_only=True):
    """An attempt begins."""

    attempt: int


class ScoredNode(Struct, frozen=True, omit_defaults=True, gc=False):
    """A node that was among the best, with its weighted scores per plugin."""

    node: str
    total: int
    scores: dict[str, int]


class Decided(Fact, frozen=True, kw_only=True):
    """A node was selected."""

    node: str
    nodes: int
    feasible: int
    rejected_by: dict[str, int] = {}
    # The selected node first; see Journal.best_nodes.
    best: tuple[ScoredNode, ...] = ()


class Refused(Fact, frozen=True, kw_only=True):
    """No node is feasible, or a plugin rejected the pod later."""

    message: str
    plugins: tuple[str, ...] = ()
    rejected_by: dict[str, int] = {}
    nominated: str = ""


class Erred(Fact, frozen=True, kw_only=True):
    """The attempt ended in an error, not in a rejection."""

    message: str


class Waiting(Fact, frozen=True, kw_only=True):
    """The pod waits on permit."""

    node: str
    plugins: tuple[str, ...]


class Permitted(Fact, frozen=True, kw_only=True):
    """The wait on permit is over: allowed, rejected or timed out."""

    result: str


class Bound(Fact, frozen=True, kw_only=True):
    """The binding was carried out."""

    node: str


class Confirmed(Fact, frozen=True, kw_only=True):
    """The pod is observed on its node."""

    node: str


class Forgotten(Fact, frozen=True, kw_only=True):
    """An assumed pod was removed from its node."""

    node: str
    reason: str


class Expired(Fact, frozen=True, kw_only=True):
    """A binding that was reported done does not exist."""

    node: str


class Preempting(Fact, frozen=True, kw_only=True):
    """Victims are evicted from a node for the pod."""

    node: str
    victims: tuple[str, ...]


class Preempted(Fact, frozen=True, kw_only=True):
    """The pod is evicted from its node for another pod."""

    node: str
    by: str
    by_uid: str


class Measured(Fact, frozen=True, kw_only=True):
    """A plugin of the binding cycle measured something, under the name of a metric."""

    metric: str
    labels: tuple[str, ...]
    value: float


class GroupPopped(Fact, frozen=True, kw_only=True):
    """An attempt for a pod group begins."""

    group: str
    members: int


class GroupDecided(Fact, frozen=True, kw_only=True):
    """All members of a pod group were tried; `placed` of them found a node."""

    group: str
    members: int
    placed: int
    result: str
    message: str = ""


class GroupEnded(Fact, frozen=True, kw_only=True):
    """The members of a pod group are being bound, or are back in the queue."""

    group: str
    profile: str
    result: str


class Gone(Fact, frozen=True, kw_only=True):
    """The pod was deleted, or ended."""


class SlowPlugin(Fact, frozen=True, kw_only=True):
    """A plugin without a whole-cluster form was called for very many nodes."""

    plugin: str
    point: str
    nodes: int


class MixedKeys(Fact, frozen=True, kw_only=True):
    """A queue_sort plugin returned keys that cannot be compared; recorded once."""

    plugin: str
    message: str


class Journal(deque[Fact]):
    """Facts in order; with a limit, only the latest. `add` appends one."""

    add = deque.append
    # How many of the best nodes a Decided fact has, with their scores. None, unless they are read:
    # they would be the largest part of what a placed pod takes, in time and in memory.
    best_nodes = 0

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(maxlen=limit)

    def __reduce__(self) -> tuple[Any, ...]:
        # Without the arguments of the constructor, which differ between subclasses.
        return _restored, (type(self), self.maxlen, self.__dict__, list(self))

    def since(self, last: Fact | None) -> list[Fact]:
        """The facts after one of them; all that are kept, if that one is not."""
        facts = list(self)  # In one step, because a cycle may run in another thread.
        found = list(takewhile(lambda fact: fact is not last, reversed(facts)))
        found.reverse()
        return found

    def story(self, uid: str) -> list[Fact]:
        """All facts about one pod, oldest first."""
        return [fact for fact in self if fact.uid == uid]

    def lines(self) -> Iterable[str]:
        """The facts as JSON lines."""
        return (msgspec.json.encode(fact).decode() for fact in self)

    def last(self, kinds: type[Any] | tuple[type[Any], ...], uid: str) -> Any:
        """The latest fact of one or several kinds about a pod, or None."""
        found = (f for f in reversed(self) if f.uid == uid and isinstance(f, kinds))
        return next(found, None)


def _restored(
    kind: type[Journal], limit: int | None, attributes: dict[str, Any], facts: list[Fact]
) -> Journal:
    journal = kind.__new__(kind)
    deque.__init__(journal, facts, limit)
    journal.__dict__.update(attributes)
    return journal
