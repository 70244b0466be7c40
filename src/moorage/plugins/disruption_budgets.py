"""The disruption budgets that evictions by preemption violate; read by several plugins.

Budgets are counted as Kubernetes does. Every pod of lower priority is charged, the most important
first, to all budgets that select it; once a budget is used up, each further pod violates it. What
is charged for a pod that stays in the end is not given back. Each node starts anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

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

    source: mp.PodDisruptionBudget = field(compare=False, repr=False)
    key: str
    selector: mp.selectors.Selector
    allowed: int
    # Pods that were evicted already and still exist.
    disrupted: frozenset[str]

    def rows(self, table: mp.NodeTable) -> set[int]:
        """The rows with a pod that it selects."""
        clause = mp.Clause(frozenset((self.source.namespace,)), self.selector)
        classes = table.placements.classes.matching((clause,))
        return {row for pods in classes for row in (*pods.live, *pods.terminating)}


class Budgets:
    """All budgets of a cluster, and which of them select pods with the same labels.

    Their statuses change with every eviction, so what earlier ones found is used again.
    """

    def __init__(self, cluster: mp.Cluster, before: "Budgets | None" = None) -> None:
        known = {} if before is None else before._by_key
        self._by_key: dict[str, ParsedBudget] = {}
        for source in cluster.all(mp.PodDisruptionBudget):
            budget = known.get(source.key)
            if budget is None or budget.source is not source:
                budget = _parse(source)
            if budget is not None:
                self._by_key[budget.key] = budget
        # The keys of the budgets that select pods with these labels.
        self._selecting: dict[LabelKey, list[str]] = {}
        if before is not None and before._selectors() == self._selectors():
            self._selecting = before._selecting

    def __bool__(self) -> bool:
        return bool(self._by_key)

    def _selectors(self) -> list[tuple[str, mp.selectors.Selector]]:
        return [(key, budget.selector) for key, budget in self._by_key.items()]

    def changed_since(self, before: "Budgets") -> list[ParsedBudget]:
        """The budgets that came, went or changed since earlier ones, in both versions."""
        new, old = self._by_key, before._by_key
        pairs = [(new.get(key), old.get(key)) for key in {**new, **old}]
        changed = [pair for pair in pairs if pair[0] is not pair[1] and pair[0] != pair[1]]
        return [each for pair in changed for each in pair if each is not None]

    def violated_by(self, placed: Iterable[mp.Placed]) -> Violated:
        """For the pods whose eviction goes too far, the budgets that it violates.

        The pods are those of lower priority on one node, the most important first.
        """
        violated: Violated = {}
        charged: dict[str, int] = {}
        for each in placed:
            labels = each.usage.labels
            keys = self._selecting.get(labels)
            if keys is None:
                keys = self._find(labels)
            if not keys:
                continue
            meta, broken = each.pod.metadata, []
            for key in keys:
                budget = self._by_key[key]
                if meta.name not in budget.disrupted:
                    spent = charged[key] = charged.get(key, 0) + 1
                    if spent > budget.allowed:
                        broken.append(key)
            if broken:
                violated[meta.uid] = tuple(broken)
        return violated

    def _find(self, key: LabelKey) -> list[str]:
        """The budgets that select pods with these labels; pods without labels have none."""
        namespace, items = key
        labels, budgets = dict(items), self._by_key.values() if items else ()
        if len(self._selecting) >= MOST_LABELS:
            self._selecting.clear()
        # Sorted, so that it does not matter in which order they came.
        found = self._selecting[key] = sorted(
            each.key
            for each in budgets
            if each.source.metadata.namespace == namespace and each.selector.matches(labels)
        )
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
    return ParsedBudget(found, found.key, compiled, status.disruptions_allowed, disrupted)
