"""The plugins of a profile: defaults merged with the user's sets, expanded to extension points.

Defaults exist in multiPoint only, so at a single point the user's list is used as it is. The caller
passes which plugins exist and which points they implement.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from msgspec.structs import replace

from moorage.api.config import feature_gates
from moorage.api.config.errors import shown
from moorage.api.config.structs import (
    POINTS,
    KubeSchedulerProfile,
    PluginEntry,
    Plugins,
    PluginSet,
    SchedulerConfiguration,
)
from moorage.errors import ConfigError

_DEFAULT_WEIGHTS: dict[str, int | None] = {
    "SchedulingGates": None,
    "PrioritySort": None,
    "NodeUnschedulable": None,
    "NodeName": None,
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodePorts": None,
    "NodeResourcesFit": 1,
    "VolumeRestrictions": None,
    "NodeVolumeLimits": None,
    "VolumeBinding": None,
    "VolumeZone": None,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    # Before DefaultPreemption: freeing an unused claim is better than evicting a pod.
    "DynamicResources": 2,
    "DefaultPreemption": None,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": None,
    "NodeDeclaredFeatures": None,
}
DEFAULT_MULTI_POINT = PluginSet(
    enabled=tuple(
        PluginEntry(name=name, weight=weight) for name, weight in _DEFAULT_WEIGHTS.items()
    )
)
DEFAULT_NAMES = frozenset(_DEFAULT_WEIGHTS)
ALL = "*"
NO_GATES: Mapping[str, bool] = MappingProxyType({})
# Added at the end, in this order, if the gate is on.
GATED: dict[str, tuple[PluginEntry, ...]] = {
    feature_gates.GANG_SCHEDULING: (PluginEntry(name="GangScheduling"),),
    feature_gates.TOPOLOGY_AWARE: (
        PluginEntry(name="TopologyPlacementGenerator"),
        PluginEntry(name="PodGroupPodsCount", weight=1),
    ),
}


def with_defaults(custom: Plugins, gates: Mapping[str, bool] = NO_GATES) -> Plugins:
    """The user's plugin sets with the defaults merged in; idempotent."""
    points = {point: merge(PluginSet(), getattr(custom, point)) for point in POINTS}
    added = [each for gate, plugins in GATED.items() if gates.get(gate) for each in plugins]
    default = PluginSet(enabled=(*DEFAULT_MULTI_POINT.enabled, *added))
    return Plugins(multi_point=merge(default, custom.multi_point), **points)


def with_gates(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration with the plugins of the feature gates that are on."""
    gates = configuration.feature_gates
    profiles = [
        replace(profile, plugins=with_defaults(profile.plugins, gates))
        for profile in configuration.profiles
    ]
    return replace(configuration, profiles=tuple(profiles))


def merge(default: PluginSet, custom: PluginSet) -> PluginSet:
    """One set over another; a plugin both enabled and disabled is enabled, but moves to the end."""
    disabled = [PluginEntry(name=plugin.name) for plugin in (*custom.disabled, *default.disabled)]
    off = {plugin.name for plugin in disabled}
    kept = () if ALL in off else [p for p in default.enabled if p.name not in off]
    # A default that the user enables again keeps its position and takes the user's weight. Of
    # repeated names the last one counts; the others are reported when the profile is built.
    position = {plugin.name: i for i, plugin in enumerate(custom.enabled)}
    in_place = {position[plugin.name] for plugin in kept if plugin.name in position}
    enabled = [custom.enabled[position[p.name]] if p.name in position else p for p in kept]
    enabled += [plugin for i, plugin in enumerate(custom.enabled) if i not in in_place]
    return PluginSet(enabled=tuple(enabled), disabled=tuple(disabled))


Implements = Callable[[str, str], bool]  # (plugin name, point) -> whether it implements the point
Effective = dict[str, list[tuple[str, int]]]  # point -> (plugin name, weight) in order

WEIGHTED = ("score", "placement_score")
HIGHEST_SCORE = 100
HIGHEST_TOTAL = 2**63 - 1
# kube-scheduler begins with pre_filter, so its errors name that point first.
FIRST_POINTS = ("pre_filter", *(point for point in POINTS if point != "pre_filter"))


def effective_profiles(
    configuration: SchedulerConfiguration, implements: Implements, known: Collection[str]
) -> dict[str, Effective]:
    """The effective plugins of every profile by scheduler name; all must sort the queue equally."""
    effective = {
        profile.scheduler_name: effective_plugins(profile, implements, known)
        for profile in configuration.profiles
    }
    problems = list(_queue_sort_problems(effective))
    if problems:
        raise ConfigError([f"initializing profiles: {problem}" for problem in problems])
    return effective


def effective_plugins(
    profile: KubeSchedulerProfile, implements: Implements, known: Collection[str]
) -> Effective:
    """Plugins in order, with weights, for every point; the weight is 0 where it has no meaning.

    `known` are the plugins that exist. A default plugin that does not exist is omitted; any other
    is an error.
    """
    plugins = with_defaults(profile.plugins)
    expansion = _Expansion(plugins, implements, known)
    problems = [*expansion.point_problems(), *expansion.multi_point_problems()]
    if not problems:
        effective = {point: expansion.at(point) for point in POINTS}
        problems = [
            *expansion.weight_problems(),
            *_count_problems(effective, profile.scheduler_name, expansion.omitted),
        ]
    if problems:
        raise ConfigError([f"{building(profile)}: {problem}" for problem in problems])
    return effective


def building(profile: KubeSchedulerProfile) -> str:
    """The prefix of every error that is found when a profile is built."""
    return f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}"


@dataclass(frozen=True, slots=True)
class _Expansion:
    plugins: Plugins
    implements: Implements
    known: Collection[str]

    @property
    def omitted(self) -> list[str]:
        """Default plugins that do not exist."""
        return [name for name in self._multi_point() if self._is_absent_default(name)]

    def at(self, point: str) -> list[tuple[str, int]]:
        explicit = _names(self._set(point))
        multi = self._expanded(point)
        ordered = [
            *(name for name in explicit if name in multi),
            *(name for name in multi if name not in explicit),
            *(name for name in explicit if name not in multi),
        ]
        weights = self._weights(point)
        return [(name, weights.get(name, 0)) for name in ordered]

    def point_problems(self) -> Iterator[str]:
        for point in FIRST_POINTS:
            seen: set[str] = set()
            for name in _names(self._set(point)):
                if name not in self.known:
                    yield f"{_type(point)} {shown(name)} does not exist"
                elif not self.implements(name, point):
                    yield f"plugin {shown(name)} does not extend {_type(point)} plugin"
                elif name in seen:
                    yield f'plugin {shown(name)} already registered as "{_type(point)}"'
                seen.add(name)

    def multi_point_problems(self) -> Iterator[str]:
        reported: set[str] = set()  # Report a plugin once, not for every point.
        for point in FIRST_POINTS:
            if ALL in _disabled(self._set(point)):
                continue
            for name in self._multi_point():
                if not (name in self.known or name in reported or self._is_absent_default(name)):
                    reported.add(name)
                    yield f"{_type(point)} {shown(name)} does not exist"
            explicit, expanded = _names(self._set(point)), self._expanded(point)
            for name in dict.fromkeys(expanded):
                if expanded.count(name) > 1 and name not in explicit and name not in reported:
                    reported.add(name)
                    yield f'plugin {shown(name)} already registered as "{_type(point)}"'

    def weight_problems(self) -> Iterator[str]:
        for point in WEIGHTED:
            total = sum(weight * HIGHEST_SCORE for weight in self._weights(point).values())
            if total > HIGHEST_TOTAL:
                plugins = f"{point.replace('_', ' ')} plugins"
                yield f"{plugins}: total score of Score plugins could overflow"

    def _expanded(self, point: str) -> list[str]:
        """The plugins of multiPoint that implement a point."""
        disabled = _disabled(self._set(point))
        if ALL in disabled:
            return []
        return [
            name
            for name in self._multi_point()
            if name in self.known and name not in disabled and self.implements(name, point)
        ]

    def _weights(self, point: str) -> dict[str, int]:
        """An entry at the point has precedence over multiPoint, even without a weight."""
        if point not in WEIGHTED:
            return {}
        weights: dict[str, int] = {}
        for plugin in (*self._set(point).enabled, *self.plugins.multi_point.enabled):
            if plugin.name in self.known and self.implements(plugin.name, point):
                weights.setdefault(plugin.name, plugin.weight or 1)
        return weights

    def _multi_point(self) -> list[str]:
        return _names(self.plugins.multi_point)

    def _set(self, point: str) -> PluginSet:
        plugins: PluginSet = getattr(self.plugins, point)
        return plugins

    def _is_absent_default(self, name: str) -> bool:
        # Also if the user sets another weight: a printed configuration lists all defaults, and
        # loading it must give the same plugins.
        return name not in self.known and name in DEFAULT_NAMES


def _queue_sort_problems(effective: dict[str, Effective]) -> Iterator[str]:
    sorters = {name: [n for n, _ in points["queue_sort"]] for name, points in effective.items()}
    first = next(iter(sorters.values()), [])
    for profile, names in sorters.items():
        if names != first:
            what = f"different queue sort plugins for profile {shown(profile)}"
            yield f"{what}: {shown(''.join(names))}, first: {shown(''.join(first))}"


def _count_problems(
    effective: Effective, scheduler_name: str, omitted: Collection[str]
) -> Iterator[str]:
    whose = f"for profile with scheduler name {shown(scheduler_name)}"
    sorters = len(effective["queue_sort"])
    # A default that does not exist cannot be required.
    if sorters > 1 or (sorters == 0 and "PrioritySort" not in omitted):
        yield f"only one queue sort plugin required {whose}, but got {sorters}"
    if not effective["bind"] and "DefaultBinder" not in omitted:
        yield f"at least one bind plugin is needed {whose}"
    if len(effective["placement_generate"]) > 1:
        yield f"at most one placement generate plugin is allowed {whose}"


def _names(plugins: PluginSet) -> list[str]:
    return [plugin.name for plugin in plugins.enabled]


def _disabled(plugins: PluginSet) -> set[str]:
    return {plugin.name for plugin in plugins.disabled}


def _type(point: str) -> str:
    return "".join(word.title() for word in point.split("_")) + "Plugin"
