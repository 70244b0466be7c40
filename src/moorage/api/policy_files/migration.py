"""Migrate a Policy to the KubeSchedulerConfiguration that makes the same decisions."""

import os
from pathlib import Path
from typing import Any

from msgspec import Struct

from moorage.api import config
from moorage.api.config.errors import shown
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.api.policy_files import policy
from moorage.api.policy_files.policy import Policy, PolicyEntry
from moorage.errors import ConfigError

# Predicate -> plugins, in the order in which predicates ran, whatever their order in the file.
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
# CSI drivers serve in-tree volumes now.
REPLACED = (
    "MaxEBSVolumeCount",
    "MaxGCEPDVolumeCount",
    "MaxAzureDiskVolumeCount",
    "MaxCinderVolumeCount",
)
# Since 1.12 node conditions are also taints.
COVERED_BY_TAINTS = (
    "CheckNodeCondition",
    "CheckNodeMemoryPressure",
    "CheckNodeDiskPressure",
    "CheckNodePIDPressure",
)
LABEL_PRESENCE = "CheckNodeLabelPresence"
SERVICE_AFFINITY = "CheckServiceAffinity"

PRIORITIES: dict[str, str] = {
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
# NodeResourcesFit's scoring strategies.
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

# Newer than the Policy format, but needed by every cluster.
ALWAYS_FIRST = ("SchedulingGates", "PrioritySort")
ALWAYS_LAST = ("DynamicResources", "DefaultPreemption", "DefaultBinder", "NodeDeclaredFeatures")

# Plugins that implement more points than the predicate or priority that they replace.
ALSO_FILTER = (
    "NodeAffinity",
    "NodeResourcesFit",
    "TaintToleration",
    "PodTopologySpread",
    "InterPodAffinity",
)
ALSO_SCORE = (*ALSO_FILTER, "VolumeBinding")

# The largest int32; kube-scheduler's limit is where the total overflows 64 bits.
MAX_WEIGHT = 2**31 - 1


class Migration(Struct, frozen=True):
    """The equivalent configuration as plain data, and warnings about what has no equivalent."""

    configuration: dict[str, Any]
    warnings: tuple[str, ...] = ()


def migrate(file: str | os.PathLike[str]) -> Migration:
    """Migrate a Policy file; raises ConfigError if that is not possible."""
    path = Path(file)
    try:
        migration = of_policy(policy.read(path))
        config.load(migration.configuration)  # Validates the result.
    except ConfigError as error:
        raise ConfigError([f"{path}: {problem}" for problem in error.problems]) from None
    except RecursionError:
        raise ConfigError([f"{path}: nested too deeply"]) from None
    return migration


def of_policy(given: Policy) -> Migration:
    """Migrate a Policy."""
    filters = _FilterPlugins(given)
    scores = _ScorePlugins(given)
    if problems := [*filters.problems, *scores.problems]:
        raise ConfigError(problems)
    warnings = [*filters.warnings, *scores.warnings]
    if given.checks_all:
        warnings.append("alwaysCheckAllPredicates has no equivalent and is left out")
    profile: dict[str, Any] = {
        "schedulerName": DEFAULT_SCHEDULER,
        "plugins": _plugins(filters.plugins, scores.weights),
    }
    args = {**filters.args, **scores.args}
    if weight := given.hard_pod_affinity_weight:
        args["InterPodAffinity"] = {"hardPodAffinityWeight": weight}
    if args:
        profile["pluginConfig"] = [{"name": name, "args": args[name]} for name in sorted(args)]
    plain = {"apiVersion": config.API_VERSION, "kind": config.KIND, "profiles": [profile]}
    if given.extenders:
        plain["extenders"] = list(given.extenders)
    return Migration(plain, tuple(warnings))


def _plugins(filters: list[str], weights: dict[str, int]) -> dict[str, Any]:
    """Enable each plugin once, and disable it at the points where it must not run."""
    scoring = [name for name in sorted(weights) if name not in filters]
    enabled = [
        {"name": name, "weight": weights[name]} if weights.get(name, 1) != 1 else {"name": name}
        for name in (*ALWAYS_FIRST, *filters, *scoring, *ALWAYS_LAST)
    ]
    plugins: dict[str, Any] = {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}
    off = {
        ("preFilter", "filter"): [name for name in scoring if name in ALSO_FILTER],
        ("preScore", "score"): [n for n in filters if n in ALSO_SCORE and n not in weights],
    }
    for points, disabled in off.items():
        for point in points if disabled else ():
            plugins[point] = {"disabled": [{"name": name} for name in disabled]}
    return plugins


class _FilterPlugins:
    """The filter plugins for the predicates of a Policy."""

    def __init__(self, given: Policy) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.args: dict[str, Any] = {}
        self._required: list[dict[str, Any]] = []
        enabled = set(MANDATORY)
        if given.predicates is None:
            enabled |= set(DEFAULT_PREDICATES)
        for predicate in given.predicates or ():
            enabled |= self._migrated(predicate)
        if self._required:
            terms = [{"matchExpressions": self._required}]
            self.args["NodeAffinity"] = {
                "addedAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
                }
            }
        ordered = [name for name in PREDICATES if name in enabled]
        self.plugins = list(dict.fromkeys(each for name in ordered for each in PREDICATES[name]))

    def _migrated(self, predicate: PolicyEntry) -> set[str]:
        name = predicate.name
        kind, argument = predicate.argument or ("", {})
        if kind == "serviceaffinity" or (not kind and name == SERVICE_AFFINITY):
            advice = "pod affinity in the pods themselves"
            self.problems.append(_no_equivalent("predicate", name, advice))
        elif kind:
            return self._by_argument(name, kind, argument)
        elif name in COVERED_BY_TAINTS:
            self.warnings.append(f"predicate {name} is left out: taints say the same")
        elif name in REPLACED:
            self.warnings.append(f"predicate {name} has become NodeVolumeLimits")
            return {name}
        elif name == LABEL_PRESENCE:
            self.problems.append(f"predicate {name}: needs argument.labelsPresence")
        elif name in PREDICATES:
            return {name}
        else:
            self.problems.append(f"predicate type not found for {shown(name)}")
        return set()

    def _by_argument(self, name: str, kind: str, argument: dict[str, Any]) -> set[str]:
        labels = argument.get("labels")
        if kind != "labelspresence" or not isinstance(labels, list):
            self.problems.append(
                f"predicate {name}: the argument has to be labelsPresence with labels, or "
                "serviceAffinity"
            )
            return set()
        operator = "Exists" if argument.get("presence") else "DoesNotExist"
        self._required += [{"key": str(label), "operator": operator} for label in labels]
        return {LABEL_PRESENCE}


class _ScorePlugins:
    """The score plugins for the priorities of a Policy."""

    def __init__(self, given: Policy) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.args: dict[str, Any] = {}
        self.weights: dict[str, int] = {}
        self._strategy = ""
        priorities = given.priorities
        if priorities is None:
            priorities = tuple(
                PolicyEntry(name=name, weight=weight) for name, weight in DEFAULT_PRIORITIES.items()
            )
        for priority in sorted(priorities, key=lambda each: each.name):
            self._migrate(priority)
        names = {priority.name for priority in priorities}
        if EVEN_SPREAD in names and not names & set(SELECTOR_SPREAD):
            self.args["PodTopologySpread"] = {"defaultingType": "List"}

    def _migrate(self, priority: PolicyEntry) -> None:
        name = priority.name
        if not 0 < priority.weight <= MAX_WEIGHT:
            self.problems.append(
                f"priority {name} should have a positive weight applied to it or it has overflown"
            )
        elif priority.argument is not None:
            self._by_argument(priority, *priority.argument)
        elif name == EQUAL:
            pass  # It gave every node the same score.
        elif name == PREFER_AVOID:
            self.warnings.append(f"priority {name} is left out: use taints instead")
        elif name == RATIO:
            self.problems.append(
                f"priority {name}: needs argument.requestedToCapacityRatioArguments"
            )
        elif name in STRATEGIES:
            self._score_by(priority, {"type": STRATEGIES[name]})
        elif name in PRIORITIES:
            # If two have become one plugin, the first one's weight counts.
            self.weights.setdefault(PRIORITIES[name], priority.weight)
        else:
            self.problems.append(f"priority type not found for {shown(name)}")

    def _by_argument(self, priority: PolicyEntry, kind: str, argument: dict[str, Any]) -> None:
        if kind == "requestedtocapacityratioarguments":
            strategy: dict[str, Any] = {"type": STRATEGIES[RATIO]}
            if argument.get("resources"):
                strategy["resources"] = argument["resources"]
            strategy["requestedToCapacityRatio"] = {"shape": argument.get("shape") or []}
            self._score_by(priority, strategy)
        elif kind == "labelpreference":
            advice = "NodeAffinity's addedAffinity with a preferred term"
            self.problems.append(_no_equivalent("priority", priority.name, advice))
        elif kind == "serviceantiaffinity":
            advice = "topology spread constraints"
            self.problems.append(_no_equivalent("priority", priority.name, advice))
        else:
            self.problems.append(f"priority {priority.name}: unknown argument {shown(kind)}")

    def _score_by(self, priority: PolicyEntry, strategy: dict[str, Any]) -> None:
        """Set the scoring strategy of NodeResourcesFit, which has only one."""
        if self._strategy:
            self.problems.append(
                f"priorities {self._strategy} and {priority.name} cannot be had together: "
                "NodeResourcesFit has one scoring strategy; keep one of them"
            )
            return
        self._strategy = priority.name
        self.weights["NodeResourcesFit"] = priority.weight
        self.args["NodeResourcesFit"] = {"scoringStrategy": strategy}


def _no_equivalent(what: str, name: str, instead: str) -> str:
    return f"{what} {name} has no equivalent; use {instead}"
