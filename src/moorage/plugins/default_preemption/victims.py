"""Victims on one node, and the disruption budgets that their eviction violates.

First all pods of lower priority are removed. If the preemptor does not fit even then, preemption
does not help. Otherwise they are added back one by one as long as the preemptor still fits: first
those that a PodDisruptionBudget protects, then the others, the most important first. A pod that
cannot be added back is a victim.

Budgets are counted as Kubernetes does. Every pod of lower priority is charged, the most important
first, to all budgets that select it; once a budget is used up, each further pod violates it. What
is charged for a pod that stays in the end is not given back. Each node starts anew.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from moorage import plugin as mp
from moorage.plugins.default_preemption import sorted_pods

# UID of a victim -> the disruption budgets that its eviction violates.
Violated = dict[str, tuple[str, ...]]

NO_VICTIMS = mp.unresolvable("No preemption victims found for incoming pod")


@dataclass(frozen=True, slots=True)
class ParsedBudget:
    """A PodDisruptionBudget with its selector compiled."""

    key: str
    selector: mp.selectors.Selector
    allowed: int
    # Pods that were evicted already and still exist.
    disrupted: frozenset[str]

    def charges(self, pod: mp.Pod) -> bool:
        """Whether the pod's eviction counts."""
        return self.selector.matches(pod.labels) and pod.name not in self.disrupted


class Budgets:
    """All budgets of a cluster, by namespace."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._in: dict[str, list[ParsedBudget]] = {}
        for found in cluster.all(mp.PodDisruptionBudget):
            budget = _parse(found)
            if budget is not None:
                self._in.setdefault(found.namespace, []).append(budget)

    def __bool__(self) -> bool:
        return bool(self._in)

    def violated_by(self, pods: Sequence[mp.Pod]) -> Violated:
        """For the pods whose eviction goes too far, the budgets that it violates.

        The pods are those of lower priority on one node, the most important first.
        """
        violated: Violated = {}
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


def on_node(
    pod: mp.Pod, what_if: mp.HypotheticalNode, budgets: Budgets
) -> mp.Candidate | mp.Status:
    """The victims on one node, or why preemption does not help there."""
    lower = [each for each in what_if.node.placed().values() if each.pod.priority < pod.priority]
    for each in lower:
        what_if.remove(each)
    if not lower:
        return NO_VICTIMS
    status = what_if.status()
    if not status.is_success:
        return status
    ordered = sorted_pods.ordered(lower)
    violated = budgets.violated_by([each.pod for each in ordered])
    ordered.sort(key=lambda each: each.pod.uid not in violated)
    staying = {each.pod.uid for each in ordered if _may_stay(each, what_if)}
    victims = sorted_pods.ordered(each for each in lower if each.pod.uid not in staying)
    node = what_if.node.name
    return (
        candidate(node, [each.pod for each in victims], violated) if victims else none_needed(node)
    )


def _may_stay(each: mp.Placed, what_if: mp.HypotheticalNode) -> bool:
    what_if.add(each)
    if what_if.status().is_success:
        return True
    what_if.remove(each)
    return False


def none_needed(node: str) -> mp.Status:
    """The error for a pod that fits with all pods back in place: a filter contradicts itself."""
    return mp.Status(mp.Code.ERROR, (f'expected at least one victim pod on node "{node}"',))


def candidate(node: str, victims: Iterable[mp.Pod], violated: Violated) -> mp.Candidate:
    """The node with its victims, and the budgets that their eviction violates."""
    victims = tuple(victims)
    broken = [violated[victim.uid] for victim in victims if victim.uid in violated]
    budgets = tuple(dict.fromkeys(key for keys in broken for key in keys))
    return mp.Candidate(node, victims, len(broken), budgets)
