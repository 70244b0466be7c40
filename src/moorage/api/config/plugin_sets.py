"""Which plugins a profile has: the default list, and the user's sets merged into it.

Defaults exist in multiPoint only, so at a single point the user's list is taken as it is.
"""

from moorage.api.config.structs import POINTS, Plugin, Plugins, PluginSet

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
    # Before DefaultPreemption: better to free an idle claim than to evict a pod.
    "DynamicResources": 2,
    "DefaultPreemption": None,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
    "DefaultBinder": None,
    "NodeDeclaredFeatures": None,
}
DEFAULT_MULTI_POINT = PluginSet(
    enabled=tuple(Plugin(name=name, weight=weight) for name, weight in _DEFAULT_WEIGHTS.items())
)
DEFAULT_NAMES = frozenset(_DEFAULT_WEIGHTS)
ALL = "*"


def with_defaults(custom: Plugins) -> Plugins:
    """The user's plugin sets with the defaults merged in; merging again changes nothing."""
    points = {point: merge(PluginSet(), getattr(custom, point)) for point in POINTS}
    return Plugins(multi_point=merge(DEFAULT_MULTI_POINT, custom.multi_point), **points)


def merge(default: PluginSet, custom: PluginSet) -> PluginSet:
    """One set over another; what is both enabled and disabled is enabled, but moves to the end."""
    disabled = [Plugin(name=plugin.name) for plugin in (*custom.disabled, *default.disabled)]
    off = {plugin.name for plugin in disabled}
    kept = () if ALL in off else [p for p in default.enabled if p.name not in off]
    # A default that the user configures again keeps its place and takes the user's weight. Of
    # entries that repeat a name the last one counts; the others make the profile fail later on.
    position = {plugin.name: i for i, plugin in enumerate(custom.enabled)}
    in_place = {position[plugin.name] for plugin in kept if plugin.name in position}
    enabled = [custom.enabled[position[p.name]] if p.name in position else p for p in kept]
    enabled += [plugin for i, plugin in enumerate(custom.enabled) if i not in in_place]
    return PluginSet(enabled=tuple(enabled), disabled=tuple(disabled))
