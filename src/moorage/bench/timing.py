"""Timing: one workload through one scheduler, from the first decision to the last pod.

Timed is all that a shell calls for a pod: `schedule_one`, `complete` with Done for every request
that has an outcome, and `observe` of the pod as bound or unschedulable. Objects are created, and
observed for the first time, before the clock starts. There is no network and no simulation. The
clocks are parameters.
"""

import cProfile
import io
import pstats
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from msgspec.structs import replace

from moorage import garbage
from moorage.api import config, resource_claims, texts
from moorage.api.claims import BIND_COMPLETED
from moorage.api.config import SchedulerConfiguration
from moorage.api.devices import ResourceClaim
from moorage.api.meta import Condition, KubeObject, NodeName
from moorage.api.pod import Pod
from moorage.api.server_requests import (
    BindPod,
    DeletePod,
    EmitEvent,
    PatchPodStatus,
    PatchVolume,
    Request,
    ReserveResourceClaim,
)
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.bench.workload import BenchLoad
from moorage.core.effects import Done, Effect, Ticket
from moorage.core.journal import Journal
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError

# Virtual time does not advance: a pod in backoff stays there.
NOW = 0.0
DONE = Done()
ALLOCATED_AT = "2026-01-01T00:00:00Z"
TERMINATING = {"deletion_timestamp": "2026-01-01T00:00:30Z"}
NOTHING: dict[str, str] = {}

T = TypeVar("T", bound=KubeObject)
FACTS_KEPT = 1000


class InstantCluster:
    """Performs every request of a scheduler at once, and shows it the result."""

    def __init__(
        self, scheduler: Scheduler, pods: Iterable[Pod], others: Iterable[KubeObject] = ()
    ) -> None:
        self.bound = self.evicted = 0
        self.scheduler = scheduler
        self._pods = {pod.uid: pod for pod in pods}
        others = list(others)
        self._volumes = {obj.name: obj for obj in others if isinstance(obj, PersistentVolume)}
        self._claims = {obj.key: obj for obj in others if isinstance(obj, PersistentVolumeClaim)}
        self._device_claims = {obj.key: obj for obj in others if isinstance(obj, ResourceClaim)}
        self._version = 1
        self._churn: list[Observation] = []
        self._churn_every = 1

    def churn(self, changes: Iterable[Observation], every: int) -> None:
        """From now on apply one of these changes after every so many decisions."""
        self._churn, self._churn_every = [*changes][::-1], every

    def schedule_all(self) -> None:
        """Schedule until no pod is left to try."""
        scheduler, decisions = self.scheduler, 0
        while scheduler.has_work:
            self._perform(scheduler.schedule_one(NOW))
            if self._churn:
                decisions += 1
                if decisions % self._churn_every == 0:
                    self._apply(self._churn.pop())

    def _apply(self, observation: Observation) -> None:
        match observation:
            case Deleted(obj=Pod() as pod):
                # The last version: on its node.
                observation = Deleted(self._pods.pop(pod.uid, pod))
            case Added(obj=Pod() as pod):
                self._pods[pod.uid] = pod
        self._perform(self.scheduler.observe(observation, NOW))

    def _perform(self, effects: list[Effect]) -> None:
        for effect in effects:
            request = effect.request
            if isinstance(request, EmitEvent):
                continue  # It has no outcome.
            if isinstance(request, ReserveResourceClaim):
                self._reserve_claim(effect.ticket, request)
                continue
            caused = self.scheduler.complete(effect.ticket, DONE, NOW)
            if caused:
                self._perform(caused)
            if isinstance(request, BindPod):
                self._bind(request.pod.uid, request.node)
            else:
                self._perform_one(request)

    def _bind(self, uid: str, node: NodeName) -> None:
        """The usual request: with few steps, because all of them are timed."""
        self.bound += 1
        self._version += 1
        pod = self._pods[uid]
        meta = replace(pod.metadata, resource_version=str(self._version))
        pod = replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))
        self._pods[uid] = pod
        caused = self.scheduler.observe(Updated(pod), NOW)
        if caused:
            self._perform(caused)

    def _perform_one(self, request: Request) -> None:
        match request:
            case PatchPodStatus(pod=ref, condition=Condition() as condition):
                pod = self._pods[ref.uid]
                self._show(pod, status=replace(pod.status, conditions=(condition,)))
            case DeletePod(pod=ref):
                self.evicted += 1
                # It stays terminating, as time does not advance.
                self._show(self._pods[ref.uid], TERMINATING)
            case PatchVolume() as patch:
                self._bind_volume(patch)

    def _show(self, pod: Pod, of_metadata: dict[str, str] = NOTHING, **changes: Any) -> None:
        """Write a pod with some changes, and show it to the scheduler."""
        self._version += 1
        meta = replace(pod.metadata, resource_version=str(self._version), **of_metadata)
        pod = self._pods[meta.uid] = replace(pod, metadata=meta, **changes)
        caused = self.scheduler.observe(Updated(pod), NOW)
        if caused:
            self._perform(caused)

    def _reserve_claim(self, ticket: Ticket, request: ReserveResourceClaim) -> None:
        """Write a device claim, and show it after the request has ended."""
        ref, key = request.pod, request.key
        pod = (ref.name, ref.uid)
        known = self._device_claims[key]
        claim = self._written(
            resource_claims.reserved(known, key, pod, request.allocation, ALLOCATED_AT)
        )
        self._device_claims[key] = claim
        self._perform(self.scheduler.complete(ticket, Done(claim=claim), NOW))
        self._perform(self.scheduler.observe(Updated(claim), NOW))

    def _bind_volume(self, patch: PatchVolume) -> None:
        """Bind a volume and its claim to each other, as the volume controller does."""
        volume = self._volumes[patch.name]
        spec = replace(volume.spec, claim_ref=patch.claim)
        volume = self._volumes[patch.name] = self._written(replace(volume, spec=spec))
        self._perform(self.scheduler.observe(Updated(volume), NOW))
        key = f"{patch.claim.namespace}/{patch.claim.name}"
        claim = self._claims[key]
        claim = replace(
            claim,
            metadata=replace(claim.metadata, annotations={BIND_COMPLETED: "yes"}),
            spec=replace(claim.spec, volume_name=patch.name),
            status=replace(claim.status, phase="Bound"),
        )
        claim = self._claims[key] = self._written(claim)
        self._perform(self.scheduler.observe(Updated(claim), NOW))

    def _written(self, obj: T, **changes: Any) -> T:
        self._version += 1
        meta = replace(obj.metadata, resource_version=str(self._version))
        return replace(obj, metadata=meta, **changes)


class Clocks(NamedTuple):
    """Wall clock and CPU clock, in seconds."""

    wall: Callable[[], float]
    cpu: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    pods: int
    bound: int
    evicted: int
    wall_seconds: float
    cpu_seconds: float

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.wall_seconds

    @property
    def cpu_microseconds(self) -> float:
        """CPU time per pod."""
        return self.cpu_seconds / self.pods * 1e6


def prepare(
    workload: BenchLoad, configuration: SchedulerConfiguration | None = None
) -> InstantCluster:
    """A scheduler with the initial pods placed and the others in its queue."""
    configuration = configuration or config.load(None)
    gates = {**configuration.feature_gates, **workload.gates}
    configuration = replace(configuration, feature_gates=gates)
    scheduler = Scheduler(configuration, journal=Journal(limit=FACTS_KEPT))
    for obj in (*workload.others, *workload.nodes, *workload.initial):
        scheduler.observe(Added(obj), NOW)
    cluster = InstantCluster(scheduler, (*workload.initial, *workload.pods), workload.others)
    cluster.schedule_all()
    cluster.bound = cluster.evicted = 0
    cluster.churn(workload.churn, workload.churn_every)
    for pod in workload.pods:
        scheduler.observe(Added(pod), NOW)
    return cluster


def measure(workload: BenchLoad, clocks: Clocks) -> Run:
    """Time one run; an error if not all pods that should fit are bound, or make room."""
    run = measure_any(workload, clocks)
    expected = len(workload.pods) - workload.unschedulable
    if run.bound != expected:
        raise InputError(
            f"{run.bound} of {texts.count(expected, 'pod')} fit on "
            f"{texts.count(len(workload.nodes), 'node')}; "
            "ask for fewer pods, or for more nodes"
        )
    if run.evicted != workload.victims:
        raise InputError(f"{run.evicted} victims were evicted instead of {workload.victims}")
    return run


def measure_any(
    workload: BenchLoad, clocks: Clocks, configuration: SchedulerConfiguration | None = None
) -> Run:
    """Time one run, whatever its result."""
    cluster = prepare(workload, configuration)
    with garbage.collected_rarely():  # As in `moorage run` and `simulate`.
        wall, cpu = clocks.wall(), clocks.cpu()
        cluster.schedule_all()
        wall, cpu = clocks.wall() - wall, clocks.cpu() - cpu
    return Run(len(workload.pods), cluster.bound, cluster.evicted, wall, cpu)


def profile(workload: BenchLoad, most: int = 25) -> str:
    """Profile one run: the functions with the most time of their own."""
    cluster = prepare(workload)
    profiler = cProfile.Profile()
    with garbage.collected_rarely():  # Else one counts for the function that it interrupts.
        profiler.runcall(cluster.schedule_all)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(most)
    return text.getvalue().strip()
