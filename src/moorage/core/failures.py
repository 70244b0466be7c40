"""Failures: return a pod to the queue after a failed attempt, and report why.

The report is a fact, an Event and a patch of the pod's status.
"""

from msgspec import UNSET

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.api.server_requests import PatchPodStatus, PodRef
from moorage.core import diagnosis
from moorage.core.diagnosis import Diagnosis
from moorage.core.journal import Erred, Fact, Refused
from moorage.core.queued_pod import QueuedPod
from moorage.core.state import SchedulerState
from moorage.framework.status import Status


class Failures:
    """See the module."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        self._queue = state.queue

    def put_back(
        self,
        entry: QueuedPod,
        status: Status,
        found: Diagnosis | None,
        now: float,
        *,
        nominated: str | None = "",
        rejected_by: dict[str, int] | None = None,
    ) -> None:
        """Return a pod to the queue.

        `nominated` is the pod's nominated node from now on: "" for none, None for no change.
        """
        pod = self._state.pods.get(entry.key)
        if pod is None or pod.metadata.uid != entry.uid or pod.spec.node_name:
            self._queue.done(entry.uid)  # Gone, replaced or bound meanwhile.
            return
        key, uid, message = entry.key, entry.uid, status.message
        found = found or Diagnosis(message)
        entry.rejected_by(found.unschedulable_plugins, found.pending_plugins)
        entry.update(pod)
        self._queue.return_unschedulable(entry, now)
        self._nominate(pod, nominated, now)
        fact: Fact = Erred(at=now, pod=key, uid=uid, message=message)
        if status.is_rejected:
            fact = Refused(
                at=now,
                pod=key,
                uid=uid,
                message=message,
                plugins=tuple(sorted(found.unschedulable_plugins)),
                rejected_by=rejected_by or {},
                nominated=nominated or "",
            )
        self._state.journal.add(fact)
        if message:
            outbox, note = self._state.outbox, diagnosis.note(message)
            outbox.emit(pod, "Warning", "FailedScheduling", "Scheduling", note)
            patch = status_patch(entry, pod, status, message, nominated)
            if patch is not None:
                outbox.add(patch)

    def _nominate(self, pod: Pod, node: str | None, now: float) -> None:
        nominator = self._state.nominator
        before = nominator.node_of(pod.uid)
        if node:
            nominator.nominate(pod, node)
        elif node is None:
            # It stays as it is, even if the pod's status does not show it yet, or never will.
            nominator.update(pod, pod)
        else:
            nominator.delete(pod)
        if before and before != nominator.node_of(pod.uid):
            self._queue.nomination_ended(pod, before, now)


def status_patch(
    entry: QueuedPod, pod: Pod, status: Status, message: str, nominated: str | None
) -> PatchPodStatus | None:
    """The patch of a pod's status after a failed attempt; None if the status says so already.

    The observed status may be older than the last patch, which the entry remembers: such a patch is
    on its way, so the status will be as patched.
    """
    shown = pod.condition("PodScheduled")
    lasts = shown is not None and shown.status == "False"
    condition = Condition(
        type="PodScheduled",
        status="False",
        reason="Unschedulable" if status.is_rejected else "SchedulerError",
        message=message,
        # None stands for the time at which the patch is carried out.
        last_transition_time=shown.last_transition_time if shown and lasts else None,
        observed_generation=pod.metadata.generation or None,
    )
    content = (condition.reason, condition.message)
    same = (
        shown is not None
        and (shown.status, shown.reason, shown.message) == (condition.status, *content)
        and entry.patched_condition in (None, content)
    )
    entry.patched_condition = content
    moved = nominated is not None and (
        nominated != pod.status.nominated_node_name or entry.patched_node not in (None, nominated)
    )
    if moved:
        entry.patched_node = nominated
    if same and not moved:
        return None
    node = nominated if moved and nominated is not None else UNSET
    return PatchPodStatus(PodRef.of(pod), None if same else condition, node)
