"""Who is more important: a higher priority first, then who has been running for longer.

A pod that has not started counts as one that starts at this moment, after everybody else.
Of pods that are alike in both, those that came to the node earlier are the more important ones.
"""

import math
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache

from moorage import plugin as mp

NOT_STARTED = math.inf


@lru_cache(maxsize=1 << 16)
def instant(text: str) -> float:
    """An RFC 3339 time in seconds; what cannot be read is as good as no time at all."""
    try:
        at = datetime.fromisoformat(text)
    except ValueError:
        return NOT_STARTED
    return (at if at.tzinfo is not None else at.replace(tzinfo=UTC)).timestamp()


def started_at(pod: mp.Pod) -> float:
    """When a pod was started."""
    text = pod.status.start_time
    return NOT_STARTED if text is None else instant(text)


def key(pod: mp.Pod) -> tuple[int, float]:
    """A sort key; the most important pod has the smallest."""
    return -pod.priority, started_at(pod)


def ordered(placed: Iterable[mp.Placed]) -> list[mp.Placed]:
    """Pods of a node, the most important first."""
    return sorted(placed, key=lambda each: key(each.pod))
