"""Scoring by storage capacity: how full a node's volumes would be. Off unless a shape is given."""

from collections.abc import Sequence

from moorage import plugin as mp
from moorage.plugins import utilization_shape
from moorage.plugins.volume_binding.finding import Found


def score(found: Found, shape: Sequence[mp.UtilizationShapePoint]) -> int:
    """The mean rating of the storage classes in question, 0 if there is none."""
    ratings = [
        utilization_shape.rating(shape, _utilization(*amounts))
        for amounts in _by_class(found).values()
    ]
    if not ratings:
        return 0
    # Half goes up; nothing is negative.
    return (2 * sum(ratings) + len(ratings)) // (2 * len(ratings))


def _by_class(found: Found) -> dict[str, tuple[int, int]]:
    """What is requested of each class, and what there is; volumes that are there come first."""
    amounts: dict[str, tuple[int, int]] = {}
    for claim, volume in found.matched:
        requested, capacity = amounts.get(name := mp.claims.class_of(volume), (0, 0))
        there = mp.quantity.value_of_nano(mp.claims.capacity_nano(volume))
        amounts[name] = (requested + _requested(claim), capacity + there)
    if amounts:
        return amounts
    for each in found.provisioned:
        if each.capacity is not None:
            requested, _ = amounts.get(name := each.capacity.storage_class_name, (0, 0))
            # Kubernetes does not add capacities up: it is one pool that all draw from.
            there = mp.quantity.value(each.capacity.capacity or 0)
            amounts[name] = (requested + _requested(each.claim), there)
    return amounts


def _requested(claim: mp.PersistentVolumeClaim) -> int:
    return mp.quantity.value_of_nano(mp.claims.requested_nano(claim))


def _utilization(requested: int, capacity: int) -> int:
    return 100 if capacity == 0 or requested > capacity else requested * 100 // capacity
