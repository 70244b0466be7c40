"""May the pod preempt others at all, now?"""

from moorage import plugin as mp

NEVER = "not eligible due to preemptionPolicy=Never."
TERMINATING = "not eligible due to a terminating pod on the nominated node."

DISRUPTION_TARGET = "DisruptionTarget"
BY_SCHEDULER = "PreemptionByScheduler"


def why_not(state: mp.CycleState, pod: mp.Pod, refusal: mp.Refusal) -> str:
    """The reason why the pod may not preempt; empty if it may."""
    if pod.spec.preemption_policy == "Never":
        return NEVER
    if refusal.nominated and _waits_for_victims(state.table, pod, refusal):
        return TERMINATING
    return ""


def _waits_for_victims(table: mp.NodeTable, pod: mp.Pod, refusal: mp.Refusal) -> bool:
    """Whether room is being made on the node that was promised to the pod."""
    row = table.row_of.get(refusal.nominated)
    if row is None or table.nodes[row] is None:
        return False
    if refusal.status(row).code is mp.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return False  # No victim's end can help there, so the pod may look elsewhere.
    return any(
        other.pod.priority < pod.priority and is_leaving_for_another(other.pod)
        for other in table.placed[row].values()
    )


def is_leaving_for_another(pod: mp.Pod) -> bool:
    """Whether a pod is being deleted because a scheduler preempted it."""
    if not pod.is_terminating:
        return False
    target = pod.condition(DISRUPTION_TARGET)
    return target is not None and (target.status, target.reason) == ("True", BY_SCHEDULER)
