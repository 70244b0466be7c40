"""Namespaces, priority classes and disruption budgets."""

from moorage.api.meta import Data, Int32, KubeObject, LabelSelector


class Namespace(KubeObject):
    """A namespace; pod affinity reads its labels."""


class PriorityClass(KubeObject):
    """A named priority."""

    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""


class PodDisruptionBudgetSpec(Data):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


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
