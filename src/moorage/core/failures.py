"""Failures: attempts that came to nothing. The pod is put back, and the world is told why."""

from collections.abc import Mapping

from moorage.api.pod import Pod
from moorage.core import diagnosis, notes
from moorage.core.diagnosis import Diagnosis
from moorage.core.journal import Journal
from moorage.core.outbox import Outbox
from moorage.core.queue import SchedulingQueue
from moorage.core.queued_pod import QueuedPod
from moorage.core.refusal_shown import refusal_shown
from moorage.framework.status import Status


class Failures:
    """See the module; `pods` are those that the world told of, by namespace/name."""

    def __init__(
        self, pods: Mapping[str, Pod], queue: SchedulingQueue, outbox: Outbox, journal: Journal
    ) -> None:
        self._pods = pods
        self._queue = queue
        self._outbox = outbox
        self._journal = journal

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
        """Put a pod where it belongs after a failed attempt.

        `nominated` is the node that it is promised from now on: "" for none, None for whatever it
        was promised before.
        """
        known = self._pods.get(entry.key)
        if known is None or known.uid != entry.uid or known.node_name:
            # Gone, replaced or bound meanwhile: there is nothing to put back, nobody to tell.
            self._queue.done(entry.uid)
            return
        if found is not None:
            entry.rejected_by(sorted(found.unschedulable_plugins), sorted(found.pending_plugins))
        else:
            entry.rejected_by()
        entry.become(known)
        self._queue.return_unschedulable(entry, now)
        self._promise(known, nominated, now)
        notes.failure(self._journal, entry, status, found, nominated, rejected_by or {}, now)
        message = status.message
        if message:
            self._tell(entry, known, status, message, nominated)

    def _promise(self, pod: Pod, node: str | None, now: float) -> None:
        nominator = self._queue.nominator
        before = nominator.node_of(pod.uid)
        if node:
            nominator.nominate(pod, node)
        elif node is None:
            # As it is, even if the pod's status does not show it yet, or never will.
            nominator.update(pod, pod)
        else:
            nominator.delete(pod)
        if before and before != nominator.node_of(pod.uid):
            self._queue.promise_ended(pod, before, now)

    def _tell(
        self, entry: QueuedPod, pod: Pod, status: Status, message: str, nominated: str | None
    ) -> None:
        note = diagnosis.note(message)
        self._outbox.emit(pod, "Warning", "FailedScheduling", "Scheduling", note)
        patch = refusal_shown(entry, pod, status, message, nominated)
        if patch is not None:
            self._outbox.ask(patch)
