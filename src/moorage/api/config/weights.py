"""The weights of score plugins."""

from msgspec.structs import replace

from moorage.api.config.structs import KubeSchedulerProfile, PluginEntry, SchedulerConfiguration
from moorage.errors import InputError


def with_weight(config: SchedulerConfiguration, name: str, weight: int) -> SchedulerConfiguration:
    """The configuration with another weight of a plugin, in all profiles that have it."""
    if not any(
        is_named(each, name) for profile in config.profiles for each in profile.plugins.names()
    ):
        raise InputError(f"weight.{name}: no profile has a plugin of this name")
    profiles = tuple(_with_weight(profile, name, weight) for profile in config.profiles)
    return replace(config, profiles=profiles)


def is_named(entry: str, name: str) -> bool:
    """Whether an entry of a profile is this plugin: `GpuPack` is the class of `pack.py:GpuPack`."""
    return name in (entry, entry.rpartition(":")[2])


def _with_weight(profile: KubeSchedulerProfile, name: str, weight: int) -> KubeSchedulerProfile:
    def weighted(plugin: PluginEntry) -> PluginEntry:
        return replace(plugin, weight=weight) if is_named(plugin.name, name) else plugin

    plugins = profile.plugins
    sets = {
        point: replace(each, enabled=tuple(map(weighted, each.enabled)))
        for point, each in (("score", plugins.score), ("multi_point", plugins.multi_point))
    }
    return replace(profile, plugins=replace(plugins, **sets))
