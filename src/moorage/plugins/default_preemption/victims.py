"""Victims: who would have to leave one node for a pod to fit there?

First all pods of lower priority leave. If the pod does not fit even then, nothing helps. Otherwise
they come back one by one as long as the pod still fits: those that a disruption budget protects
first, then the others, the most important first. Who cannot come back is a victim.
"""

from collections.abc import Iterable

from moorage import plugin as mp
from moorage.plugins.default_preemption import importance
from moorage.plugins.default_preemption.budgets import Budgets

# UID of a victim -> the disruption budgets that its eviction violates.
Violated = dict[str, tuple[str, ...]]

NO_VICTIMS = mp.unresolvable("No preemption victims found for incoming pod")


def on_node(pod: mp.Pod, question: mp.WhatIf, budgets: Budgets) -> mp.Candidate | mp.Status:
    """The victims on one node, or why preemption does not help there."""
    lower = [each for each in question.node.placed().values() if each.pod.priority < pod.priority]
    for each in lower:
        question.remove(each)
    if not lower:
        return NO_VICTIMS
    status = question.status()
    if not status.is_success:
        return status
    ordered = importance.ordered(lower)
    violated = budgets.violated_by([each.pod for each in ordered])
    ordered.sort(key=lambda each: each.pod.uid not in violated)
    staying = {each.pod.uid for each in ordered if _may_stay(each, question)}
    victims = importance.ordered(each for each in lower if each.pod.uid not in staying)
    node = question.node.name
    return (
        candidate(node, [each.pod for each in victims], violated) if victims else none_needed(node)
    )


def _may_stay(each: mp.Placed, question: mp.WhatIf) -> bool:
    question.add(each)
    if question.status().is_success:
        return True
    question.remove(each)
    return False


def none_needed(node: str) -> mp.Status:
    """The pod fits with everybody back in place: somebody's filter does not mean what it says."""
    return mp.Status(mp.Code.ERROR, (f'expected at least one victim pod on node "{node}"',))


def candidate(node: str, victims: Iterable[mp.Pod], violated: Violated) -> mp.Candidate:
    """The node with its victims, and the budgets that their eviction violates."""
    victims = tuple(victims)
    broken = [violated[victim.uid] for victim in victims if victim.uid in violated]
    budgets = tuple(dict.fromkeys(key for keys in broken for key in keys))
    return mp.Candidate(node, victims, len(broken), budgets)
