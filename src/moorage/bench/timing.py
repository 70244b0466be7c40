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
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from moorage.api.config import SchedulerConfiguration
from moorage.bench.workload import Workload
from moorage.bench.world import NOW, World
from moorage.core.journal import Journal
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError

FACTS_KEPT = 1000


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


def prepare(workload: Workload, configuration: SchedulerConfiguration | None = None) -> World:
    """A scheduler that knows the cluster, has placed the initial pods, and holds the others."""
    scheduler = Scheduler(configuration, journal=Journal(limit=FACTS_KEPT))
    for obj in (*workload.others, *workload.nodes):
        scheduler.observe(Added(obj), NOW)
    for pod in workload.initial:
        scheduler.observe(Added(pod), NOW)
    world = World(scheduler, (*workload.initial, *workload.pods), workload.others)
    world.schedule_all()
    world.bound = 0
    world.churn(workload.churn, workload.churn_every)
    for pod in workload.pods:
        scheduler.observe(Added(pod), NOW)
    return world


def measure(workload: Workload, clocks: Clocks) -> Run:
    """Time one run; refused if not all pods that should fit do, for such a figure says nothing."""
    run = measure_any(workload, clocks)
    expected = len(workload.pods) - workload.hopeless
    if run.bound != expected:
        raise InputError(
            f"{run.bound} of {expected} pods fit on {len(workload.nodes)} nodes; "
            "ask for fewer pods, or for more nodes"
        )
    return run


def measure_any(
    workload: Workload, clocks: Clocks, configuration: SchedulerConfiguration | None = None
) -> Run:
    """Time one run, whatever comes of it."""
    world = prepare(workload, configuration)
    gc.collect()
    gc.freeze()  # What is there already is not looked at again and again while we measure.
    try:
        wall, cpu = clocks.wall(), clocks.cpu()
        world.schedule_all()
        wall, cpu = clocks.wall() - wall, clocks.cpu() - cpu
    finally:
        gc.unfreeze()
    return Run(len(workload.pods), world.bound, wall, cpu)


def profile(workload: Workload, most: int = 25) -> str:
    """Where one run spends its time: the functions that take the most of their own."""
    world = prepare(workload)
    profiler = cProfile.Profile()
    profiler.runcall(world.schedule_all)
    text = io.StringIO()
    pstats.Stats(profiler, stream=text).strip_dirs().sort_stats("tottime").print_stats(most)
    return text.getvalue().strip()
