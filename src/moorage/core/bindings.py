"""Bindings: every pod on its way to its node, from its decision to bound, or back.

Each is walked through its stages (see `binding.py`) as far as it can go. It goes on when what it
asked of the world is answered, when those allow it whom it waits for on permit, or when the world
shows what a pre_bind plugin waits for.
"""

from moorage.api.pod import Pod
from moorage.core.awaited import Awaited
from moorage.core.binding import BindingCycle, Stage
from moorage.core.cache import Cache
from moorage.core.cycle import Decision
from moorage.core.effects import Outcome, Unknown
from moorage.core.extenders import Extenders
from moorage.core.failures import Failures
from moorage.core.journal import Bound, Erred, Forgotten, Journal, Permitted, Waiting
from moorage.core.lookups import Lookups
from moorage.core.observations import Observation
from moorage.core.outbox import Outbox, Purpose
from moorage.core.queue import SchedulingQueue
from moorage.core.queued_pod import QueuedPod
from moorage.framework import events
from moorage.framework.effects import PatchPodStatus, PodRef
from moorage.framework.status import SKIP, SUCCESS, error
from moorage.framework.waiting import WaitingPod

NO_WAITS: dict[str, float] = {}


class Bindings:
    """See the module; known by the pods' UIDs."""

    def __init__(
        self,
        waiting: dict[str, WaitingPod],
        cache: Cache,
        queue: SchedulingQueue,
        failures: Failures,
        lookups: Lookups,
        outbox: Outbox,
        journal: Journal,
        extenders: Extenders | None = None,
    ) -> None:
        # Pods that wait on permit; plugins see them, and signal to them.
        self.waiting = waiting
        # Pods whose pre_bind plugin waits for the world, and those for whom it is in vain.
        self.awaited = Awaited()
        self.given_up: list[str] = []
        self._cycles: dict[str, BindingCycle] = {}
        self._cache = cache
        self._queue = queue
        self._failures = failures
        self._lookups = lookups
        self._outbox = outbox
        self._journal = journal
        self._extenders = extenders

    def __contains__(self, uid: object) -> bool:
        return uid in self._cycles

    def __len__(self) -> int:
        return len(self._cycles)

    def get(self, uid: str) -> BindingCycle | None:
        """A pod's binding cycle, while it lasts."""
        return self._cycles.get(uid)

    # From its decision to bound

    def begin(self, entry: QueuedPod, decision: Decision, now: float) -> None:
        """Assume, reserve, permit; then go on as far as possible."""
        pod, node = decision.pod, decision.node
        chosen, state = decision.profile, decision.state
        placed = self._cache.assume(pod, node, decision.template)
        self._queue.nominator.delete(pod)
        binding = BindingCycle(entry, placed, node, decision.template, chosen, state, now)
        self._cycles[entry.uid] = binding
        status, waits = chosen.run_reserve(state, placed, node), NO_WAITS
        if status is SUCCESS:
            status, waits = chosen.run_permit(state, placed, node)
        if status is not SUCCESS:
            binding.fail(status)
            self._unwind(binding, now)
            return
        if state.to_activate:
            self._activate(binding, now)
        self._to_permit(binding, waits, now)

    def _to_permit(self, binding: BindingCycle, waits: dict[str, float], now: float) -> None:
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
            self._outbox.ask(PatchPodStatus(PodRef.of(pod), nominated_node_name=node))
        if waits:
            until = {plugin: now + seconds for plugin, seconds in waits.items()}
            self.waiting[pod.uid] = WaitingPod(pod, node, until)
            plugins = tuple(waits)
            self._journal.add(Waiting(at=now, pod=pod.key, uid=pod.uid, node=node, plugins=plugins))
            return
        self._permitted(binding, now)

    def _permitted(self, binding: BindingCycle, now: float) -> None:
        # From here on a failure is trouble, not a refusal: changes meanwhile do not matter.
        self._queue.done(binding.entry.uid)
        binding.allowed(() if self._extenders is None else self._extenders.binders(binding.pod))
        self._go_on(binding, now)

    def _go_on(self, binding: BindingCycle, now: float) -> None:
        binding.state.now = now
        uid = binding.entry.uid
        for request in binding.step():
            self._outbox.ask(request, Purpose.BINDING, uid)
        if binding.stage is Stage.DONE:
            self._bound(binding, now)
        elif binding.stage is Stage.FAILED and not binding.outstanding:
            self._unwind(binding, now)
        elif binding.awaiting is not None and uid not in self.awaited:
            self.awaited.add(uid, binding.awaiting, now)

    def _bound(self, binding: BindingCycle, now: float) -> None:
        pod, node, key, uid = binding.pod, binding.node, binding.entry.key, binding.entry.uid
        del self._cycles[uid]
        self._cache.finish_binding(uid, now)
        self._journal.add(Bound(at=now, pod=key, uid=uid, node=node))
        text = f"Successfully assigned {key} to {node}"
        self._outbox.emit(pod, "Normal", "Scheduled", "Binding", text)
        for trouble in binding.profile.run_post_bind(binding.state, pod, node):
            self._journal.add(Erred(at=now, pod=pod.key, uid=pod.uid, message=trouble))
        if binding.state.to_activate:
            self._activate(binding, now)

    def _activate(self, binding: BindingCycle, now: float) -> None:
        self._queue.activate(list(binding.state.to_activate.values()), now)
        binding.state.to_activate.clear()

    # Or back

    def _unwind(self, binding: BindingCycle, now: float) -> None:
        """Undo what was reserved and assumed, and put the pod back."""
        pod, status = binding.pod, binding.status
        del self._cycles[pod.uid]
        for trouble in binding.profile.run_unreserve(binding.state, pod, binding.node):
            self._journal.add(Erred(at=now, pod=pod.key, uid=pod.uid, message=trouble))
        freed = self._forget(pod.uid, status.message, now)
        # Within the cycle itself nobody has seen the room taken, so nobody waits for it.
        wakes = freed and binding.failed_in is not Stage.RESERVE
        if wakes and not status.is_rejected:
            self._queue.move_all(events.ASSIGNED_POD_DELETE, pod, None, now)
        self._failures.put_back(binding.entry, *binding.failure, now)
        if wakes and status.is_rejected:
            self._queue.move_all(
                events.ASSIGNED_POD_DELETE, pod, None, now, only=lambda w: w.uid != pod.uid
            )

    def _forget(self, uid: str, reason: str, now: float) -> bool:
        cached = self._cache.get(uid)
        if cached is None or not cached.assumed:
            return False  # The world has shown the pod on a node, or removed it, meanwhile.
        self._cache.forget(uid)
        self._journal.add(
            Forgotten(at=now, pod=cached.pod.key, uid=uid, node=cached.node, reason=reason)
        )
        return True

    def _give_up(self, binding: BindingCycle) -> None:
        """Nobody waits any more for what a pod's pre_bind plugin waits for."""
        if binding.pod.uid in self.awaited:
            self.given_up.append(binding.pod.uid)

    # What comes from outside

    def answered(self, uid: str, outcome: Outcome, now: float) -> None:
        """Something that a pod's binding asked of the world came to an end."""
        binding = self._cycles.get(uid)
        if binding is None:
            return
        if isinstance(outcome, Unknown) and binding.stage is Stage.BIND:
            # It may or may not have happened. Its room is not given away before that is known.
            self._lookups.want(uid, now)
            return
        binding.answered(outcome)
        self._go_on(binding, now)

    def observed(self, observation: Observation, now: float) -> None:
        """The world has told something that pre_bind plugins may wait for."""
        for uid in self.awaited.concerned(observation):
            self._follow_up(uid, now)

    def advance(self, now: float) -> None:
        """Time passed: somebody may have waited for long enough."""
        for uid in self.awaited.due(now):
            self._follow_up(uid, now)
        for uid, waiting in self.waiting.items():
            waiting.expire(now, self._cycles[uid].started_at)

    def deadline(self, now: float) -> float | None:
        """When the next of them will have waited for long enough; None if nobody waits."""
        moments = [w.deadline if w.signal is None else now for w in self.waiting.values()]
        if self.awaited.deadline is not None:
            moments.append(self.awaited.deadline)
        return min(moments, default=None)

    def take_back(self, victim: Pod, plugin: str) -> bool:
        """Send a pod back that a plugin wants out of the way; False if it is too late for that."""
        waiting = self.waiting.get(victim.uid)
        if waiting is not None:
            return waiting.preempt("preempted")
        binding = self._cycles.get(victim.uid)
        if binding is None or not binding.is_in_pre_bind:
            return False
        # Its room is free when what is under way has come to an end.
        binding.fail(error(f"preempted by {plugin}", plugin))
        self._give_up(binding)
        return True

    def deleted(self, pod: Pod, now: float) -> None:
        """A pod is deleted that is assumed to be on a node."""
        cached = self._cache.get(pod.uid)
        assert cached is not None
        waiting = self.waiting.get(pod.uid)
        if waiting is not None:
            waiting.reject("", "removed")
        else:
            # Its binding goes on, and will fail by itself, unless it waits for something else.
            self._forget(pod.uid, "removed", now)
            binding = self._cycles.get(pod.uid)
            if binding is None:
                self._lookups.drop(pod.uid)
            elif binding.awaiting is not None:
                binding.fail(error("pod does not exist any more", binding.asked.name))
                self._give_up(binding)
        self._queue.move_all(events.ASSIGNED_POD_DELETE, cached.pod, None, now)

    # What follows from signals

    def settle(self, now: float) -> None:
        """Go on with those that got a signal on permit, or wait for something in vain."""
        # Settling one may be a signal to others, as when a gang falls apart.
        while self.waiting and self._settle_waiting(now):
            pass
        while self.given_up:
            uid = self.given_up.pop(0)
            if uid in self.awaited:
                self._follow_up(uid, now)

    def _settle_waiting(self, now: float) -> bool:
        settled = [(uid, w) for uid, w in self.waiting.items() if w.signal is not None]
        for uid, waiting in settled:
            del self.waiting[uid]
            binding = self._cycles[uid]
            assert waiting.signal is not None
            result = waiting.signal.code.label
            self._journal.add(Permitted(at=now, pod=binding.pod.key, uid=uid, result=result))
            if waiting.signal.is_success:
                self._permitted(binding, now)
            else:
                binding.fail(waiting.signal)
                self._unwind(binding, now)
        return bool(settled)

    def _follow_up(self, uid: str, now: float) -> None:
        """What a pre_bind plugin waits for has moved, or time is up: let it look again."""
        self.awaited.drop(uid)
        binding = self._cycles[uid]
        binding.awaiting = None
        self._go_on(binding, now)
