"""How a Deployment moves pods from old ReplicaSets to the new one: numbers only.

Sets are given as counts (wanted, available), oldest first, so that nothing here depends on what an
object looks like.
"""

from collections.abc import Sequence
from typing import NamedTuple

from moorage.serve.controllers import objects


class Count(NamedTuple):
    """A ReplicaSet in numbers: how many pods it is to have, and how many can be relied upon."""

    wanted: int
    available: int


class Limits(NamedTuple):
    """How far a rollout may stray from the number of replicas."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        return self.replicas + self.surge

    @property
    def fewest_available(self) -> int:
        return self.replicas - self.unavailable


def limits(replicas: int, max_surge: int | str | None, max_unavailable: int | str | None) -> Limits:
    """The limits of a rolling update; without any room at all, one pod may be missing."""
    surge = objects.scaled("25%" if max_surge is None else max_surge, replicas, round_up=True)
    missing = "25%" if max_unavailable is None else max_unavailable
    unavailable = objects.scaled(missing, replicas, round_up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Limits(replicas, surge, min(unavailable, replicas) if replicas else unavailable)


def new_size(limit: Limits, new: Count, old: Sequence[Count]) -> int:
    """How many pods the new set is to have now."""
    if new.wanted >= limit.replicas:
        return limit.replicas
    room = limit.most - new.wanted - sum(each.wanted for each in old)
    return new.wanted + max(0, min(room, limit.replicas - new.wanted))


def old_sizes(limit: Limits, new: Count, old: Sequence[Count]) -> list[int]:
    """How many pods each old set may keep: first those go that were not available anyway."""
    sizes = [each.wanted for each in old]
    total = new.wanted + sum(sizes)
    spare = total - limit.fewest_available - max(0, new.wanted - new.available)
    if spare <= 0:
        return sizes
    for place, each in enumerate(old):
        down = max(0, min(spare, sizes[place] - each.available))
        sizes[place] -= down
        spare -= down
    available = new.available + sum(each.available for each in old)
    spare = min(spare, available - limit.fewest_available)
    for place, size in enumerate(sizes):
        down = max(0, min(spare, size))
        sizes[place] -= down
        spare -= down
    return sizes


def proportional(
    limit: Limits, sizes: Sequence[int], annotated_most: Sequence[int], old_replicas: int
) -> list[int]:
    """The sizes after the Deployment was scaled in the middle of a rollout.

    Each set grows or shrinks by its share; what rounding leaves over goes to the largest. Sets
    are given largest first; `annotated_most` is the total that each was last sized for.
    """
    allowed = limit.most if limit.replicas > 0 else 0
    to_add = allowed - sum(sizes)
    left = to_add
    found = list(sizes)
    for place, size in enumerate(sizes):
        if to_add == 0:
            break
        most = annotated_most[place] or old_replicas or sum(sizes) or 1
        share = _rounded(size * allowed, most) - size
        share = max(min(share, left), 0) if to_add > 0 else min(max(share, left), 0)
        found[place] += share
        left -= share
    if found and left:
        found[0] = max(0, found[0] + left)
    return [max(0, size) for size in found]


def _rounded(a: int, b: int) -> int:
    return (2 * a + b) // (2 * b)
