"""Explanations of several pods, grouped by reason."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from moorage.api.pod import Pod
from moorage.explaining.dry_run import DryRun
from moorage.explaining.explanation import Explanation


@dataclass(slots=True)
class ReasonGroup:
    """Pods with the same outcome; the explanation is that of the first."""

    reason: str
    explanation: Explanation
    pods: list[str] = field(default_factory=list)

    @property
    def is_placed(self) -> bool:
        """Whether a node fits the pods now."""
        return bool(self.explanation.picked)


def by_reason(
    run: DryRun, pods: Iterable[Pod], on_progress: Callable[[int], None] = lambda _: None
) -> list[ReasonGroup]:
    """Pods by why they are pending, the most frequent reason first; those that fit come last."""
    groups: dict[str, ReasonGroup] = {}
    for number, pod in enumerate(pods, 1):
        explanation = run.explain(pod)
        reason = reason_of(explanation)
        group = groups.setdefault(reason, ReasonGroup(reason, explanation))
        group.pods.append(pod.key)
        on_progress(number)
    return sorted(groups.values(), key=lambda each: (each.is_placed, -len(each.pods), each.reason))


def reason_of(explanation: Explanation) -> str:
    """Why a pod is pending, in a line; for a pod that fits, that it does."""
    if explanation.refused:
        return explanation.refused.partition(" is forbidden: ")[2]
    if explanation.gate is not None:
        return explanation.gate.message
    if explanation.picked:
        return "each would fit a node now, if it were the only pending pod"
    return explanation.message
