"""The queue equals a naive model: one dict of pods with their places, no heaps, no indexes.

The model is written from the specification alone. It looks at every pod whenever anything happens,
and keeps pods in flight and the changes that they missed in one plain list.
"""

import math
import pickle
from dataclasses import dataclass, field
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod, PodSpec
from moorage.core import updates
from moorage.core.in_flight import InFlightEvent
from moorage.core.journal import Journal, Popped, Queued
from moorage.core.queue import SchedulingQueue
from moorage.core.requeueing import HintMap
from moorage.framework.events import ClusterEvent, Hint
from moorage.framework.status import unschedulable

X, Y, Z = ClusterEvent.NODE_ADD, ClusterEvent.UPDATE_NODE_LABEL, ClusterEvent.POD_DELETE
UNREGISTERED = ClusterEvent.NODE_DELETE
NAMES = ("a", "b", "c", "d")
SCHEDULERS = ("default-scheduler", "second", "stranger")
PLUGINS = ("A", "B", "C", "Gate", "Lock")


def when_even(pod, old, new):
    return Hint.QUEUE if new % 2 == 0 else Hint.QUEUE_SKIP


def breaks(pod, old, new):
    raise ValueError("broken")


def its_own_change(pod, old, new):
    return Hint.QUEUE if new.uid == pod.uid else Hint.QUEUE_SKIP


REGISTERED = {
    "default-scheduler": {
        "A": {Y: None},
        "B": {X: when_even, Y: when_even},
        "C": {Z: breaks},
        "Gate": {ClusterEvent.UPDATE_POD_LABEL: its_own_change, Y: when_even},
        "Lock": {},
    },
    "second": {"A": {X: when_even}, "Lock": {Z: None}},
}


class Gates:
    """Who holds which pod, by name; shared by the queue's profiles and the model."""

    def __init__(self):
        self.shut = {}

    def holder(self, pod):
        if pod.spec.scheduler_name not in REGISTERED:
            return None
        return self.shut.get(pod.name)


class Profile:
    def __init__(self, registered, gates):
        self.events = registered
        self.gates = gates

    def run_pre_enqueue(self, pod):
        holder = self.gates.holder(pod)
        return None if holder is None else unschedulable("held").by(holder)

    def queue_path_methods(self):
        return []

    def queue_key(self, pod, queued_at):
        return -pod.priority, queued_at


def make_pod(name, uid, priority=0, label="", scheduler="default-scheduler"):
    meta = ObjectMeta(name=name, namespace="ns", uid=f"{name}{uid}", labels={"l": label})
    return Pod(metadata=meta, spec=PodSpec(priority=priority, scheduler_name=scheduler))


@dataclass(eq=False)
class Record:
    """A pod in the model."""

    pod: Pod
    queued_at: float
    place: str = ""
    serial: int = 0
    attempts: int = 0
    refusals: int = 0
    errors: int = 0
    refused_by: set[str] = field(default_factory=set)
    pending: set[str] = field(default_factory=set)
    gate: str = ""
    flushed_at: float = -math.inf
    was_flushed: bool = False

    @property
    def until(self):
        count = self.errors or self.refusals
        return math.floor(self.queued_at + min(2 ** (count - 1), 10)) if count else -math.inf

    @property
    def heap(self):
        return "refused" if self.refused_by or self.pending else "failed"

    @property
    def order(self):
        key = (-self.pod.priority, self.queued_at)
        if self.place == "active":
            return (key, self.serial)
        if self.place == "backoff":
            if self.heap == "failed":
                return (1, self.until, self.serial)
            return (0, self.until, key, self.serial)
        return (self.serial,)


class Model:
    """The queue, the slow way."""

    def __init__(self, gates):
        self.gates = gates
        self.waiting = {}
        self.line = []
        self.facts = []
        self.serial = 0

    def at(self, place):
        return sorted((r for r in self.waiting.values() if r.place == place), key=lambda r: r.order)

    def flying(self):
        return {item.pod.uid: item for item in self.line if isinstance(item, Record)}

    # Operations

    def add(self, pod, now):
        if pod.uid in self.flying():
            self.line.append((updates.FORCE_ACTIVATE, None, pod))
            return
        known = self.waiting.get(pod.key)
        if known is not None and known.pod.uid != pod.uid:
            del self.waiting[pod.key]
        self.to_active(Record(pod, now), "UnschedulablePodAdd", now)

    def update(self, old, new, now):
        if new.uid in self.flying():
            self.line += [(event, old, new) for event in updates.pod_update(old, new)]
            return
        known = self.waiting.get(new.key)
        if known is None or known.pod.uid != new.uid:
            self.waiting.pop(new.key, None)
            self.to_active(Record(new, now), "UnschedulablePodUpdate", now)
            return
        before, known.pod = known.order, new
        if known.place in ("active", "backoff"):
            if before != known.order:
                self.enter(known, known.place)
            return
        for event in updates.pod_update(old, new):
            self.put(known, self.worth(known, event, old, new), event.label, now)
            if known.place in ("active", "backoff"):
                return

    def delete(self, pod):
        known = self.waiting.get(pod.key)
        if known is not None and known.pod.uid == pod.uid:
            del self.waiting[pod.key]

    def pop(self, now):
        ready = self.at("active")
        if not ready:
            ready = [r for r in self.at("backoff") if r.heap == "refused"]
            if not ready:
                return None
            self.note(ready[0], "active", "PopFromBackoffQ", now)
        first = ready[0]
        del self.waiting[first.pod.key]
        first.attempts += 1
        self.line.append(first)
        pod = first.pod
        self.facts.append(Popped(at=now, pod=pod.key, uid=pod.uid, attempt=first.attempts))
        return first

    def done(self, uid):
        gone = self.flying().get(uid)
        if gone is not None:
            self.line.remove(gone)
            while self.line and not isinstance(self.line[0], Record):
                self.line.pop(0)

    def give_back(self, record, now):
        if self.flying().get(record.pod.uid, record) is not record:
            return False
        is_free = record.pod.key not in self.waiting
        if is_free:
            if record.heap == "failed":
                record.errors += 1
            else:
                record.refusals += 1
                record.errors = 0
            record.queued_at = now
            record.was_flushed, record.flushed_at = False, -math.inf
            self.put(record, self.verdict(record), "ScheduleAttemptFailure", now)
        self.done(record.pod.uid)
        return is_free

    def verdict(self, record):
        if record not in self.line or record.heap == "failed":
            return 1
        behind = self.line[self.line.index(record) + 1 :]
        changes = [item for item in behind if not isinstance(item, Record)]
        return max((self.worth(record, *change) for change in changes), default=0)

    def move_all(self, event, old, new, now, only=None):
        if not event.is_wildcard and not self.registered(event):
            return
        for record in sorted(self.waiting.values(), key=lambda r: r.serial):
            if record.place not in ("unschedulable", "gated") or (only and not only(record.pod)):
                continue
            deaf = record.place == "gated" and record.gate not in self.registered(event)
            if deaf and not event.is_wildcard:
                continue
            strategy = self.worth(record, event, old, new)
            if strategy:
                self.put(record, strategy, event.label, now)
        self.keep(event, old, new)

    def activate(self, pod, now):
        known = self.waiting.get(pod.key)
        if known is None or known.pod.uid != pod.uid:
            if pod.uid in self.flying():
                self.line.append((updates.FORCE_ACTIVATE, None, pod))
        elif known.place in ("unschedulable", "gated"):
            self.to_active(known, "ForceActivate", now)
        elif known.place == "backoff":
            self.enter(known, "active", "ForceActivate", now)

    def advance(self, now):
        for record in self.at("backoff"):
            if record.until < math.floor(now):
                self.enter(record, "active", "BackoffComplete", now)
        self.flush(now // 30 * 30, now)

    def flush(self, tick, now):
        pool = [r for r in self.waiting.values() if r.place in ("unschedulable", "gated")]
        rested = [r for r in pool if tick - max(r.queued_at, r.flushed_at) > 300]
        for record in sorted(rested, key=lambda r: r.serial):
            record.was_flushed, record.flushed_at = True, now
            self.put(record, 1, "UnschedulableTimeout", now)
        if rested:
            self.keep(updates.UNSCHEDULABLE_TIMEOUT, None, None)

    # Rules

    def registered(self, event):
        """Plugins of any profile that listen to a change."""
        everybody = [r for theirs in REGISTERED.values() for r in HintMap(theirs).registrations]
        return [r.plugin for r in everybody if r.event.covers(event)]

    def worth(self, record, event, old, new):
        """0 skip, 1 after the back-off, 2 immediately."""
        if record.heap == "failed":
            return 1
        if event.is_wildcard:
            return 0 if new is not None and new.uid != record.pod.uid else 1
        if record.pod.spec.scheduler_name not in REGISTERED:
            return 1
        best = 0
        for r in HintMap(REGISTERED[record.pod.spec.scheduler_name]).registrations:
            if r.event.covers(event) and r.plugin in record.refused_by | record.pending:
                try:
                    queue = r.hint(record.pod, old, new) is Hint.QUEUE
                except ValueError:
                    queue = True
                if queue:
                    best = max(best, 2 if r.plugin in record.pending else 1)
        return best

    def put(self, record, strategy, label, now):
        if strategy == 0:
            self.to_pool(record, label, now)
        elif strategy == 1 and not record.until < math.floor(now):
            if not self.held(record, label, now):
                self.enter(record, "backoff", label, now)
        else:
            self.to_active(record, label, now)

    def to_active(self, record, label, now):
        if not self.held(record, label, now):
            self.enter(record, "active", label, now)

    def to_pool(self, record, label, now):
        place = "gated" if record.gate else "unschedulable"
        known = self.waiting.get(record.pod.key)
        if known is not None and known is not record:
            record.place, record.serial = known.place, known.serial
        self.waiting[record.pod.key] = record
        if record.place in ("gated", "unschedulable"):
            if record.place != place:
                self.note(record, place, label, now)
            record.place = place
        else:
            self.enter(record, place, label, now)

    def held(self, record, label, now):
        record.gate = self.gates.holder(record.pod) or ""
        if not record.gate:
            return False
        record.refused_by.add(record.gate)
        known = self.waiting.get(record.pod.key)
        if known is None or known.place in ("unschedulable", "gated"):
            record.was_flushed = False
            self.to_pool(record, label, now)
        return True

    def enter(self, record, place, label=None, now=0.0):
        self.serial += 1
        record.place, record.serial = place, self.serial
        self.waiting[record.pod.key] = record
        if label is not None:
            self.note(record, place, label, now)

    def note(self, record, place, label, now):
        pod = record.pod
        self.facts.append(Queued(at=now, pod=pod.key, uid=pod.uid, queue=place, event=label))

    def keep(self, event, old, new):
        if self.line:
            self.line.append((event, old, new))


names = st.sampled_from(NAMES)
plugin_sets = st.sampled_from(((), (), *((plugin,) for plugin in PLUGINS), ("A", "B"), ("B", "C")))
pods = st.builds(
    make_pod,
    names,
    st.sampled_from((1, 1, 1, 2)),
    priority=st.sampled_from((0, 0, 5)),
    label=st.sampled_from("xy"),
    scheduler=st.sampled_from((*SCHEDULERS[:1] * 3, *SCHEDULERS)),
)
# Quarters of a second are exact in binary, so that the two cannot differ by rounding.
steps = st.sampled_from((0.0, 0.25, 0.5, 1.0, 2.75, 29.75, 30.0, 270.25))


class QueueMachine(RuleBasedStateMachine):
    """Anything in any order; after each step queue and model agree on everything."""

    def __init__(self):
        super().__init__()
        self.now = 0.0
        self.gates = Gates()
        self.journal = Journal()
        profiles = {name: Profile(theirs, self.gates) for name, theirs in REGISTERED.items()}
        self.queue = SchedulingQueue(profiles, journal=self.journal)
        self.model = Model(self.gates)
        # Entries that were popped, landed or not, with their twins.
        self.popped: list[tuple[Any, Record]] = []
        self.last: dict[str, Pod] = {}

    @initialize()
    def pods_wait(self):
        for name in NAMES:
            self.add(make_pod(name, 1))

    @rule(pod=pods)
    def add(self, pod):
        self.last[pod.key] = pod
        self.queue.add(pod, self.now)
        self.model.add(pod, self.now)

    @rule(pod=pods)
    def update(self, pod):
        old = self.last.get(pod.key, pod)
        self.last[pod.key] = pod
        self.queue.update(old, pod, self.now)
        self.model.update(old, pod, self.now)

    @rule(pod=pods)
    def delete(self, pod):
        self.queue.delete(pod)
        self.model.delete(pod)

    @rule()
    def pop(self):
        has_work = self.queue.has_work
        entry, twin = self.queue.pop(self.now), self.model.pop(self.now)
        assert has_work is (twin is not None)
        assert (entry and entry.pod) == (twin and twin.pod)
        if entry is not None:
            self.popped.append((entry, twin))

    @rule(refused=plugin_sets, pending=plugin_sets)
    def fail_at_once(self, refused, pending):
        self.pop()
        if self.popped:
            self.give_back(-1, refused, pending)

    @precondition(lambda self: self.popped)
    @rule(data=st.data(), refused=plugin_sets, pending=plugin_sets)
    def fail(self, data, refused, pending):
        self.give_back(data.draw(st.integers(0, len(self.popped) - 1)), refused, pending)

    def give_back(self, index, refused, pending):
        """An attempt failed, perhaps after the pod was done."""
        entry, twin = self.popped.pop(index)
        entry.rejected_by(refused, pending)
        twin.refused_by, twin.pending, twin.gate = set(refused), set(pending), ""
        accepted = self.queue.return_unschedulable(entry, self.now)
        assert accepted is self.model.give_back(twin, self.now)

    @precondition(lambda self: self.popped)
    @rule(data=st.data(), bound=st.booleans())
    def land(self, data, bound):
        index = data.draw(st.integers(0, len(self.popped) - 1))
        entry, twin = self.popped[index]
        if self.model.flying().get(entry.uid) is twin:
            self.queue.done(entry.uid)
            self.model.done(entry.uid)
        if bound:
            self.popped.pop(index)

    @rule(event=st.sampled_from((X, Y, Z, UNREGISTERED)), new=st.integers(0, 1), high=st.booleans())
    def change(self, event, new, high):
        only = (lambda pod: pod.priority < 5) if high else None
        self.queue.move_all(event, None, new, self.now, only)
        self.model.move_all(event, None, new, self.now, only)

    @rule(pod=pods)
    def force(self, pod):
        self.queue.move_all(updates.FORCE_ACTIVATE, None, pod, self.now)
        self.model.move_all(updates.FORCE_ACTIVATE, None, pod, self.now)

    @rule(pod=pods)
    def activate(self, pod):
        self.queue.activate([pod], self.now)
        self.model.activate(pod, self.now)

    @rule(name=names, holder=st.sampled_from((None, None, "Gate", "Lock")))
    def turn_the_gate(self, name, holder):
        self.gates.shut[name] = holder

    @rule(seconds=steps)
    def time_passes(self, seconds):
        self.now += seconds
        self.queue.advance(self.now)
        self.model.advance(self.now)

    @rule()
    def jump(self):
        """Nothing is due before the deadline, and something is when it comes."""
        deadline = self.queue.deadline(self.now)
        before = self.state()
        if deadline is None:
            self.now += 10_000.0
            self.queue.advance(self.now)
            assert self.state() == before
        else:
            self.queue.advance(max(self.now, deadline - 0.25))
            if deadline > self.now:
                assert self.state() == before
            self.now = deadline
            self.queue.advance(self.now)
            assert self.state() != before
        self.model.advance(self.now)

    @rule()
    def fork(self):
        """A copy goes on as the first would have."""
        self.queue, self.journal, self.gates, self.popped, self.model = pickle.loads(
            pickle.dumps((self.queue, self.journal, self.gates, self.popped, self.model))
        )

    def state(self):
        return [
            (place, entry.key, entry.uid, entry.flushed_at)
            for place, entries in self.queue.dump().items()
            for entry in entries
        ]

    @invariant()
    def the_queue_holds(self):
        self.queue.check()

    @invariant()
    def they_agree(self):
        places = self.queue.dump()
        for place in ("active", "backoff", "unschedulable", "gated"):
            mine = [described(entry) for entry in places[place]]
            theirs = [described_record(record) for record in self.model.at(place)]
            assert mine == theirs, place
            assert self.queue.counts()[place] == len(theirs)
        mine = [
            (item.event, item.old, item.new) if isinstance(item, InFlightEvent) else item.uid
            for item in self.queue.timeline()
        ]
        theirs = [item.pod.uid if isinstance(item, Record) else item for item in self.model.line]
        assert mine == theirs
        assert list(self.journal) == self.model.facts


def described(entry):
    return (
        entry.pod,
        entry.queued_at,
        entry.attempts,
        (entry.unschedulable_count, entry.consecutive_errors),
        (entry.unschedulable_plugins, entry.pending_plugins, entry.gating_plugin),
        (entry.was_flushed, -math.inf if entry.flushed_at is None else entry.flushed_at),
    )


def described_record(record):
    return (
        record.pod,
        record.queued_at,
        record.attempts,
        (record.refusals, record.errors),
        (record.refused_by, record.pending, record.gate),
        (record.was_flushed, record.flushed_at),
    )


TestQueue = QueueMachine.TestCase
TestQueue.settings = settings(stateful_step_count=100)
