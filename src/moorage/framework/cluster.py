"""Cluster: everything that a decision may look at: the node table and the other objects.

The core writes it as observations come in; plugins read it through their CycleState.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from moorage.api.config import feature_gates
from moorage.api.devices import DeviceClass
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.nodes.changes import RowLog
from moorage.nodes.info import NodeInfo
from moorage.nodes.objects import Objects
from moorage.nodes.pod_groups import GroupMembers, PodGroupMembers
from moorage.nodes.table import NodeTable

D = TypeVar("D")


@dataclass(slots=True)
class WaitingPod:
    """A pod for which permit plugins returned `wait`, with the deadline of each of them.

    Plugins allow or reject it; the first signal wins, and the core acts on it in its next step.
    """

    pod: Pod
    node: str
    until: dict[str, float]
    signal: Status | None = None

    @property
    def plugins(self) -> list[str]:
        """The plugins that have not allowed it yet."""
        return list(self.until)

    def allow(self, plugin: str) -> None:
        """One plugin allows the pod; binding continues when all have."""
        if self.signal is None:
            self.until.pop(plugin, None)
            if not self.until:
                self.signal = SUCCESS

    def reject(self, plugin: str, reason: str) -> bool:
        """Reject the pod; False if it was already allowed or rejected."""
        return self._signal(unschedulable(reason).by(plugin))

    def preempt(self, reason: str) -> bool:
        """Reject the pod for a preempting one; False if it was already allowed or rejected."""
        return self._signal(error(f"waiting on permit for pod: {reason}"))

    def _signal(self, status: Status) -> bool:
        if self.signal is not None:
            return False
        self.signal = status
        return True


@dataclass(slots=True)
class Cluster(Objects):
    """Nodes with their pods as a table, and objects of other kinds by key."""

    table: NodeTable = field(default_factory=NodeTable)
    # Pods that wait on permit, by UID.
    waiting: dict[str, WaitingPod] = field(default_factory=dict)
    # Rows whose nominated pods changed.
    nomination_changes: RowLog = field(default_factory=RowLog)
    # Feature gates that the configuration sets.
    feature_gates: dict[str, bool] = field(default_factory=dict)
    # The members of pod groups; None if the gate GenericWorkload is off.
    pod_groups: PodGroupMembers | None = None
    _derived: dict[Any, Any] = field(default_factory=dict)

    def derived(self, make: Callable[["Cluster"], D]) -> D:
        """A structure derived from the cluster, which keeps itself up to date; made once."""
        found: D | None = self._derived.get(make)
        if found is None:
            found = self._derived[make] = make(self)
        return found

    def members(self, group: str) -> GroupMembers | None:
        """The known members of a pod group, by `namespace/name`."""
        return None if self.pod_groups is None else self.pod_groups.get(group)

    def has_feature(self, gate: str) -> bool:
        """Whether a feature gate is on."""
        return feature_gates.is_on(self.feature_gates, gate)

    def put(self, obj: KubeObject) -> None:
        """Add or replace an object."""
        if isinstance(obj, DeviceClass):
            self._serve_resources(self.get(DeviceClass, obj.key), obj)
        Objects.put(self, obj)

    def drop(self, obj: KubeObject) -> None:
        """Remove an object."""
        if isinstance(obj, DeviceClass):
            self._serve_resources(self.get(DeviceClass, obj.key), None)
        Objects.drop(self, obj)

    def _serve_resources(self, old: DeviceClass | None, new: DeviceClass | None) -> None:
        """Device classes decide which extended resources devices serve; that concerns all rows."""
        if not self.has_feature(feature_gates.EXTENDED_RESOURCE):
            return
        resources = self.table.device_resources
        if new is not None:
            changed = resources.put(old, new)
        else:
            changed = old is not None and resources.drop(old)
        if changed:
            self.table.restart_readers()


class Rejection(NamedTuple):
    """A reason that a plugin gave, the pod, and the nodes that it was given for."""

    reason: str
    pod: Pod
    nodes: list[NodeInfo]
    cluster: Cluster

    @property
    def all_nodes(self) -> list[Node]:
        """Every node of the cluster, whether it was rejected or not."""
        return [node for node in self.cluster.table.nodes if node is not None]

    def placed(self) -> Iterator[tuple[str, Pod]]:
        """Every pod that is on a node, with the node's name."""
        table = self.cluster.table
        for node in self.all_nodes:
            for placed in table.info(table.row_of[node.name]).placed().values():
                yield node.name, placed.pod
