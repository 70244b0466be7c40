"""Disruption budgets: whose eviction goes beyond what a PodDisruptionBudget allows?

The accounting is Kubernetes' own. Every pod that may have to leave a node is charged, the most
important first, to all budgets that select it; once a budget is spent, each further pod violates
it. What is charged for a pod that may stay after all is not given back. Each node starts afresh.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from moorage import plugin as mp


@dataclass(frozen=True, slots=True)
class Budget:
    """A PodDisruptionBudget, ready to be asked."""

    key: str
    selector: mp.selectors.Selector
    allowed: int
    # Pods that were evicted already and are only not gone yet.
    disrupted: frozenset[str]

    def charges(self, pod: mp.Pod) -> bool:
        """Whether the pod's eviction counts."""
        return self.selector.matches(pod.labels) and pod.name not in self.disrupted


class Budgets:
    """All budgets of a cluster, by namespace."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._in: dict[str, list[Budget]] = {}
        for found in cluster.all(mp.PodDisruptionBudget):
            budget = _read(found)
            if budget is not None:
                self._in.setdefault(found.namespace, []).append(budget)

    def __bool__(self) -> bool:
        return bool(self._in)

    def violated_by(self, pods: Sequence[mp.Pod]) -> dict[str, tuple[str, ...]]:
        """For each of these pods (by UID) whose eviction goes too far, the budgets it violates.

        The pods are those that may have to leave one node, the most important first.
        """
        violated: dict[str, tuple[str, ...]] = {}
        charged: dict[str, int] = {}
        for pod in pods:
            budgets = self._in.get(pod.namespace) if pod.labels else None
            if not budgets:
                continue
            broken = []
            for budget in budgets:
                if budget.charges(pod):
                    spent = charged[budget.key] = charged.get(budget.key, 0) + 1
                    if spent > budget.allowed:
                        broken.append(budget.key)
            if broken:
                violated[pod.uid] = tuple(broken)
        return violated


def _read(found: mp.PodDisruptionBudget) -> Budget | None:
    """A budget that may select somebody.

    One without a selector, or with an empty one, selects nobody. (The eviction API takes an empty
    one for all pods of the namespace; preemption never did.)
    """
    selector = found.spec.selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    try:
        compiled = mp.selectors.compile_label_selector(selector)
    except mp.selectors.SelectorError:
        return None
    status = found.status
    return Budget(found.key, compiled, status.disruptions_allowed, frozenset(status.disrupted_pods))
