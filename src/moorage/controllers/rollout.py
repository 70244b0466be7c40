"""The arithmetic of a rollout: the sizes of old and new ReplicaSets at each step.

ReplicaSets are given as counts, oldest first; this module reads no objects.
"""

from collections.abc import Sequence
from typing import NamedTuple

from moorage.controllers import objects


class ReplicaCount(NamedTuple):
    """A ReplicaSet in numbers: its desired and its available pods."""

    replicas: int
    available: int


class RolloutLimits(NamedTuple):
    """How far the number of pods may differ from the number of replicas."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def max_replicas(self) -> int:
        return self.replicas + self.surge

    @property
    def min_available(self) -> int:
        return self.replicas - self.unavailable


def limits(
    replicas: int, max_surge: int | str | None, max_unavailable: int | str | None
) -> RolloutLimits:
    """The limits of a rolling update; if both are zero, one pod may be unavailable."""
    extra = "25%" if max_surge is None else max_surge
    surge = objects.int_or_percent(extra, replicas, round_up=True)
    missing = "25%" if max_unavailable is None else max_unavailable
    unavailable = objects.int_or_percent(missing, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return RolloutLimits(replicas, surge, min(unavailable, replicas) if replicas else unavailable)


def new_size(limit: RolloutLimits, new: ReplicaCount, old: Sequence[ReplicaCount]) -> int:
    """The size of the new set in the next step."""
    if new.replicas >= limit.replicas:
        return limit.replicas
    headroom = limit.max_replicas - new.replicas - sum(each.replicas for each in old)
    return new.replicas + max(0, min(headroom, limit.replicas - new.replicas))


def old_sizes(limit: RolloutLimits, new: ReplicaCount, old: Sequence[ReplicaCount]) -> list[int]:
    """The sizes of the old sets in the next step; unavailable pods are removed first."""
    sizes = [each.replicas for each in old]
    total = new.replicas + sum(sizes)
    spare = total - limit.min_available - max(0, new.replicas - new.available)
    if spare <= 0:
        return sizes
    for position, each in enumerate(old):
        down = max(0, min(spare, sizes[position] - each.available))
        sizes[position] -= down
        spare -= down
    available = new.available + sum(each.available for each in old)
    spare = min(spare, available - limit.min_available)
    for position, size in enumerate(sizes):
        down = max(0, min(spare, size))
        sizes[position] -= down
        spare -= down
    return sizes


def proportional(
    limit: RolloutLimits, sizes: Sequence[int], annotated_max: Sequence[int], old_replicas: int
) -> list[int]:
    """The sizes after the Deployment was scaled in the middle of a rollout.

    Each set grows or shrinks by its share; the rest from rounding goes to the largest. Sets are
    given largest first; `annotated_max` is the total that each was last sized for.
    """
    allowed = limit.max_replicas if limit.replicas > 0 else 0
    to_add = allowed - sum(sizes)
    left = to_add
    found = list(sizes)
    for position, size in enumerate(sizes):
        if to_add == 0:
            break
        total = annotated_max[position] or old_replicas or sum(sizes) or 1
        share = _divide_rounded(size * allowed, total) - size
        share = max(min(share, left), 0) if to_add > 0 else min(max(share, left), 0)
        found[position] += share
        left -= share
    if found and left:
        found[0] = max(0, found[0] + left)
    return [max(0, size) for size in found]


def _divide_rounded(a: int, b: int) -> int:
    return (2 * a + b) // (2 * b)
