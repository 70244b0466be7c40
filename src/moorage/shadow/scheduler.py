"""ShadowScheduler: a scheduler whose effects never leave it, next to a mirror of the real cluster.

    pod observed pending      both schedulers have it; the time starts
    we decide                 the pod is assumed on our node, as if it were being bound
    its binding is observed   the mirror decides about the pod in the cluster without our decisions;
                              both nodes are compared by these totals; our decision is forgotten
    the other rejects it      our decision is forgotten, and made again after a backoff
    the pod is gone           our decision is forgotten

Requests of a binding cycle stay open until then, and fail. All other requests count as done: the
preemption of victims waits, as always, until the victims are observed to leave.
"""

import math
from collections import Counter
from dataclasses import dataclass

from msgspec import structs

from moorage.api import timestamps
from moorage.api.config import SchedulerConfiguration
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.decision import Decision
from moorage.core.effects import Done, Effect, Failed, Outcome, Purpose, Ticket
from moorage.core.journal import Journal
from moorage.core.observations import Deleted, Listed, Observation
from moorage.core.queued_pod import QueuedPod
from moorage.core.scheduler import Scheduler
from moorage.errors import ConfigError
from moorage.live.timed import TimedScheduler
from moorage.metrics.meter import Meter
from moorage.shadow.comparison import SAME, TIME, WORSE, PodComparison, differences, judge
from moorage.shadow.reordering import MOST_BETTER, Reordering
from moorage.shadow.tally import PendingCounts, ShadowTally
from moorage.shadow.totals import NodeTotals

DEFAULT_SCHEDULER = "default-scheduler"
NOT_WRITTEN = "a shadow writes nothing"
# A pod that is first observed later than this after its creation existed before the shadow.
NEW_SECONDS = 2.5
# The totals of decisions whose pods are not bound yet; those beyond are compared without them.
MOST_BYTES = 64 << 20


@dataclass(slots=True)
class ShadowedPod:
    """A pending pod of the other scheduler."""

    seen_at: float
    is_new: bool
    decided_at: float | None = None
    node: str = ""
    message: str = ""
    totals: NodeTotals | None = None
    changes: int = 0
    assumed: int = 0
    is_rejected: bool = False  # By the other scheduler.

    @property
    def states(self) -> tuple[str, str]:
        """Our state and the other's."""
        ours = "decided" if self.node else "waiting" if self.decided_at is None else "rejected"
        return ours, "rejected" if self.is_rejected else "waiting"


class ShadowScheduler(TimedScheduler):
    """See the module."""

    def __init__(
        self, configuration: SchedulerConfiguration, meter: Meter, *, seed: int = 0
    ) -> None:
        super().__init__(configuration, meter, seed=seed)
        self.mirror = Scheduler(_unsampled(configuration), seed=seed, journal=Journal(limit=1))
        self.tally = ShadowTally(self._pending)
        meter.sources.append(self.tally.metrics)
        self._pods: dict[str, ShadowedPod] = {}
        # The open requests of binding cycles by the pod's UID.
        self._open: dict[str, list[Ticket]] = {}
        self._changes = 0
        self._kept_bytes = 0
        self._reordering = Reordering()

    # The verbs return no effects.

    def observe(self, observation: Observation, now: float) -> list[Effect]:
        assert not isinstance(observation, Listed), "reflectors observe differences"
        obj = observation.obj
        is_gone = isinstance(observation, Deleted)
        if not isinstance(obj, Pod):
            self._changes += isinstance(obj, Node)
            self._absorb(super().observe(observation, now), now)
            self.mirror.observe(observation, now)
            return []
        known = self.known_pod(obj.key)
        self._compare(obj, now, is_gone=is_gone or obj.is_terminal)
        self._absorb(super().observe(_without_nomination(observation), now), now)
        self.mirror.observe(observation, now)
        if known is not None and known.uid != obj.uid:  # Replaced under its name.
            self._drop(known.uid)
            self._release(known.uid, now)
        if is_gone or obj.node_name or obj.is_terminal or obj.is_terminating or _is_rejected(obj):
            self._release(obj.uid, now)
        return []

    def schedule_one(self, now: float) -> list[Effect]:
        self._absorb(super().schedule_one(now), now)
        return []

    def complete(self, ticket: Ticket, outcome: Outcome, now: float) -> list[Effect]:
        self._absorb(super().complete(ticket, outcome, now), now)
        return []

    def advance(self, now: float) -> list[Effect]:
        self.settle(now)
        self._absorb(super().advance(now), now)
        return []

    @property
    def deadline(self) -> float | None:
        """When advance will have something to do."""
        moments = (super().deadline, self._reordering.deadline)
        return min((moment for moment in moments if moment is not None), default=None)

    def settle(self, now: float = math.inf) -> None:
        """Count the comparisons that were held long enough; all of them, without a time."""
        for held in self._reordering.expired(now):
            better = self._better_nodes(held.pod, [held.pod], held.at)
            explained = better is not None and not better
            self.tally.add(_because_of_time(held.found) if explained else held.found)

    def _absorb(self, effects: list[Effect], now: float) -> None:
        """Record what would have been sent, and complete what no observation completes."""
        for effect in effects:
            waiting = self._outbox.tickets.get(effect.ticket)
            if waiting is None:
                continue  # No part waits for the outcome of an Event or a patched condition.
            purpose, name = waiting
            if purpose == Purpose.BINDING:
                self._open.setdefault(name, []).append(effect.ticket)
            elif purpose == Purpose.LOOK_UP:
                self.complete(effect.ticket, Failed(NOT_WRITTEN), now)
            else:
                self.complete(effect.ticket, Done(), now)

    def _release(self, uid: str, now: float) -> None:
        """Forget our decision about a pod."""
        for ticket in self._open.pop(uid, ()):
            self.complete(ticket, Failed(NOT_WRITTEN), now)

    # Our decisions

    def _record(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        super()._record(entry, decision, now)
        self._decided(entry, decision, decision.node, "", now)

    def _reject(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        super()._reject(entry, decision, now)
        self._decided(entry, decision, decision.nominated or "", decision.message, now)

    def _decided(
        self, entry: QueuedPod, decision: Decision, node: str, message: str, now: float
    ) -> None:
        pod = self._pods.get(entry.uid)
        if pod is None:
            return
        self._drop_totals(pod)
        if pod.decided_at is None:
            pod.decided_at = now
        pod.node, pod.message, pod.changes = node, message, self._changes
        pod.assumed = self.cache.assumed_count
        totals = NodeTotals(decision, keep=True)
        if self._kept_bytes + totals.nbytes <= MOST_BYTES:
            pod.totals = totals
            self._kept_bytes += totals.nbytes

    # The other's decisions

    def _compare(self, pod: Pod, now: float, *, is_gone: bool) -> None:
        """Follow a pod, and compare when it gets its node."""
        known = self._pods.get(pod.uid)
        if is_gone:
            self._changes += bool(pod.node_name)
            self.tally.gone += known is not None
            self._drop(pod.uid)
        elif pod.node_name:
            if known is not None:
                self._bound(pod, known, now)
                self._drop(pod.uid)
            self._changes += 1
        elif known is not None:
            known.is_rejected = _is_rejected(pod)
        elif pod.spec.scheduler_name in self.profiles:
            self._pods[pod.uid] = ShadowedPod(now, _is_new(pod, now))

    def _bound(self, pod: Pod, known: ShadowedPod, now: float) -> None:
        self.settle(now)
        for explained in self._reordering.bound(pod, known.seen_at, now):
            self.tally.add(_because_of_time(explained))
        found = self._compared(pod, known, now)
        if found.verdict != WORSE or found.reason == TIME or found.other_total is None:
            self.tally.add(found)
            return
        just_bound = self._reordering.recent(known.seen_at, now)
        recent = [each for each in just_bound if each.uid != pod.uid]
        beside = [each for each in recent if each.node_name == pod.node_name]
        better = self._better_nodes(pod, beside, now)
        if better and recent and self._better_nodes(pod, recent, now) == set():
            better = set()
        if better is not None and not better:
            self.tally.add(_because_of_time(found))
        elif better is not None and len(self._pods) > 1:  # Others may have been decided before.
            self._reordering.hold(pod, found, better, now)
        else:
            self.tally.add(found)

    def _better_nodes(self, pod: Pod, without: list[Pod], now: float) -> set[str] | None:
        """The nodes that are better than a pod's, without some other pods; None for very many."""
        cache = self.mirror.cache
        cached = [found for each in without if (found := cache.remove(each.uid)) is not None]
        totals = NodeTotals(self._decide_again(pod, now))
        its = totals.of(pod.node_name)
        better = None if its is None else totals.better_than(its, MOST_BETTER)
        for each in cached:
            cache.add(each.pod)
        return better

    def _drop(self, uid: str) -> None:
        """Follow a pod no longer."""
        pod = self._pods.pop(uid, None)
        if pod is not None:
            self._drop_totals(pod)

    def _drop_totals(self, pod: ShadowedPod) -> None:
        if pod.totals is not None:
            self._kept_bytes -= pod.totals.nbytes
            pod.totals = None

    def _compared(self, pod: Pod, known: ShadowedPod, now: float) -> PodComparison:
        theirs = pod.node_name
        seconds = None if known.decided_at is None else known.decided_at - known.seen_at
        is_late = known.decided_at is None
        ours, message = known.node, known.message
        total = other_total = best_total = None
        feasible = 0
        plugins: dict[str, int] = {}
        verdict, reason = SAME, ""
        if ours != theirs:
            decision = self._decide_again(pod, now)
            late = NodeTotals(decision)
            if is_late:
                ours, seconds = decision.node, now - known.seen_at
            if _has_claims(pod) and known.totals is not None:
                # The other's choice shows in volumes and claims before the pod is bound.
                late = known.totals
            verdict, reason = judge(
                ours,
                theirs,
                known.totals,
                late,
                nodes=decision.nodes,
                has_changed=known.changes != self._changes or known.assumed > 0,
            )
            total, other_total, best_total = late.of(ours), late.of(theirs), late.top
            feasible = late.feasible
            plugins = differences(late.scores(ours), late.scores(theirs))
            message = message or self._why_rejected(decision, theirs)
        return PodComparison(
            pod=pod.key,
            node=ours,
            other_node=theirs,
            verdict=verdict,
            reason=reason,
            total=total,
            other_total=other_total,
            best_total=best_total,
            feasible=feasible,
            plugins=plugins,
            message=message,
            changes=0 if is_late else self._changes - known.changes,
            assumed=known.assumed,
            seconds=seconds if known.is_new else None,
            other_seconds=now - known.seen_at if known.is_new else None,
            is_late=is_late,
        )

    def _decide_again(self, pod: Pod, now: float) -> Decision:
        """Decide about a pod in the cluster as it was before its binding."""
        pending = _pending(pod)
        mirror = self.mirror
        mirror.nominator.delete(pending)
        profile = mirror.profiles[pod.spec.scheduler_name]
        return mirror.cycle.decide(profile, pending, mirror.templates.of(pending), now)

    def _why_rejected(self, decision: Decision, node: str) -> str:
        table = decision.state.table
        row = table.row_of.get(node)
        if row is None or not table.active_rows[row]:
            return f"node {node} is not known"  # It may be gone, and have pods left.
        if decision.filtered is None or decision.filtered.fits[row]:
            return ""
        return decision.verdict(row).message

    def _pending(self) -> PendingCounts:
        return PendingCounts(Counter(pod.states for pod in self._pods.values()))


def shadowed(
    configuration: SchedulerConfiguration, names: tuple[str, ...]
) -> SchedulerConfiguration:
    """The configuration with a profile for each shadowed scheduler.

    A scheduler without a profile of its name gets the only profile that there is.
    """
    if configuration.extenders:
        raise ConfigError(["extenders: are not called with --shadow; remove them"])
    profiles = {profile.scheduler_name: profile for profile in configuration.profiles}
    made = []
    for name in dict.fromkeys(names or (DEFAULT_SCHEDULER,)):
        if name not in profiles and len(profiles) > 1:
            known = ", ".join(sorted(profiles))
            raise ConfigError(
                [f"--scheduler-name {name}: there is no such profile; the profiles are {known}"]
            )
        profile = profiles.get(name) or next(iter(profiles.values()))
        made.append(structs.replace(profile, scheduler_name=name))
    return structs.replace(configuration, profiles=tuple(made))


def _unsampled(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration, but every node is scored, so that both nodes have a total."""
    profiles = [
        structs.replace(profile, percentage_of_nodes_to_score=None)
        for profile in configuration.profiles
    ]
    return structs.replace(
        configuration, percentage_of_nodes_to_score=None, profiles=tuple(profiles)
    )


def _because_of_time(found: PodComparison) -> PodComparison:
    return structs.replace(found, reason=TIME)


def _pending(pod: Pod) -> Pod:
    """A pod as it was before its binding, without a nomination by the other scheduler."""
    status = structs.replace(pod.status, nominated_node_name="")
    return structs.replace(pod, spec=structs.replace(pod.spec, node_name=""), status=status)


def _without_nomination(observation: Observation) -> Observation:
    """Hide the nomination of a pending pod: it is the other's decision."""
    assert not isinstance(observation, Listed)
    pod = observation.obj
    if not isinstance(pod, Pod) or pod.node_name or not pod.status.nominated_node_name:
        return observation
    return structs.replace(observation, obj=_pending(pod))


def _is_rejected(pod: Pod) -> bool:
    condition = pod.condition("PodScheduled")
    return not pod.node_name and condition is not None and condition.reason == "Unschedulable"


def _is_new(pod: Pod, now: float) -> bool:
    created_at = timestamps.seconds(pod.metadata.creation_timestamp or "", now)
    return created_at is None or now - created_at < NEW_SECONDS


def _has_claims(pod: Pod) -> bool:
    return bool(pod.spec.resource_claims) or any(
        volume.persistent_volume_claim is not None or volume.ephemeral is not None
        for volume in pod.spec.volumes
    )
