"""KubeSchedulerConfiguration: structs, defaults, and complaints that name the field path.

configuration = config.load("scheduler.yaml")
config.effective_plugins(configuration.profiles[0], implements, known)
config.to_dict(configuration)
"""

from moorage.api.config.expansion import (
    Effective,
    Implements,
    effective_plugins,
    effective_profiles,
)
from moorage.api.config.loading import Source, load, to_dict
from moorage.api.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    RequestedToCapacityRatioParam,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from moorage.api.config.plugin_sets import DEFAULT_MULTI_POINT
from moorage.api.config.structs import (
    API_VERSION,
    KIND,
    POINTS,
    ClientConnection,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    LeaderElection,
    Plugin,
    PluginConfig,
    Plugins,
    PluginSet,
    Profile,
    SchedulerConfiguration,
)
from moorage.api.config.validation import problems

__all__ = [
    "API_VERSION",
    "DEFAULT_MULTI_POINT",
    "KIND",
    "POINTS",
    "ClientConnection",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "Effective",
    "Extender",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "Implements",
    "InterPodAffinityArgs",
    "LeaderElection",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "Plugin",
    "PluginConfig",
    "PluginSet",
    "Plugins",
    "PodTopologySpreadArgs",
    "Profile",
    "RequestedToCapacityRatioParam",
    "ResourceSpec",
    "SchedulerConfiguration",
    "ScoringStrategy",
    "Source",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
    "effective_plugins",
    "effective_profiles",
    "load",
    "problems",
    "to_dict",
]
