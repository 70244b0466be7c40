"""Counts the facts of the journal as they are added.

A fact carries the `now` of its call, which is constant within a call. Durations within a call are
measured by when its facts arrive, on a clock that is a parameter here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from moorage.core import diagnosis, journal, updates
from moorage.core.journal import Fact, Journal
from moorage.metrics.families import Families
from moorage.metrics.tallies import CounterMetric, Histogram

Clock = Callable[[], float]

FLUSHED = updates.UNSCHEDULABLE_TIMEOUT.label
# Attempts from this number on share one label.
MANY_ATTEMPTS = 15


@dataclass(slots=True)
class Track:
    """The state of a pod between two facts."""

    profile: str
    # In the core's time.
    active_at: float | None = None
    waiting_at: float = 0.0
    # On our clock.
    began_at: float | None = None
    attempt: int = 0
    is_decided: bool = False
    was_flushed: bool = False


class Tracks:
    """Updates the metrics from facts."""

    def __init__(self, families: Families, clock: Clock, profile_of: Callable[[str], str]) -> None:
        self._families = families
        self._clock = clock
        self._profile_of = profile_of
        self._tallies = {tally.name: tally for tally in families}
        # By UID: pods that are pending or being bound.
        self._tracks: dict[str, Track] = {}
        # When the attempt for a pod group began, on our clock; there is one at a time.
        self._group_began = 0.0
        # What to do with a fact, by its type; others say nothing that is counted.
        self.takers: dict[type[Fact], Callable[[Any], None]] = {
            journal.Queued: self._queued,
            journal.Popped: self._popped,
            journal.Decided: self._decided,
            journal.Refused: self._refused,
            journal.Erred: self._erred,
            journal.Waiting: self._waiting,
            journal.Permitted: self._permitted,
            journal.Bound: self._bound,
            journal.Confirmed: self._confirmed,
            journal.Preempting: self._preempting,
            journal.Gone: self._gone,
            journal.GroupPopped: self._group_popped,
            journal.GroupDecided: self._group_decided,
            journal.GroupEnded: self._group_ended,
            journal.Measured: self._measured,
        }

    def __len__(self) -> int:
        return len(self._tracks)

    def _track(self, fact: Fact) -> Track:
        track = self._tracks.get(fact.uid)
        if track is None:
            track = self._tracks[fact.uid] = Track(self._profile_of(fact.pod))
        return track

    def _queued(self, fact: journal.Queued) -> None:
        self._families.queue_incoming.add(fact.queue, fact.event)
        track = self._track(fact)
        if fact.queue == "active" and track.active_at is None:
            track.active_at = fact.at
        if fact.event == FLUSHED:
            track.was_flushed = True

    def _popped(self, fact: journal.Popped) -> None:
        track = self._track(fact)
        track.attempt = fact.attempt
        track.began_at = self._clock()
        track.is_decided = False

    def _decided(self, fact: journal.Decided) -> None:
        track = self._track(fact)
        track.is_decided = True
        if track.began_at is not None:
            self._families.algorithm_duration.observe(self._clock() - track.began_at)

    def _refused(self, fact: journal.Refused) -> None:
        track = self._track(fact)
        # Preemption is tried whenever no node fits; a pod that had one was refused later on.
        if not track.is_decided and fact.message != diagnosis.NO_NODES:
            self._families.preemption_attempts.add()
        self._ended(track, "unschedulable")

    def _erred(self, fact: journal.Erred) -> None:
        track = self._tracks.get(fact.uid)
        if track is not None:  # Else it is trouble of a pod that is bound already.
            self._ended(track, "error")

    def _waiting(self, fact: journal.Waiting) -> None:
        self._track(fact).waiting_at = fact.at

    def _permitted(self, fact: journal.Permitted) -> None:
        waited = fact.at - self._track(fact).waiting_at
        self._families.permit_wait.observe(waited, fact.result)

    def _bound(self, fact: journal.Bound) -> None:
        track = self._track(fact)
        del self._tracks[fact.uid]
        self._ended(track, "scheduled")
        self._families.pod_attempts.observe(track.attempt)
        if track.active_at is not None:
            many = track.attempt >= MANY_ATTEMPTS
            attempts = f"{MANY_ATTEMPTS}+" if many else str(track.attempt)
            self._families.pod_duration.observe(fact.at - track.active_at, attempts)
        if track.was_flushed:
            self._families.after_flush.add()

    def _preempting(self, fact: journal.Preempting) -> None:
        self._families.preemption_victims.observe(len(fact.victims))

    def _confirmed(self, fact: journal.Confirmed) -> None:
        """A pod is on a node; if no attempt of ours is under way, somebody else put it there."""
        track = self._tracks.get(fact.uid)
        if track is not None and track.began_at is None:
            del self._tracks[fact.uid]

    def _gone(self, fact: journal.Gone) -> None:
        self._tracks.pop(fact.uid, None)

    def _group_popped(self, fact: journal.GroupPopped) -> None:
        self._group_began = self._clock()

    def _group_decided(self, fact: journal.GroupDecided) -> None:
        self._families.group_algorithm_duration.observe(self._clock() - self._group_began)

    def _group_ended(self, fact: journal.GroupEnded) -> None:
        self._families.group_attempts.add(fact.result, fact.profile)
        spent = self._clock() - self._group_began
        self._families.group_duration.observe(spent, fact.result, fact.profile)

    def _measured(self, fact: journal.Measured) -> None:
        tally = self._tallies.get(fact.metric)
        if tally is not None and len(tally.labels) != len(fact.labels):
            return  # Other labels would make all metrics unreadable.
        match tally:
            case CounterMetric() as counter:
                counter.add(*fact.labels, by=fact.value)
            case Histogram() as histogram:
                histogram.observe(fact.value, *fact.labels)

    def _ended(self, track: Track, result: str) -> None:
        """An attempt came to its end."""
        if track.began_at is None:
            return  # It had ended before.
        self._families.schedule_attempts.add(result, track.profile)
        spent = self._clock() - track.began_at
        self._families.attempt_duration.observe(spent, result, track.profile)
        track.began_at = None


class MeteredJournal(Journal):
    """A journal whose facts are counted when they are added."""

    def __init__(self, limit: int | None = None) -> None:
        super().__init__(limit)
        self._takers: dict[type[Fact], Callable[[Any], None]] = {}

    def count_with(self, tracks: Tracks) -> None:
        """Count the facts that follow."""
        self._takers = tracks.takers

    def add(self, fact: Fact) -> None:
        super().add(fact)
        take = self._takers.get(type(fact))
        if take is not None:
            take(fact)
