"""Namespaces, priority classes, disruption budgets, limit ranges, quotas and runtime classes."""

from typing import Any

from moorage.api.meta import Data, Int32, KubeObject, LabelSelector


class Namespace(KubeObject):
    """A namespace; pod affinity reads its labels."""


class PriorityClass(KubeObject):
    """A named priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""


class LimitRange(KubeObject):
    """Default requests and limits of containers, and their bounds, in a namespace."""

    spec: dict[str, Any] = {}


class ResourceQuota(KubeObject):
    """How much the objects of a namespace may use in total."""

    spec: dict[str, Any] = {}
    status: dict[str, Any] = {}


class RuntimeClass(KubeObject):
    """The overhead, node selector and tolerations of pods that name it."""

    handler: str = ""
    overhead: dict[str, Any] | None = None
    scheduling: dict[str, Any] | None = None


class PodDisruptionBudgetSpec(Data):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
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
