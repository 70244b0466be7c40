"""The profiles of a configuration, from the plugins that it names."""

from collections.abc import Mapping
from typing import Any

from moorage.api import config
from moorage.api.config import feature_gates, plugin_sets
from moorage.errors import ConfigError
from moorage.framework import registry
from moorage.framework.cluster import Cluster
from moorage.framework.points import implements
from moorage.framework.profile import Profile
from moorage.framework.registry import Registry


def build(
    configuration: config.SchedulerConfiguration, plugins: Registry, cluster: Cluster
) -> dict[str, Profile]:
    """The profiles of a configuration, by scheduler name."""
    configuration = plugin_sets.with_gates(configuration)
    has_placements = feature_gates.is_on(configuration.feature_gates, feature_gates.TOPOLOGY_AWARE)
    sets = [plugin_sets.with_defaults(profile.plugins) for profile in configuration.profiles]
    named = sorted({name for enabled in sets for name in enabled.names()})
    # Other plugins are not loaded, as they may be broken.
    found = {name: plugins.find(name, configuration.base_dir) for name in named}
    classes = {name: cls for name, cls in found.items() if cls is not None}

    def takes_part(name: str, point: str) -> bool:
        if point.startswith("placement_") and not has_placements:
            return False
        return name in classes and implements(classes[name], point)

    effective = config.effective_profiles(configuration, takes_part, set(classes))
    cluster.feature_gates = configuration.feature_gates
    profiles = {}
    for settings in configuration.profiles:
        name, percentage = settings.scheduler_name, settings.percentage_of_nodes_to_score
        if percentage is None:
            percentage = configuration.percentage_of_nodes_to_score
        instances = _instances(settings, effective[name], classes)
        profiles[name] = Profile(name, instances, cluster, percentage)
    return profiles


def _instances(
    settings: config.KubeSchedulerProfile,
    effective: Mapping[str, list[tuple[str, int]]],
    classes: Mapping[str, type[Any]],
) -> dict[str, list[tuple[Any, int]]]:
    # Including those that take part in no point, so that a misspelt method is reported.
    enabled = sorted(plugin_sets.with_defaults(settings.plugins).names() & classes.keys())
    made = {name: registry.make(name, classes[name], settings.args(name)) for name in enabled}
    names = [plugin.name for plugin in made.values()]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError([f"two plugins call themselves {name}"])
    return {
        point: [(made[name], weight) for name, weight in chosen]
        for point, chosen in effective.items()
    }
