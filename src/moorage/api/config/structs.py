"""KubeSchedulerConfiguration v1 and the arguments of the built-in plugins, with their defaults.

One difference from kube-scheduler: without `percentage_of_nodes_to_score` (None) all nodes are
scored. A value, including 0 for adaptive, samples as kube-scheduler does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import field

from moorage.api.config.wire import ConfigData, Int32, Int64, Seconds
from moorage.api.pod import NodeAffinity, TopologySpreadConstraint

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"


class PluginEntry(ConfigData):
    """A plugin by name; the weight matters at score and placementScore only."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(ConfigData):
    """The plugins that are enabled and disabled at one point; a disabled `*` means all."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()


class Plugins(ConfigData):
    """The plugin sets of a profile, in the order in which the extension points run."""

    pre_enqueue: PluginSet = PluginSet()
    queue_sort: PluginSet = PluginSet()
    pre_filter: PluginSet = PluginSet()
    filter: PluginSet = PluginSet()
    post_filter: PluginSet = PluginSet()
    pre_score: PluginSet = PluginSet()
    score: PluginSet = PluginSet()
    reserve: PluginSet = PluginSet()
    permit: PluginSet = PluginSet()
    pre_bind: PluginSet = PluginSet()
    bind: PluginSet = PluginSet()
    post_bind: PluginSet = PluginSet()
    multi_point: PluginSet = PluginSet()
    placement_generate: PluginSet = PluginSet()
    placement_score: PluginSet = PluginSet()

    def items(self) -> Iterator[tuple[str, PluginSet]]:
        """Every set with its name, `multi_point` last."""
        for name in (*POINTS, "multi_point"):
            yield name, getattr(self, name)

    def names(self) -> set[str]:
        """Every plugin that is enabled at one point or more."""
        return {plugin.name for _, plugins in self.items() for plugin in plugins.enabled}


# multiPoint is not a point but a shorthand for all.
POINTS = tuple(name for name in Plugins.__struct_fields__ if name != "multi_point")


class PluginConfig(ConfigData):
    """A plugin's arguments: a struct of `ARGS`, a plain dict for other plugins, or None."""

    name: str = ""
    args: Any = None


class KubeSchedulerProfile(ConfigData):
    """One scheduler name with its plugins; once loaded, the defaults are merged in."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def args(self, plugin: str) -> Any:
        """The arguments of a plugin, None if it has none."""
        return next((config.args for config in self.plugin_config if config.name == plugin), None)


class ClientConnection(ConfigData):
    """Settings of the connection to the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class LeaderElection(ConfigData):
    """Settings of leader election among several schedulers."""

    leader_elect: bool = True
    lease_duration_seconds: Seconds = field(default=15.0, name="leaseDuration")
    renew_deadline_seconds: Seconds = field(default=10.0, name="renewDeadline")
    retry_period_seconds: Seconds = field(default=2.0, name="retryPeriod")
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ExtenderTLSConfig(ConfigData):
    """Certificates for an extender; data has precedence over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(ConfigData):
    """An extended resource that an extender manages."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(ConfigData):
    """An HTTP service that takes part in scheduling; it does not support a verb that is empty."""

    url_prefix: str = ""
    filter_verb: str = ""
    preempt_verb: str = ""
    prioritize_verb: str = ""
    weight: Int64 = 0
    bind_verb: str = ""
    enable_https: bool = field(default=False, name="enableHTTPS")
    tls_config: ExtenderTLSConfig | None = None
    http_timeout_seconds: Seconds = field(default=5.0, name="httpTimeout")
    node_cache_capable: bool = False
    managed_resources: tuple[ExtenderManagedResource, ...] = ()
    ignorable: bool = False


class SchedulerConfiguration(ConfigData):
    """A whole configuration; `base_dir` is the folder for relative paths of plugins."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[KubeSchedulerProfile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    # Not Kubernetes', where gates are options of the command line only.
    feature_gates: dict[str, bool] = {}
    base_dir: Path = Path()


class ResourceSpec(ConfigData):
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
    """How NodeResourcesFit scores; a strategy in a file must state its type."""

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


# The arguments of the plugins that have any; those of users' plugins stay plain dicts.
ARGS: dict[str, type[ConfigData]] = {
    "DefaultPreemption": DefaultPreemptionArgs,
    "DynamicResources": DynamicResourcesArgs,
    "InterPodAffinity": InterPodAffinityArgs,
    "NodeAffinity": NodeAffinityArgs,
    "NodeResourcesBalancedAllocation": NodeResourcesBalancedAllocationArgs,
    "NodeResourcesFit": NodeResourcesFitArgs,
    "PodTopologySpread": PodTopologySpreadArgs,
    "VolumeBinding": VolumeBindingArgs,
}
