"""Names of predicates and priorities, and the plugins that do their work today."""

# In the order in which predicates were asked, whatever their order in the file.
PREDICATES: dict[str, tuple[str, ...]] = {
    "CheckNodeUnschedulable": ("NodeUnschedulable",),
    "GeneralPredicates": ("NodeResourcesFit", "NodeName", "NodePorts", "NodeAffinity"),
    "HostName": ("NodeName",),
    "PodFitsHostPorts": ("NodePorts",),
    "PodFitsPorts": ("NodePorts",),
    "MatchNodeSelector": ("NodeAffinity",),
    "PodFitsResources": ("NodeResourcesFit",),
    "NoDiskConflict": ("VolumeRestrictions",),
    "PodToleratesNodeTaints": ("TaintToleration",),
    "CheckNodeLabelPresence": ("NodeAffinity",),
    "MaxEBSVolumeCount": ("NodeVolumeLimits",),
    "MaxGCEPDVolumeCount": ("NodeVolumeLimits",),
    "MaxCSIVolumeCountPred": ("NodeVolumeLimits",),
    "MaxAzureDiskVolumeCount": ("NodeVolumeLimits",),
    "MaxCinderVolumeCount": ("NodeVolumeLimits",),
    "CheckVolumeBinding": ("VolumeBinding",),
    "NoVolumeZoneConflict": ("VolumeZone",),
    "EvenPodsSpread": ("PodTopologySpread",),
    "MatchInterPodAffinity": ("InterPodAffinity",),
}
MANDATORY = ("CheckNodeUnschedulable", "PodToleratesNodeTaints")
DEFAULT_PREDICATES = (
    "NoVolumeZoneConflict",
    "MaxCSIVolumeCountPred",
    "MatchInterPodAffinity",
    "NoDiskConflict",
    "GeneralPredicates",
    "PodToleratesNodeTaints",
    "CheckVolumeBinding",
    "CheckNodeUnschedulable",
    "EvenPodsSpread",
)
# In-tree volumes are handled by CSI drivers now.
REPLACED = (
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCinderVolumeCount",
)
# Conditions of nodes show as taints since 1.12.
COVERED_BY_TAINTS = (
    "CheckNodeCondition",
    "CheckNodeMemoryPressure",
    "CheckNodeDiskPressure",
    "CheckNodePIDPressure",
)
LABEL_PRESENCE = "CheckNodeLabelPresence"
SERVICE_AFFINITY = "CheckServiceAffinity"

PRIORITIES: dict[str, str] = {
    "LeastRequestedPriority": "NodeResourcesFit",
    "MostRequestedPriority": "NodeResourcesFit",
    "RequestedToCapacityRatioPriority": "NodeResourcesFit",
    "BalancedResourceAllocation": "NodeResourcesBalancedAllocation",
    "SelectorSpreadPriority": "PodTopologySpread",
    "ServiceSpreadingPriority": "PodTopologySpread",
    "EvenPodsSpreadPriority": "PodTopologySpread",
    "InterPodAffinityPriority": "InterPodAffinity",
    "NodeAffinityPriority": "NodeAffinity",
    "TaintTolerationPriority": "TaintToleration",
    "ImageLocalityPriority": "ImageLocality",
}
DEFAULT_PRIORITIES = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
    "ImageLocalityPriority": 1,
    "EvenPodsSpreadPriority": 2,
}
STRATEGIES = {
    "LeastRequestedPriority": "LeastAllocated",
    "MostRequestedPriority": "MostAllocated",
    "RequestedToCapacityRatioPriority": "RequestedToCapacityRatio",
}
SELECTOR_SPREAD = ("SelectorSpreadPriority", "ServiceSpreadingPriority")
EVEN_SPREAD = "EvenPodsSpreadPriority"
RATIO = "RequestedToCapacityRatioPriority"
EQUAL = "EqualPriority"
PREFER_AVOID = "NodePreferAvoidPodsPriority"

# Came after the format; a cluster of today needs them all the same.
ALWAYS_FIRST = ("SchedulingGates", "PrioritySort")
ALWAYS_LAST = ("DynamicResources", "DefaultPreemption", "DefaultBinder", "NodeDeclaredFeatures")

# Plugins that do more than the predicate, or the priority, that they stand for.
ALSO_SCORE = (
    "NodeAffinity",
    "NodeResourcesFit",
    "TaintToleration",
    "VolumeBinding",
    "PodTopologySpread",
    "InterPodAffinity",
)
ALSO_FILTER = (
    "NodeAffinity",
    "NodeResourcesFit",
    "TaintToleration",
    "PodTopologySpread",
    "InterPodAffinity",
)
