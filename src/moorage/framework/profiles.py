"""The profiles of a configuration, made of the plugins that it names."""

from collections.abc import Mapping
from typing import Any

from moorage.api import config
from moorage.api.config import plugin_sets
from moorage.errors import ConfigError
from moorage.framework import points, registry
from moorage.framework.cluster import Cluster
from moorage.framework.profile import Profile


def build(
    configuration: config.SchedulerConfiguration, plugins: registry.Registry, cluster: Cluster
) -> dict[str, Profile]:
    """The profiles of a configuration, by scheduler name."""
    classes = _classes(configuration, plugins)

    def takes_part(name: str, point: str) -> bool:
        return name in classes and points.implements(classes[name], point)

    effective = config.effective_profiles(configuration, takes_part, set(classes))
    return {
        settings.scheduler_name: Profile(
            settings.scheduler_name,
            _instances(settings, effective[settings.scheduler_name], classes),
            cluster,
            _percentage(configuration, settings),
        )
        for settings in configuration.profiles
    }


def _classes(
    configuration: config.SchedulerConfiguration, plugins: registry.Registry
) -> dict[str, type[Any]]:
    """The plugins that are named somewhere; what else is installed may even be broken."""
    sets = [plugin_sets.with_defaults(profile.plugins) for profile in configuration.profiles]
    named = sorted({name for plugins_of in sets for name in plugins_of.names()})
    found = {name: plugins.find(name, configuration.base_dir) for name in named}
    return {name: cls for name, cls in found.items() if cls is not None}


def _instances(
    settings: config.KubeSchedulerProfile,
    effective: Mapping[str, list[tuple[str, int]]],
    classes: Mapping[str, type[Any]],
) -> dict[str, list[tuple[Any, int]]]:
    made: dict[str, Any] = {}
    # Also those that take part in no point: a misspelt method should not go unnoticed.
    enabled = sorted(plugin_sets.with_defaults(settings.plugins).names() & classes.keys())
    for name in enabled:
        made[name] = registry.make(name, classes[name], settings.args(name))
    names = [plugin.name for plugin in made.values()]
    for name in names:
        if names.count(name) > 1:
            raise ConfigError([f"two plugins call themselves {name}"])
    return {
        point: [(made[name], weight) for name, weight in chosen]
        for point, chosen in effective.items()
    }


def _percentage(
    configuration: config.SchedulerConfiguration, settings: config.KubeSchedulerProfile
) -> int | None:
    own = settings.percentage_of_nodes_to_score
    return configuration.percentage_of_nodes_to_score if own is None else own
