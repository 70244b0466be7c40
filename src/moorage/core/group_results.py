"""What a pod-group cycle finds: for each member, for the group, and for a placement."""

from dataclasses import dataclass

from moorage.api.meta import NodeName
from moorage.core.binding_cycle import BindingCycle
from moorage.core.decision import Decision
from moorage.core.diagnosis import Diagnosis
from moorage.core.queued_pod import QueuedPod
from moorage.framework.status import SUCCESS, Code, Status, unschedulable
from moorage.nodes.pod_groups import GroupPlacement
from moorage.nodes.template import PodTemplate

NOWHERE = NodeName("")


@dataclass(slots=True, eq=False)
class Member:
    """A member of a group, and what was found for it in this cycle."""

    entry: QueuedPod
    decision: Decision | None = None
    # Why it has no node, if it was tried and has none; for one that preempts, why it has to.
    status: Status = SUCCESS
    diagnosis: Diagnosis | None = None
    # While it is assumed.
    binding: BindingCycle | None = None
    # Where it is assumed, or was, if it may be.
    node: NodeName = NOWHERE
    preempts: bool = False
    # WAIT, with the reasons of permit plugins, and their names.
    permit: Status = SUCCESS
    waits_for: tuple[str, ...] = ()
    nominated_before: str = ""
    # Its node in the trial for which pods are evicted, if the whole group preempts.
    nominated: str = ""

    @property
    def template(self) -> PodTemplate | None:
        """The template with which it was decided."""
        return None if self.decision is None else self.decision.template

    @property
    def is_error(self) -> bool:
        return self.status.code is Code.ERROR

    @property
    def rejectors(self) -> set[str]:
        """The plugins that rejected it; a change that helps one of them may help the group."""
        return set() if self.diagnosis is None else self.diagnosis.unschedulable_plugins


@dataclass(slots=True)
class GroupResult:
    """What was found for a group as a whole."""

    status: Status
    waits_for_preemption: bool = False

    @property
    def goes_on(self) -> bool:
        """Whether the group has room, at once or when its victims are gone."""
        return self.status.is_success or self.waits_for_preemption

    @property
    def label(self) -> str:
        """The result in metrics."""
        if self.status.is_success:
            return "scheduled"
        if self.waits_for_preemption:
            return "waiting_on_preemption"
        return "unschedulable" if self.status.is_rejected else "error"


@dataclass(slots=True)
class Trial:
    """What was found for a group in one placement."""

    placement: GroupPlacement
    members: list[Member]
    result: GroupResult


def in_placements(result: GroupResult, count: int) -> GroupResult:
    """The result for `count` placements, with the reason of the first if none is large enough."""
    if result.goes_on or not result.status.is_rejected:
        return result
    text = f"0/{count} placements are available, first placement status: {result.status.message}"
    return GroupResult(unschedulable(text))


def with_reason(result: GroupResult, status: Status) -> GroupResult:
    """The result with the reasons why preemption does not help."""
    return GroupResult(unschedulable(*result.status.reasons, *status.reasons))
