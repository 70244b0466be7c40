"""KubeSchedulerConfiguration: structs, defaults, validation with field paths.

configuration = config.load("scheduler.yaml")
config.effective_plugins(configuration.profiles[0], implements, known)
config.to_dict(configuration)
"""

from moorage.api.config import feature_gates
from moorage.api.config.loading import Source, load, to_dict
from moorage.api.config.plugin_sets import effective_plugins, effective_profiles
from moorage.api.config.structs import (
    API_VERSION,
    KIND,
    Extender,
    ExtenderManagedResource,
    ExtenderTLSConfig,
    KubeSchedulerProfile,
    LeaderElection,
    PluginEntry,
    PluginSet,
    SchedulerConfiguration,
)
from moorage.api.config.validation import problems

__all__ = [
    "API_VERSION",
    "KIND",
    "Extender",
    "ExtenderManagedResource",
    "ExtenderTLSConfig",
    "KubeSchedulerProfile",
    "LeaderElection",
    "PluginEntry",
    "PluginSet",
    "SchedulerConfiguration",
    "Source",
    "effective_plugins",
    "effective_profiles",
    "feature_gates",
    "load",
    "problems",
    "to_dict",
]
