"""What a whole configuration must hold, reported all at once, in Kubernetes' words and order."""

from collections.abc import Iterator, Sequence
from itertools import chain

from moorage.api.config import args_checks, durations, expansion, faults, plugin_args, wire
from moorage.api.config.structs import (
    API_VERSION,
    KIND,
    Extender,
    LeaderElection,
    PluginConfig,
    Profile,
    SchedulerConfiguration,
)

# Plugins that left Kubernetes, and what does their work today.
REPLACEMENTS = {
    "AzureDiskLimits": "NodeVolumeLimits",
    "CinderLimits": "NodeVolumeLimits",
    "EBSLimits": "NodeVolumeLimits",
    "GCEPDLimits": "NodeVolumeLimits",
    "SelectorSpread": "PodTopologySpread",
    "ServiceAffinity": "InterPodAffinity",
}
LEASE_JITTER = 1.2  # How much longer than retryPeriod a retry may take.


def problems(configuration: SchedulerConfiguration) -> list[str]:
    """Everything that is wrong; empty if nothing is."""
    found = chain(
        _connection(configuration),
        _leader_election(configuration.leader_election),
        _parallelism(configuration),
        _profiles(configuration.profiles),
        _percentage(configuration.percentage_of_nodes_to_score, "percentageOfNodesToScore"),
        _backoff(configuration),
        _extenders(configuration.extenders),
    )
    return list(found)


def _connection(configuration: SchedulerConfiguration) -> Iterator[str]:
    burst = configuration.client_connection.burst
    if burst < 0:
        yield faults.invalid("clientConnection.burst", burst, "must be non-negative")


def _leader_election(election: LeaderElection) -> Iterator[str]:
    if not election.leader_elect:
        return
    lease, renew = election.lease_duration_seconds, election.renew_deadline_seconds
    retry = election.retry_period_seconds
    spans = {"leaseDuration": lease, "renewDeadline": renew, "retryPeriod": retry}
    for name, seconds in spans.items():
        if seconds <= 0:
            here = f"leaderElection.{name}"
            yield faults.invalid(here, durations.text(seconds), "must be greater than zero")
    if lease <= renew:
        rule = "must be greater than `RenewDeadline`"
        yield faults.invalid("leaderElection.leaseDuration", durations.text(renew), rule)
    if renew <= LEASE_JITTER * retry:
        rule = "renewDeadline must be greater than retryPeriod*JitterFactor"
        yield faults.invalid("leaderElection.renewDeadline", durations.text(renew), rule)
    for name in ("resource_namespace", "resource_name"):
        if not getattr(election, name):
            yield faults.required(f"leaderElection.{_camel(name)}")
    if (lock := election.resource_lock) != "leases":
        rule = 'resourceLock value must be "leases"'
        yield faults.invalid("leaderElection.resourceLock", lock, rule)


def _parallelism(configuration: SchedulerConfiguration) -> Iterator[str]:
    if configuration.parallelism <= 0:
        rule = "should be an integer value greater than zero"
        yield faults.invalid("parallelism", configuration.parallelism, rule)


def _percentage(percentage: int | None, path: str) -> Iterator[str]:
    if percentage is not None and not 0 <= percentage <= 100:
        yield faults.invalid(path, percentage, "not in valid range [0-100]")


def _backoff(configuration: SchedulerConfiguration) -> Iterator[str]:
    initial, longest = (
        configuration.pod_initial_backoff_seconds,
        configuration.pod_max_backoff_seconds,
    )
    if initial <= 0:
        yield faults.invalid("podInitialBackoffSeconds", initial, "must be greater than 0")
    if longest < initial:
        rule = "must be greater than or equal to PodInitialBackoffSeconds"
        yield faults.invalid("podMaxBackoffSeconds", longest, rule)


def _profiles(profiles: Sequence[Profile]) -> Iterator[str]:
    if not profiles:
        yield faults.required("profiles")
        return
    first_with: dict[str, int] = {}
    for i, profile in enumerate(profiles):
        path = f"profiles[{i}]"
        yield from _profile(profile, path)
        other = first_with.setdefault(profile.scheduler_name, i)
        if other != i:
            yield f"{path}.schedulerName: Duplicate value: profiles[{other}].schedulerName"
    yield from _common_queue_sort(profiles)


def _profile(profile: Profile, path: str) -> Iterator[str]:
    if not profile.scheduler_name:
        yield faults.required(f"{path}.schedulerName")
    here = f"{path}.percentageOfNodesToScore"
    yield from _percentage(profile.percentage_of_nodes_to_score, here)
    for point, plugins in profile.plugins.items():
        for i, plugin in enumerate(plugins.enabled):
            # In multiPoint the defaults stand before the user's own, so an index would mislead.
            index = "" if point == "multi_point" else f"[{i}]"
            yield from _removed(plugin.name, f"{path}.plugins.{_camel(point)}.enabled{index}")
    seen: set[str] = set()
    for i, config in enumerate(profile.plugin_config):
        here = f"{path}.pluginConfig[{i}]"
        if config.name in seen:
            yield faults.duplicate(here, config.name)
        seen.add(config.name)
        yield from _removed(config.name, here)
        yield from _args(config, profile, f"{here}.args")


def _removed(name: str, path: str) -> Iterator[str]:
    if replacement := REPLACEMENTS.get(name):
        rule = f'was invalid in version "v1" ({KIND} is version "{API_VERSION}")'
        yield faults.invalid(path, name, f"{rule}, use {replacement} instead")


def _args(config: PluginConfig, profile: Profile, path: str) -> Iterator[str]:
    kind = plugin_args.KINDS.get(config.name)
    if kind is None:
        return
    if not isinstance(config.args, kind):
        yield faults.invalid(path, wire.write(config.args), "has to match plugin args")
    elif config.name != "NodeResourcesFit":
        yield from args_checks.problems(config.args, path)
    elif config.name in profile.plugins.names():
        # kube-scheduler looks at these arguments only when it builds the plugin, so the text is
        # another one; here it comes early all the same.
        for problem in args_checks.problems(config.args, ""):
            yield f'{expansion.building(profile)}: initializing plugin "{config.name}": {problem}'


def _common_queue_sort(profiles: Sequence[Profile]) -> Iterator[str]:
    """There is one queue for all profiles, so there is one way to sort it."""
    common = profiles[0].plugins.queue_sort
    if (number := len(common.enabled)) > 1:
        rule = "only one queue sort plugin can be enabled"
        yield faults.invalid("profiles[0].plugins.queueSort.Enabled", number, rule)
    name = common.enabled[0].name if common.enabled else ""
    for i, profile in enumerate(profiles[1:], 1):
        if (queue_sort := profile.plugins.queue_sort) != common:
            here, rule = f"profiles[{i}].plugins.queueSort", "must be the same for all profiles"
            yield faults.invalid(here, wire.write(queue_sort), rule)
        if name and (args := profile.args(name)) != profiles[0].args(name):
            rule = "queueSort must be the same for all profiles"
            yield faults.invalid(f"profiles[{i}].pluginConfig.args", wire.write(args), rule)


def _extenders(extenders: Sequence[Extender]) -> Iterator[str]:
    managed: set[str] = set()
    for i, extender in enumerate(extenders):
        path = f"extenders[{i}]"
        if extender.prioritize_verb and extender.weight <= 0:
            rule = "must have a positive weight applied to it"
            yield faults.invalid(f"{path}.weight", extender.weight, rule)
        yield from _tls(extender, f"{path}.tlsConfig")
        for j, resource in enumerate(extender.managed_resources):
            here = f"{path}.managedResources[{j}].name"
            yield from _extended_resource(resource.name, here)
            if resource.name in managed:
                rule = "duplicate extender managed resource name"
                yield faults.invalid(here, resource.name, rule)
            managed.add(resource.name)
    binders = sum(bool(extender.bind_verb) for extender in extenders)
    if binders > 1:
        value = f"found {binders} extenders implementing bind"
        yield faults.invalid("extenders", value, "only one extender can implement bind")


def _tls(extender: Extender, path: str) -> Iterator[str]:
    tls = extender.tls_config
    if tls is not None and tls.insecure and (tls.ca_file or tls.ca_data):
        rule = "specifying a root certificates file with the insecure flag is not allowed"
        yield faults.invalid(f"{path}.insecure", tls.insecure, rule)


def _extended_resource(name: str, path: str) -> Iterator[str]:
    unqualified = list(args_checks.label_name_problems(path, name))
    yield from unqualified
    # Quota writes the name as `requests.<name>`, which has to be a qualified name too.
    for_quota = list(args_checks.label_name_problems(path, f"requests.{name}"))
    native = "/" not in name or "kubernetes.io/" in name or name.startswith("requests.")
    if not unqualified and (native or for_quota):
        yield faults.invalid(path, name, "is an invalid extended resource name")


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)
