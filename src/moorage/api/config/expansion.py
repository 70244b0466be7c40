"""A profile's plugin sets, expanded: which plugins run at which point, in which order.

Which plugins exist and what they implement is told by the caller; where they come from is not
known here.
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from moorage.api.config import plugin_sets
from moorage.api.config.faults import shown
from moorage.api.config.structs import POINTS, Plugins, PluginSet, Profile, SchedulerConfiguration
from moorage.errors import ConfigError

Implements = Callable[[str, str], bool]  # (plugin name, point) -> takes part in it
Effective = dict[str, list[tuple[str, int]]]  # point -> (plugin name, weight) in order

WEIGHTED = ("score", "placement_score")
HIGHEST_SCORE = 100
HIGHEST_TOTAL = 2**63 - 1
# kube-scheduler begins here, so it is here that it misses a plugin that does not exist.
FIRST_POINTS = ("pre_filter", *(point for point in POINTS if point != "pre_filter"))


def effective_profiles(
    configuration: SchedulerConfiguration, implements: Implements, known: Collection[str]
) -> dict[str, Effective]:
    """The effective plugins of every profile, by scheduler name; all sort the queue alike."""
    effective = {
        profile.scheduler_name: effective_plugins(profile, implements, known)
        for profile in configuration.profiles
    }
    problems = list(_problems_of_queue_sort(effective))
    if problems:
        raise ConfigError([f"initializing profiles: {problem}" for problem in problems])
    return effective


def effective_plugins(
    profile: Profile, implements: Implements, known: Collection[str]
) -> Effective:
    """Plugins in order, with weights, for every point; a weight is 0 where it has no meaning.

    `known` are the plugins that exist. A default plugin that does not exist is left out; any other
    is a fault.
    """
    plugins = plugin_sets.with_defaults(profile.plugins)
    expansion = _Expansion(plugins, implements, known)
    problems = [*expansion.problems_of_points(), *expansion.problems_of_multi_point()]
    if not problems:
        effective = {point: expansion.at(point) for point in POINTS}
        problems = [
            *expansion.problems_of_weights(),
            *_problems_of_numbers(effective, profile.scheduler_name, expansion.left_out),
        ]
    if problems:
        raise ConfigError([f"{building(profile)}: {problem}" for problem in problems])
    return effective


def building(profile: Profile) -> str:
    """What stands before every fault that shows when a profile is built."""
    return f"initializing profiles: creating profile for scheduler name {profile.scheduler_name}"


@dataclass(frozen=True, slots=True)
class _Expansion:
    plugins: Plugins
    implements: Implements
    known: Collection[str]

    @property
    def left_out(self) -> list[str]:
        """Defaults that do not exist here."""
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

    def problems_of_points(self) -> Iterator[str]:
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

    def problems_of_multi_point(self) -> Iterator[str]:
        blamed: set[str] = set()  # Once is enough, not once for every point.
        for point in FIRST_POINTS:
            if plugin_sets.ALL in _disabled(self._set(point)):
                continue
            for name in self._multi_point():
                if not (name in self.known or name in blamed or self._is_absent_default(name)):
                    blamed.add(name)
                    yield f"{_type(point)} {shown(name)} does not exist"
            explicit, expanded = _names(self._set(point)), self._expanded(point)
            for name in dict.fromkeys(expanded):
                if expanded.count(name) > 1 and name not in explicit and name not in blamed:
                    blamed.add(name)
                    yield f'plugin {shown(name)} already registered as "{_type(point)}"'

    def problems_of_weights(self) -> Iterator[str]:
        for point in WEIGHTED:
            total = sum(weight * HIGHEST_SCORE for weight in self._weights(point).values())
            if total > HIGHEST_TOTAL:
                plugins = f"{point.replace('_', ' ')} plugins"
                yield f"{plugins}: total score of Score plugins could overflow"

    def _expanded(self, point: str) -> list[str]:
        """What multiPoint brings to a point."""
        disabled = _disabled(self._set(point))
        if plugin_sets.ALL in disabled:
            return []
        return [
            name
            for name in self._multi_point()
            if name in self.known and name not in disabled and self.implements(name, point)
        ]

    def _weights(self, point: str) -> dict[str, int]:
        """An entry at the point itself beats the one in multiPoint, even if it names no weight."""
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
        # Also if the user gives it another weight: a printed configuration lists all defaults,
        # and has to mean the same when it is read again.
        return name not in self.known and name in plugin_sets.DEFAULT_NAMES


def _problems_of_queue_sort(effective: dict[str, Effective]) -> Iterator[str]:
    sorters = {name: [n for n, _ in points["queue_sort"]] for name, points in effective.items()}
    first = next(iter(sorters.values()), [])
    for profile, names in sorters.items():
        if names != first:
            what = f"different queue sort plugins for profile {shown(profile)}"
            yield f"{what}: {shown(''.join(names))}, first: {shown(''.join(first))}"


def _problems_of_numbers(
    effective: Effective, scheduler_name: str, left_out: Collection[str]
) -> Iterator[str]:
    whose = f"for profile with scheduler name {shown(scheduler_name)}"
    sorters = len(effective["queue_sort"])
    # A default that does not exist here cannot be missed either.
    if sorters > 1 or (sorters == 0 and "PrioritySort" not in left_out):
        yield f"only one queue sort plugin required {whose}, but got {sorters}"
    if not effective["bind"] and "DefaultBinder" not in left_out:
        yield f"at least one bind plugin is needed {whose}"
    if len(effective["placement_generate"]) > 1:
        yield f"at most one placement generate plugin is allowed {whose}"


def _names(plugins: PluginSet) -> list[str]:
    return [plugin.name for plugin in plugins.enabled]


def _disabled(plugins: PluginSet) -> set[str]:
    return {plugin.name for plugin in plugins.disabled}


def _type(point: str) -> str:
    return "".join(word.title() for word in point.split("_")) + "Plugin"
