"""Measuring a shape: a few runs, and the figures that sum them up."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from moorage.bench import machine, timing
from moorage.bench.timing import Clocks, Run
from moorage.bench.workload import Shape, Workload

# The cluster of scheduler_perf that the shapes' numbers of pods are meant for.
NODES = 5_000
INITIAL = 1_000


@dataclass(frozen=True, slots=True)
class Size:
    """How large a workload is; what is not said follows from the number of nodes."""

    nodes: int = NODES
    initial: int | None = None
    pods: int | None = None

    def workload(self, shape: Shape) -> Workload:
        """The objects of a shape in this size."""
        return shape.make(*self._counts(shape))

    def without(self, shape: Shape) -> Workload | None:
        """The same without what the shape is about."""
        return None if shape.without is None else shape.without(*self._counts(shape))

    def _counts(self, shape: Shape) -> tuple[int, int, int]:
        share = min(self.nodes / NODES, 1.0)
        initial = int(INITIAL * share) if self.initial is None else self.initial
        pods = max(int(shape.pods * share), 1) if self.pods is None else self.pods
        return self.nodes, initial, pods


@dataclass(frozen=True, slots=True)
class Measured:
    """A shape's runs, each with the time that the yardstick took beside it."""

    shape: Shape
    nodes: int
    initial: int
    pods: int
    runs: list[Run]
    calibrations: list[float]
    # Each run once more without what the shape is about, if that can be left out.
    without: list[Run] = field(default_factory=list)

    @property
    def pods_per_second(self) -> float:
        return median(run.pods_per_second for run in self.runs)

    @property
    def wall_microseconds(self) -> float:
        return median(run.wall_seconds / run.pods for run in self.runs) * 1e6

    @property
    def cpu_microseconds(self) -> float:
        return median(run.cpu_seconds / run.pods for run in self.runs) * 1e6

    @property
    def pods_per_calibration(self) -> float:
        """What can be compared between machines: pods in the CPU time of one yardstick."""
        both = zip(self.runs, self.calibrations, strict=True)
        return median(run.pods / run.cpu_seconds * seconds for run, seconds in both)

    @property
    def against_without(self) -> float | None:
        """The rate against that without what the shape is about; 1 if that costs nothing."""
        if not self.without:
            return None
        both = zip(self.runs, self.without, strict=True)
        return median(
            other.cpu_seconds / other.pods / (run.cpu_seconds / run.pods) for run, other in both
        )

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        against = self.against_without
        speeds = [run.pods_per_second for run in self.runs]
        return {
            "nodes": self.nodes,
            "initial": self.initial,
            "pods": self.pods,
            "bound": self.runs[0].bound,
            "repeats": len(self.runs),
            "podsPerSecond": {
                "median": round(self.pods_per_second, 1),
                "min": round(min(speeds), 1),
                "max": round(max(speeds), 1),
            },
            "microsecondsPerPod": {
                "wall": round(self.wall_microseconds, 2),
                "cpu": round(self.cpu_microseconds, 2),
            },
            "podsPerCalibration": round(self.pods_per_calibration, 2),
            "calibrationSeconds": round(median(self.calibrations), 6),
            **({} if against is None else {"againstWithout": round(against, 3)}),
        }


def measure(
    shapes: Sequence[Shape],
    size: Size,
    repeat: int,
    clocks: Clocks,
    on_progress: Callable[[int, int], None],
) -> list[Measured]:
    """Measure shapes, each some times over; `on_progress(done, total)` is called after each run."""
    measured: list[Measured] = []
    for shape in shapes:
        workload = size.workload(shape)
        without = size.without(shape)
        runs, calibrations, others = [], [], []
        for _ in range(repeat):
            calibrations.append(machine.calibrate(clocks.cpu))
            runs.append(timing.measure(workload, clocks))
            if without is not None:
                others.append(timing.measure(without, clocks))
            on_progress(len(measured) * repeat + len(runs), len(shapes) * repeat)
        counts = len(workload.nodes), len(workload.initial), len(workload.pods)
        measured.append(Measured(shape, *counts, runs, calibrations, others))
    return measured


def to_dict(measured: Sequence[Measured]) -> dict[str, Any]:
    """All figures, and what they were taken on."""
    return {
        "machine": machine.describe(),
        "shapes": {each.shape.name: each.to_dict() for each in measured},
    }
