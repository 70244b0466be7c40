"""The arguments of the built-in plugins, with Kubernetes' defaults.

Plugins that are not in `KINDS` take none, or are somebody else's: theirs stay plain dicts.
"""

from msgspec import field

from moorage.api.config.wire import ConfigData, Int32, Int64, Seconds
from moorage.api.pod import NodeAffinity, TopologySpreadConstraint


class ResourceSpec(ConfigData):
    """A resource and how much it counts."""

    name: str = ""
    weight: Int64 = 1


CPU_AND_MEMORY = (ResourceSpec(name="cpu"), ResourceSpec(name="memory"))


class UtilizationShapePoint(ConfigData):
    """A point of a function from utilization (0 to 100) to score (0 to 10)."""

    utilization: Int32 = 0
    score: Int32 = 0


class RequestedToCapacityRatioParam(ConfigData):
    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(ConfigData):
    """How NodeResourcesFit scores; a strategy that is written down must name its type."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class DefaultPreemptionArgs(ConfigData):
    min_candidate_nodes_percentage: Int32 = 10
    min_candidate_nodes_absolute: Int32 = 100


class DynamicResourcesArgs(ConfigData):
    filter_timeout_seconds: Seconds = field(default=10.0, name="filterTimeout")  # 0 = no limit
    binding_timeout_seconds: Seconds = field(default=600.0, name="bindingTimeout")


class InterPodAffinityArgs(ConfigData):
    hard_pod_affinity_weight: Int32 = 1
    ignore_preferred_terms_of_existing_pods: bool = False


class NodeAffinityArgs(ConfigData):
    added_affinity: NodeAffinity | None = None


class NodeResourcesBalancedAllocationArgs(ConfigData):
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class NodeResourcesFitArgs(ConfigData):
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy = ScoringStrategy(type="LeastAllocated")


class PodTopologySpreadArgs(ConfigData):
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = "System"


class VolumeBindingArgs(ConfigData):
    bind_timeout_seconds: Int64 = 600
    shape: tuple[UtilizationShapePoint, ...] | None = None


KINDS: dict[str, type[ConfigData]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
