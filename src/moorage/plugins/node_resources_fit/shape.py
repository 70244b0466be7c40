"""A shape: points of utilization and score, joined by straight lines, level at both ends."""

from collections.abc import Sequence
from itertools import pairwise

from moorage import plugin as mp

# Shapes are written with scores from 0 to 10; nodes are scored from 0 to 100.
SCALE = 10

Point = tuple[int, int]  # utilization, score


def ratings(points: Sequence[mp.UtilizationShapePoint]) -> tuple[int, ...]:
    """The rating for every utilization from 0 to 100 percent."""
    if not points:
        raise ValueError("requestedToCapacityRatio.shape: must have at least one point")
    scaled = [(point.utilization, point.score * SCALE) for point in points]
    return tuple(height(scaled, utilization) for utilization in range(101))


def height(points: Sequence[Point], at: int) -> int:
    """How high the line is at a place; points are sorted by place."""
    if at <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in pairwise(points):
        if at <= right:
            return low + mp.quantity.truncated_div((high - low) * (at - left), right - left)
    return points[-1][1]
