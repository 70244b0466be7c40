"""Namespaces, priority classes, disruption budgets, limit ranges, quotas and runtime classes."""

from typing import Any, TypedDict

from moorage.api.meta import Data, Int32, KubeObject, LabelSelector
from moorage.api.quantity import Quantity


class Namespace(KubeObject):
    """A namespace; pod affinity reads its labels."""


class PriorityClass(KubeObject):
    """A named priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""


# Dicts whose types are checked: admission reads them as plain data, also of `serve`.

_Amounts = dict[str, Quantity]


class LimitRangeItem(TypedDict, total=False):
    """Defaults and bounds of the containers, pods or claims of a namespace."""

    type: str
    max: _Amounts
    min: _Amounts
    default: _Amounts
    defaultRequest: _Amounts
    maxLimitRequestRatio: _Amounts


class LimitRangeSpec(TypedDict, total=False):
    limits: list[LimitRangeItem]


class LimitRange(KubeObject):
    """Default requests and limits of containers, and their bounds, in a namespace."""

    spec: LimitRangeSpec = {}


class ScopeRequirement(TypedDict, total=False):
    scopeName: str
    operator: str
    values: list[str]


class ScopeSelector(TypedDict, total=False):
    matchExpressions: list[ScopeRequirement]


class ResourceQuotaSpec(TypedDict, total=False):
    hard: _Amounts
    scopes: list[str]
    scopeSelector: ScopeSelector


class ResourceQuotaStatus(TypedDict, total=False):
    hard: _Amounts
    used: _Amounts


class ResourceQuota(KubeObject):
    """How much the objects of a namespace may use in total."""

    spec: ResourceQuotaSpec = {}
    status: ResourceQuotaStatus = {}


class PodOverhead(TypedDict, total=False):
    podFixed: _Amounts


class RuntimeScheduling(TypedDict, total=False):
    nodeSelector: dict[str, str]
    tolerations: list[dict[str, Any]]


class RuntimeClass(KubeObject):
    """The overhead, node selector and tolerations of pods that name it."""

    handler: str = ""
    overhead: PodOverhead | None = None
    scheduling: RuntimeScheduling | None = None


class PodDisruptionBudgetSpec(Data):
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None
    selector: LabelSelector | None = None
    unhealthy_pod_eviction_policy: str | None = None


class PodDisruptionBudgetStatus(Data):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str] = {}
    current_healthy: Int32 = 0
    desired_healthy: Int32 = 0
    expected_pods: Int32 = 0


class PodDisruptionBudget(KubeObject):
    """How many pods of a set may be unavailable at a time."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()
