"""A shape: points of utilization and score, joined by straight lines, level at both ends."""

from collections.abc import Sequence
from itertools import pairwise

from moorage import plugin as mp

# Shapes are configured with scores from 0 to 10; nodes are scored from 0 to 100.
SCALE = 10


def rating(shape: Sequence[mp.UtilizationShapePoint], utilization: int) -> int:
    """The score, 0 to 100, at a utilization in percent; points are sorted by utilization."""
    points = [(point.utilization, point.score * SCALE) for point in shape]
    if utilization <= points[0][0]:
        return points[0][1]
    for (left, low), (right, high) in pairwise(points):
        if utilization <= right:
            rise = (high - low) * (utilization - left)
            return low + mp.quantity.truncated_div(rise, right - left)
    return points[-1][1]
