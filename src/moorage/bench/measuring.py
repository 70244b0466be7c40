"""Measuring shapes: several runs each, the summary of the figures, and the machine.

Machines differ, and a busy one varies. So a fixed loop of Python and NumPy is timed next to every
run, in CPU time, which other processes disturb less. Pods per loop can be compared between
machines where pods per second cannot.
"""

import os
import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from moorage.bench import timing
from moorage.bench.timing import Clocks, Run
from moorage.bench.workload import BenchLoad, Shape
from moorage.version import __version__

# The cluster of scheduler_perf that the numbers of pods of the shapes are meant for.
NODES = 5_000
INITIAL = 1_000
ROUNDS = 100_000
ROUNDS_PER_ARRAY = 50
ARRAY = 5_000


@dataclass(frozen=True, slots=True)
class Size:
    """How large a workload is; defaults follow from the number of nodes."""

    nodes: int = NODES
    initial: int | None = None
    pods: int | None = None

    def workload(self, shape: Shape) -> BenchLoad:
        """The objects of a shape in this size."""
        return shape.make(*self._counts(shape))

    def without(self, shape: Shape) -> BenchLoad | None:
        """The baseline of a shape in this size."""
        return None if shape.without is None else shape.without(*self._counts(shape))

    def _counts(self, shape: Shape) -> tuple[int, int, int]:
        share = min(self.nodes / NODES, 1.0)
        initial = int(INITIAL * share) if self.initial is None else self.initial
        pods = max(int(shape.pods * share), 1) if self.pods is None else self.pods
        return self.nodes, initial, pods


@dataclass(frozen=True, slots=True)
class ShapeMeasurement:
    """The runs of a shape, each with the time of the calibration loop."""

    shape: Shape
    nodes: int
    initial: int
    pods: int
    runs: list[Run]
    calibrations: list[float]
    # The same runs of the baseline, if the shape has one.
    without: list[Run] = field(default_factory=list)

    @property
    def pods_per_second(self) -> float:
        return median(run.pods_per_second for run in self.runs)

    @property
    def wall_microseconds(self) -> float:
        return median(run.wall_seconds / run.pods for run in self.runs) * 1e6

    @property
    def cpu_microseconds(self) -> float:
        return median(run.cpu_microseconds for run in self.runs)

    @property
    def pods_per_calibration(self) -> float:
        """Pods in the CPU time of one calibration loop; comparable between machines."""
        both = zip(self.runs, self.calibrations, strict=True)
        return median(run.pods / run.cpu_seconds * seconds for run, seconds in both)

    @property
    def against_without(self) -> float | None:
        """The rate relative to the baseline; 1 if the shape costs nothing."""
        if not self.without:
            return None
        both = zip(self.runs, self.without, strict=True)
        return median(other.cpu_microseconds / run.cpu_microseconds for run, other in both)

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
) -> list[ShapeMeasurement]:
    """Measure shapes `repeat` times each; `on_progress(done, total)` is called after each run."""
    measured: list[ShapeMeasurement] = []
    for shape in shapes:
        workload = size.workload(shape)
        without = size.without(shape)
        runs, calibrations, others = [], [], []
        for _ in range(repeat):
            calibrations.append(calibrate(clocks.cpu))
            runs.append(timing.measure(workload, clocks))
            if without is not None:
                others.append(timing.measure(without, clocks))
            on_progress(len(measured) * repeat + len(runs), len(shapes) * repeat)
        counts = len(workload.nodes), len(workload.initial), len(workload.pods)
        measured.append(ShapeMeasurement(shape, *counts, runs, calibrations, others))
    return measured


def to_dict(measured: Sequence[ShapeMeasurement]) -> dict[str, Any]:
    """All figures, and the machine."""
    return {
        "machine": describe_machine(),
        "shapes": {each.shape.name: each.to_dict() for each in measured},
    }


def describe_machine() -> dict[str, str | int]:
    """Versions and hardware."""
    return {
        "moorage": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": _cores(),
    }


def calibrate(cpu_clock: Callable[[], float]) -> float:
    """CPU seconds of the fixed loop: dicts, integers and some arrays."""
    started_at = cpu_clock()
    numbers = np.arange(ARRAY, dtype=np.int64)
    kept: dict[int, int] = {}
    total = 0
    for i in range(ROUNDS):
        total += kept.get(i % 89, 0) % 7 + i
        kept[i % 97] = total
        if i % ROUNDS_PER_ARRAY == 0:
            numbers = (numbers * 3 + i) % 1009
            total += int(numbers.argmax())
    return cpu_clock() - started_at


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # Not Linux.
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _cores() -> int:
    """The cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
