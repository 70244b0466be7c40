"""Preemption in words: who would have to leave which node, and why it is that one."""

from typing import NamedTuple

from moorage.api import texts
from moorage.api.pod import Pod
from moorage.explaining.explanation import Explanation
from moorage.framework.post_filter import Candidate


class Sacrifice(NamedTuple):
    """A node where preemption would help, in words."""

    node: str
    is_chosen: bool
    victims: list[str]
    # What it costs besides; empty if nothing.
    harm: str


def headline(told: Explanation) -> str:
    """What happens to whom, and why there."""
    chosen = next(each for each in told.candidates if each.node == told.nominated)
    leave = "has" if len(chosen.victims) == 1 else "have"
    who = texts.count(len(chosen.victims), "pod")
    nodes = texts.count(len(told.candidates), "node")
    where = f"of {nodes} where that helps, " if len(told.candidates) > 1 else ""
    return f"{who} {leave} to leave {told.nominated} for it; {where}{told.why_nominated}"


def sacrifices(told: Explanation) -> list[Sacrifice]:
    """Every node where preemption would help, the chosen one first."""
    chosen_first = sorted(told.candidates, key=lambda each: each.node != told.nominated)
    return [_sacrifice(each, told.nominated) for each in chosen_first]


def _sacrifice(candidate: Candidate, nominated: str) -> Sacrifice:
    victims = [_victim(victim) for victim in candidate.victims]
    return Sacrifice(candidate.node, candidate.node == nominated, victims, _harm(candidate))


def _victim(victim: Pod) -> str:
    return f"{victim.key} (priority {victim.priority:,})"


def _harm(candidate: Candidate) -> str:
    if not candidate.violations:
        return ""
    whose = "budget" if len(candidate.budgets) == 1 else "budgets"
    return (
        f"goes against {texts.count(candidate.violations, 'promise')} "
        f"of disruption {whose} {', '.join(candidate.budgets)}"
    )
