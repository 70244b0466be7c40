"""Packing: a scheduler whose every wish is carried out at once.

There is no API server and no kubelet here, so a pod costs what its decision costs: it is bound at
once, a victim of preemption is gone at once, and a claim that needs a volume gets it at once. Time
moves only where somebody waits for a back-off.
"""

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from msgspec.structs import replace

from moorage.api.config import SchedulerConfiguration
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.core.effects import Done, Effect, Outcome
from moorage.core.journal import Erred, Fact, Journal, Preempted, Refused
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.explaining import Explanation
from moorage.framework.effects import BindPod, DeletePod, PatchClaim, PatchVolume, Request
from moorage.framework.keeping import depends_of
from moorage.framework.points import Depends
from moorage.framework.registry import Registry
from moorage.planning import storage
from moorage.planning.storage import Storage
from moorage.sim import reasons
from moorage.sim.evictions import Eviction

T = TypeVar("T", bound=KubeObject)
Progress = Callable[[int, int], None]

DONE = Done()
FACTS_KEPT = 1000
NEWER = 1 << 60  # A version that no dump has reached.
PODS_PER_PROGRESS = 500
# Answers that reach no further than one node; more pods elsewhere never turn a no into a yes.
NEAR = (Depends.NODE, Depends.USAGE, Depends.NODES)


class _Ear(Journal):
    """A journal that passes on what a packing wants to know; it keeps the latest facts only."""

    def __init__(self, hear: Callable[[Fact], None]) -> None:
        super().__init__(limit=FACTS_KEPT)
        self._hear = hear

    def add(self, fact: Fact) -> None:
        if isinstance(fact, Refused | Erred | Preempted):
            self._hear(fact)
        super().add(fact)


class Packing:
    """A cluster that is being filled; `placed` and `left` tell of its pods by key."""

    def __init__(
        self,
        objects: Iterable[KubeObject],
        config: SchedulerConfiguration,
        *,
        seed: int = 0,
        registry: Registry | None = None,
    ) -> None:
        self.placed: dict[str, str] = {}
        # Who had to leave for whom; and their objects, for those who make them anew.
        self.evictions: list[Eviction] = []
        self.victims: list[Pod] = []
        self.now = 0.0
        self.scheduler = Scheduler(config, seed=seed, registry=registry, journal=_Ear(self._hear))
        self._far = _far_plugins(self.scheduler)
        self._retry_seconds = float(config.pod_max_backoff_seconds)
        self._running: dict[str, Pod] = {}
        self._waiting: dict[str, Pod] = {}
        self._messages: dict[str, str] = {}
        # Refused in a way that nothing can cure any more.
        self._hopeless: set[str] = set()
        self._version = NEWER
        self._others: list[KubeObject] = []
        self._storage: Storage | None = None  # Most clusters that are asked about need none.
        for obj in objects:
            self.add(obj)

    @property
    def left(self) -> dict[str, str]:
        """The pods that have no node, each with the reason."""
        return {
            pod.key: self._messages.get(uid) or reasons.why_pending(self.scheduler, pod)
            for uid, pod in self._waiting.items()
        }

    def add(self, obj: KubeObject) -> None:
        """Tell the scheduler of an object."""
        if isinstance(obj, Pod):
            (self._running if obj.node_name else self._waiting)[obj.uid] = obj
        else:
            self._others.append(obj)
        self._perform(self.scheduler.observe(Added(obj), self.now))
        if self._storage is not None:
            self._storage.add(obj)
        elif storage.is_needed(obj):
            pods = (*self._running.values(), *self._waiting.values())
            self._storage = Storage((*self._others, *pods), NEWER)

    def update(self, obj: KubeObject) -> None:
        """Tell the scheduler that an object which is no pod has changed."""
        self._perform(self.scheduler.observe(Updated(self._newer(obj)), self.now))

    def remove(self, pod: Pod) -> None:
        """A pod is gone. What was beyond hope may not be so any more."""
        known = self._running.pop(pod.uid, None) or self._waiting.pop(pod.uid, None) or pod
        self.placed.pop(pod.key, None)
        self._hopeless.clear()
        self._perform(self.scheduler.observe(Deleted(known), self.now))
        if self._storage is not None:
            self._storage.remove(known)

    @property
    def running(self) -> Iterable[Pod]:
        """All pods that have a node, as they are now."""
        return self._running.values()

    @property
    def waiting(self) -> Iterable[Pod]:
        """All pods that have none."""
        return self._waiting.values()

    def take(self, pod: Pod) -> bool:
        """Tell of a pod and decide on it at once; whether it got a node."""
        self.add(pod)
        self.try_one()
        return pod.uid not in self._waiting

    def try_one(self) -> None:
        """Decide on the next pod."""
        self._settle()
        self._perform(self.scheduler.schedule_one(self.now))
        self._settle()

    def pack(self, most_left: int | None = None, on_progress: Progress | None = None) -> bool:
        """Go on until nothing more can be placed, or more pods than that are sure to be left.

        False if more than `most_left` have no node in the end.
        """
        scheduler, tried, placed_at = self.scheduler, 0, self.now
        self._settle()
        while True:
            while scheduler.has_work:
                before = len(self.placed)
                self.try_one()
                tried += 1
                if len(self.placed) > before:
                    placed_at = self.now
                if most_left is not None and len(self._hopeless) > most_left:
                    return False
                if on_progress is not None and tried % PODS_PER_PROGRESS == 0:
                    on_progress(tried, tried + scheduler.queue.counts()["active"])
            # Retries that have led nowhere for a whole back-off will go on like that.
            in_vain = self.now - placed_at > 2 * self._retry_seconds
            if in_vain or not scheduler.queue.counts()["backoff"]:
                return most_left is None or len(self._waiting) <= most_left
            deadline = scheduler.deadline
            assert deadline is not None, "somebody waits for a back-off that never ends"
            self.now = max(deadline, self.now)
            self._perform(scheduler.advance(self.now))
            self._settle()

    def ask(self, pod: Pod) -> Explanation:
        """What would be said of a pod if it were its turn now; nothing changes."""
        self._settle()
        scheduler = self.scheduler
        profile = scheduler.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            raise InputError(f"Pod {pod.key}: {reasons.why_pending(scheduler, pod)}")
        template = scheduler.templates.of(pod)
        return Explanation.of(scheduler.cycle.decide(profile, pod, template, self.now))

    def refusal(self, pod: Pod, nodes: Container[str]) -> str:
        """Why a pod fits none of these nodes, if more pods and nodes would not change that."""
        told = self.ask(pod)
        if any(node in nodes for node in told.feasible):
            return ""
        refused = {node: status for node, status in told.rejected.items() if node in nodes}
        if any(status.plugin in self._far or not status.plugin for status in refused.values()):
            return ""
        return ", ".join(dict.fromkeys(r for status in refused.values() for r in status.reasons))

    def _settle(self) -> None:
        """Let claims have their volumes, and tell the scheduler."""
        while self._storage is not None and (news := self._storage.news()):
            for observation in news:
                self._perform(self.scheduler.observe(observation, self.now))

    def _outcome(self, request: Request) -> Outcome:
        if isinstance(request, PatchClaim | PatchVolume):
            assert self._storage is not None, "a claim without a volume had been seen"
            return self._storage.perform(request)
        return DONE

    def _perform(self, effects: list[Effect]) -> None:
        scheduler = self.scheduler
        for effect in effects:
            outcome = self._outcome(effect.request)
            self._perform(scheduler.complete(effect.ticket, outcome, self.now))
            match effect.request:
                case BindPod(pod=ref, node=node):
                    self._bind(self._waiting.pop(ref.uid), node)
                case DeletePod(pod=ref) if victim := self._running.get(ref.uid):
                    self.victims.append(victim)
                    self.remove(victim)

    def _bind(self, pod: Pod, node: str) -> None:
        self.placed[pod.key] = node
        bound = self._newer(replace(pod, spec=replace(pod.spec, node_name=node)))
        self._running[pod.uid] = bound
        self._perform(self.scheduler.observe(Updated(bound), self.now))

    def _newer(self, obj: T) -> T:
        self._version += 1
        return replace(obj, metadata=replace(obj.metadata, resource_version=str(self._version)))

    def _hear(self, fact: Fact) -> None:
        match fact:
            case Preempted(pod=pod, by=by, node=node, at=at):
                self.evictions.append(Eviction(pod=pod, by=by, node=node, at=at))
            case Refused(message=message) | Erred(message=message):
                self._messages[fact.uid] = message
                if isinstance(fact, Refused) and self._far.isdisjoint(fact.plugins):
                    self._hopeless.add(fact.uid)


def _far_plugins(scheduler: Scheduler) -> frozenset[str]:
    """Plugins whose refusal may be cured by pods that come to other nodes."""
    return frozenset(
        plugin.name
        for profile in scheduler.profiles.values()
        for plugin in (*profile.pre_filters, *profile.filters)
        if depends_of(plugin) not in NEAR
    )
