"""What the arguments of a built-in plugin must hold.

Paths in the texts begin at `path`, which is the place of the arguments in the file.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from moorage.api import labels, selectors
from moorage.api.config import durations, faults, wire
from moorage.api.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from moorage.api.pod import TopologySpreadConstraint

STRATEGIES = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")
RATIO = "RequestedToCapacityRatio"
PERCENTAGE = "not in valid range [0, 100]"


def problems(args: object, path: str) -> Iterator[str]:
    """Everything that is wrong with the arguments."""
    yield from CHECKS[type(args)](args, path)


def label_name_problems(path: str, name: str) -> Iterator[str]:
    """What is wrong with a name that follows the rules of label keys."""
    for problem in labels.key_problems(name):
        yield faults.invalid(path, name, problem)


def _default_preemption(args: DefaultPreemptionArgs, path: str) -> Iterator[str]:
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    percentage_path = faults.at(path, "minCandidateNodesPercentage")
    absolute_path = faults.at(path, "minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        yield faults.invalid(percentage_path, percentage, PERCENTAGE)
    if absolute < 0:
        yield faults.invalid(absolute_path, absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        rule = "cannot be zero at the same time as"
        yield faults.invalid(percentage_path, percentage, f"{rule} minCandidateNodesAbsolute")
        yield faults.invalid(absolute_path, absolute, f"{rule} minCandidateNodesPercentage")


def _dynamic_resources(args: DynamicResourcesArgs, path: str) -> Iterator[str]:
    if (seconds := args.filter_timeout_seconds) < 0:
        here = faults.at(path, "filterTimeout")
        yield faults.invalid(here, durations.text(seconds), "must be zero or positive")
    if (seconds := args.binding_timeout_seconds) < 1:
        here = faults.at(path, "bindingTimeout")
        yield faults.invalid(here, durations.text(seconds), "must be at least 1 second")


def _inter_pod_affinity(args: InterPodAffinityArgs, path: str) -> Iterator[str]:
    weight = args.hard_pod_affinity_weight
    if not 0 <= weight <= 100:
        yield faults.invalid(faults.at(path, "hardPodAffinityWeight"), weight, PERCENTAGE)


def _node_affinity(args: NodeAffinityArgs, path: str) -> Iterator[str]:
    if args.added_affinity is None:
        return
    required, preferred = args.added_affinity.required, args.added_affinity.preferred
    here = faults.at(path, "addedAffinity")
    try:
        if required is not None:
            place = f"{here}.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
            selectors.compile_node_selector_terms(required.node_selector_terms, place)
    except selectors.SelectorError as error:
        yield from error.problems
    try:
        place = f"{here}.preferredDuringSchedulingIgnoredDuringExecution"
        selectors.compile_preferred(preferred or (), place)
    except selectors.SelectorError as error:
        yield from error.problems


def _balanced_allocation(args: NodeResourcesBalancedAllocationArgs, path: str) -> Iterator[str]:
    seen: set[str] = set()
    for i, resource in enumerate(args.resources):
        here = f"{faults.at(path, 'resources')}[{i}]"
        if resource.name in seen:
            yield faults.duplicate(f"{here}.name", resource.name)
        if resource.weight != 1:
            yield faults.invalid(f"{here}.weight", resource.weight, "must be 1")
        seen.add(resource.name)


def _fit(args: NodeResourcesFitArgs, path: str) -> Iterator[str]:
    for i, resource in enumerate(args.ignored_resources):
        yield from label_name_problems(f"{faults.at(path, 'ignoredResources')}[{i}]", resource)
    for i, group in enumerate(args.ignored_resource_groups):
        here = f"{faults.at(path, 'ignoredResourceGroups')}[{i}]"
        if "/" in group:
            yield faults.invalid(here, group, "resource group name can't contain '/'")
        yield from label_name_problems(here, group)
    yield from _strategy(args.scoring_strategy, faults.at(path, "scoringStrategy"))


def _strategy(strategy: ScoringStrategy, path: str) -> Iterator[str]:
    if strategy.type not in STRATEGIES:
        yield faults.unsupported(f"{path}.type", strategy.type, STRATEGIES)
    for i, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            rule = f"resource weight of {resource.name} not in valid range (0, 100]"
            yield faults.invalid(f"{path}.resources[{i}].weight", resource.weight, rule)
    here, ratio = f"{path}.requestedToCapacityRatio", strategy.requested_to_capacity_ratio
    if strategy.type == RATIO and ratio is None:
        yield faults.required(here, f"must be specified when type is {RATIO}")
    elif strategy.type == RATIO and ratio is not None:
        yield from _shape(ratio.shape, f"{here}.shape")
    elif ratio is not None:
        yield faults.forbidden(here, f"must be nil when type is not {RATIO}")


def _shape(shape: Sequence[UtilizationShapePoint], path: str) -> Iterator[str]:
    if not shape:
        yield faults.required(path, "at least one point must be specified")
    for i in range(1, len(shape)):
        if shape[i].utilization <= shape[i - 1].utilization:
            rule = "values must be sorted in increasing order"
            yield faults.invalid(f"{path}[{i}].utilization", shape[i].utilization, rule)
            break  # One point out of order puts many behind it out of order.
    for i, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            yield faults.invalid(f"{path}[{i}].utilization", point.utilization, PERCENTAGE)
        if not 0 <= point.score <= 10:
            yield faults.invalid(f"{path}[{i}].score", point.score, "not in valid range [0, 10]")


def _spread(args: PodTopologySpreadArgs, path: str) -> Iterator[str]:
    here, defaulting = faults.at(path, "defaultingType"), args.defaulting_type
    if defaulting not in ("System", "List"):
        yield faults.unsupported(here, defaulting, ("System", "List"))
    elif defaulting == "System" and args.default_constraints:
        yield faults.invalid(here, defaulting, "when .defaultConstraints are not empty")
    seen: set[tuple[str, str]] = set()
    for i, constraint in enumerate(args.default_constraints):
        place = f"{faults.at(path, 'defaultConstraints')}[{i}]"
        yield from _constraint(constraint, place)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if key in seen:
            yield faults.duplicate(place, f"{{{key[0]}, {key[1]}}}")
        seen.add(key)


def _constraint(constraint: TopologySpreadConstraint, path: str) -> Iterator[str]:
    actions = ("DoNotSchedule", "ScheduleAnyway")
    if constraint.max_skew <= 0:
        rule = "not in valid range (0, inf)"
        yield faults.invalid(f"{path}.maxSkew", constraint.max_skew, rule)
    if not constraint.topology_key:
        yield faults.required(f"{path}.topologyKey", "can not be empty")
    else:
        yield from label_name_problems(f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        yield faults.required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in actions:
        here = f"{path}.whenUnsatisfiable"
        yield faults.unsupported(here, constraint.when_unsatisfiable, actions)
    if constraint.label_selector is not None:
        rule = "constraint must not define a selector, as they deduced for each pod"
        yield faults.forbidden(f"{path}.labelSelector", rule)


def _volume_binding(args: VolumeBindingArgs, path: str) -> Iterator[str]:
    if args.bind_timeout_seconds < 0:
        rule = "invalid BindTimeoutSeconds, should not be a negative value"
        yield faults.invalid(faults.at(path, "bindTimeoutSeconds"), args.bind_timeout_seconds, rule)
    if args.shape is not None:  # It belongs to a feature that is off in Kubernetes 1.36.
        rule = "unexpected field `shape`, remove it or turn on the feature gate"
        value = wire.write(args.shape)
        yield faults.invalid(faults.at(path, "shape"), value, f"{rule} StorageCapacityScoring")


CHECKS: dict[type, Callable[[Any, str], Iterator[str]]] = {
    DefaultPreemptionArgs: _default_preemption,
    DynamicResourcesArgs: _dynamic_resources,
    InterPodAffinityArgs: _inter_pod_affinity,
    NodeAffinityArgs: _node_affinity,
    NodeResourcesBalancedAllocationArgs: _balanced_allocation,
    NodeResourcesFitArgs: _fit,
    PodTopologySpreadArgs: _spread,
    VolumeBindingArgs: _volume_binding,
}
