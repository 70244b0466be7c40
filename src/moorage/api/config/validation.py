"""Validate a configuration and the arguments of built-in plugins: Kubernetes' texts and order.

All errors are reported at once. Their texts begin with the path of the field.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from moorage.api import labels, requests, selectors
from moorage.api.config import durations, errors, feature_gates, plugin_sets, structs, wire
from moorage.api.pod import TopologySpreadConstraint

# Plugins that Kubernetes has removed, and their replacements.
REPLACEMENTS = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "SelectorSpread": "PodTopologySpread",
    "ServiceAffinity": "InterPodAffinity",
}
LEASE_JITTER = 1.2  # The longest time between two retries, in retryPeriods.


def problems(configuration: structs.SchedulerConfiguration) -> list[str]:
    """All errors of a configuration."""
    return list(_problems(configuration))


def _problems(configuration: structs.SchedulerConfiguration) -> Iterator[str]:
    if (burst := configuration.client_connection.burst) < 0:
        yield errors.invalid("clientConnection.burst", burst, "must be non-negative")
    yield from _leader_election(configuration.leader_election)
    if configuration.parallelism <= 0:
        rule = "should be an integer value greater than zero"
        yield errors.invalid("parallelism", configuration.parallelism, rule)
    yield from _profiles(configuration.profiles)
    percentage = configuration.percentage_of_nodes_to_score
    yield from _percentage(percentage, "percentageOfNodesToScore")
    initial = configuration.pod_initial_backoff_seconds
    if initial <= 0:
        yield errors.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if (longest := configuration.pod_max_backoff_seconds) < initial:
        rule = "must be greater than or equal to PodInitialBackoffSeconds"
        yield errors.invalid("podMaxBackoffSeconds", longest, rule)
    yield from _extenders(configuration.extenders)
    yield from feature_gates.problems(configuration.feature_gates)


def _leader_election(election: structs.LeaderElection) -> Iterator[str]:
    if not election.leader_elect:
        return
    lease, renew = election.lease_duration_seconds, election.renew_deadline_seconds
    retry = election.retry_period_seconds
    spans = {"leaseDuration": lease, "renewDeadline": renew, "retryPeriod": retry}
    for name, seconds in spans.items():
        if seconds <= 0:
            here = f"leaderElection.{name}"
            yield errors.invalid(here, durations.text(seconds), "must be greater than zero")
    if lease <= renew:
        rule = "must be greater than `RenewDeadline`"
        yield errors.invalid("leaderElection.leaseDuration", durations.text(renew), rule)
    if renew <= LEASE_JITTER * retry:
        rule = "renewDeadline must be greater than retryPeriod*JitterFactor"
        yield errors.invalid("leaderElection.renewDeadline", durations.text(renew), rule)
    for name in ("resource_namespace", "resource_name"):
        if not getattr(election, name):
            yield errors.required(f"leaderElection.{_camel(name)}")
    if (lock := election.resource_lock) != "leases":
        rule = 'resourceLock value must be "leases"'
        yield errors.invalid("leaderElection.resourceLock", lock, rule)


def _percentage(percentage: int | None, path: str) -> Iterator[str]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield errors.invalid(path, percentage, "not in valid range [0-100]")


def _profiles(profiles: Sequence[structs.KubeSchedulerProfile]) -> Iterator[str]:
    if not profiles:
        yield errors.required("profiles")
        return
    first_with: dict[str, int] = {}
    for i, profile in enumerate(profiles):
        path = f"profiles[{i}]"
        yield from _profile(profile, path)
        other = first_with.setdefault(profile.scheduler_name, i)
        if other != i:
            yield f"{path}.schedulerName: Duplicate value: profiles[{other}].schedulerName"
    yield from _common_queue_sort(profiles)


def _profile(profile: structs.KubeSchedulerProfile, path: str) -> Iterator[str]:
    if not profile.scheduler_name:
        yield errors.required(f"{path}.schedulerName")
    here = f"{path}.percentageOfNodesToScore"
    yield from _percentage(profile.percentage_of_nodes_to_score, here)
    for point, plugins in profile.plugins.items():
        for i, plugin in enumerate(plugins.enabled):
            # In multiPoint the defaults precede the user's plugins, so an index would mislead.
            index = "" if point == "multi_point" else f"[{i}]"
            yield from _removed(plugin.name, f"{path}.plugins.{_camel(point)}.enabled{index}")
    seen: set[str] = set()
    for i, config in enumerate(profile.plugin_config):
        here = f"{path}.pluginConfig[{i}]"
        if config.name in seen:
            yield errors.duplicate(here, config.name)
        seen.add(config.name)
        yield from _removed(config.name, here)
        yield from _args(config, profile, f"{here}.args")


def _removed(name: str, path: str) -> Iterator[str]:
    if replacement := REPLACEMENTS.get(name):
        rule = f'was invalid in version "v1" ({structs.KIND} is version "{structs.API_VERSION}")'
        yield errors.invalid(path, name, f"{rule}, use {replacement} instead")


def _args(
    config: structs.PluginConfig, profile: structs.KubeSchedulerProfile, path: str
) -> Iterator[str]:
    kind = structs.ARGS.get(config.name)
    if kind is None:
        return
    if not isinstance(config.args, kind):
        yield errors.invalid(path, wire.write(config.args), "has to match plugin args")
    elif config.name != "NodeResourcesFit":
        yield from args_problems(config.args, path)
    elif config.name in profile.plugins.names():
        # kube-scheduler validates these arguments when it constructs the plugin, so the text
        # differs. Here they are validated with the rest.
        for problem in args_problems(config.args, ""):
            yield f'{plugin_sets.building(profile)}: initializing plugin "{config.name}": {problem}'


def _common_queue_sort(profiles: Sequence[structs.KubeSchedulerProfile]) -> Iterator[str]:
    """All profiles share one queue, so they must sort it equally."""
    common = profiles[0].plugins.queue_sort
    if (number := len(common.enabled)) > 1:
        rule = "only one queue sort plugin can be enabled"
        yield errors.invalid("profiles[0].plugins.queueSort.Enabled", number, rule)
    name = common.enabled[0].name if common.enabled else ""
    for i, profile in enumerate(profiles[1:], 1):
        if (queue_sort := profile.plugins.queue_sort) != common:
            here, rule = f"profiles[{i}].plugins.queueSort", "must be the same for all profiles"
            yield errors.invalid(here, wire.write(queue_sort), rule)
        if name and (args := profile.args(name)) != profiles[0].args(name):
            rule = "queueSort must be the same for all profiles"
            yield errors.invalid(f"profiles[{i}].pluginConfig.args", wire.write(args), rule)


def _extenders(extenders: Sequence[structs.Extender]) -> Iterator[str]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path = f"extenders[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            rule = "must have a positive weight applied to it"
            yield errors.invalid(f"{path}.weight", extender.weight, rule)
        tls = extender.tls_config
        if tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
            rule = "specifying a root certificates file with the insecure flag is not allowed"
            yield errors.invalid(f"{path}.tlsConfig.insecure", tls.insecure, rule)
        for j, resource in enumerate(extender.managed_resources):
            here = f"{path}.managedResources[{j}].name"
            yield from _extended_resource(resource.name, here)
            if resource.name in managed:
                rule = "duplicate extender managed resource name"
                yield errors.invalid(here, resource.name, rule)
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        value = f"found {binders} extenders implementing bind"
        yield errors.invalid("extenders", value, "only one extender can implement bind")


def _extended_resource(name: str, path: str) -> Iterator[str]:
    unqualified = list(label_name_problems(path, name))
    yield from unqualified
    if not unqualified and not requests.is_extended(name):
        yield errors.invalid(path, name, "is an invalid extended resource name")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
RATIO = "RequestedToCapacityRatio"
PERCENTAGE = "not in valid range [0, 100]"


def args_problems(args: object, path: str) -> Iterator[str]:
    """All errors of a plugin's arguments; `path` is that of the arguments."""
    yield from ARGS_CHECKS[type(args)](args, path)


def label_name_problems(path: str, name: str) -> Iterator[str]:
    """The errors of a name that has to be a valid label key."""
    for problem in labels.key_problems(name):
        yield errors.invalid(path, name, problem)


def _default_preemption(args: structs.DefaultPreemptionArgs, path: str) -> Iterator[str]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = errors.at(path, "minCandidateNodesPercentage")
    absolute_path = errors.at(path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        yield errors.invalid(percentage_path, percentage, PERCENTAGE)
    if absolute < 0:
        yield errors.invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        rule = "cannot be zero at the same time as"
        yield errors.invalid(percentage_path, percentage, f"{rule} minCandidateNodesAbsolute")
        yield errors.invalid(absolute_path, absolute, f"{rule} minCandidateNodesPercentage")


def _dynamic_resources(args: structs.DynamicResourcesArgs, path: str) -> Iterator[str]:
    if (seconds := args.filter_timeout_seconds) < 0:
        here = errors.at(path, "filterTimeout")
        yield errors.invalid(here, durations.text(seconds), "must be zero or positive")
    if (seconds := args.binding_timeout_seconds) < 1:
        here = errors.at(path, "bindingTimeout")
        yield errors.invalid(here, durations.text(seconds), "must be at least 1 second")


def _inter_pod_affinity(args: structs.InterPodAffinityArgs, path: str) -> Iterator[str]:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        yield errors.invalid(errors.at(path, "hardPodAffinityWeight"), weight, PERCENTAGE)


def _node_affinity(args: structs.NodeAffinityArgs, path: str) -> Iterator[str]:
    if args.added_affinity is None:
        return
    required, preferred = args.added_affinity.required, args.added_affinity.preferred
    here = errors.at(path, "addedAffinity")
    try:
        if required is not None:
            terms = f"{here}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
            selectors.compile_node_selector_terms(required.node_selector_terms, terms)
    except selectors.SelectorError as error:
        yield from error.problems
    try:
        terms = f"{here}.preferredDuringSchedulingIgnoredDuringExecution"
        selectors.compile_preferred(preferred or (), terms)
    except selectors.SelectorError as error:
        yield from error.problems


def _balanced_allocation(
    args: structs.NodeResourcesBalancedAllocationArgs, path: str
) -> Iterator[str]:
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        here = f"{errors.at(path, 'resources')}[{i}]"
        if resource.name in seen:
            yield errors.duplicate(f"{here}.name", resource.name)
        if resource.weight != 1:
            yield errors.invalid(f"{here}.weight", resource.weight, "must be 1")
        seen.add(resource.name)


def _fit(args: structs.NodeResourcesFitArgs, path: str) -> Iterator[str]:
    for i, resource in enumerate(args.ignored_resources):
        yield from label_name_problems(f"{errors.at(path, 'ignoredResources')}[{i}]", resource)
    for i, group in enumerate(args.ignored_resource_groups):
        here = f"{errors.at(path, 'ignoredResourceGroups')}[{i}]"
        if "/" in group:
            yield errors.invalid(here, group, "resource group name can't contain '/'")
        yield from label_name_problems(here, group)
    yield from _strategy(args.scoring_strategy, errors.at(path, "scoringStrategy"))


def _strategy(strategy: structs.ScoringStrategy, path: str) -> Iterator[str]:
    if strategy.type not in STRATEGIES:
        yield errors.unsupported(f"{path}.type", strategy.type, STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            rule = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield errors.invalid(f"{path}.resources[{i}].weight", resource.weight, rule)
    here, ratio = f"{path}.requestedToCapacityRatio", strategy.requested_to_capacity_ratio
    if strategy.type == RATIO and ratio is None:
        yield errors.required(here, f"must be specified when type is {RATIO}")
    elif strategy.type == RATIO and ratio is not None:
        yield from _shape(ratio.shape, f"{here}.shape")
    elif ratio is not None:
        yield errors.forbidden(here, f"must be nil when type is not {RATIO}")


def _shape(shape: Sequence[structs.UtilizationShapePoint], path: str) -> Iterator[str]:
    if not shape:
        yield errors.required(path, "at least one point must be specified")
    for i in range(1, len(shape)):
        if shape[i].utilization <= shape[i - 1].utilization:
            rule = "values must be sorted in increasing order"
            yield errors.invalid(f"{path}[{i}].utilization", shape[i].utilization, rule)
            break  # The points behind it would be reported too.
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield errors.invalid(f"{path}[{i}].utilization", point.utilization, PERCENTAGE)
        if not 0 <= point.score <= 10:
            yield errors.invalid(f"{path}[{i}].score", point.score, "not in valid range [0, 10]")


def _spread(args: structs.PodTopologySpreadArgs, path: str) -> Iterator[str]:
    here, defaulting = errors.at(path, "defaultingType"), args.defaulting_type
    if defaulting not in ("System", "List"):
        yield errors.unsupported(here, defaulting, ("System", "List"))
    elif defaulting == "System" and args.default_constraints:
        yield errors.invalid(here, defaulting, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        here = f"{errors.at(path, 'defaultConstraints')}[{i}]"
        yield from _constraint(constraint, here)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            yield errors.duplicate(here, f"{{{key[0]}, {key[1]}}}")
        seen.add(key)


def _constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[str]:
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.max_skew <= 0:
        rule = "not in valid range (0, inf)"
        yield errors.invalid(f"{path}.maxSkew", constraint.max_skew, rule)
    if not constraint.topology_key:
        yield errors.required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from label_name_problems(f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        yield errors.required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        here = f"{path}.whenUnsatisfiable"
        yield errors.unsupported(here, constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        rule = "constraint must not define a selector, as they deduced for each pod"
        yield errors.forbidden(f"{path}.labelSelector", rule)


def _volume_binding(args: structs.VolumeBindingArgs, path: str) -> Iterator[str]:
    if args.bind_timeout_seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        yield errors.invalid(errors.at(path, "bindTimeoutSeconds"), args.bind_timeout_seconds, rule)
    if args.shape is not None:  # Its feature gate is off in Kubernetes 1.36.
        rule = "unexpected field `shape`, remove it or turn on the feature gate"
        value = wire.write(args.shape)
        yield errors.invalid(errors.at(path, "shape"), value, f"{rule} StorageCapacityScoring")


ARGS_CHECKS: dict[type, Callable[[Any, str], Iterator[str]]] = {
    structs.DefaultPreemptionArgs: _default_preemption,
    structs.DynamicResourcesArgs: _dynamic_resources,
    structs.InterPodAffinityArgs: _inter_pod_affinity,
    structs.NodeAffinityArgs: _node_affinity,
    structs.NodeResourcesBalancedAllocationArgs: _balanced_allocation,
    structs.NodeResourcesFitArgs: _fit,
    structs.PodTopologySpreadArgs: _spread,
    structs.VolumeBindingArgs: _volume_binding,
}
