"""PrioritySort: the higher priority is tried first; among equals, who queued first."""

from moorage import plugin as mp


class PrioritySort:
    name = "PrioritySort"
    reads_kinds = ()

    def queue_sort(self, pod: mp.Pod, queued_at: float) -> tuple[int, float]:
        return -pod.priority, queued_at
