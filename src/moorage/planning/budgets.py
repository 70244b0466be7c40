"""Disruption budgets as the eviction API counts them: how many selected pods may be evicted now.

The status in the input is out of date after the first planned eviction. So the figures are computed
from the spec, as the disruption controller does: percentages are rounded up, and all selected pods
are expected pods.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moorage.api import selectors
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.policy import PodDisruptionBudget
from moorage.api.selectors import Selector
from moorage.errors import InputError

# The default of a budget with neither field.
DEFAULT_MIN_AVAILABLE = 1


@dataclass(slots=True)
class BudgetState:
    """A budget with its counts of healthy and desired pods."""

    key: str
    namespace: str
    selector: Selector
    spec_text: str
    min_available: int | str | None
    max_unavailable: int | str | None
    selected: int = 0
    healthy: int = 0
    desired: int = 0

    @property
    def allowed(self) -> int:
        """How many more may be evicted now."""
        return max(0, self.healthy - self.desired)

    def selects(self, pod: Pod) -> bool:
        return pod.namespace == self.namespace and self.selector.matches(pod.labels)

    def count(self, pods: Iterable[Pod]) -> None:
        """Update the counts from the current pods."""
        selected = [pod for pod in pods if self.selects(pod)]
        self.selected = len(selected)
        self.healthy = sum(is_healthy(pod) for pod in selected)
        if self.max_unavailable is not None:
            self.desired = max(0, len(selected) - _scaled(self.max_unavailable, len(selected)))
        else:
            self.desired = _scaled(self.min_available, len(selected))


def read(objects: Iterable[KubeObject]) -> list[BudgetState]:
    """All budgets that have a selector."""
    return [
        budget
        for obj in objects
        if isinstance(obj, PodDisruptionBudget) and (budget := _budget(obj)) is not None
    ]


def of(pod: Pod, budgets: Sequence[BudgetState]) -> list[BudgetState]:
    """The budgets that select a pod."""
    return [budget for budget in budgets if budget.selects(pod)]


def is_healthy(pod: Pod) -> bool:
    """Whether a pod counts as healthy: on a node, and not known to be unready."""
    ready = pod.condition("Ready")
    return bool(pod.node_name) and (ready is None or ready.status == "True")


def is_exempt(pod: Pod) -> bool:
    """Whether the eviction API ignores budgets: the pod has not started, or is terminating."""
    return pod.status.phase == "Pending" or pod.is_terminating


def _budget(found: PodDisruptionBudget) -> BudgetState | None:
    spec = found.spec
    # An empty selector selects all pods of the namespace, a missing one none.
    if spec.selector is None:
        return None
    least = spec.min_available
    if least is None and spec.max_unavailable is None:
        least = DEFAULT_MIN_AVAILABLE
    spec_text = (
        f"minAvailable {least}" if least is not None else f"maxUnavailable {spec.max_unavailable}"
    )
    for field, value in (("minAvailable", least), ("maxUnavailable", spec.max_unavailable)):
        if isinstance(value, str) and not _is_percentage(value):
            where = f"PodDisruptionBudget {found.key}, spec.{field}"
            raise InputError(f'{where}: must be a number or a percentage, is "{value}"')
    try:
        selector = selectors.compile_label_selector(spec.selector)
    except selectors.SelectorError as error:
        where = f"PodDisruptionBudget {found.key}, spec.selector"
        raise InputError(f"{where}: {error}") from None
    return BudgetState(found.key, found.namespace, selector, spec_text, least, spec.max_unavailable)


def _is_percentage(text: str) -> bool:
    return text.endswith("%") and text[:-1].isdecimal()


def _scaled(value: int | str | None, total: int) -> int:
    if isinstance(value, str):
        return math.ceil(int(value[:-1]) * total / 100)
    return value or 0
