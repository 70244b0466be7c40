"""KubeSchedulerConfiguration v1 as frozen data, with Kubernetes' defaults.

One thing differs from kube-scheduler: `percentage_of_nodes_to_score` left unset (None) means that
all nodes are scored. A value that is set, 0 for adaptive included, samples as kube-scheduler does.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from msgspec import field

from moorage.api.config.wire import ConfigData, Int32, Int64, Seconds

API_VERSION = "kubescheduler.config.k8s.io/v1"
KIND = "KubeSchedulerConfiguration"

# In the order in which a pod meets them; multiPoint is not a point but a shorthand for all.
POINTS = (
    "pre_enqueue",
    "queue_sort",
    "pre_filter",
    "filter",
    "post_filter",
    "pre_score",
    "score",
    "reserve",
    "permit",
    "pre_bind",
    "bind",
    "post_bind",
    "placement_generate",
    "placement_score",
)


class Plugin(ConfigData):
    """A plugin by name; the weight matters at score and placementScore only."""

    name: str = ""
    weight: Int32 | None = None


class PluginSet(ConfigData):
    """What is switched on and off at one point; disabled `*` is everything."""

    enabled: tuple[Plugin, ...] = ()
    disabled: tuple[Plugin, ...] = ()


class Plugins(ConfigData):
    """The plugin sets of a profile."""

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
        """Every plugin that is enabled somewhere."""
        return {plugin.name for _, plugins in self.items() for plugin in plugins.enabled}


class PluginConfig(ConfigData):
    """A plugin's arguments: a struct of `plugin_args`, a plain dict for other plugins, or None."""

    name: str = ""
    args: Any = None


class Profile(ConfigData):
    """One scheduler name with its plugins; once loaded, the defaults are merged in."""

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Int32 | None = None
    plugins: Plugins = Plugins()
    plugin_config: tuple[PluginConfig, ...] = ()

    def args(self, plugin: str) -> Any:
        """The arguments of a plugin, None if it has none."""
        return next((config.args for config in self.plugin_config if config.name == plugin), None)


class ClientConnection(ConfigData):
    """How to reach the API server."""

    kubeconfig: str = ""
    accept_content_types: str = ""
    content_type: str = "application/vnd.kubernetes.protobuf"
    qps: float = 50.0
    burst: Int32 = 100


class LeaderElection(ConfigData):
    """Who may schedule, when several are running."""

    leader_elect: bool = True
    lease_duration_seconds: Seconds = field(default=15.0, name="leaseDuration")
    renew_deadline_seconds: Seconds = field(default=10.0, name="renewDeadline")
    retry_period_seconds: Seconds = field(default=2.0, name="retryPeriod")
    resource_lock: str = "leases"
    resource_name: str = "kube-scheduler"
    resource_namespace: str = "kube-system"


class ExtenderTLSConfig(ConfigData):
    """Certificates for an extender; data beats files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


class ExtenderManagedResource(ConfigData):
    """An extended resource that an extender looks after."""

    name: str = ""
    ignored_by_scheduler: bool = False


class Extender(ConfigData):
    """A web service that is asked too; an empty verb is one that it does not offer."""

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
    """A whole configuration; `base_dir` is where plugins given by a relative path are found."""

    parallelism: Int32 = 16
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    enable_profiling: bool = True
    enable_contention_profiling: bool = True
    percentage_of_nodes_to_score: Int32 | None = None
    pod_initial_backoff_seconds: Int64 = 1
    pod_max_backoff_seconds: Int64 = 10
    profiles: tuple[Profile, ...] = ()
    extenders: tuple[Extender, ...] = ()
    delay_cache_until_active: bool = False
    base_dir: Path = Path()
