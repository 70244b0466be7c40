"""The history of a pod: the facts of the journal as lines for people."""

from collections.abc import Iterable
from typing import Any

from moorage.core.journal import (
    Bound,
    Confirmed,
    Decided,
    Erred,
    Expired,
    Fact,
    Forgotten,
    Gone,
    Journal,
    Permitted,
    Popped,
    Preempted,
    Preempting,
    Queued,
    Refused,
    Waiting,
)
from moorage.core.scheduler import Scheduler
from moorage.planning.recording import Recording
from moorage.sim import trace

MOST_LINES = 200
MOST_OF_NODE = 20

# Facts that name the node that they are about.
OF_NODES = (Decided, Preempting, Preempted, Forgotten)

QUEUES = {
    "active": "queued",
    "backoff": "backs off",
    "unschedulable": "waits for a cluster event",
    "gated": "is gated",
}

# Events that are no cluster events.
CAUSES = {
    "UnschedulablePodAdd": "created",
    "ScheduleAttemptFailure": "",
    "BackoffComplete": "the backoff is over",
    "ForceActivate": "activated by a plugin",
}


def line(fact: Fact) -> tuple[str, str] | None:
    """What happened, in a word or two, and the details; None if it is of no interest here."""
    match fact:
        case Queued(queue=queue, event=event):
            return QUEUES.get(queue, queue), CAUSES.get(event, f"woken by {event}")
        case Popped(attempt=attempt):
            return "tried", f"attempt {attempt}"
        case Decided(node=node, nodes=nodes, feasible=feasible):
            return "node selected", f"{node}, one of {feasible:,} feasible nodes of {nodes:,}"
        case Refused(message=message, nominated=nominated):
            return "rejected", f"{message} (nominated: {nominated})" if nominated else message
        case Erred(message=message):
            return "failed", message
        case Waiting(node=node, plugins=plugins):
            return "waits on permit", f"{node}, for {', '.join(plugins)}"
        case Permitted(result=result):
            return "permit", result
        case Preempting(node=node, victims=victims):
            return "preempts", f"{', '.join(victims)} on {node}"
        case Preempted(node=node, by=by):
            return "preempted", f"on {node}, by {by}"
        case Bound(node=node):
            return "bound", node
        case Confirmed(node=node):
            return "on its node", node
        case Forgotten(node=node, reason=reason):
            return "removed from its node", f"{node}: {reason}"
        case Expired(node=node):
            return "binding lost", node
        case Gone():
            return "gone", ""
    return None


def lines(facts: Iterable[Fact], start: float = 0.0) -> list[dict[str, Any]]:
    """Facts about a pod as plain data, the latest of them; times are seconds since `start`."""
    found = [(fact.at - start, said) for fact in facts if (said := line(fact)) is not None]
    return [{"at": at, "what": what, "text": text} for at, (what, text) in found[-MOST_LINES:]]


def of_node(facts: Iterable[Fact], node: str, start: float = 0.0) -> list[dict[str, Any]]:
    """The latest decisions for a node as plain data, newest first."""
    found = [
        fact
        for fact in facts
        if isinstance(fact, OF_NODES) and fact.node == node and line(fact) is not None
    ]
    newest = found[: -MOST_OF_NODE - 1 : -1]
    return [
        {**plain, "pod": fact.pod} for fact, plain in zip(newest, lines(newest, start), strict=True)
    ]


class PodHistories:
    """The facts of a recorded run, which are those of the same calls made again."""

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._facts: dict[str, list[Fact]] | None = None

    def facts(self, uid: str, until: float) -> list[Fact]:
        """The facts about a pod up to a time; none for a live cluster, whose calls are unknown."""
        if self._recording.is_live:
            return []
        if self._facts is None:
            self._facts = self._repeat()
        return [fact for fact in self._facts.get(uid, ()) if fact.at <= until]

    def all_facts(self, until: float) -> list[Fact]:
        """The facts about all pods up to a time."""
        if self._recording.is_live:
            return []
        if self._facts is None:
            self._facts = self._repeat()
        found = [fact for facts in self._facts.values() for fact in facts if fact.at <= until]
        return sorted(found, key=lambda fact: fact.at)

    def _repeat(self) -> dict[str, list[Fact]]:
        schedulers: dict[int, Scheduler] = {}
        for recorded in self._recording.lines:
            if recorded.seed is not None:
                schedulers[recorded.replica] = Scheduler(
                    self._recording.config, seed=recorded.seed, journal=Journal()
                )
            trace.call(schedulers[recorded.replica], recorded)
        found: dict[str, list[Fact]] = {}
        for scheduler in schedulers.values():
            for fact in scheduler.journal:
                found.setdefault(fact.uid, []).append(fact)
        for facts in found.values():
            facts.sort(key=lambda fact: fact.at)
        return found
