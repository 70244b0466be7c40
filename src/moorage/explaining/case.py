"""Case: a reason that nodes gave, and all that one may look at to say what is behind it."""

from typing import NamedTuple

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster
from moorage.nodes.info import NodeInfo


class Case(NamedTuple):
    """A reason, the pod that it was given for, the nodes that gave it, all nodes and objects."""

    reason: str
    pod: Pod
    nodes: list[NodeInfo]
    everywhere: list[Node]
    cluster: Cluster
