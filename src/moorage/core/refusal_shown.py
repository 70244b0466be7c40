"""How a refusal is shown in a pod's status: its condition, and a node that is promised to it.

Nothing is written that is there already. But what the world shows of a pod may be older than what
it was asked to show since, and on its way: then that is what the pod's status will be.
"""

from msgspec import structs

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.core.queued_pod import QueuedPod
from moorage.framework.effects import PatchPodStatus, PodRef
from moorage.framework.status import Status


def refusal_shown(
    entry: QueuedPod, pod: Pod, status: Status, message: str, nominated: str | None
) -> PatchPodStatus | None:
    """What is to be written into a pod's status; None if it is there already.

    The entry remembers it.
    """
    shown = pod.condition("PodScheduled")
    lasts = shown is not None and shown.status == "False"
    wanted = Condition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable" if status.is_rejected else "SchedulerError",
        message=message,
        # None stands for the moment at which it is carried out.
        last_transition_time=shown.last_transition_time if shown and lasts else None,
        observed_generation=pod.metadata.generation or None,
    )
    telling = (wanted.reason, wanted.message)
    same = (
        shown is not None
        and (shown.status, shown.reason, shown.message) == (wanted.status, *telling)
        and entry.told in (None, telling)
    )
    entry.told = telling
    moved = nominated is not None and (
        nominated != pod.status.nominated_node_name or entry.told_node not in (None, nominated)
    )
    if moved:
        entry.told_node = nominated
    if same and not moved:
        return None
    patch = PatchPodStatus(PodRef.of(pod), condition=None if same else wanted)
    if moved:
        assert nominated is not None
        patch = structs.replace(patch, nominated_node_name=nominated)
    return patch
