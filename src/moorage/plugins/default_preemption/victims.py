"""Victims on one node, and the disruption budgets that their eviction violates.

First all pods of lower priority are removed. If the preemptor does not fit even then, preemption
does not help. Otherwise they are added back one by one as long as the preemptor still fits: first
those that a PodDisruptionBudget protects, then the others, the most important first. A pod that
cannot be added back is a victim.
"""

from collections.abc import Iterable, Sequence

from moorage import plugin as mp
from moorage.plugins.default_preemption import sorted_pods
from moorage.plugins.disruption_budgets import Budgets, Violated

NO_VICTIMS = mp.unresolvable("No preemption victims found for incoming pod")


def on_node(
    pod: mp.Pod, what_if: mp.HypotheticalNode, budgets: Budgets
) -> mp.Candidate | mp.Status:
    """The victims on one node, or why preemption does not help there."""
    priority, placed = pod.priority, what_if.info.placed().values()
    lower = [each for each in placed if (each.pod.spec.priority or 0) < priority]
    if not lower:
        return NO_VICTIMS
    what_if.remove(*lower)
    status = what_if.status()
    if status is not mp.SUCCESS:
        return status
    ordered = sorted_pods.ordered(lower)
    violated = budgets.violated_by(ordered)
    ordered.sort(key=lambda each: each.pod.uid not in violated)
    staying = {each.pod.uid for each in ordered if _may_stay(each, what_if)}
    leaving = [each for each in ordered if each.pod.uid not in staying]
    victims = sorted_again(leaving, violated, len(lower))
    node = what_if.info.name
    return (
        candidate(node, [each.pod for each in victims], violated) if victims else none_needed(node)
    )


def sorted_again(
    leaving: Iterable[mp.Placed], violated: Violated, lower: int
) -> Sequence[mp.Placed]:
    """The victims among a number of pods of lower priority, the most important first.

    As in Kubernetes, those that budgets protect come before others that are equal to them.
    """
    leaving = sorted(leaving, key=lambda each: each.pod.uid not in violated)
    return sorted_pods.ordered(leaving) if 0 < len(violated) < lower else leaving


def _may_stay(each: mp.Placed, what_if: mp.HypotheticalNode) -> bool:
    what_if.add(each)
    if what_if.status() is mp.SUCCESS:
        return True
    what_if.remove(each)
    return False


def none_needed(node: str) -> mp.Status:
    """The error for a pod that fits with all pods back in place: a filter contradicts itself."""
    return mp.Status(mp.Code.ERROR, (f'expected at least one victim pod on node "{node}"',))


def candidate(node: str, victims: Iterable[mp.Pod], violated: Violated) -> mp.Candidate:
    """The node with its victims, and the budgets that their eviction violates."""
    victims = tuple(victims)
    if not violated:
        return mp.Candidate(node, victims)
    broken = [violated[victim.uid] for victim in victims if victim.uid in violated]
    budgets = tuple(dict.fromkeys(key for keys in broken for key in keys))
    return mp.Candidate(node, victims, len(broken), budgets)
