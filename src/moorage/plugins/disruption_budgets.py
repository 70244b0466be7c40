"""The disruption budgets that evictions by preemption violate; read by several plugins.

Budgets are counted as Kubernetes does. Every pod of lower priority is charged, the most important
first, to all budgets that select it; once a budget is used up, each further pod violates it. What
is charged for a pod that stays in the end is not given back. Each node starts anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from moorage import plugin as mp

# UID of a victim -> the disruption budgets that its eviction violates.
Violated = dict[str, tuple[str, ...]]
# As in `Usage.labels`: a namespace and the labels of pods there.
LabelKey = tuple[str, frozenset[tuple[str, str]]]
# After so many labels the budgets that select them are found again: most pods are gone.
MOST_LABELS = 1 << 16


@dataclass(frozen=True, slots=True)
class ParsedBudget:
    """A PodDisruptionBudget with its selector compiled."""

    key: str
    selector: mp.selectors.Selector
    allowed: int
    # Pods that were evicted already and still exist.
    disrupted: frozenset[str]


class Budgets:
    """All budgets of a cluster, by namespace, and by the labels of the pods that they select."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._in: dict[str, list[ParsedBudget]] = {}
        self._selecting: dict[LabelKey, list[ParsedBudget]] = {}
        for found in cluster.all(mp.PodDisruptionBudget):
            budget = _parse(found)
            if budget is not None:
                self._in.setdefault(found.namespace, []).append(budget)

    def __bool__(self) -> bool:
        return bool(self._in)

    def violated_by(self, placed: Iterable[mp.Placed]) -> Violated:
        """For the pods whose eviction goes too far, the budgets that it violates.

        The pods are those of lower priority on one node, the most important first.
        """
        violated: Violated = {}
        charged: dict[str, int] = {}
        for each in placed:
            labels = each.usage.labels
            budgets = self._selecting.get(labels)
            if budgets is None:
                budgets = self._find(labels)
            if not budgets:
                continue
            meta, broken = each.pod.metadata, []
            for budget in budgets:
                if meta.name not in budget.disrupted:
                    spent = charged[budget.key] = charged.get(budget.key, 0) + 1
                    if spent > budget.allowed:
                        broken.append(budget.key)
            if broken:
                violated[meta.uid] = tuple(broken)
        return violated

    def _find(self, key: LabelKey) -> list[ParsedBudget]:
        """The budgets that select pods with these labels; pods without labels have none."""
        namespace, items = key
        labels = dict(items)
        budgets = self._in.get(namespace, []) if labels else []
        if len(self._selecting) >= MOST_LABELS:
            self._selecting.clear()
        found = self._selecting[key] = [each for each in budgets if each.selector.matches(labels)]
        return found


def _parse(found: mp.PodDisruptionBudget) -> ParsedBudget | None:
    """A budget that selects pods; None without a selector, or with an empty one.

    The eviction API takes an empty selector for all pods of the namespace; preemption does not.
    """
    selector = found.spec.selector
    if selector is None or not (selector.match_labels or selector.match_expressions):
        return None
    try:
        compiled = mp.selectors.compile_label_selector(selector)
    except mp.selectors.SelectorError:
        return None
    status = found.status
    disrupted = frozenset(status.disrupted_pods)
    return ParsedBudget(found.key, compiled, status.disruptions_allowed, disrupted)
