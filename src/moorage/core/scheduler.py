"""Scheduler: the machine turned by hand. Every verb takes `now` and returns the effects it caused.

    observe(observation, now)        the world changed
    schedule_one(now)                one pod is decided upon, and its binding begins
    complete(ticket, outcome, now)   something that was asked of the world came to an end
    advance(now)                     time passed: back-offs, permits, bindings that nobody confirms

It never waits and never looks at a clock. `has_work` says whether schedule_one would do something,
`deadline` when advance will.
"""

from collections.abc import Iterable, Sequence
from random import Random

from moorage.api import config
from moorage.api.pod import Pod
from moorage.core import invariants, notes
from moorage.core.bindings import Bindings
from moorage.core.cache import Cache
from moorage.core.confirmations import Confirmations
from moorage.core.cycle import Decision, SchedulingCycle
from moorage.core.effects import Effect, Outcome, Ticket
from moorage.core.extenders import ExtenderClient, Extenders, RunCalls, sequentially
from moorage.core.failures import Failures
from moorage.core.intake import Intake
from moorage.core.journal import Journal
from moorage.core.lookups import Lookups
from moorage.core.nominator import Nominator, Promised
from moorage.core.observations import Observation
from moorage.core.outbox import Outbox, Purpose
from moorage.core.places import GATED
from moorage.core.preemption import Preemptions, World
from moorage.core.queue import SchedulingQueue
from moorage.core.queued_pod import QueuedPod
from moorage.framework import profiles
from moorage.framework.cluster import Cluster
from moorage.framework.effects import Request
from moorage.framework.invoke import CallMeter, measured
from moorage.framework.registry import Registry
from moorage.framework.template import PodTemplate, Templates

CONFIRM_SECONDS = 30.0


class Scheduler:
    """See the module."""

    # Measures the calls of the verbs below; see `moorage simulate --profile`.
    meter: CallMeter | None = None

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
        self.journal = journal if journal is not None else Journal()
        self.cluster = Cluster()
        self.templates = Templates()
        self.profiles = profiles.build(settings, registry or Registry(), self.cluster)
        self.extenders: Extenders | None = None
        if extenders:
            self.extenders = Extenders(extenders, self.cluster, at_once)
            self.extenders.register(self.profiles.values())
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
            reviewers=() if self.extenders is None else self.extenders.reviewers,
            extenders=self.extenders,
        )
        # All pods that the world told of and that are not gone, by namespace/name.
        self._pods: dict[str, Pod] = {}
        self._outbox = Outbox()
        self._failures = Failures(self._pods, self.queue, self._outbox, self.journal)
        lookups = Lookups()
        self.bindings = Bindings(
            self.cluster.waiting,
            self.cache,
            self.queue,
            self._failures,
            lookups,
            self._outbox,
            self.journal,
            self.extenders,
        )
        self.preemptions = Preemptions(
            World(
                self.known_pod,
                self._node_of,
                self.bindings.take_back,
                self._try_again,
                self._let_in,
                self._ask_for_preemption,
            ),
            self.nominator,
            self.journal,
        )
        self._intake = Intake(
            self._pods,
            self.cluster,
            self.cache,
            self.queue,
            self.nominator,
            self.journal,
            self._is_ours,
            self._template_of,
            self.bindings.deleted,
            self.preemptions.leaves,
        )
        self._confirmations = Confirmations(
            confirm_seconds,
            self.bindings,
            lookups,
            self._intake,
            self.cache,
            self.queue,
            self._outbox,
            self.journal,
        )
        self._now = 0.0

    # The verbs

    @measured("observe")
    def observe(self, observation: Observation, now: float) -> list[Effect]:
        """Take in what the world tells."""
        self._now = now
        self._intake.observe(observation, now)
        if self.bindings.awaited:
            self.bindings.observed(observation, now)
        return self._caused(now)

    @measured("schedule_one")
    def schedule_one(self, now: float) -> list[Effect]:
        """Take the next pod from the queue and decide where it goes."""
        self._now = now
        entry = self.queue.pop(now)
        if entry is not None:
            self._attempt(entry, now)
        return self._caused(now)

    @measured("complete")
    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        """Something that was asked of the world came to an end."""
        self._now = now
        asked = self._outbox.tickets.pop(ticket, None)
        if asked is not None:
            purpose, name = asked
            if purpose is Purpose.BINDING:
                self.bindings.answered(name, outcome, now)
            elif purpose is Purpose.LOOK_UP:
                self._confirmations.answered(name, outcome, now)
            elif purpose is Purpose.PREEMPTION:
                self.preemptions.answered(name, outcome, now)
        return self._caused(now)

    @measured("advance")
    def advance(self, now: float) -> list[Effect]:
        """Do what is due by now."""
        self._now = now
        self.queue.advance(now)
        self._confirmations.advance(now)
        self.bindings.advance(now)
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
        )
        return min((moment for moment in moments if moment is not None), default=None)

    def known_pods(self) -> Iterable[Pod]:
        """All pods that the world told of and that are not gone."""
        return self._pods.values()

    def known_pod(self, key: str) -> Pod | None:
        """A pod by namespace/name, as the world last showed it."""
        return self._pods.get(key)

    # One attempt

    def _attempt(self, entry: QueuedPod, now: float) -> None:
        pod = entry.pod
        if pod.metadata.deletion_timestamp is not None:
            text = f"skip schedule deleting pod: {pod.key}"
            self._outbox.emit(pod, "Warning", "FailedScheduling", "Scheduling", text)
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
            self.bindings.begin(entry, decision, now)
        else:
            self._refused(entry, decision, now)

    def _refused(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        """Do what post_filter plugins want done, and put the pod back."""
        pod, answer = decision.pod, decision.post_filter
        if answer is not None:
            for request in answer.requests:
                self._outbox.ask(request)
            if answer.nominated and answer.victims:
                node, plugin = answer.nominated, answer.status.plugin
                self.preemptions.begin(pod, node, answer.victims, plugin, decision.profile, now)
        self._failures.put_back(
            entry,
            decision.status,
            decision.diagnosis,
            now,
            nominated=decision.nominated,
            rejected_by=decision.rejected_by(),
        )

    def _caused(self, now: float) -> list[Effect]:
        """Follow up on signals to waiting pods; hand over what was asked of the world."""
        bindings, outbox = self.bindings, self._outbox
        if bindings.waiting or bindings.given_up:
            bindings.settle(now)
        caused = outbox.effects
        if caused:
            outbox.effects = []
            return caused
        return []

    # What others ask of it

    def _template_of(self, pod: Pod) -> PodTemplate:
        """The template of a pod that has come, ready to be decided upon."""
        template = self.templates.of(pod)
        self.profiles[pod.spec.scheduler_name].prepare(template)
        return template

    def _is_ours(self, pod: Pod) -> bool:
        return pod.spec.scheduler_name in self.profiles

    def _promise_to(self, pod: Pod) -> str:
        """The node promised to a pod; its status learns of that only later."""
        return self.nominator.node_of(pod.uid) or pod.status.nominated_node_name

    def _promise_changed(self, node: str) -> None:
        row = self.cluster.table.row_of.get(node)
        if row is not None:
            self.cluster.promise_changes.add(row)

    def _node_of(self, uid: str) -> str:
        cached = self.cache.get(uid)
        return "" if cached is None else cached.node

    def _try_again(self, pod: Pod) -> None:
        self.queue.activate([pod], self._now)

    def _let_in(self, pod: Pod) -> None:
        if self.queue.where(pod.key) == GATED:
            self._try_again(pod)

    def _ask_for_preemption(self, request: Request, name: str) -> None:
        self._outbox.ask(request, Purpose.PREEMPTION if name else Purpose.INFORM, name)

    # What must always hold

    def check_invariants(self) -> None:
        """Raise InvariantError if a pod is lost, in two places, or counted wrongly."""
        self.queue.check()
        self.preemptions.check()
        for pod in filter(self._is_ours, self._pods.values()):
            places = invariants.places(pod, self.cache, self.queue, self.bindings)
            invariants.check_one_place(pod, places, self.journal)
        invariants.check_table(self.cluster.table, self.cache)
        invariants.check_assumed(self.cluster, self.bindings)
