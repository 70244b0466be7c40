"""Bindings: all binding cycles in progress, each from its pod's decision until bound, or failed.

Each goes through its stages (see `binding_cycle.py`) as far as it can. It goes on when its effects
are completed, when the plugins allow it for which it waits on permit, or when objects are observed
for which a pre_bind plugin waits.
"""

from dataclasses import dataclass, field

from moorage.api.config import durations
from moorage.api.meta import KubeObject, NodeName
from moorage.api.pod import Pod
from moorage.api.server_requests import EmitEvent, PatchPodStatus, PodRef
from moorage.core import binding_points, updates
from moorage.core.binding_cycle import (
    AGREE,
    BIND,
    BINDING_TRANSITIONS,
    DONE,
    FAILED,
    RESERVE,
    BindingCycle,
)
from moorage.core.cache import ADDED
from moorage.core.decision import Decision
from moorage.core.effects import Outcome, Purpose, Unknown
from moorage.core.failures import Failures
from moorage.core.journal import Bound, Erred, Forgotten, Measured, Permitted, Waiting
from moorage.core.observations import Listed, Observation, Updated
from moorage.core.queued_pod import QueuedPod
from moorage.core.state import SchedulerState
from moorage.core.undoing import Undoing
from moorage.framework.cluster import WaitingPod
from moorage.framework.points import Awaiting
from moorage.framework.status import SKIP, SUCCESS, Status, error
from moorage.nodes.template import PodTemplate

# A shorter wait may be over at once, because floats of seconds since 1970 are no finer than that.
LEAST_WAIT_SECONDS = 0.001
NO_WAITS: dict[str, float] = {}
# Without a plugin at any of these points, a pod is bound as soon as it is assumed.
BEFORE_BIND = frozenset(("reserve", "permit", "pre_bind"))

ObjectKey = tuple[type[KubeObject], str]


@dataclass(slots=True)
class ObjectWaits:
    """Pods (by UID) whose pre_bind plugins wait for objects, in the order in which they began."""

    until: dict[str, float] = field(default_factory=dict)
    _objects: dict[str, tuple[ObjectKey, ...]] = field(default_factory=dict)
    _by_object: dict[ObjectKey, dict[str, None]] = field(default_factory=dict)

    def __contains__(self, uid: str) -> bool:
        return uid in self.until

    def __len__(self) -> int:
        return len(self.until)

    def add(self, uid: str, awaiting: Awaiting, now: float) -> None:
        """A pod begins to wait."""
        self.until[uid] = now + max(awaiting.seconds, LEAST_WAIT_SECONDS)
        self._objects[uid] = awaiting.objects
        for key in awaiting.objects:
            self._by_object.setdefault(key, {})[uid] = None

    def remove(self, uid: str) -> None:
        """A pod does not wait any more."""
        del self.until[uid]
        for key in self._objects.pop(uid):
            waiting = self._by_object.get(key, {})
            waiting.pop(uid, None)
            if not waiting:
                self._by_object.pop(key, None)

    def waiting_for(self, observation: Observation) -> list[str]:
        """The pods that wait for an observed object."""
        if isinstance(observation, Listed):
            kind = observation.kind
            keys = [key for key in self._by_object if key[0] is kind]
            return list(dict.fromkeys(uid for key in keys for uid in self._by_object[key]))
        obj = observation.obj
        return list(self._by_object.get((type(obj), obj.key), ()))

    def due(self, now: float) -> list[str]:
        """The pods whose wait has timed out."""
        return [uid for uid, until in self.until.items() if until <= now]

    @property
    def deadline(self) -> float | None:
        return min(self.until.values(), default=None)


class Bindings:
    """See the module; cycles are known by the pods' UIDs."""

    def __init__(self, state: SchedulerState, failures: Failures, undoing: Undoing) -> None:
        self._state = state
        self._failures = failures
        self._undoing = undoing
        self._cache = state.cache
        self._cluster = state.cluster
        self._queue = state.queue
        # Empty most of the time, which is quicker to see than to look for a pod.
        self._nominated = state.nominator.by_node
        self._outbox = state.outbox
        self._journal = state.journal
        self._cycles: dict[str, BindingCycle] = {}
        # Pods that wait on permit; plugins see them, and allow or reject them.
        self.waiting = state.cluster.waiting
        # Pods whose pre_bind plugin waits for objects, and those for which that is over.
        self.object_waits = ObjectWaits()
        self.given_up: list[str] = []

    def __contains__(self, uid: object) -> bool:
        return uid in self._cycles

    def __len__(self) -> int:
        return len(self._cycles)

    def get(self, uid: str) -> BindingCycle | None:
        """The binding cycle of a pod, if it is in progress."""
        return self._cycles.get(uid)

    # Success

    def begin(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        """Assume, reserve, permit; then go on as far as possible."""
        nominated = self._nominated and self._queue.nominator.node_of(entry.uid)
        binding = self.assume(entry, decision, decision.node, now)
        if nominated:
            self._queue.placed(decision.pod, nominated, decision.node, now)
        if binding.active.isdisjoint(BEFORE_BIND):
            binding.stage = BINDING_TRANSITIONS[RESERVE, AGREE]
            self._allow(binding, now)
            return
        if "reserve" in binding.active:
            status = self.reserve(binding)
            if status is not SUCCESS:
                binding.fail(status)
                self._unwind(binding, now)
                return
        self.permit(binding, now)

    def assume(
        self, entry: QueuedPod, decision: Decision, node: NodeName, now: float
    ) -> BindingCycle:
        """Assume a pod on a node."""
        pod, profile, state = decision.pod, decision.profile, decision.state
        placed = self._cache.assume(pod, node, decision.template)
        self._queue.nominator.delete(pod)
        active = profile.active_points(state.idle)
        binding = BindingCycle(entry, placed, node, decision.template, profile, state, now, active)
        self._cycles[entry.uid] = binding
        return binding

    def reserve(self, binding: BindingCycle) -> Status:
        """Reserve with all plugins."""
        return binding_points.reserve(binding.profile, binding.state, binding.pod, binding.node)

    def permit(self, binding: BindingCycle, now: float) -> None:
        """Go on with an assumed and reserved pod as far as possible."""
        waits, active, state = NO_WAITS, binding.active, binding.state
        if "permit" in active:
            status, waits = binding_points.permit(binding.profile, state, binding.pod, binding.node)
            if status is not SUCCESS and not waits:
                binding.fail(status)
                self._unwind(binding, now)
                return
        if state.to_activate:
            self._activate(binding, now)
        binding.stage = BINDING_TRANSITIONS[RESERVE, AGREE]
        if "pre_bind" in active and not self._pre_flight(binding, now):
            return
        if waits or binding.busy:
            node = binding.entry.patched_node = binding.node
            self._outbox.add(PatchPodStatus(PodRef.of(binding.pod), nominated_node_name=node))
        if waits:
            self._wait(binding, waits, now)
        else:
            self._allow(binding, now)

    def _pre_flight(self, binding: BindingCycle, now: float) -> bool:
        """Find the pre_bind plugins that have something to do; False if that failed."""
        status, busy = binding_points.pre_flight(
            binding.profile, binding.state, binding.pod, binding.node
        )
        if status is SKIP or status.is_success:
            binding.busy = busy
            return True
        binding.fail(status)
        self._unwind(binding, now)
        return False

    def _wait(self, binding: BindingCycle, waits: dict[str, float], now: float) -> None:
        """Wait on permit."""
        pod, node, key, uid = binding.pod, binding.node, binding.entry.key, binding.entry.uid
        until = {plugin: now + seconds for plugin, seconds in waits.items()}
        self.waiting[uid] = WaitingPod(pod, node, until)
        self._journal.add(Waiting(at=now, pod=key, uid=uid, node=node, plugins=tuple(waits)))

    def _allow(self, binding: BindingCycle, now: float) -> None:
        # A failure from here on is an error, not a rejection: events meanwhile do not matter.
        self._queue.done(binding.entry.uid)
        extenders = self._state.extenders
        binding.allow(() if extenders is None else extenders.binders(binding.pod))
        self._step(binding, now)

    def _step(self, binding: BindingCycle, now: float) -> None:
        state, uid = binding.state, binding.entry.uid
        state.now = now
        for request in binding.step():
            purpose = None if isinstance(request, EmitEvent) else Purpose.BINDING
            self._outbox.add(request, purpose, uid)
        if state.measured:
            self._record(binding, now)
        stage = binding.stage
        if stage == DONE:
            self._bound(binding, now)
        elif stage == FAILED and not binding.outstanding:
            self._unwind(binding, now)
        elif binding.awaiting is not None and uid not in self.object_waits:
            self.object_waits.add(uid, binding.awaiting, now)
        # pre_bind releases what it has written. If the watch showed that before the response came,
        # no other event requeues the pods that were rejected in between.
        if self._cluster.released:
            self._undoing.requeue(now)

    def _bound(self, binding: BindingCycle, now: float) -> None:
        pod, node, key, uid = binding.pod, binding.node, binding.entry.key, binding.entry.uid
        del self._cycles[uid]
        self._cache.finish_binding(uid, now)
        self._journal.add(Bound(at=now, pod=key, uid=uid, node=node))
        text = f"Successfully assigned {key} to {node}"
        self._outbox.emit(pod, "Normal", "Scheduled", "Binding", text)
        if "post_bind" in binding.active:
            for message in binding_points.post_bind(binding.profile, binding.state, pod, node):
                self._journal.add(Erred(at=now, pod=pod.key, uid=pod.uid, message=message))
        if binding.state.to_activate:
            self._activate(binding, now)

    def _record(self, binding: BindingCycle, now: float) -> None:
        """Move what plugins measured to the journal."""
        key, uid = binding.entry.key, binding.entry.uid
        for metric, labels, value in binding.state.measured:
            self._journal.add(
                Measured(at=now, pod=key, uid=uid, metric=metric, labels=labels, value=value)
            )
        binding.state.measured = ()

    def _activate(self, binding: BindingCycle, now: float) -> None:
        self._queue.activate(list(binding.state.to_activate.values()), now)
        binding.state.to_activate.clear()

    # Failure

    def withdraw(self, binding: BindingCycle, now: float, *, is_reserved: bool = True) -> None:
        """Undo assume and reserve within a scheduling cycle; the pod stays in flight."""
        if is_reserved:
            self._unreserve(binding, now)
        del self._cycles[binding.pod.uid]
        self._cache.forget(binding.pod.uid)

    def _unreserve(self, binding: BindingCycle, now: float) -> None:
        pod = binding.pod
        messages, requests = binding_points.unreserve(
            binding.profile, binding.state, pod, binding.node
        )
        for message in messages:
            self._journal.add(Erred(at=now, pod=pod.key, uid=pod.uid, message=message))
        if binding.state.measured:
            self._record(binding, now)
        self._undoing.begin(requests)

    def _unwind(self, binding: BindingCycle, now: float) -> None:
        """Unreserve and forget the pod, and return it to the queue."""
        pod, status = binding.pod, binding.status
        del self._cycles[pod.uid]
        self._unreserve(binding, now)
        forgotten = self._forget(pod.uid, status.message, now)
        # Within the scheduling cycle no other pod has seen the node's capacity reduced.
        requeues = forgotten and binding.failed_in != RESERVE
        if requeues and not status.is_rejected:
            self._queue.move_all(updates.ASSIGNED_POD_DELETE, pod, None, now)
        # The node stays nominated to a member of a gang, so that the gang can be completed.
        torn = self._cluster.pod_groups is not None and pod.spec.scheduling_group is not None
        keeps = torn and binding.failed_in == BIND
        self._failures.put_back(
            binding.entry, *binding.failure, now, nominated=binding.node if keeps else ""
        )
        for released, _ in self._cluster.released if self.object_waits else ():
            # A pod that shares a claim waited for what this pod would have written.
            self.given_up += self.object_waits.waiting_for(Updated(released))
        self._undoing.requeue(now)
        if requeues and status.is_rejected:
            self._queue.move_all(
                updates.ASSIGNED_POD_DELETE, pod, None, now, only=lambda w: w.uid != pod.uid
            )

    def _forget(self, uid: str, reason: str, now: float) -> bool:
        cached = self._cache.get(uid)
        if cached is None or cached.state == ADDED:
            return False  # Observed on a node, or deleted, meanwhile.
        self._cache.forget(uid)
        self._journal.add(
            Forgotten(at=now, pod=cached.pod.key, uid=uid, node=cached.node, reason=reason)
        )
        return True

    def _give_up(self, binding: BindingCycle) -> None:
        """End a pod's wait for objects, when the verb in progress ends."""
        if binding.pod.uid in self.object_waits:
            self.given_up.append(binding.pod.uid)

    # Observations, outcomes, time, and other parts

    def completed(self, uid: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of a request of a pod's binding cycle."""
        binding = self._cycles.get(uid)
        if binding is None:
            return
        if isinstance(outcome, Unknown) and binding.stage == BIND:
            # The pod may be bound. It stays assumed until a lookup shows whether it is.
            self._state.lookups.schedule(uid, now)
            return
        binding.completed(outcome)
        if binding.stage == DONE:
            self._bound(binding, now)
        else:
            self._step(binding, now)

    def observed(self, observation: Observation, now: float) -> None:
        """Go on with the pods that wait for an observed object."""
        for uid in self.object_waits.waiting_for(observation):
            self._end_wait(uid, now)

    def advance(self, now: float) -> None:
        """End the waits that have timed out."""
        for uid in self.object_waits.due(now):
            self._end_wait(uid, now)
        for uid, waiting in self.waiting.items():
            expire(waiting, now, self._cycles[uid].started_at)

    def deadline(self, now: float) -> float | None:
        """When the next wait times out; None if no pod waits."""
        moments = [
            min(waiting.until.values()) if waiting.signal is None else now
            for waiting in self.waiting.values()
        ]
        if self.object_waits.deadline is not None:
            moments.append(self.object_waits.deadline)
        return min(moments, default=None)

    def preempt(self, victim: Pod, plugin: str) -> bool:
        """Fail the binding cycle of a victim; False if there is none, or it is too late."""
        waiting = self.waiting.get(victim.uid)
        if waiting is not None:
            return waiting.preempt("preempted")
        binding = self._cycles.get(victim.uid)
        if binding is None or not binding.is_in_pre_bind:
            return False
        # The pod is forgotten when its outstanding requests have ended.
        binding.fail(error(f"preempted by {plugin}", plugin))
        self._give_up(binding)
        return True

    def deleted(self, pod: Pod, now: float) -> None:
        """Handle the deletion of an assumed pod."""
        cached = self._cache.get(pod.uid)
        assert cached is not None
        waiting = self.waiting.get(pod.uid)
        if waiting is not None:
            waiting.reject("", "removed")
        else:
            # Its binding goes on and will fail, unless it waits for objects.
            self._forget(pod.uid, "removed", now)
            binding = self._cycles.get(pod.uid)
            if binding is None:
                self._state.lookups.cancel(pod.uid)
            elif binding.awaiting is not None:
                binding.fail(error("pod does not exist any more", binding.plugin.name))
                self._give_up(binding)
        self._queue.move_all(updates.ASSIGNED_POD_DELETE, cached.pod, None, now)

    def resumes(self, pod: Pod, template: PodTemplate) -> bool:
        """Whether a pod that was gone is back while its binding goes on; it is assumed again.

        An earlier list hides a pod for a moment. It must not have two binding cycles.
        """
        binding = self._cycles.get(pod.uid)
        if binding is None:
            return False
        self._cache.assume(pod, binding.node, template)
        return True

    # The end of waits

    def settle(self, now: float) -> None:
        """Go on with pods that were allowed or rejected on permit, or whose wait was ended."""
        # Settling one may allow or reject others, such as the other pods of a gang.
        while self.waiting and self._settle_waiting(now):
            pass
        while self.given_up:
            uid = self.given_up.pop(0)
            if uid in self.object_waits:
                self._end_wait(uid, now)

    def _settle_waiting(self, now: float) -> bool:
        settled = [(uid, w) for uid, w in self.waiting.items() if w.signal is not None]
        for uid, waiting in settled:
            del self.waiting[uid]
            binding = self._cycles[uid]
            assert waiting.signal is not None
            result = waiting.signal.code.label
            self._journal.add(Permitted(at=now, pod=binding.pod.key, uid=uid, result=result))
            if waiting.signal.is_success:
                self._allow(binding, now)
            else:
                binding.fail(waiting.signal)
                self._unwind(binding, now)
        return bool(settled)

    def _end_wait(self, uid: str, now: float) -> None:
        """Call a pre_bind plugin again: an object changed, or its wait is over."""
        self.object_waits.remove(uid)
        binding = self._cycles[uid]
        binding.awaiting = None
        self._step(binding, now)


def expire(waiting: WaitingPod, now: float, started_at: float) -> None:
    """Reject the pod if a plugin's timeout is over."""
    plugin, until = min(waiting.until.items(), key=lambda item: item[1], default=("", now))
    if plugin and until <= now:
        # Whole microseconds: the resolution of a float clock that counts from 1970.
        waited = durations.text(round(until - started_at, 6))
        reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
        waiting.reject(plugin, reason)
