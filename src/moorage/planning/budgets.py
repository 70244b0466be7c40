"""Disruption budgets of a plan: how many selected pods may be evicted now.

The status in the input is out of date after the first planned eviction. So the figures are computed
again, by the code of the disruption controller; all selected pods are expected pods.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moorage.api import selectors
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import Selector
from moorage.cluster.verbs import eviction
from moorage.cluster.verbs.eviction import Verdict
from moorage.controllers import disruption_budget
from moorage.controllers.disruption_budget import BudgetFigures
from moorage.errors import InputError

NOT_COUNTED = BudgetFigures(0, 0, 0)


@dataclass(slots=True)
class BudgetState:
    """A budget with its figures, and the evictions since they were computed."""

    budget: PodDisruptionBudget
    selector: Selector
    figures: BudgetFigures = NOT_COUNTED
    selected: int = 0
    evicted: int = 0

    @property
    def healthy(self) -> int:
        return self.figures.healthy - self.evicted

    @property
    def spec_text(self) -> str:
        spec = self.budget.spec
        if spec.max_unavailable is not None:
            return f"maxUnavailable {spec.max_unavailable}"
        return "no limit" if spec.min_available is None else f"minAvailable {spec.min_available}"

    def selects(self, pod: Pod) -> bool:
        return pod.namespace == self.budget.namespace and self.selector.matches(pod.labels)

    def count(self, pods: Iterable[Pod]) -> None:
        """Compute the figures from the current pods."""
        selected = [pod for pod in pods if self.selects(pod)]
        self.selected, self.evicted = len(selected), 0
        self.figures = disruption_budget.figures(
            self.budget.spec.min_available,
            self.budget.spec.max_unavailable,
            healthy=sum(is_healthy(pod) for pod in selected),
            covered=len(selected),
            expected=lambda: len(selected),
        )

    def charge(self, pod: Pod) -> bool:
        """Count the eviction of a pod; False if the budget does not allow it."""
        verdict = eviction.judge(
            allowed=self.figures.allowed - self.evicted,
            healthy=self.healthy,
            desired=self.figures.desired,
            is_ready=is_healthy(pod),
            policy=self.budget.spec.unhealthy_pod_eviction_policy,
        )
        self.evicted += verdict is Verdict.CHARGED
        return verdict is not Verdict.BLOCKED


def read(objects: Iterable[KubeObject]) -> list[BudgetState]:
    """All budgets that have a selector."""
    return [
        BudgetState(obj, _selector(obj))
        for obj in objects
        # An empty selector selects all pods of the namespace, a missing one none.
        if isinstance(obj, PodDisruptionBudget) and obj.spec.selector is not None
    ]


def of(pod: Pod, budgets: Sequence[BudgetState]) -> list[BudgetState]:
    """The budgets that apply to a pod."""
    if eviction.is_exempt(pod.status.phase, is_terminating=pod.is_terminating):
        return []
    return [budget for budget in budgets if budget.selects(pod)]


def is_healthy(pod: Pod) -> bool:
    """Whether a pod counts as healthy: on a node, and not known to be unready."""
    ready = pod.condition("Ready")
    return bool(pod.node_name) and (ready is None or ready.status == "True")


def _selector(found: PodDisruptionBudget) -> Selector:
    spec = found.spec
    assert spec.selector is not None
    limits = (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable))
    for field, value in limits:
        if isinstance(value, str) and not (value.endswith("%") and value[:-1].isdecimal()):
            where = f"PodDisruptionBudget {found.key}, spec.{field}"
            raise InputError(f'{where}: must be a number or a percentage, is "{value}"')
    try:
        return selectors.compile_label_selector(spec.selector)
    except selectors.SelectorError as error:
        where = f"PodDisruptionBudget {found.key}, spec.selector"
        raise InputError(f"{where}: {error}") from None
