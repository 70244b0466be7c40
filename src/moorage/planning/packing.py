"""Packing: a scheduler whose effects are performed at once.

There is no API server and no kubelet, so that a pod costs no more than its decision: it is bound at
once, a preempted pod is deleted at once, and controllers provide volumes and device claims at once.
Time advances only to the end of a backoff.
"""

from collections.abc import Callable, Container, Iterable
from typing import TypeVar

from msgspec.structs import replace

from moorage.api import claims
from moorage.api.config import SchedulerConfiguration
from moorage.api.devices import ResourceClaim, ResourceClaimTemplate
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.server_requests import (
    BindPod,
    ClaimRequest,
    CreateResourceClaim,
    DeletePod,
    PatchClaim,
    PatchVolume,
    Request,
)
from moorage.api.storage import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.core.effects import Done, Effect, Outcome
from moorage.core.journal import Erred, Fact, Journal, Preempted, Refused
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.explaining import Explanation
from moorage.explaining.dry_run import of_decision
from moorage.framework.points import Depends, depends_of
from moorage.framework.registry import Registry
from moorage.sim import device_claims, outcomes, performer, volumes
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.device_claims import ClaimController
from moorage.sim.drivers import DeviceDrivers, PrepareDevices
from moorage.sim.faults import NO_FAULT, FaultPlan, Faults
from moorage.sim.outcomes import PodEviction
from moorage.sim.volumes import VolumeController

T = TypeVar("T", bound=KubeObject)
OnProgress = Callable[[int, int], None]

DONE = Done()
FACTS_KEPT = 1000
NEWER = 1 << 60  # Above every resource version of a dump.
PODS_PER_PROGRESS = 500
# Plugins that depend on these reject a node whatever pods other nodes have.
NODE_LOCAL = (Depends.NODE, Depends.RESOURCES, Depends.USAGE, Depends.NODES)
# What the controllers of volumes and device claims read, except pods, and what they change.
STORAGE_INPUTS = Node | CSINode | StorageClass | PersistentVolume | PersistentVolumeClaim
DEVICE_INPUTS = ResourceClaim | ResourceClaimTemplate
OUTPUTS = PersistentVolume | PersistentVolumeClaim | ResourceClaim | Pod


class _CallbackJournal(Journal):
    """A journal that passes each fact to a callback and keeps only the latest facts."""

    def __init__(self, callback: Callable[[Fact], None]) -> None:
        super().__init__(limit=FACTS_KEPT)
        self._callback = callback

    def add(self, fact: Fact) -> None:
        self._callback(fact)
        super().add(fact)


class Packing:
    """A cluster that is being filled; `placed` and `left` have its pods by key."""

    def __init__(
        self,
        objects: Iterable[KubeObject],
        config: SchedulerConfiguration,
        *,
        seed: int = 0,
        registry: Registry | None = None,
    ) -> None:
        self.placed: dict[str, str] = {}
        # Preempted pods; and their objects, so that the caller can recreate them.
        self.evictions: list[PodEviction] = []
        self.victims: list[Pod] = []
        self.now = 0.0
        self.scheduler = Scheduler(
            config, seed=seed, registry=registry, journal=_CallbackJournal(self._on_fact)
        )
        self._retry_seconds = float(config.pod_max_backoff_seconds)
        self._running: dict[str, Pod] = {}
        self._waiting: dict[str, Pod] = {}
        self._messages: dict[str, str] = {}
        self._version = NEWER
        self._others: list[KubeObject] = []
        self._controllers: InstantControllers | None = None  # Most clusters need none.
        for obj in objects:
            self.add(obj)

    @property
    def left(self) -> dict[str, str]:
        """The pods that have no node, each with the reason."""
        return {
            pod.key: self._messages.get(uid) or outcomes.why_pending(self.scheduler, pod)
            for uid, pod in self._waiting.items()
        }

    def add(self, obj: KubeObject) -> None:
        """Add an object."""
        if isinstance(obj, Pod):
            (self._running if obj.node_name else self._waiting)[obj.uid] = obj
        else:
            self._others.append(obj)
        self._perform(self.scheduler.observe(Added(obj), self.now))
        if self._controllers is not None:
            self._controllers.add(obj)
        elif needs_controller(obj):
            self._start_controllers()

    def _start_controllers(self) -> "InstantControllers":
        pods = (*self._running.values(), *self._waiting.values())
        self._controllers = InstantControllers((*self._others, *pods), NEWER)
        return self._controllers

    def update(self, obj: KubeObject) -> None:
        """Update an object that is not a pod."""
        self._perform(self.scheduler.observe(Updated(self._newer(obj)), self.now))

    def remove(self, pod: Pod) -> None:
        """Delete a pod."""
        known = self._running.pop(pod.uid, None) or self._waiting.pop(pod.uid, None) or pod
        self.placed.pop(pod.key, None)
        self._perform(self.scheduler.observe(Deleted(known), self.now))
        if self._controllers is not None:
            self._controllers.remove(known)

    def delete(self, obj: KubeObject) -> None:
        """Delete an object that is not a pod."""
        self._perform(self.scheduler.observe(Deleted(obj), self.now))

    @property
    def running(self) -> Iterable[Pod]:
        """All pods that have a node, as they are now."""
        return self._running.values()

    @property
    def waiting(self) -> Iterable[Pod]:
        """All pods without a node."""
        return self._waiting.values()

    def take(self, pod: Pod) -> bool:
        """Add a pod and schedule it at once; whether it got a node."""
        self.add(pod)
        self.try_one()
        return pod.uid not in self._waiting

    def try_one(self) -> None:
        """Schedule the next pod."""
        self._settle()
        self._perform(self.scheduler.schedule_one(self.now))
        self._settle()

    def pack(self, on_progress: OnProgress | None = None) -> None:
        """Schedule until no more pods can be placed."""
        scheduler, tried, placed_at = self.scheduler, 0, self.now
        self._settle()
        while True:
            while scheduler.has_work:
                before = len(self.placed)
                self.try_one()
                tried += 1
                if len(self.placed) > before:
                    placed_at = self.now
                if on_progress is not None and tried % PODS_PER_PROGRESS == 0:
                    on_progress(tried, tried + scheduler.queue.counts()["active"])
            # If a whole backoff period placed no pod, further retries will not either.
            in_vain = self.now - placed_at > 2 * self._retry_seconds
            if in_vain or not scheduler.queue.counts()["backoff"]:
                return
            deadline = scheduler.deadline
            assert deadline is not None, "a pod is in backoff, so there is a deadline"
            self.now = max(deadline, self.now)
            self._perform(scheduler.advance(self.now))
            self._settle()

    def explain(self, pod: Pod) -> Explanation:
        """The decision on a pod as it would be made now; nothing changes."""
        self._settle()
        scheduler = self.scheduler
        profile = scheduler.profiles.get(pod.spec.scheduler_name)
        if profile is None:
            raise InputError(f"Pod {pod.key}: {outcomes.why_pending(scheduler, pod)}")
        template = scheduler.templates.of(pod)
        return of_decision(scheduler.cycle.decide(profile, pod, template, self.now))

    def refusal(self, pod: Pod, nodes: Container[str]) -> str:
        """Why a pod fits none of these nodes, if no other pods or nodes could change that."""
        explanation = self.explain(pod)
        if any(node in nodes for node in explanation.feasible):
            return ""
        rejected = [status for node, status in explanation.rejected.items() if node in nodes]
        # Plugins whose rejection of a node may depend on pods on other nodes.
        curable = {
            plugin.name
            for profile in self.scheduler.profiles.values()
            for plugin in (*profile.pre_filters, *profile.filters)
            if depends_of(plugin) not in NODE_LOCAL
        }
        if any(status.plugin in curable or not status.plugin for status in rejected):
            return ""
        return ", ".join(dict.fromkeys(r for status in rejected for r in status.reasons))

    def _settle(self) -> None:
        """Provide volumes and device claims, and let the scheduler observe them."""
        while self._controllers is not None and (changes := self._controllers.changes()):
            for observation in changes:
                if isinstance(observation, Updated) and isinstance(observation.obj, Pod):
                    self._name_claims(observation.obj)
                elif not isinstance(observation, Listed) and not isinstance(observation.obj, Pod):
                    self._perform(self.scheduler.observe(observation, self.now))

    def _name_claims(self, changed: Pod) -> None:
        """Take over the names of the claims that were created for a pod."""
        pods = self._waiting if changed.uid in self._waiting else self._running
        pod = pods.get(changed.uid)
        if pod is None:
            return
        names = changed.status.resource_claim_statuses
        pod = self._newer(replace(pod, status=replace(pod.status, resource_claim_statuses=names)))
        pods[pod.uid] = pod
        self._perform(self.scheduler.observe(Updated(pod), self.now))

    def _outcome(self, request: Request) -> Outcome:
        if isinstance(request, PatchClaim | PatchVolume | ClaimRequest):
            controllers = self._controllers or self._start_controllers()
            if isinstance(request, CreateResourceClaim):
                controllers.add_owner(self._waiting[request.pod.uid])
            return controllers.perform(request)
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

    def _on_fact(self, fact: Fact) -> None:
        match fact:
            case Preempted(pod=pod, by=by, node=node, at=at):
                self.evictions.append(PodEviction(pod=pod, by=by, node=node, at=at))
            case Refused(message=message) | Erred(message=message):
                self._messages[fact.uid] = message


def needs_controller(obj: KubeObject) -> bool:
    """Whether a volume or device claim has to be created, changed or released for this object."""
    if isinstance(obj, Pod):
        return _needs_claims(obj)
    if isinstance(obj, ResourceClaim):
        return True
    return isinstance(obj, PersistentVolumeClaim) and not claims.is_fully_bound(obj)


def _needs_claims(pod: Pod) -> bool:
    spec = pod.spec
    return bool(spec.resource_claims) or any(each.ephemeral is not None for each in spec.volumes)


class InstantControllers:
    """Provides volumes and device claims at once.

    The simulator's controllers do the work, on a clock of their own that is advanced to the end
    before changes are read. There are no delays and no failures.
    """

    def __init__(self, objects: Iterable[KubeObject], version: int) -> None:
        self._cluster = MemoryCluster()
        self._cluster.version = version  # Newer than all objects that the scheduler knows.
        self._clock: Clock[object] = Clock()
        fault_plan = FaultPlan(0, Faults())
        self._volumes = VolumeController(self._cluster, self._clock, fault_plan)
        # A copy of a pod is explained before it is added.
        self._claims = ClaimController(self._cluster, self._clock, pods_may_follow=True)
        self._drivers = DeviceDrivers(self._cluster, self._clock, fault_plan)
        self._changes: list[Observation] = []
        self._cluster.watch(self._on_change)
        for obj in objects:
            self.add(obj)

    def add(self, obj: KubeObject) -> None:
        """Add an object, if volumes or device claims depend on it."""
        is_input = isinstance(obj, STORAGE_INPUTS | DEVICE_INPUTS)
        if is_input or (isinstance(obj, Pod) and _needs_claims(obj)):
            self._cluster.create(obj, self._clock.now)

    def add_owner(self, pod: Pod) -> None:
        """Add a pod that gets a claim for its extended resources."""
        if self._cluster.get(Pod, pod.key) is None:
            self._cluster.create(pod, self._clock.now)

    def remove(self, pod: Pod) -> None:
        """Delete a pod, and the claims that it owns."""
        if (found := self._cluster.get(Pod, pod.key)) is not None:
            self._cluster.remove(found)

    def perform(self, request: PatchClaim | PatchVolume | ClaimRequest) -> Outcome:
        """Perform an effect of the scheduler."""
        return performer.perform(self._cluster, request, NO_FAULT, self._clock.now, [])

    def changes(self) -> list[Observation]:
        """The changes of claims, volumes and pods since the last call."""
        while len(self._clock):
            due = self._clock.pop()
            if isinstance(due, volumes.Action):
                self._volumes.perform(due)
            elif isinstance(due, device_claims.Action):
                self._claims.perform(due)
            else:
                assert isinstance(due, PrepareDevices)
                self._drivers.perform(due)
        changes, self._changes = self._changes, []
        return changes

    def _on_change(self, observation: Observation) -> None:
        if not isinstance(observation, Listed) and isinstance(observation.obj, OUTPUTS):
            self._changes.append(observation)
