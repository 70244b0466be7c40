"""What is filled in after a configuration was read, beyond the structs' own defaults.

Kubernetes treats several zero values as unset; a file that leans on that has to work here too.
"""

from msgspec import structs

from moorage.api.config import plugin_args, plugin_sets
from moorage.api.config.plugin_args import (
    CPU_AND_MEMORY,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
)
from moorage.api.config.structs import (
    ClientConnection,
    Extender,
    LeaderElection,
    PluginConfig,
    Profile,
    SchedulerConfiguration,
)
from moorage.api.config.wire import S


def complete(configuration: SchedulerConfiguration) -> SchedulerConfiguration:
    """The configuration with nothing left to be decided by whoever reads it."""
    ignored = tuple(
        resource.name
        for extender in configuration.extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler
    )
    return structs.replace(
        configuration,
        leader_election=_or_default(configuration.leader_election, LeaderElection()),
        client_connection=_or_default(configuration.client_connection, ClientConnection()),
        profiles=tuple(_profile(profile, ignored) for profile in configuration.profiles),
        extenders=tuple(_extender(extender) for extender in configuration.extenders),
    )


def _or_default(given: S, default: S) -> S:
    """Zeros and empty texts replaced; False is an answer, not a gap."""
    gaps = {
        name: getattr(default, name)
        for name in given.__struct_fields__
        if not (value := getattr(given, name)) and value is not False
    }
    return structs.replace(given, **gaps)


def _extender(extender: Extender) -> Extender:
    seconds = extender.http_timeout_seconds or Extender().http_timeout_seconds
    return structs.replace(extender, http_timeout_seconds=seconds)


def _profile(profile: Profile, ignored: tuple[str, ...]) -> Profile:
    plugins = plugin_sets.with_defaults(profile.plugins)
    configured = {config.name for config in profile.plugin_config}
    missing = sorted(plugins.names() & plugin_args.KINDS.keys() - configured)
    configs = (
        *profile.plugin_config,
        *(PluginConfig(name=name, args=plugin_args.KINDS[name]()) for name in missing),
    )
    return structs.replace(
        profile,
        plugins=plugins,
        plugin_config=tuple(
            structs.replace(config, args=_args(config.args, ignored)) for config in configs
        ),
    )


def _args(args: object, ignored: tuple[str, ...]) -> object:
    match args:
        case NodeResourcesFitArgs(scoring_strategy=strategy):
            # What extenders look after replaces the list, as in kube-scheduler.
            return structs.replace(
                args,
                ignored_resources=ignored or args.ignored_resources,
                scoring_strategy=structs.replace(strategy, resources=_weighed(strategy.resources)),
            )
        case NodeResourcesBalancedAllocationArgs(resources=resources):
            return structs.replace(args, resources=_weighed(resources))
        case PodTopologySpreadArgs(defaulting_type=""):
            return structs.replace(args, defaulting_type="System")
        case _:
            return args


def _weighed(resources: tuple[ResourceSpec, ...]) -> tuple[ResourceSpec, ...]:
    return (
        tuple(structs.replace(resource, weight=resource.weight or 1) for resource in resources)
        or CPU_AND_MEMORY
    )
