"""CycleState: one cycle's scratch data under typed keys, and the cluster that it looks at.

What a plugin wrote in pre_filter or pre_score is kept per template where the plugin's answers
allow it; a cycle's own state lies on top of that. So a plugin treats what it finds as read-only
and writes what is new under its own keys.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct

from moorage.errors import PluginFailure
from moorage.framework.cluster import Cluster
from moorage.framework.invoke import guard
from moorage.nodes.table import NodeTable

if TYPE_CHECKING:
    from moorage.api.meta import KubeObject
    from moorage.api.pod import Pod
    from moorage.nodes.template import PodTemplate

T = TypeVar("T")
D = TypeVar("D")

NO_PLUGINS: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class StateKey(Generic[T]):
    """A name for a piece of state, and the type of what lies under it.

    `missing` is the error for a plugin that reads it where nothing was written, because the profile
    does not call the plugin at the point that writes it. Without it the error names the key.
    """

    name: str
    missing: str = ""


# The points at which the profile calls each plugin.
CALLED_AT = StateKey[Mapping[str, frozenset[str]]]("core.called_at")
# Whether permit is called for a pod whose group is still being decided.
IN_POD_GROUP_CYCLE = StateKey[bool]("core.in_pod_group_cycle")


class CycleState(Struct, eq=False):
    """Scratch data of one pod's way through its cycles."""

    cluster: Cluster
    table: NodeTable
    template: "PodTemplate"
    now: float
    # Plugins that have nothing to do with such pods, at any point.
    idle: frozenset[str] = NO_PLUGINS
    _below: "CycleState | None" = None
    _own: dict[str, Any] = {}
    # Pods that a plugin wants back in the queue once this pod is through.
    to_activate: "dict[str, Pod]" = {}
    # Objects that requests of pre_bind plugins wrote, as the API server returned them.
    written: "list[KubeObject]" = []
    # How many requests of pre_bind plugins were carried out, also after the binding failed.
    done: int = 0
    # What the plugins of the binding cycle measured: metric, labels, value. The core moves it to
    # the journal.
    measured: tuple[tuple[str, tuple[str, ...], float], ...] = ()

    @classmethod
    def of(
        cls,
        cluster: Cluster,
        template: "PodTemplate",
        now: float = 0.0,
        below: "CycleState | None" = None,
    ) -> "CycleState":
        """An empty state for a pod of a template, on top of another one if there is one below."""
        idle = NO_PLUGINS if below is None else below.idle
        return cls(cluster, cluster.table, template, now, idle, below)

    def __getitem__(self, key: StateKey[T]) -> T:
        name, layer = key.name, self
        while name not in layer._own:
            if layer._below is None:
                raise PluginFailure(key.missing) if key.missing else KeyError(f"{name}: not found")
            layer = layer._below
        found: T = layer._own[name]
        return found

    def __setitem__(self, key: StateKey[T], value: T) -> None:
        self._own[key.name] = value

    def __contains__(self, key: StateKey[Any]) -> bool:
        name, layer = key.name, self
        while name not in layer._own:
            if layer._below is None:
                return False
            layer = layer._below
        return True

    def get(self, key: StateKey[T], default: D) -> T | D:
        """What lies under a key, or the default."""
        name, layer = key.name, self
        while name not in layer._own:
            if layer._below is None:
                return default
            layer = layer._below
        found: T = layer._own[name]
        return found

    def is_called(self, plugin: str, point: str) -> bool:
        """Whether the profile calls a plugin at an extension point."""
        return CALLED_AT not in self or point in self[CALLED_AT][plugin]

    def measure(self, metric: str, *labels: str, value: float = 1.0) -> None:
        """Record a value for a metric of `metrics/families.py`; a counter grows by it."""
        self.measured += ((metric, labels, value),)

    def stand_on(self, below: "CycleState") -> None:
        """Lie on top of another state from now on."""
        self._below = below

    def adopt(self, other: "CycleState") -> None:
        """Take over what was written into another state."""
        self._own.update(other._own)

    def clone(self) -> "CycleState":
        """A copy to try things on: values with a `clone` method are cloned, others copied."""
        other = CycleState.of(self.cluster, self.template, self.now)
        other.idle = self.idle
        other.to_activate = self.to_activate
        below: CycleState | None = self
        layers = []
        while below is not None:
            layers.append(below._own)
            below = below._below
        for layer in reversed(layers):
            for name, value in layer.items():
                other._own[name] = _cloned(name, value)
        return other


def _cloned(name: str, value: Any) -> Any:
    plugin, prefix = name.partition(".")[0], f"cloning the state {name}: "
    if guard(plugin, prefix, hasattr, value, "clone"):
        return guard(plugin, prefix, value.clone)
    return guard(plugin, prefix, copy, value, deliberate=(Exception,))
