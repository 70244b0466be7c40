"""Disruption budgets as the eviction API counts them: how many pods of a set may go right now.

A budget's own status is a moment of the past; a plan needs what it will be after the next step. So
the figures are worked out from the spec, the way the disruption controller does it: percentages
are rounded up, and every pod that a budget selects is expected to be there.
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

# What an API server writes into a budget that says nothing.
DEFAULT_MIN_AVAILABLE = 1


@dataclass(slots=True)
class Budget:
    """One budget, and what is left of it."""

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
        """Look at how things stand."""
        mine = [pod for pod in pods if self.selects(pod)]
        self.selected = len(mine)
        self.healthy = sum(is_healthy(pod) for pod in mine)
        if self.max_unavailable is not None:
            self.desired = max(0, len(mine) - _scaled(self.max_unavailable, len(mine)))
        else:
            self.desired = _scaled(self.min_available, len(mine))


def read(objects: Iterable[KubeObject]) -> list[Budget]:
    """All budgets that select anybody."""
    return [
        budget
        for obj in objects
        if isinstance(obj, PodDisruptionBudget) and (budget := _budget(obj)) is not None
    ]


def of(pod: Pod, budgets: Sequence[Budget]) -> list[Budget]:
    """The budgets that a pod counts for."""
    return [budget for budget in budgets if budget.selects(pod)]


def is_healthy(pod: Pod) -> bool:
    """Whether a pod counts as there: on a node, and not known to be unready."""
    ready = pod.condition("Ready")
    return bool(pod.node_name) and (ready is None or ready.status == "True")


def is_exempt(pod: Pod) -> bool:
    """Whether the eviction API asks no budget: the pod has not begun, or is ending already."""
    return pod.status.phase == "Pending" or pod.is_terminating


def _budget(found: PodDisruptionBudget) -> Budget | None:
    spec = found.spec
    if spec.selector is None:  # An empty one selects all pods of the namespace, none nobody.
        return None
    least = spec.min_available
    if least is None and spec.max_unavailable is None:
        least = DEFAULT_MIN_AVAILABLE
    told = (
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
    return Budget(found.key, found.namespace, selector, told, least, spec.max_unavailable)


def _is_percentage(text: str) -> bool:
    return text.endswith("%") and text[:-1].isdecimal()


def _scaled(value: int | str | None, total: int) -> int:
    if isinstance(value, str):
        return math.ceil(int(value[:-1]) * total / 100)
    return value or 0
