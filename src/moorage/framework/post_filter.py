"""What happens when no node fits: Refusal tells post_filter plugins why, PostFiltered is their answer."""

from collections.abc import Callable
from dataclasses import dataclass, field

from moorage.framework.effects import Request
from moorage.framework.sheet import Filtered, PreFiltered
from moorage.framework.status import Status, unschedulable

KEEP = None  # Leave the pod's nominated node as it is.


@dataclass(slots=True)
class Refusal:
    """Why a pod fits no node: per-node statuses, and one for nodes that were not looked at."""

    pre: PreFiltered
    filtered: Filtered | None
    absent: Status
    # Nodes that fit by themselves but not beside pods promised to them.
    overruled: dict[int, Status] = field(default_factory=dict)

    def status(self, row: int) -> Status:
        """Why the node in a row was refused."""
        if row in self.overruled:
            return self.overruled[row]
        if self.filtered is None:
            return self.absent
        return self.filtered.status(row)


@dataclass(slots=True)
class PostFiltered:
    """SUCCESS if something was done about it; `nominated` names a node, "" clears, None keeps."""

    status: Status
    nominated: str | None = KEEP
    requests: tuple[Request, ...] = ()


def run(
    plugins: list[Callable[[], PostFiltered]],
) -> PostFiltered:
    """Ask each in turn until one has done something, or says that nothing can be done."""
    reasons: list[str] = []
    first = ""
    nominated: str | None = KEEP
    for ask in plugins:
        answer = ask()
        status = answer.status
        if not (status.is_rejected and status.code.name == "UNSCHEDULABLE"):
            return answer
        first = first or status.plugin
        reasons += status.reasons
        if answer.nominated is not KEEP:
            nominated = answer.nominated
    return PostFiltered(unschedulable(*reasons).by(first), nominated)
