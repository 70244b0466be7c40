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

from collections.abc import Iterable
from enum import Enum

from msgspec import Struct, structs

from moorage.api.meta import Condition
from moorage.api.pod import TERMINAL_PHASES, Pod
from moorage.api.pod_groups import group_key
from moorage.api.server_requests import DeletePod, EmitEvent, PatchPodStatus, PodRef
from moorage.core.bindings import Bindings
from moorage.core.cache import ADDED
from moorage.core.effects import Done, Failed, Outcome, Purpose
from moorage.core.journal import Erred, Preempted, Preempting
from moorage.core.state import SchedulerState
from moorage.errors import InvariantError, PluginError
from moorage.framework.profile import Profile

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"
ACCOMMODATES = "preempting to accommodate a higher priority"
IN_MEMORY = " (in kube-scheduler memory)."


class PreemptionStage(Enum):
    """How far a preemption is."""

    FIRST = "all victims but the last are evicted"
    LAST = "the last victim is evicted"
    OVER = "nothing is left to do"


FIRST, LAST, OVER = PreemptionStage


class Preemption(Struct, eq=False):
    """The victims of one pod on one node."""

    number: int
    pod: Pod
    key: str
    node: str
    plugin: str
    profile: Profile
    victims: tuple[Pod, ...]
    # The UID of the pod group for which the victims are evicted, wherever they are.
    group_uid: str
    # The condition of its victims, and the text of their Events.
    condition: Condition
    note: str
    stage: PreemptionStage = FIRST
    # It waits for (by UID): victims whose eviction is in progress, victims that are not observed
    # terminating, and pods whose nomination is being cleared.
    evicting: set[str] = set()  # a Struct copies it for every instance
    unobserved: set[str] = set()
    clearing: set[str] = set()
    has_failed: bool = False
    victim_failed: bool = False
    # Whether the pod is gated meanwhile.
    is_gated: bool = True


class VictimEviction(Struct, eq=False):
    """The eviction of one victim, and the preemptions that wait for it."""

    victim: Pod
    ref: PodRef
    by: Preemption
    is_patched: bool
    waiting: list[Preemption] = []  # as above


class Preemptions:
    """All preemptions in progress."""

    def __init__(self, state: SchedulerState, bindings: Bindings) -> None:
        self._state = state
        self._bindings = bindings
        self._cached = state.cache.pods
        self._outbox = state.outbox
        self._journal = state.journal
        self._last_number = 0
        self._in_progress: dict[int, Preemption] = {}
        self._evictions: dict[str, VictimEviction] = {}
        # Victims that are not observed terminating, by UID, with the preemptions that wait for it.
        self.unobserved: dict[str, list[Preemption]] = {}
        # How many preemptions gate each pod, by UID.
        self._gating: dict[str, int] = {}

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
        evicted = [each for each in victims if each.metadata.deletion_timestamp is None]
        if not evicted:
            return  # All of them are terminating already.
        key, uid = pod.key, pod.metadata.uid
        keys = tuple([victim.key for victim in evicted])
        self._journal.add(Preempting(at=now, pod=key, uid=uid, node=node, victims=keys))
        self._last_number += 1
        kind = "podgroup" if group_uid else "pod"
        preemption = Preemption(
            self._last_number,
            pod,
            key,
            node,
            plugin,
            profile,
            tuple(evicted),
            group_uid,
            Condition(
                type=DISRUPTION_TARGET,
                status="True",
                reason=BY_SCHEDULER,
                message=f"{pod.spec.scheduler_name}: {ACCOMMODATES} {kind}",
            ),
            f"Preempted by {kind} {group_uid or uid} on node {node}",
        )
        self._in_progress[preemption.number] = preemption
        self._gating[uid] = self._gating.get(uid, 0) + 1
        self._notify(preemption, now)
        self._clear_nominations(preemption)
        for victim in evicted[:-1]:
            self._evict(victim, preemption, now)
        self._step(preemption, now)

    def completed(self, name: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of an effect, by the name under which it was requested."""
        eviction = self._evictions.get(name)
        if eviction is not None:
            self._victim_completed(name, eviction, outcome, now)
            return
        number, _, uid = name.partition(" ")
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
                if preemption not in self._evictions[uid].waiting:
                    raise InvariantError(f"no preemption waits for the eviction of {uid}")
            for uid in preemption.unobserved:
                if preemption not in self.unobserved[uid]:
                    raise InvariantError(f"no preemption waits until {uid} is terminating")
        for uid, eviction in self._evictions.items():
            if not any(uid in each.evicting for each in eviction.waiting):
                raise InvariantError(f"{eviction.victim.key} is evicted for no preemption")

    # One preemption

    def _clear_nominations(self, preemption: Preemption) -> None:
        """Clear nominations of pods of lower priority, which may not fit on the node any more."""
        nominator, node = self._state.nominator, preemption.node
        if node not in nominator.by_node:
            return
        for nomination in nominator.on(node):
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
            self.unobserved[uid].remove(preemption)
        self._ungate(preemption, now)
        if preemption.has_failed or preemption.victim_failed:
            self._state.queue.activate([preemption.pod], now)

    def leaves(self, uid: str, now: float) -> None:
        """A pod is observed terminating, or gone; called before that requeues other pods."""
        for preemption in self.unobserved.pop(uid, ()):
            preemption.unobserved.discard(uid)
            if not preemption.unobserved and preemption.stage is not FIRST:
                self._ungate(preemption, now)
            if not preemption.evicting:
                self._step(preemption, now)

    def _ungate(self, preemption: Preemption, now: float) -> None:
        """Let the plugin gate the pod no longer, unless it has another preemption."""
        if not preemption.is_gated:
            return
        preemption.is_gated = False
        uid = preemption.pod.metadata.uid
        others = self._gating.pop(uid) - 1
        if others:
            self._gating[uid] = others
            return
        self._notify(preemption, now)
        queue = self._state.queue
        keys = self._members(preemption) if preemption.group_uid else [preemption.key]
        entries = [queue.find(key) for key in keys]
        gated = [entry for entry in entries if entry is not None and entry.is_gated]
        if gated:
            # The deletion of a victim requeues pods for the plugins that rejected them. Without
            # one to come, or for a pod that a list hid and that was never tried since, this is
            # the moment.
            on_node = any(self._is_on_node(each, preemption) for each in preemption.victims)
            due = [entry.pod for entry in gated if not (on_node and entry.attempts)]
            queue.activate(due, now)

    def _members(self, preemption: Preemption) -> list[str]:
        """The pods that a group's preemption gates; members may have come meanwhile."""
        members = self._state.cluster.members(group_key(preemption.pod))
        return [] if members is None else [pod.key for pod in members.unscheduled.values()]

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
        uid, pod = victim.metadata.uid, self._in_the_way(victim, preemption)
        if pod is None:
            return  # Gone or terminating, for whatever reason.
        eviction = self._evictions.get(uid)
        if eviction is None and uid not in self.unobserved:
            if self._bindings.preempt(pod, preemption.plugin):
                self._report(pod, PodRef.of(pod), preemption, now, IN_MEMORY)
                return
            eviction = self._evictions[uid] = self._request(pod, uid, preemption)
        if eviction is not None:  # Else it is carried out.
            eviction.waiting.append(preemption)
            preemption.evicting.add(uid)
        self._wait_until_terminating(uid, preemption)

    def _request(self, victim: Pod, uid: str, preemption: Preemption) -> VictimEviction:
        """Patch the victim's condition, unless it has it, then delete it with its grace period."""
        meta, condition = victim.metadata, preemption.condition
        ref = PodRef(meta.namespace, meta.name, uid)
        is_patched = bool(victim.status.conditions) and _has_condition(victim, condition)
        request: DeletePod | PatchPodStatus
        if is_patched:
            request = DeletePod(ref)
        else:
            if meta.generation:
                condition = structs.replace(condition, observed_generation=meta.generation)
            request = PatchPodStatus(ref, condition)
        self._outbox.add(request, Purpose.PREEMPTION, uid)
        return VictimEviction(victim, ref, preemption, is_patched)

    def _is_on_node(self, victim: Pod, preemption: Preemption) -> bool:
        cached = self._cached.get(victim.metadata.uid)
        return cached is not None and (cached.node == preemption.node or bool(preemption.group_uid))

    def _in_the_way(self, victim: Pod, preemption: Preemption) -> Pod | None:
        """The newest version of a victim that is on the node and not terminating."""
        cached = self._cached.get(victim.metadata.uid)
        if cached is None or (cached.node != preemption.node and not preemption.group_uid):
            return None
        if cached.state == ADDED:
            # The newest version, because it was observed on its node. Pods that ended are not here.
            pod = cached.pod
            return pod if pod.metadata.deletion_timestamp is None else None
        newest = self._state.current(victim)
        return newest if newest is not None and _stays(newest) else None

    def _wait_until_terminating(self, uid: str, preemption: Preemption) -> None:
        preemption.unobserved.add(uid)
        self.unobserved.setdefault(uid, []).append(preemption)

    def _victim_completed(
        self, uid: str, eviction: VictimEviction, outcome: Outcome, now: float
    ) -> None:
        by, done = eviction.by, isinstance(outcome, Done)
        leaves = done and self._in_the_way(eviction.victim, by) is not None
        if leaves:
            if uid not in self.unobserved:
                # An outdated list hid the victim meanwhile, and another one showed it again.
                for preemption in eviction.waiting:
                    self._wait_until_terminating(uid, preemption)
            if not eviction.is_patched:
                eviction.is_patched = True
                self._outbox.add(DeletePod(eviction.ref), Purpose.PREEMPTION, uid)
                return
        if done and eviction.is_patched:
            self._report(eviction.victim, eviction.ref, by, now)
        failed = not (done or (isinstance(outcome, Failed) and outcome.missing))
        del self._evictions[uid]
        for preemption in eviction.waiting:
            preemption.evicting.discard(uid)
            if failed:
                preemption.victim_failed = True
        if not leaves:
            self.leaves(uid, now)  # It may never be observed terminating: do not wait for it.
        for preemption in eviction.waiting:
            if not preemption.evicting and preemption.number in self._in_progress:
                self._step(preemption, now)

    def _report(self, victim: Pod, ref: PodRef, by: Preemption, now: float, how: str = "") -> None:
        """Record the preemption of a victim, and emit an Event."""
        pod = by.pod
        fact = Preempted(
            at=now,
            pod=victim.key,
            uid=ref.uid,
            node=by.node,
            by=by.key,
            by_uid=pod.metadata.uid,
        )
        self._journal.add(fact)
        reporter, note = pod.spec.scheduler_name, by.note + how
        self._outbox.add(EmitEvent(ref, "Normal", "Preempted", "Preempting", note, reporter))


def _stays(pod: Pod) -> bool:
    return pod.metadata.deletion_timestamp is None and pod.status.phase not in TERMINAL_PHASES


def _has_condition(victim: Pod, condition: Condition) -> bool:
    """Whether the victim has the condition already, with the same message."""
    shown = victim.condition(DISRUPTION_TARGET)
    return shown is not None and (shown.status, shown.reason, shown.message) == (
        condition.status,
        condition.reason,
        condition.message,
    )
