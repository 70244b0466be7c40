"""Values that a plugin declares or receives outside of a decision.

`Permission` is an entry of a plugin's `permissions`: API access that its requests need, from which
the RBAC rules of `moorage run` are derived. `Rejection` is the argument of `explain_rejection`.
"""

from collections.abc import Iterator
from typing import NamedTuple

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster
from moorage.nodes.info import NodeInfo


class Permission(NamedTuple):
    """Verbs on one API resource; with `names`, on the objects of these names only."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    names: tuple[str, ...] = ()


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
