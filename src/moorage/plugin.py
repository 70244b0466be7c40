"""The door for plugin authors: everything that a plugin may use, and all that ours use.

from moorage import plugin as mp
"""

from moorage.api import (
    claims,
    csi_migration,
    quantity,
    requests,
    selectors,
    texts,
    volume_matching,
)
from moorage.api.config.structs import ResourceSpec, ScoringStrategy, UtilizationShapePoint
from moorage.api.meta import KubeObject, LabelSelector, NodeName, NodeSelector, ObjectMeta, PodUID
from moorage.api.node import Node, Taint
from moorage.api.pod import (
    NodeAffinity,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    Toleration,
    TopologySpreadConstraint,
    Volume,
)
from moorage.api.policy import Namespace, PodDisruptionBudget
from moorage.api.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    TypedReference,
    VolumeAttachment,
    VolumeNodeAffinity,
)
from moorage.api.workloads import ReplicaSet, ReplicationController, Service, StatefulSet
from moorage.errors import PluginFailure
from moorage.framework.cluster import AssumeError, Cluster, Rejection
from moorage.framework.effects import (
    Awaiting,
    BindPod,
    DeletePod,
    PatchClaim,
    PatchVolume,
    Permission,
    PodRef,
    Request,
)
from moorage.framework.events import Action, Events, Hint
from moorage.framework.events import ClusterEvent as ClusterEvent
from moorage.framework.points import ALWAYS, BEST, ByMax, Depends, Normalizer, RowArray
from moorage.framework.post_filter import Candidate, NoFeasibleNode, PostFiltered, Reviewer
from moorage.framework.state import CycleState, StateKey
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Code,
    Mask,
    Narrowed,
    Scores,
    ScoresByGroup,
    SparseScores,
    Status,
    Verdicts,
    only_nodes,
    pending,
    summarize,
    unresolvable,
    unschedulable,
    wait,
)
from moorage.framework.template import PodTemplate
from moorage.framework.views.rejections import RejectionCounts
from moorage.framework.what_if import HypotheticalNode, HypotheticalVerdicts, WhatIf
from moorage.nodes import affinity_terms, node_terms, ports, volumes
from moorage.nodes.affinity_terms import AffinityTerm, PodTerms
from moorage.nodes.changes import FEW_ROWS, Cursor
from moorage.nodes.columns import Column, UsageColumn
from moorage.nodes.counters import TermCounter
from moorage.nodes.domains import DomainSums, DomainView, EligibleRows, RowView, few_rows_in
from moorage.nodes.hypothetical import HypotheticalRows, NumberedUsages
from moorage.nodes.inclusion import Inclusion
from moorage.nodes.info import NodeInfo
from moorage.nodes.interning import LabelColumn
from moorage.nodes.placements import Placements
from moorage.nodes.pod_classes import Clause
from moorage.nodes.resource_views import Allocatable
from moorage.nodes.table import NodeTable, Rows
from moorage.nodes.usage import HostPort, Placed

__all__ = [
    "ALWAYS",
    "BEST",
    "FEW_ROWS",
    "SKIP",
    "SUCCESS",
    "Action",
    "AffinityTerm",
    "Allocatable",
    "AssumeError",
    "Awaiting",
    "BindPod",
    "ByMax",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "Candidate",
    "Clause",
    "Cluster",
    "ClusterEvent",
    "Code",
    "Column",
    "Cursor",
    "CycleState",
    "DeletePod",
    "Depends",
    "DomainSums",
    "DomainView",
    "EligibleRows",
    "Events",
    "Hint",
    "HostPort",
    "HypotheticalNode",
    "HypotheticalRows",
    "HypotheticalVerdicts",
    "Inclusion",
    "KubeObject",
    "LabelColumn",
    "LabelSelector",
    "Mask",
    "Namespace",
    "Narrowed",
    "NoFeasibleNode",
    "Node",
    "NodeAffinity",
    "NodeInfo",
    "NodeName",
    "NodeSelector",
    "NodeTable",
    "Normalizer",
    "NumberedUsages",
    "ObjectMeta",
    "PatchClaim",
    "PatchVolume",
    "Permission",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Placed",
    "Placements",
    "PluginFailure",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodDisruptionBudget",
    "PodRef",
    "PodTemplate",
    "PodTerms",
    "PodUID",
    "PostFiltered",
    "Rejection",
    "RejectionCounts",
    "ReplicaSet",
    "ReplicationController",
    "Request",
    "ResourceSpec",
    "Reviewer",
    "RowArray",
    "RowView",
    "Rows",
    "Scores",
    "ScoresByGroup",
    "ScoringStrategy",
    "Service",
    "SparseScores",
    "StateKey",
    "StatefulSet",
    "Status",
    "StorageClass",
    "Taint",
    "TermCounter",
    "Toleration",
    "TopologySpreadConstraint",
    "TypedReference",
    "UsageColumn",
    "UtilizationShapePoint",
    "Verdicts",
    "Volume",
    "VolumeAttachment",
    "VolumeNodeAffinity",
    "WhatIf",
    "affinity_terms",
    "claims",
    "csi_migration",
    "few_rows_in",
    "node_terms",
    "only_nodes",
    "pending",
    "ports",
    "quantity",
    "requests",
    "selectors",
    "summarize",
    "texts",
    "unresolvable",
    "unschedulable",
    "volume_matching",
    "volumes",
    "wait",
]
