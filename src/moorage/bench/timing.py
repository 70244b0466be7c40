"""The stopwatch: one workload through one scheduler, from the first decision to the last pod.

What is timed is all that a shell makes the scheduler do for a pod: `schedule_one`, `complete`
with Done for every effect that it asks for, and `observe` of the pod as the world then shows it,
bound or marked as unschedulable. Objects are made, and observed for the first time, before the
clock starts. Nothing is sent anywhere and nothing is simulated. The clocks are handed in.
"""

import cProfile
import gc
import io
import pstats
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.bench.workload import Workload
from moorage.core.effects import Done, Effect
from moorage.core.journal import Journal
from moorage.core.observations import Added, Updated
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.framework.effects import BindPod, DeletePod, PatchPodStatus

# Virtual time stands still: whoever has to wait for a back-off waits for good.
NOW = 0.0
FACTS_KEPT = 1000
DONE = Done()
TERMINATING = {"deletion_timestamp": "2026-01-01T00:00:30Z"}


class Clocks(NamedTuple):
    """Seconds gone by, and seconds that this process has worked."""

    wall: Callable[[], float]
    cpu: Callable[[], float]


@dataclass(frozen=True, slots=True)
class Run:
    """One measured run."""

    pods: int
    bound: int
    wall_seconds: float
    cpu_seconds: float

    @property
    def pods_per_second(self) -> float:
        return self.pods / self.wall_seconds


class World:
    """The other side of the scheduler: carries everything out at once, and says so."""

    def __init__(self, scheduler: Scheduler, pods: Iterable[Pod]) -> None:
        self.bound = 0
        self.scheduler = scheduler
        self._pods = {pod.uid: pod for pod in pods}
        self._version = 1

    def schedule_all(self) -> None:
        """Turn the scheduler until it has nothing left to try."""
        scheduler = self.scheduler
        while scheduler.has_work:
            self._perform(scheduler.schedule_one(NOW))

    def _perform(self, effects: list[Effect]) -> None:
        scheduler = self.scheduler
        for effect in effects:
            self._perform(scheduler.complete(effect.ticket, DONE, NOW))
            match effect.request:
                case BindPod(pod=ref, node=node):
                    self.bound += 1
                    pod = self._pods[ref.uid]
                    self._shown(replace(pod, spec=replace(pod.spec, node_name=node)))
                case PatchPodStatus(pod=ref, condition=Condition() as condition):
                    pod = self._pods[ref.uid]
                    self._shown(replace(pod, status=replace(pod.status, conditions=(condition,))))
                case DeletePod(pod=ref):
                    # Its grace period lasts for good, as time stands still.
                    pod = self._pods[ref.uid]
                    self._shown(replace(pod, metadata=replace(pod.metadata, **TERMINATING)))

    def _shown(self, pod: Pod) -> None:
        self._version += 1
        meta = replace(pod.metadata, resource_version=str(self._version))
        pod = self._pods[pod.uid] = replace(pod, metadata=meta)
        self._perform(self.scheduler.observe(Updated(pod), NOW))


def prepare(workload: Workload) -> World:
    """A scheduler that knows the cluster, has placed the initial pods, and holds the others."""
    scheduler = Scheduler(journal=Journal(limit=FACTS_KEPT))
    for obj in (*workload.others, *workload.nodes):
        scheduler.observe(Added(obj), NOW)
    for pod in workload.initial:
        scheduler.observe(Added(pod), NOW)
    world = World(scheduler, (*workload.initial, *workload.pods))
    world.schedule_all()
    world.bound = 0
    for pod in workload.pods:
        scheduler.observe(Added(pod), NOW)
    return world


def measure(workload: Workload, clocks: Clocks) -> Run:
    """Time one run; refused if not all pods that should fit do, for such a figure says nothing."""
    world = prepare(workload)
    gc.collect()
    gc.freeze()  # What is there already is not looked at again and again while we measure.
    try:
        wall, cpu = clocks.wall(), clocks.cpu()
        world.schedule_all()
        wall, cpu = clocks.wall() - wall, clocks.cpu() - cpu
    finally:
        gc.unfreeze()
    pods, expected = len(workload.pods), len(workload.pods) - workload.hopeless
    if world.bound != expected:
        raise InputError(
            f"{world.bound} of {expected} pods fit on {len(workload.nodes)} nodes; "
            "ask for fewer pods, or for more nodes"
        )
    return Run(pods, world.bound, wall, cpu)


def profile(workload: Workload, most: int = 25) -> str:
    """Where one run spends its time: the functions that take the most of their own."""
    world = prepare(workload)
    profiler = cProfile.Profile()
    profiler.runcall(world.schedule_all)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(most)
    return text.getvalue().strip()
