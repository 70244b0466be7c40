"""PrioritySort: a higher priority first; of equals, the pod that was queued first."""

from moorage import plugin as mp


class PrioritySort:
    name = "PrioritySort"
    reads_kinds = ()

    def queue_sort(self, pod: mp.Pod, queued_at: float) -> tuple[int, float]:
        return -pod.priority, queued_at
