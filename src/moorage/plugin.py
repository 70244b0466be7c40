"""The door for plugin authors: everything that a plugin may use, and all that ours use.

    from moorage import plugin as mp
"""

from moorage.api import quantity, requests, selectors
from moorage.api.config.plugin_args import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from moorage.api.meta import NodeName, PodUID
from moorage.api.node import Node, Taint
from moorage.api.pod import NodeAffinity, NodeSelector, Pod, Toleration
from moorage.framework.cluster import Cluster
from moorage.framework.effects import BindPod, DeletePod, PodRef, Request
from moorage.framework.events import Action
from moorage.framework.events import ClusterEvent as ClusterEvent
from moorage.framework.hints import Events, Hint
from moorage.framework.normalizers import BEST, ByMax
from moorage.framework.points import Depends, Normalizer
from moorage.framework.state import CycleState, StateKey
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Mask,
    Narrowed,
    Scores,
    Status,
    Verdicts,
    only_nodes,
    pending,
    unresolvable,
    unschedulable,
    wait,
)
from moorage.framework.template import PodTemplate
from moorage.nodes import ports
from moorage.nodes.columns import Column
from moorage.nodes.info import NodeInfo
from moorage.nodes.table import NodeTable, Rows
from moorage.nodes.usage import HostPort, Placed

__all__ = [
    "BEST",
    "SKIP",
    "SUCCESS",
    "Action",
    "BindPod",
    "ByMax",
    "Cluster",
    "ClusterEvent",
    "Code",
    "Column",
    "CycleState",
    "DeletePod",
    "Depends",
    "Events",
    "Hint",
    "HostPort",
    "Mask",
    "Narrowed",
    "Node",
    "NodeAffinity",
    "NodeInfo",
    "NodeName",
    "NodeSelector",
    "NodeTable",
    "Normalizer",
    "Placed",
    "Pod",
    "PodRef",
    "PodTemplate",
    "PodUID",
    "Request",
    "ResourceSpec",
    "Rows",
    "Scores",
    "ScoringStrategy",
    "StateKey",
    "Status",
    "Taint",
    "Toleration",
    "UtilizationShapePoint",
    "Verdicts",
    "only_nodes",
    "pending",
    "ports",
    "quantity",
    "requests",
    "selectors",
    "unresolvable",
    "unschedulable",
    "wait",
]
