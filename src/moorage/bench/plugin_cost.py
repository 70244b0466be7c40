"""What a plugin of somebody's own costs per pod: the same runs with it and without it, in turn."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from moorage.api import config
from moorage.api.config import SchedulerConfiguration
from moorage.bench import timing
from moorage.bench.measuring import Size
from moorage.bench.timing import Clocks, Run
from moorage.bench.workload import Shape
from moorage.errors import InputError


@dataclass(frozen=True, slots=True)
class Cost:
    """The runs of a shape, pair by pair."""

    shape: Shape
    without: list[Run]
    with_it: list[Run]

    @property
    def microseconds_without(self) -> float:
        return median(run.cpu_microseconds for run in self.without)

    @property
    def microseconds_with(self) -> float:
        return median(run.cpu_microseconds for run in self.with_it)

    @property
    def microseconds(self) -> float:
        """What the plugin adds per pod: the median over the pairs."""
        pairs = zip(self.without, self.with_it, strict=True)
        return median(run.cpu_microseconds - without.cpu_microseconds for without, run in pairs)

    @property
    def bound(self) -> int:
        """How many pods found a node with the plugin."""
        return self.with_it[0].bound

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "pods": self.with_it[0].pods,
            "bound": self.bound,
            "boundWithout": self.without[0].bound,
            "cpuMicrosecondsPerPod": {
                "without": round(self.microseconds_without, 2),
                "with": round(self.microseconds_with, 2),
                "plugin": round(self.microseconds, 2),
            },
        }


def configuration(plugin: str) -> SchedulerConfiguration:
    """The default profile with one more plugin, FILE.py:Class, at every point that it has."""
    file, _, attribute = plugin.rpartition(":")
    if not file.endswith(".py") or not attribute:
        raise InputError(f'plugin "{plugin}": has to be FILE.py:Class')
    enabled = [{"name": f"{Path(file).resolve()}:{attribute}"}]
    return config.load(
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "profiles": [{"plugins": {"multiPoint": {"enabled": enabled}}}],
        }
    )


def measure(
    shapes: Sequence[Shape],
    size: Size,
    repeat: int,
    clocks: Clocks,
    plugin: str,
    on_progress: Callable[[int, int], None],
) -> list[Cost]:
    """Run every shape with the plugin and without it."""
    settings = configuration(plugin)
    costs: list[Cost] = []
    for shape in shapes:
        workload, cost = size.workload(shape), Cost(shape, [], [])
        for _ in range(repeat):
            cost.without.append(timing.measure(workload, clocks))
            # It may refuse pods, and that may be its purpose.
            cost.with_it.append(timing.measure_any(workload, clocks, settings))
            on_progress(len(costs) * repeat + len(cost.with_it), len(shapes) * repeat)
        costs.append(cost)
    return costs
