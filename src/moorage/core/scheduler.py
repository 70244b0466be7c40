"""Scheduler: the machine turned by hand. Every verb takes `now` and returns the effects it caused.

    observe(observation, now)        the world changed
    schedule_one(now)                one pod is decided upon, and its binding begins
    complete(ticket, outcome, now)   something that was asked of the world came to an end
    advance(now)                     time passed: back-offs, permits, bindings that nobody confirms

It never waits and never looks at a clock. `has_work` says whether schedule_one would do something,
`deadline` when advance will.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from random import Random

from moorage.api import config
from moorage.api.pod import Pod
from moorage.core import diagnosis, extending, invariants, notes
from moorage.core.awaited import Awaited
from moorage.core.binding import BindingCycle, Stage
from moorage.core.cache import Cache
from moorage.core.cycle import Decision, SchedulingCycle
from moorage.core.diagnosis import Diagnosis
from moorage.core.effects import Done, Effect, Failed, Outcome, Ticket, Unknown
from moorage.core.extending import AtOnce, Extender, Extending
from moorage.core.intake import Intake
from moorage.core.journal import (
    Bound,
    Erred,
    Expired,
    Forgotten,
    Journal,
    Permitted,
    Waiting,
)
from moorage.core.lookups import RETRY_SECONDS, Lookups
from moorage.core.nominator import Nominator, Promised
from moorage.core.observations import Observation, Updated
from moorage.core.places import GATED
from moorage.core.preemption import Preemptions, World
from moorage.core.queue import SchedulingQueue
from moorage.core.queued_pod import QueuedPod
from moorage.core.refusal_shown import refusal_shown
from moorage.framework import events, profile
from moorage.framework.cluster import Cluster
from moorage.framework.effects import EmitEvent, LookUpPod, PatchPodStatus, PodRef, Request
from moorage.framework.post_filter import PostFiltered
from moorage.framework.registry import Registry
from moorage.framework.status import SKIP, SUCCESS, Status, error
from moorage.framework.template import Templates
from moorage.framework.waiting import WaitingPod

CONFIRM_SECONDS = 30.0
NO_WAITS: dict[str, float] = {}


class Purpose(Enum):
    """Why something was asked of the world."""

    BINDING = "a binding cycle waits for it"
    LOOK_UP = "to know whether a pod is bound"
    PREEMPTION = "somebody's victims are asked to leave"
    INFORM = "for others to see"


class Scheduler:
    """See the module."""

    def __init__(
        self,
        configuration: config.SchedulerConfiguration | None = None,
        *,
        seed: int = 0,
        registry: Registry | None = None,
        journal: Journal | None = None,
        confirm_seconds: float = CONFIRM_SECONDS,
        extenders: Sequence[Extender] = (),
        at_once: AtOnce = extending.in_turn,
    ) -> None:
        settings = configuration or config.load(None)
        self.journal = journal if journal is not None else Journal()
        self.cluster = Cluster()
        self.templates = Templates()
        self.profiles = profile.build(settings, registry or Registry(), self.cluster)
        self.extending: Extending | None = None
        if extenders:
            self.extending = Extending(extenders, self.cluster, at_once)
            self.extending.register(self.profiles.values())
        self.nominator = Nominator(self.known_pod, self._promise_changed)
        self.queue = SchedulingQueue(
            self.profiles,
            journal=self.journal,
            nominator=self.nominator,
            initial_backoff_seconds=settings.pod_initial_backoff_seconds,
            max_backoff_seconds=settings.pod_max_backoff_seconds,
        )
        self.cache = Cache(self.cluster.table, self.templates)
        self.cycle = SchedulingCycle(
            self.cluster,
            self.templates,
            Promised(self.nominator, self.queue.nominated_pods),
            Random(seed),
            self._promise_to,
            reviewers=() if self.extending is None else self.extending.reviewers,
            extending=self.extending,
        )
        self.preemptions = Preemptions(
            World(
                self.known_pod,
                self._node_of,
                self._take_back,
                self._try_again,
                self._let_in,
                self._ask_for_preemption,
            ),
            self.nominator,
            self.journal,
        )
        self._intake = Intake(
            self.cluster,
            self.cache,
            self.queue,
            self.nominator,
            self.journal,
            self._is_ours,
            self._assumed_deleted,
            self.preemptions.leaves,
        )
        self._bindings: dict[str, BindingCycle] = {}
        self._awaited = Awaited()
        self._given_up: list[str] = []
        self._lookups = Lookups()
        self._confirm_seconds = confirm_seconds
        self._tickets: dict[Ticket, tuple[Purpose, str]] = {}
        self._last_ticket = 0
        self._effects: list[Effect] = []
        self._now = 0.0

    # The verbs

    def observe(self, observation: Observation, now: float) -> list[Effect]:
        """Take in what the world tells."""
        self._now = now
        self._intake.observe(observation, now)
        if self._awaited:
            for uid in self._awaited.concerned(observation):
                self._follow_up(uid, now)
        return self._caused(now)

    def schedule_one(self, now: float) -> list[Effect]:
        """Take the next pod from the queue and decide where it goes."""
        self._now = now
        entry = self.queue.pop(now)
        if entry is not None:
            self._attempt(entry, now)
        return self._caused(now)

    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        """Something that was asked of the world came to an end."""
        self._now = now
        asked = self._tickets.pop(ticket, None)
        if asked is not None:
            purpose, uid = asked
            if purpose is Purpose.BINDING:
                self._answered(uid, outcome, now)
            elif purpose is Purpose.LOOK_UP:
                self._looked_up(uid, outcome, now)
            elif purpose is Purpose.PREEMPTION:
                self.preemptions.answered(uid, outcome, now)
        return self._caused(now)

    def advance(self, now: float) -> list[Effect]:
        """Do what is due by now."""
        self._now = now
        self.queue.advance(now)
        for cached in self.cache.unconfirmed(now, self._confirm_seconds):
            self._lookups.want(cached.pod.uid, now)
        for uid in self._lookups.due(now):
            # A binding has to come to an end even if its pod was deleted meanwhile.
            unsure = self._bindings.get(uid) or self.cache.get(uid)
            if unsure is None:
                self._lookups.answered(uid)
            else:
                self._ask(LookUpPod(PodRef.of(unsure.pod)), Purpose.LOOK_UP, uid)
        for uid in self._awaited.due(now):
            self._follow_up(uid, now)
        for uid, waiting in self.cluster.waiting.items():
            waiting.expire(now, self._bindings[uid].started_at)
        return self._caused(now)

    @property
    def has_work(self) -> bool:
        """Whether a pod is ready to be tried."""
        return self.queue.has_work

    @property
    def deadline(self) -> float | None:
        """When advance will have something to do; None if never, as things stand."""
        moments = [self.queue.deadline(self._now), self._lookups.deadline, self._awaited.deadline]
        oldest = self._oldest_unconfirmed_at()
        moments.append(None if oldest is None else oldest + self._confirm_seconds)
        moments += [
            waiting.deadline if waiting.signal is None else self._now
            for waiting in self.cluster.waiting.values()
        ]
        return min((moment for moment in moments if moment is not None), default=None)

    def _oldest_unconfirmed_at(self) -> float | None:
        for cached in self.cache.unconfirmed(float("inf")):
            if not self._lookups.knows(cached.pod.uid):
                return cached.bound_at
        return None

    def known_pods(self) -> Iterable[Pod]:
        """All pods that the world told of and that are not gone."""
        return self._intake.pods.values()

    def known_pod(self, key: str) -> Pod | None:
        """A pod by namespace/name, as the world last showed it."""
        return self._intake.pods.get(key)

    # One attempt

    def _attempt(self, entry: QueuedPod, now: float) -> None:
        pod = entry.pod
        if pod.metadata.deletion_timestamp is not None:
            text = f"skip schedule deleting pod: {pod.key}"
            self._emit(pod, "Warning", "FailedScheduling", "Scheduling", text)
            self.queue.done(pod.uid)
            return
        if entry.uid in self.cache:
            self.queue.done(entry.uid)
            return
        chosen = self.profiles[pod.spec.scheduler_name]
        template = entry.template or self.templates.of(pod)
        decision = self.cycle.decide(chosen, pod, template, now)
        if chosen.loops.has_news:
            notes.slow_plugins(self.journal, chosen, now)
        if decision.node:
            notes.decision(self.journal, entry, decision, now)
            self._place(entry, decision, now)
        else:
            if decision.post_filter is not None:
                self._preempt(decision, decision.post_filter, now)
            self._refused(entry, decision, now)

    def _refused(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        self._failed(
            entry,
            decision.status,
            decision.diagnosis,
            now,
            nominated=decision.nominated,
            rejected_by=decision.rejected_by(),
        )

    def _preempt(self, decision: Decision, answer: PostFiltered, now: float) -> None:
        """Do what post_filter plugins want done."""
        for request in answer.requests:
            self._ask(request)
        if answer.nominated and answer.victims:
            plugin, chosen = answer.status.plugin, decision.profile
            pod, node = decision.pod, answer.nominated
            self.preemptions.begin(pod, node, answer.victims, plugin, chosen, now)

    def _take_back(self, victim: Pod, plugin: str) -> bool:
        """Send a pod back that is only on its way to a node."""
        waiting = self.cluster.waiting.get(victim.uid)
        if waiting is not None:
            return waiting.preempt("preempted")
        binding = self._bindings.get(victim.uid)
        if binding is None or not binding.is_in_pre_bind:
            return False
        # Its room is free when what is under way has come to an end.
        binding.fail(error(f"preempted by {plugin}", plugin))
        self._give_up(binding)
        return True

    def _try_again(self, pod: Pod) -> None:
        self.queue.activate([pod], self._now)

    def _let_in(self, pod: Pod) -> None:
        if self.queue.where(pod.key) == GATED:
            self._try_again(pod)

    def _node_of(self, uid: str) -> str:
        cached = self.cache.get(uid)
        return "" if cached is None else cached.node

    def _ask_for_preemption(self, request: Request, name: str) -> None:
        self._ask(request, Purpose.PREEMPTION if name else Purpose.INFORM, name)

    def _place(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        """Assume, reserve, permit; then the binding cycle begins."""
        pod, node = decision.pod, decision.node
        chosen, state = decision.profile, decision.state
        placed = self.cache.assume(pod, node, decision.template)
        self.nominator.delete(pod)
        binding = BindingCycle(entry, placed, node, decision.template, chosen, state, now)
        self._bindings[entry.uid] = binding
        status, waits = chosen.run_reserve(state, placed, node), NO_WAITS
        if status is SUCCESS:
            status, waits = chosen.run_permit(state, placed, node)
        if status is not SUCCESS:
            binding.fail(status)
            self._unwind(binding, now)
            return
        if state.to_activate:
            self._activate(binding, now)
        self._begin_binding(binding, waits, now)

    def _begin_binding(self, binding: BindingCycle, waits: dict[str, float], now: float) -> None:
        pod, node = binding.pod, binding.node
        binding.stage = Stage.PERMIT
        flight, busy = binding.profile.run_pre_flight(binding.state, pod, node)
        if flight is not SKIP:
            if not flight.is_success:
                binding.fail(flight)
                self._unwind(binding, now)
                return
            binding.busy = busy
        if waits or busy:
            self._ask(PatchPodStatus(PodRef.of(pod), nominated_node_name=node))
        if waits:
            until = {plugin: now + seconds for plugin, seconds in waits.items()}
            self.cluster.waiting[pod.uid] = WaitingPod(pod, node, until)
            plugins = tuple(waits)
            self.journal.add(Waiting(at=now, pod=pod.key, uid=pod.uid, node=node, plugins=plugins))
            return
        self._permitted(binding, now)

    def _permitted(self, binding: BindingCycle, now: float) -> None:
        # From here on a failure is trouble, not a refusal: changes meanwhile do not matter.
        self.queue.done(binding.entry.uid)
        binding.allowed(() if self.extending is None else self.extending.binders(binding.pod))
        self._go_on(binding, now)

    def _go_on(self, binding: BindingCycle, now: float) -> None:
        binding.state.now = now
        uid = binding.entry.uid
        for request in binding.step():
            self._ask(request, Purpose.BINDING, uid)
        if binding.stage is Stage.DONE:
            self._bound(binding, now)
        elif binding.stage is Stage.FAILED and not binding.outstanding:
            self._unwind(binding, now)
        elif binding.awaiting is not None and uid not in self._awaited:
            self._awaited.add(uid, binding.awaiting, now)

    def _follow_up(self, uid: str, now: float) -> None:
        """What a pre_bind plugin waits for has moved, or time is up: let it look again."""
        self._awaited.drop(uid)
        binding = self._bindings[uid]
        binding.awaiting = None
        self._go_on(binding, now)

    def _give_up(self, binding: BindingCycle) -> None:
        """Nobody waits any more for what a pod's pre_bind plugin waits for."""
        if binding.pod.uid in self._awaited:
            self._given_up.append(binding.pod.uid)

    def _answered(self, uid: str, outcome: Outcome, now: float) -> None:
        binding = self._bindings.get(uid)
        if binding is None:
            return
        if isinstance(outcome, Unknown) and binding.stage is Stage.BIND:
            # It may or may not have happened. Its room is not given away before that is known.
            self._lookups.want(uid, now)
            return
        binding.answered(outcome)
        self._go_on(binding, now)

    def _bound(self, binding: BindingCycle, now: float) -> None:
        pod, node, key, uid = binding.pod, binding.node, binding.entry.key, binding.entry.uid
        del self._bindings[uid]
        self.cache.finish_binding(uid, now)
        self.journal.add(Bound(at=now, pod=key, uid=uid, node=node))
        text = f"Successfully assigned {key} to {node}"
        self._emit(pod, "Normal", "Scheduled", "Binding", text)
        for trouble in binding.profile.run_post_bind(binding.state, pod, node):
            self.journal.add(Erred(at=now, pod=pod.key, uid=pod.uid, message=trouble))
        if binding.state.to_activate:
            self._activate(binding, now)

    def _activate(self, binding: BindingCycle, now: float) -> None:
        self.queue.activate(list(binding.state.to_activate.values()), now)
        binding.state.to_activate.clear()

    # Failure

    def _unwind(self, binding: BindingCycle, now: float) -> None:
        """Undo what was reserved and assumed, and put the pod back."""
        pod, status = binding.pod, binding.status
        del self._bindings[pod.uid]
        for trouble in binding.profile.run_unreserve(binding.state, pod, binding.node):
            self.journal.add(Erred(at=now, pod=pod.key, uid=pod.uid, message=trouble))
        freed = self._forget(pod.uid, status.message, now)
        # Within the cycle itself nobody has seen the room taken, so nobody waits for it.
        wakes = freed and binding.failed_in is not Stage.RESERVE
        if wakes and not status.is_rejected:
            self.queue.move_all(events.ASSIGNED_POD_DELETE, pod, None, now)
        self._failed(binding.entry, *binding.failure, now)
        if wakes and status.is_rejected:
            self.queue.move_all(
                events.ASSIGNED_POD_DELETE, pod, None, now, only=lambda w: w.uid != pod.uid
            )

    def _forget(self, uid: str, reason: str, now: float) -> bool:
        cached = self.cache.get(uid)
        if cached is None or not cached.assumed:
            return False  # The world has shown the pod on a node, or removed it, meanwhile.
        self.cache.forget(uid)
        self.journal.add(
            Forgotten(at=now, pod=cached.pod.key, uid=uid, node=cached.node, reason=reason)
        )
        return True

    def _failed(
        self,
        entry: QueuedPod,
        status: Status,
        found: Diagnosis | None,
        now: float,
        *,
        nominated: str | None = "",
        rejected_by: dict[str, int] | None = None,
    ) -> None:
        """Put a pod back where it belongs after a failed attempt, and tell the world why."""
        known = self._intake.pods.get(entry.key)
        if known is None or known.uid != entry.uid or known.node_name:
            # Gone, replaced or bound meanwhile: there is nothing to put back, nobody to tell.
            self.queue.done(entry.uid)
            return
        message = status.message
        if found is not None:
            entry.rejected_by(sorted(found.unschedulable_plugins), sorted(found.pending_plugins))
        else:
            entry.rejected_by()
        entry.become(known)
        self.queue.return_unschedulable(entry, now)
        before = self.nominator.node_of(known.uid)
        if nominated:
            self.nominator.nominate(known, nominated)
        elif nominated is None:
            # As it is, even if the pod's status does not show it yet, or never will.
            self.nominator.update(known, known)
        else:
            self.nominator.delete(known)
        if before and before != self.nominator.node_of(known.uid):
            self._intake.promise_ended(known, before, now)
        notes.failure(self.journal, entry, status, found, nominated, rejected_by or {}, now)
        if not message:
            return
        self._emit(known, "Warning", "FailedScheduling", "Scheduling", diagnosis.note(message))
        patch = refusal_shown(known, status, message, nominated)
        if patch is not None:
            self._ask(patch)

    # Pods whose binding nobody is sure of

    def _looked_up(self, uid: str, outcome: Outcome, now: float) -> None:
        self._lookups.answered(uid)
        binding = self._bindings.get(uid)
        if not isinstance(outcome, Done):
            if binding is not None or self.cache.is_assumed(uid):
                self._lookups.want(uid, now + RETRY_SECONDS)
            return
        pod = outcome.pod if outcome.pod is not None and outcome.pod.uid == uid else None
        if pod is not None and pod.node_name:
            # First of all, lest a pod that another has bound is put back into the queue.
            self._intake.observe(Updated(pod), now)
        if binding is not None:
            bound = pod is not None and pod.node_name == binding.node
            binding.answered(Done() if bound else Failed(_not_bound(pod)))
            self._go_on(binding, now)
        elif self.cache.is_assumed(uid) and not (pod and pod.node_name):
            self._expire(uid, now)

    def _expire(self, uid: str, now: float) -> None:
        """A binding was reported done, yet the world does not have it: start over."""
        cached = self.cache.forget(uid)
        assert cached is not None
        pod = cached.pod
        self.journal.add(Expired(at=now, pod=pod.key, uid=uid, node=cached.node))
        self.queue.move_all(events.ASSIGNED_POD_DELETE, pod, None, now)
        known = self._intake.pods.get(pod.key)
        if known is not None and known.uid == uid and not known.node_name:
            self.queue.add(known, now)

    def _assumed_deleted(self, pod: Pod, now: float) -> None:
        """A pod is deleted while it is on its way to a node."""
        cached = self.cache.get(pod.uid)
        assert cached is not None
        waiting = self.cluster.waiting.get(pod.uid)
        if waiting is not None:
            waiting.reject("", "removed")
        else:
            # Its binding goes on, and will fail by itself, unless it waits for something else.
            self._forget(pod.uid, "removed", now)
            binding = self._bindings.get(pod.uid)
            if binding is not None and binding.awaiting is not None:
                binding.fail(error("pod does not exist any more", binding.asked.name))
                self._give_up(binding)
            if pod.uid not in self._bindings:
                self._lookups.drop(pod.uid)
        self.queue.move_all(events.ASSIGNED_POD_DELETE, cached.pod, None, now)

    # Between the verbs

    def _caused(self, now: float) -> list[Effect]:
        """Follow up on signals to waiting pods; hand over what was asked of the world."""
        if self.cluster.waiting or self._given_up:
            self._settle(now)
        caused = self._effects
        if caused:
            self._effects = []
            return caused
        return []

    def _settle(self, now: float) -> None:
        # Settling one may be a signal to others, as when a gang falls apart.
        while self.cluster.waiting and self._settle_waiting(now):
            pass
        while self._given_up:
            uid = self._given_up.pop(0)
            if uid in self._awaited:
                self._follow_up(uid, now)

    def _settle_waiting(self, now: float) -> bool:
        settled = [(uid, w) for uid, w in self.cluster.waiting.items() if w.signal is not None]
        for uid, waiting in settled:
            del self.cluster.waiting[uid]
            binding = self._bindings[uid]
            assert waiting.signal is not None
            result = waiting.signal.code.label
            self.journal.add(Permitted(at=now, pod=binding.pod.key, uid=uid, result=result))
            if waiting.signal.is_success:
                self._permitted(binding, now)
            else:
                binding.fail(waiting.signal)
                self._unwind(binding, now)
        return bool(settled)

    def _ask(self, request: Request, purpose: Purpose = Purpose.INFORM, uid: str = "") -> None:
        ticket: Ticket = self._last_ticket + 1  # type: ignore[assignment]  # a call less
        self._last_ticket = ticket
        if purpose is not Purpose.INFORM:
            self._tickets[ticket] = (purpose, uid)
        self._effects.append(Effect(ticket, request))

    def _emit(self, pod: Pod, type_: str, reason: str, action: str, note: str) -> None:
        reporter = pod.spec.scheduler_name
        self._ask(EmitEvent(PodRef.of(pod), type_, reason, action, note, reporter))

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.profiles

    def _promise_to(self, pod: Pod) -> str:
        """The node promised to a pod; its status learns of that only later."""
        return self.nominator.node_of(pod.uid) or pod.status.nominated_node_name

    def _promise_changed(self, node: str) -> None:
        row = self.cluster.table.row_of.get(node)
        if row is not None:
            self.cluster.promise_changes.add(row)

    # What must always hold

    def check_invariants(self) -> None:
        """Raise InvariantError if a pod is lost, in two places, or counted wrongly."""
        self.queue.check()
        self.preemptions.check()
        for pod in filter(self._is_ours, self._intake.pods.values()):
            invariants.check_one_place(pod, self._places(pod), self.journal)
        invariants.check_table(self.cluster.table, self.cache)
        invariants.check_assumed(self.cluster, self._bindings)

    def _places(self, pod: Pod) -> list[str]:
        cached = self.cache.get(pod.uid)
        queued = self.queue.where(pod.uid)
        places = []
        if cached is not None:
            places.append("assumed" if cached.assumed else "on a node")
        # A pod that waits on permit is assumed and, for the queue, still in flight.
        if queued is not None and not (queued == "in_flight" and cached is not None):
            places.append(queued)
        if not places and pod.uid in self._bindings:
            places.append("binding")
        # A pod that is being deleted before it had a node is nobody's concern any more.
        if not places and pod.is_terminating:
            places.append("terminating")
        return places


def _not_bound(pod: Pod | None) -> str:
    if pod is None:
        return "the pod is gone"
    return f"the pod is bound to {pod.node_name}" if pod.node_name else "the pod is not bound"
