"""Scheduler: the state machine. Every verb takes `now` and returns the effects it caused.

    observe(observation, now)        an object was added, changed or deleted
    schedule_one(now)                one scheduling cycle; the pod's binding cycle begins
    complete(ticket, outcome, now)   an effect ended
    advance(now)                     time passed: backoffs, waits on permit, unconfirmed bindings

It never waits and never reads a clock. `has_work` says whether schedule_one would do something,
`deadline` when advance will.
"""

from collections.abc import Callable, Iterable, Sequence
from random import Random

from moorage.api import config
from moorage.api.pod import Pod
from moorage.core import invariants
from moorage.core.bindings import Bindings
from moorage.core.confirmations import Confirmations
from moorage.core.cycle import SchedulingCycle
from moorage.core.decision import Decision
from moorage.core.effects import Effect, Outcome, Purpose, Ticket
from moorage.core.event_handlers import EventHandlers
from moorage.core.extenders import ExtenderClient, RunCalls, sequentially
from moorage.core.failures import Failures
from moorage.core.journal import Decided, Journal, SlowPlugin
from moorage.core.nominator import NominatedPodsByNode
from moorage.core.observations import Observation
from moorage.core.pod_group_cycle import PodGroupCycle
from moorage.core.preemption import Preemptions
from moorage.core.queued_pod import QueuedPod
from moorage.core.state import QueuedTemplates, SchedulerState
from moorage.core.undoing import Undoing
from moorage.framework.registry import Registry

CONFIRM_SECONDS = 30.0


class Scheduler:
    """See the module."""

    # Whether decisions may be made by groups of rows, if no reader looks at every row.
    decides_by_group = True

    def __init__(
        self,
        configuration: config.SchedulerConfiguration | None = None,
        *,
        seed: int = 0,
        registry: Registry | None = None,
        journal: Journal | None = None,
        confirm_seconds: float = CONFIRM_SECONDS,
        extenders: Sequence[ExtenderClient] = (),
        at_once: RunCalls = sequentially,
    ) -> None:
        settings = configuration or config.load(None)
        journal = journal if journal is not None else Journal()
        registry = registry or Registry()
        state = SchedulerState.of(settings, registry, journal, extenders, at_once)
        self._state = state
        self.journal = journal
        self.cluster = state.cluster
        self.profiles = state.profiles
        self.templates = state.templates
        self.cache = state.cache
        self.queue = state.queue
        self.nominator = state.nominator
        self.cycle = SchedulingCycle(
            state.cluster,
            QueuedTemplates(state.queue, state.templates),
            NominatedPodsByNode(state.nominator, state.queue.nominated_pods),
            Random(seed),
            state.nominator.node_for,
            reviewers=() if state.extenders is None else state.extenders.reviewers,
            extenders=state.extenders,
        )
        # Each part calls the public methods of the earlier ones, and shares the state.
        self._failures = Failures(state)
        self.undoing = Undoing(state)
        self.bindings = Bindings(state, self._failures, self.undoing)
        self.preemptions = Preemptions(state, self.bindings)
        self._handlers = EventHandlers(state, self.bindings, self.preemptions)
        self._confirmations = Confirmations(state, self.bindings, self._handlers, confirm_seconds)
        self.groups: PodGroupCycle | None = None
        if state.cluster.pod_groups is not None:
            parts = (self.cycle, self._failures, self.undoing, self.bindings, self.preemptions)
            self.groups = PodGroupCycle(state, *parts, self._record)
        self._completed = self._find_completed()
        self._outbox = state.outbox
        self._waiting, self._given_up = self.bindings.waiting, self.bindings.given_up
        self._object_waits = self.bindings.object_waits.until
        self._now = 0.0

    def _find_completed(self) -> dict[str, Callable[[str, Outcome, float], None]]:
        """What takes the outcomes for each purpose."""
        found: dict[str, Callable[[str, Outcome, float], None]] = {
            Purpose.BINDING: self.bindings.completed,
            Purpose.LOOK_UP: self._confirmations.completed,
            Purpose.PREEMPTION: self.preemptions.completed,
            Purpose.UNDO: self.undoing.completed,
        }
        if self.groups is not None:
            found[Purpose.POD_GROUP] = self.groups.conditions.completed
            found[Purpose.TORN_GANG] = self.groups.torn.completed
        return found

    # The verbs

    def observe(self, observation: Observation, now: float) -> list[Effect]:
        """Take an observation."""
        self._now = now
        self._handlers.observe(observation, now)
        if self._object_waits:
            self.bindings.observed(observation, now)
        # Most observations cause nothing.
        is_quiet = not (self._outbox.effects or self._waiting or self._given_up)
        return [] if is_quiet else self._caused(now)

    def schedule_one(self, now: float) -> list[Effect]:
        """Take the next pod from the queue and decide where it goes."""
        self._now, groups = now, self.groups
        entry = None if groups is None else groups.torn.pop(now)
        if entry is None:
            entry = self.queue.pop(now)
        if entry is None:
            pass
        elif groups is not None and entry.pod.spec.scheduling_group is not None:
            groups.attempt(entry, now)
        else:
            self._attempt(entry, now)
        return self._caused(now)

    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        """Take the outcome of an effect."""
        self._now = now
        waiting = self._outbox.tickets.pop(ticket, None)
        if waiting is None:
            return []  # No part waits for it, so nothing changes.
        purpose, name = waiting
        self._completed[purpose](name, outcome, now)
        return self._caused(now)

    def advance(self, now: float) -> list[Effect]:
        """Do what is due by now."""
        self._now = now
        self.queue.advance(now)
        self._confirmations.advance(now)
        self.bindings.advance(now)
        self.undoing.advance(now)
        if self.groups is not None:
            self.groups.torn.advance(now)
        return self._caused(now)

    @property
    def has_work(self) -> bool:
        """Whether a pod is ready to be tried."""
        return self.queue.has_work

    @property
    def deadline(self) -> float | None:
        """When advance will have something to do; None if never, as things stand."""
        moments = (
            self.queue.deadline(self._now),
            self._confirmations.deadline,
            self.bindings.deadline(self._now),
            self.undoing.deadline,
            None if self.groups is None else self.groups.torn.deadline,
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def known_pods(self) -> Iterable[Pod]:
        """All pods that were observed and are not gone."""
        return self._state.pods.values()

    def known_pod(self, key: str) -> Pod | None:
        """A pod by namespace/name, as last observed."""
        return self._state.pods.get(key)

    # One attempt

    def _attempt(self, entry: QueuedPod, now: float) -> None:
        pod = entry.pod
        if pod.metadata.deletion_timestamp is not None:
            text = f"skip schedule deleting pod: {pod.key}"
            self._outbox.emit(pod, "Warning", "FailedScheduling", "Scheduling", text)
            self.queue.done(pod.uid)
            return
        if entry.uid in self.cache.pods:
            self.queue.done(entry.uid)
            return
        profile = self.profiles[pod.spec.scheduler_name]
        template = entry.template or self.templates.of(pod)
        decision = self.cycle.decide(profile, pod, template, now, by_group=self.decides_by_group)
        if profile.loops.new:
            for plugin, point, nodes in profile.loops.newly_slow():
                self.journal.add(SlowPlugin(at=now, plugin=plugin, point=point, nodes=nodes))
        if decision.node:
            self._record(entry, decision, now)
            self.bindings.begin(entry, decision, now)
        else:
            self._reject(entry, decision, now)

    def _record(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        kept = self.journal.best_nodes
        self.journal.add(
            Decided(
                at=now,
                pod=entry.key,
                uid=entry.uid,
                node=decision.node,
                nodes=decision.nodes,
                feasible=decision.feasible_count,
                rejected_by=decision.rejected_by(),
                best=decision.best_nodes(kept) if kept else (),
            )
        )

    def _reject(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        """Carry out what post_filter plugins request, and return the pod to the queue."""
        pod, result = decision.pod, decision.post_filter
        if result is not None:
            self.undoing.carry_out(result.requests)
            if result.nominated:
                node, plugin = result.nominated, result.status.plugin
                self.preemptions.begin(pod, node, result.victims, plugin, decision.profile, now)
        self._failures.put_back(
            entry,
            decision.status,
            decision.diagnosis,
            now,
            nominated=decision.nominated,
            rejected_by=decision.rejected_by(),
        )

    def _caused(self, now: float) -> list[Effect]:
        """Settle pods that were allowed or rejected on permit; return the effects so far."""
        if self._waiting or self._given_up:
            self.bindings.settle(now)
        caused = self._outbox.effects
        if caused:
            self._outbox.effects = []
            return caused
        return []

    def check_invariants(self) -> None:
        """Raise InvariantError if a pod is lost, in two states, or counted wrongly."""
        self.preemptions.check()
        invariants.check(self._state, self.bindings)
