"""Preemptions: the eviction of victims for pods with a nominated node.

    stage   effects                                              next
    FIRST   clear nominations of pods of lower priority on the
            node; patch, then delete every victim but the last   LAST; OVER if a victim failed
    LAST    patch, then delete the last victim                   OVER
    OVER    none; if an effect failed, the pod is activated

The last victim waits for the others: its deletion is the event that requeues the pod. Until all
victims are observed terminating, the pod is gated: an attempt that does not know of them could
only evict more. Victims that are not bound yet are preempted without effects. A victim is evicted
once, however many pods wait for that. No further victim is evicted for a pod that is gone.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.api.pod_groups import group_key
from moorage.api.server_requests import DeletePod, EmitEvent, PatchPodStatus, PodRef
from moorage.core.bindings import Bindings
from moorage.core.effects import Done, Failed, Outcome, Purpose
from moorage.core.journal import Erred, Preempted, Preempting
from moorage.core.state import SchedulerState
from moorage.errors import InvariantError, PluginError
from moorage.framework.profile import Profile

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"
IN_MEMORY = " (in kube-scheduler memory)."


class PreemptionStage(Enum):
    """How far a preemption is."""

    FIRST = "all victims but the last are evicted"
    LAST = "the last victim is evicted"
    OVER = "nothing is left to do"


FIRST, LAST, OVER = PreemptionStage


@dataclass(slots=True)
class Preemption:
    """The victims of one pod on one node."""

    number: int
    pod: Pod
    node: str
    plugin: str
    profile: Profile
    victims: tuple[Pod, ...]
    # The UID of the pod group for which the victims are evicted, wherever they are.
    group_uid: str = ""
    stage: PreemptionStage = FIRST
    # It waits for (by UID): victims whose eviction is in progress, victims that are not observed
    # terminating, and pods whose nomination is being cleared.
    evicting: set[str] = field(default_factory=set)
    unobserved: set[str] = field(default_factory=set)
    clearing: set[str] = field(default_factory=set)
    has_failed: bool = False
    victim_failed: bool = False
    # Whether the pod is gated meanwhile.
    is_gated: bool = True


@dataclass(slots=True)
class VictimEviction:
    """The eviction of one victim, and the preemptions (by number) that wait for it."""

    victim: Pod
    by: Preemption
    waiting: list[int]
    is_patched: bool = False


class Preemptions:
    """All preemptions in progress."""

    def __init__(self, state: SchedulerState, bindings: Bindings) -> None:
        self._state = state
        self._bindings = bindings
        self._outbox = state.outbox
        self._journal = state.journal
        self._last_number = 0
        self._in_progress: dict[int, Preemption] = {}
        self._evictions: dict[str, VictimEviction] = {}
        # Victims that are not observed terminating, with the preemptions that wait for it.
        self._unobserved: dict[str, list[int]] = {}
        # How many preemptions gate each pod, by UID.
        self._gating: Counter[str] = Counter()

    def __len__(self) -> int:
        return len(self._in_progress)

    def begin(
        self,
        pod: Pod,
        node: str,
        victims: Iterable[Pod],
        plugin: str,
        profile: Profile,
        now: float,
        *,
        group_uid: str = "",
    ) -> None:
        """Evict victims from a node for a pod, or from all nodes for its group."""
        evicted = [victim for victim in victims if not victim.is_terminating]
        if not evicted:
            return  # All of them are terminating already.
        keys = tuple(victim.key for victim in evicted)
        self._journal.add(Preempting(at=now, pod=pod.key, uid=pod.uid, node=node, victims=keys))
        self._last_number += 1
        preemption = Preemption(
            self._last_number, pod, node, plugin, profile, tuple(evicted), group_uid
        )
        self._in_progress[preemption.number] = preemption
        self._gating[pod.uid] += 1
        self._notify(preemption, now)
        self._clear_nominations(preemption)
        for victim in evicted[:-1]:
            self._evict(victim, preemption, now)
        self._step(preemption, now)

    def completed(self, name: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of an effect, by the name under which it was requested."""
        number, _, uid = name.partition(" ")
        if number == "victim":
            self._victim_completed(self._evictions[uid], outcome, now)
        else:
            preemption = self._in_progress[int(number)]
            preemption.clearing.discard(uid)
            if not isinstance(outcome, Done):
                preemption.has_failed = True
            self._step(preemption, now)

    def check(self) -> None:
        """Raise InvariantError if a preemption waits for nothing, or no preemption for a victim."""
        for preemption in self._in_progress.values():
            if not (preemption.evicting or preemption.unobserved or preemption.clearing):
                raise InvariantError(f"the preemption for {preemption.pod.key} waits for nothing")
            for uid in preemption.evicting:
                if preemption.number not in self._evictions[uid].waiting:
                    raise InvariantError(f"no preemption waits for the eviction of {uid}")
            for uid in preemption.unobserved:
                if preemption.number not in self._unobserved[uid]:
                    raise InvariantError(f"no preemption waits until {uid} is terminating")
        for uid, eviction in self._evictions.items():
            if not any(uid in self._in_progress[number].evicting for number in eviction.waiting):
                raise InvariantError(f"{eviction.victim.key} is evicted for no preemption")

    # One preemption

    def _clear_nominations(self, preemption: Preemption) -> None:
        """Clear nominations of pods of lower priority, which may not fit on the node any more."""
        for nomination in self._state.nominator.on(preemption.node):
            other = self._state.pods.get(nomination.key)
            if (
                other is not None
                and other.uid == nomination.uid
                and other.priority < preemption.pod.priority
                and other.status.nominated_node_name
            ):
                preemption.clearing.add(other.uid)
                patch = PatchPodStatus(PodRef.of(other), nominated_node_name="")
                self._outbox.add(patch, Purpose.PREEMPTION, f"{preemption.number} {other.uid}")

    def _step(self, preemption: Preemption, now: float) -> None:
        """Go on as far as possible."""
        if preemption.evicting:
            return
        if preemption.stage is FIRST:
            pod = self._state.current(preemption.pod)  # Whether it still waits for the node.
            if preemption.victim_failed or pod is None or not _stays(pod):
                preemption.stage = OVER
            else:
                preemption.stage = LAST
                self._evict(preemption.victims[-1], preemption, now)
        if not preemption.evicting and not preemption.clearing:
            if preemption.unobserved and not preemption.victim_failed:
                return
            self._end(preemption, now)

    def _end(self, preemption: Preemption, now: float) -> None:
        preemption.stage = OVER
        del self._in_progress[preemption.number]
        for uid in preemption.unobserved:
            self._unobserved[uid].remove(preemption.number)
        self._ungate(preemption, now)
        if preemption.has_failed or preemption.victim_failed:
            self._state.queue.activate([preemption.pod], now)

    def leaves(self, uid: str, now: float) -> None:
        """A pod is observed terminating, or gone; called before that requeues other pods."""
        for number in self._unobserved.pop(uid, ()):
            preemption = self._in_progress[number]
            preemption.unobserved.discard(uid)
            if not preemption.unobserved and preemption.stage is not FIRST:
                self._ungate(preemption, now)
            self._step(preemption, now)

    def _ungate(self, preemption: Preemption, now: float) -> None:
        """Let the plugin gate the pod no longer, unless it has another preemption."""
        if preemption.is_gated:
            preemption.is_gated = False
            self._gating[preemption.pod.uid] -= 1
            if not self._gating[preemption.pod.uid]:
                del self._gating[preemption.pod.uid]
                self._notify(preemption, now)
                queue = self._state.queue
                # The deletion of a victim requeues pods for the plugins that rejected them. Without
                # one to come, or for a pod that a list hid and that was never tried since, this is
                # the moment.
                on_node = any(self._is_on_node(each, preemption) for each in preemption.victims)
                entries = (queue.find(pod.key) for pod in self._waiting_for(preemption))
                gated = [entry for entry in entries if entry is not None and entry.is_gated]
                due = [entry.pod for entry in gated if not (on_node and entry.attempts)]
                queue.activate(due, now)

    def _waiting_for(self, preemption: Preemption) -> Iterable[Pod]:
        """The pods that are gated by a preemption; members of a group may have come meanwhile."""
        if not preemption.group_uid:
            return [preemption.pod]
        members = self._state.cluster.members(group_key(preemption.pod))
        return [] if members is None else members.unscheduled.values()

    def _notify(self, preemption: Preemption, now: float) -> None:
        """Notify the plugin, which may gate the pod meanwhile."""
        pod = preemption.pod
        name = "preemption_started" if preemption.is_gated else "preemption_finished"
        for method in preemption.profile.methods("post_filter", name):
            if method.name == preemption.plugin:
                try:
                    method.call(pod)
                except PluginError as failure:
                    erred = Erred(at=now, pod=pod.key, uid=pod.uid, message=str(failure))
                    self._journal.add(erred)

    # One victim

    def _evict(self, victim: Pod, preemption: Preemption, now: float) -> None:
        uid, pod = victim.metadata.uid, self._state.current(victim)
        if pod is None or not self._is_in_the_way(pod, preemption):
            return  # Gone or terminating, for whatever reason.
        if uid in self._evictions:
            self._evictions[uid].waiting.append(preemption.number)
            preemption.evicting.add(uid)
            self._wait_until_terminating(uid, preemption)
        elif uid in self._unobserved:
            self._wait_until_terminating(uid, preemption)  # Its eviction is carried out.
        elif self._bindings.preempt(pod, preemption.plugin):
            self._report(pod, preemption, now, IN_MEMORY)
        else:
            eviction = VictimEviction(pod, preemption, [preemption.number])
            self._evictions[uid] = eviction
            preemption.evicting.add(uid)
            self._wait_until_terminating(uid, preemption)
            self._request(eviction)

    def _is_on_node(self, victim: Pod, preemption: Preemption) -> bool:
        cached = self._state.cache.get(victim.metadata.uid)
        return cached is not None and (cached.node == preemption.node or bool(preemption.group_uid))

    def _is_in_the_way(self, victim: Pod, preemption: Preemption) -> bool:
        """Whether a victim is on the node and not terminating."""
        return _stays(victim) and self._is_on_node(victim, preemption)

    def _wait_until_terminating(self, uid: str, preemption: Preemption) -> None:
        preemption.unobserved.add(uid)
        self._unobserved.setdefault(uid, []).append(preemption.number)

    def _request(self, eviction: VictimEviction) -> None:
        """Patch the victim's condition, then delete it with its own grace period."""
        victim, ref = eviction.victim, PodRef.of(eviction.victim)
        request: DeletePod | PatchPodStatus = DeletePod(ref)
        if not eviction.is_patched:
            condition = _condition(victim, eviction.by)
            eviction.is_patched = _has_condition(victim, condition)
            if not eviction.is_patched:
                request = PatchPodStatus(ref, condition=condition)
        self._outbox.add(request, Purpose.PREEMPTION, f"victim {ref.uid}")

    def _victim_completed(self, eviction: VictimEviction, outcome: Outcome, now: float) -> None:
        victim, done = eviction.victim, isinstance(outcome, Done)
        uid, pod = victim.metadata.uid, self._state.current(victim)
        in_the_way = pod is not None and self._is_in_the_way(pod, eviction.by)
        if done and in_the_way:
            if uid not in self._unobserved:
                # An outdated list hid the victim meanwhile, and another one showed it again.
                for number in eviction.waiting:
                    self._wait_until_terminating(uid, self._in_progress[number])
            if not eviction.is_patched:
                eviction.is_patched = True
                self._request(eviction)
                return
        if done and eviction.is_patched:
            self._report(victim, eviction.by, now)
        failed = not (done or (isinstance(outcome, Failed) and outcome.missing))
        del self._evictions[uid]
        for number in eviction.waiting:
            preemption = self._in_progress[number]
            preemption.evicting.discard(uid)
            preemption.victim_failed = preemption.victim_failed or failed
        if not (done and in_the_way):
            self.leaves(uid, now)  # It may never be observed terminating: do not wait for it.
        for number in eviction.waiting:
            if number in self._in_progress:
                self._step(self._in_progress[number], now)

    def _report(self, victim: Pod, by: Preemption, now: float, how: str = "") -> None:
        """Record the preemption of a victim, and emit an Event."""
        ref, node, pod, by_uid = PodRef.of(victim), by.node, by.pod, by.pod.uid
        self._journal.add(
            Preempted(at=now, pod=victim.key, uid=ref.uid, node=node, by=pod.key, by_uid=by_uid)
        )
        preemptor = f"podgroup {by.group_uid}" if by.group_uid else f"pod {by_uid}"
        note = f"Preempted by {preemptor} on node {node}{how}"
        reporter = pod.spec.scheduler_name
        event = EmitEvent(ref, "Normal", "Preempted", "Preempting", note, reporter)
        self._outbox.add(event)


def _stays(pod: Pod) -> bool:
    return not (pod.is_terminating or pod.is_terminal)


def _condition(victim: Pod, by: Preemption) -> Condition:
    preemptor = "podgroup" if by.group_uid else "pod"
    name = by.pod.spec.scheduler_name
    return Condition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=BY_SCHEDULER,
        message=f"{name}: preempting to accommodate a higher priority {preemptor}",
        observed_generation=victim.metadata.generation or None,
    )


def _has_condition(victim: Pod, condition: Condition) -> bool:
    """Whether the victim has the condition already, with the same message."""
    shown = victim.condition(DISRUPTION_TARGET)
    return shown is not None and (shown.status, shown.reason, shown.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )
