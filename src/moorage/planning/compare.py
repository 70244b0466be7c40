"""The same workload under several configurations, compared figure by figure.

Each configuration runs a whole simulation with the same objects and the same seed. A pod counts as
moved if it ends up on another node than under the first configuration. With `repack` running pods
are unbound first, so that everything is decided again; DaemonSet and mirror pods stay.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from moorage.api import config as configuration
from moorage.api.meta import KubeObject
from moorage.errors import InputError
from moorage.planning.input_cluster import InputCluster, Objects, belongs_to_node, without_node
from moorage.sim.run import Simulation

Each = Callable[[Callable[[str], "ConfigOutcome"], list[str]], Iterable["ConfigOutcome"]]
Placements = Mapping[str, str | None]
# Pods with the node before and the node after; None: no node.
Moves = Mapping[str, tuple[str | None, str | None]]

DEFAULT = "default"


def plain_moves(moves: Moves) -> dict[str, Any]:
    """Moves as plain data."""
    return {pod: {"from": before, "to": after} for pod, (before, after) in moves.items()}


@dataclass(frozen=True, slots=True)
class ConfigOutcome:
    """The outcome under one configuration; shares are from 0 to 1."""

    name: str
    placements: Placements
    pending: Mapping[str, str]
    evictions: int
    utilisation: Mapping[str, float]
    # The standard deviation of the nodes' shares, and the unusable share of the free amount.
    imbalance: Mapping[str, float]
    fragmentation: Mapping[str, float]
    spread_violations: int
    seconds: float

    def to_dict(self) -> dict[str, Any]:
        """The figures as plain data."""
        return {
            "pending": len(self.pending),
            "evictions": self.evictions,
            "utilisation": dict(self.utilisation),
            "imbalance": dict(self.imbalance),
            "fragmentation": dict(self.fragmentation),
            "spreadViolations": self.spread_violations,
            "seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class Comparison:
    """Outcomes in the order of their configurations; the first is the baseline."""

    outcomes: tuple[ConfigOutcome, ...]

    def moved(self, outcome: ConfigOutcome) -> Moves:
        """Pods on another node than under the first configuration, or placed in only one."""
        before = self.outcomes[0].placements
        return {
            pod: (before[pod], node)
            for pod, node in outcome.placements.items()
            if pod in before and before[pod] != node
        }

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data, and the moved pods."""
        return {
            outcome.name: outcome.to_dict()
            | {"moved": plain_moves(self.moved(outcome)), "reasons": dict(outcome.pending)}
            for outcome in self.outcomes
        }


@dataclass(frozen=True, slots=True)
class _ConfigRun:
    """Runs the workload under a configuration by name; pickles, for use in processes."""

    objects: tuple[KubeObject, ...]
    configs: Mapping[str, configuration.SchedulerConfiguration]
    seed: int
    until: float | None

    def __call__(self, name: str) -> ConfigOutcome:
        simulation = Simulation(self.objects, self.configs[name], self.seed)
        simulation.run(self.until)
        summary = simulation.result.summary()
        return ConfigOutcome(
            name=name,
            placements=simulation.placements,
            pending=simulation.pending,
            evictions=summary["disrupted"],
            utilisation={key: each["last"] for key, each in summary["utilisation"].items()},
            imbalance=summary["imbalance"],
            fragmentation=summary["fragmentation"],
            spread_violations=summary["spreadViolations"],
            seconds=simulation.now,
        )


def compare(
    objects: Objects,
    configs: Mapping[str, configuration.Source],
    *,
    seed: int = 0,
    repack: bool = False,
    until: float | None = None,
    each: Each = map,
) -> Comparison:
    """Run `objects` under each of the named configurations.

    `each` maps a function over the names, for example in several processes.
    """
    if len(configs) < 2:
        raise InputError("two configurations at least are needed to compare them")
    loaded = {name: configuration.load(source) for name, source in configs.items()}
    cluster = InputCluster.of(objects)
    pods = (p if belongs_to_node(p) or not repack else without_node(p) for p in cluster.pods)
    run = _ConfigRun((*cluster.others, *cluster.nodes, *pods), loaded, seed, until)
    return Comparison(tuple(each(run, list(configs))))


def with_plugin(name: str) -> dict[str, Any]:
    """The default configuration with one more plugin, at all its extension points."""
    enabled = {"multiPoint": {"enabled": [{"name": name}]}}
    header = {"apiVersion": configuration.API_VERSION, "kind": configuration.KIND}
    return {**header, "profiles": [{"plugins": enabled}]}
