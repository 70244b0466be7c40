"""SweepRun: the workload of a sweep; calling it with parameters makes one run.

It pickles: every worker gets it once, with all objects, and then only parameters.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec
from msgspec.structs import replace

from moorage.api import config as configuration
from moorage.api.config import SchedulerConfiguration, weights
from moorage.api.meta import KubeObject
from moorage.api.node import NodePool
from moorage.errors import InputError
from moorage.planning.compare import DEFAULT, with_plugin
from moorage.scenarios.plan import ScenarioPlan
from moorage.scenarios.play import Play
from moorage.sim.run import Simulation
from moorage.sweeping.parameters import (
    CONFIG,
    FIELD,
    NODES,
    REPLICAS,
    SEED,
    WEIGHT,
    Parameters,
    Value,
)
from moorage.version import __version__

Summary = dict[str, Any]


@dataclass(frozen=True)
class SweepRun:
    """The input that all runs of a sweep share; calling it makes one run."""

    objects: tuple[KubeObject, ...]
    config: SchedulerConfiguration
    seed: int = 0
    until: float | None = None
    plan: ScenarioPlan | None = None
    _configs: dict[str, SchedulerConfiguration] = field(default_factory=dict)

    def check(self, runs: Iterable[Parameters]) -> None:
        """Refuse parameters that cannot be applied, before the first run begins."""
        seen: set[tuple[tuple[str, Value], ...]] = set()
        for parameters in runs:
            others = tuple((name, value) for name, value in parameters.items() if name != SEED)
            if others not in seen:
                seen.add(others)
                self.configured(parameters)
                self.applied(parameters)

    def __call__(self, parameters: Parameters) -> Summary:
        """Make one run; the summary of its result as plain data."""
        objects, config = self.applied(parameters), self.configured(parameters)
        seed = int(parameters.get(SEED, self.seed))
        if self.plan is not None:
            simulation = Play(self.plan, objects, config, seed).run()
        else:
            simulation = Simulation(objects, config, seed)
            simulation.run(self.until)
        return simulation.result.summary()

    def configured(self, parameters: Parameters) -> SchedulerConfiguration:
        """The configuration of a run."""
        config = self.config
        if CONFIG in parameters:
            config = self._named(str(parameters[CONFIG]))
        for name, value in parameters.items():
            if name.startswith(FIELD):
                config = _with_field(config, name.removeprefix(FIELD), value)
            elif name.startswith(WEIGHT):
                config = weights.with_weight(config, name.removeprefix(WEIGHT), int(value))
        return config

    def applied(self, parameters: Parameters) -> list[KubeObject]:
        """The objects of a run."""
        objects = list(self.objects)
        for name, value in parameters.items():
            if name.startswith(NODES):
                objects = _with_nodes(objects, name.removeprefix(NODES), int(value))
            elif name.startswith(REPLICAS):
                objects = _with_replicas(objects, name.removeprefix(REPLICAS), int(value))
        return objects

    def digest(self) -> str:
        """A short hash of the input."""
        plain = configuration.to_dict(self.config)
        identity = (__version__, plain, self.seed, self.until, repr(self.plan))
        found = hashlib.sha256(msgspec.json.encode(identity))
        for obj in self.objects:
            found.update(msgspec.json.encode(obj))
        return found.hexdigest()[:16]

    def _named(self, name: str) -> SchedulerConfiguration:
        if name not in self._configs:
            self._configs[name] = load(name)
        return self._configs[name]


def load(name: str) -> SchedulerConfiguration:
    """A configuration by the name of its file, of a plugin, or `default`."""
    if name == DEFAULT:
        return configuration.load(None)
    is_plugin = ":" in name and not name.endswith((".yaml", ".yml", ".json"))
    return configuration.load(with_plugin(name) if is_plugin else name)


def _with_field(config: SchedulerConfiguration, path: str, value: Value) -> SchedulerConfiguration:
    plain = configuration.to_dict(config)
    target: Any = plain
    steps = path.split(".")
    for step in steps[:-1]:
        if isinstance(target, list):
            if not step.isdecimal() or int(step) >= len(target):
                raise InputError(f"sweep config.{path}: there is no item {step}")
            target = target[int(step)]
        elif isinstance(target, dict):
            target = target.setdefault(step, {})
        else:
            raise InputError(f"sweep config.{path}: {step} is not inside anything")
    if not isinstance(target, dict):
        raise InputError(f"sweep config.{path}: {steps[-1]} is not a field of anything")
    target[steps[-1]] = value
    return configuration.load(plain, base_dir=config.base_dir)


def _with_nodes(objects: list[KubeObject], name: str, count: int) -> list[KubeObject]:
    if not any(isinstance(obj, NodePool) and obj.name == name for obj in objects):
        raise InputError(f"sweep nodes.{name}: there is no NodePool of this name")
    return [
        replace(obj, spec=replace(obj.spec, count=count))
        if isinstance(obj, NodePool) and obj.name == name
        else obj
        for obj in objects
    ]


def _with_replicas(objects: list[KubeObject], name: str, count: int) -> list[KubeObject]:
    def matches(obj: KubeObject) -> bool:
        spec = getattr(obj, "spec", None)
        named = name in (obj.name, f"{obj.namespace or 'default'}/{obj.name}")
        return named and hasattr(spec, "replicas") and getattr(spec, "template", None) is not None

    if not any(map(matches, objects)):
        raise InputError(f"sweep replicas.{name}: there is no workload of this name")
    return [_scaled(obj, count) if matches(obj) else obj for obj in objects]


def _scaled(obj: Any, count: int) -> KubeObject:
    scaled: KubeObject = replace(obj, spec=replace(obj.spec, replicas=count))
    return scaled


def flat(summary: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A summary as one line of figures: `utilisation.cpu.last` and the like."""
    found: dict[str, Any] = {}
    for name, value in summary.items():
        if isinstance(value, Mapping):
            found |= flat(value, f"{prefix}{name}.")
        else:
            found[f"{prefix}{name}"] = value
    return found
