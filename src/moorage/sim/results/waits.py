"""How long pods waited for a node: percentiles, and how many waited about how long."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

# Upper bounds of a histogram, in seconds; the last one holds all that is longer.
BOUNDS = (0.0, 1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 3600.0, math.inf)
NAMES = ("at once", "≤ 1 s", "≤ 5 s", "≤ 15 s", "≤ 1 min", "≤ 5 min", "≤ 15 min", "≤ 1 h", "> 1 h")


class Waits(Struct, frozen=True, kw_only=True):
    """Seconds from a pod's creation to its binding, of all pods that were bound."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float
    histogram: tuple[int, ...]

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "Waits":
        ordered = sorted(seconds)
        histogram = [0] * len(BOUNDS)
        place = 0
        for each in ordered:
            while each > BOUNDS[place]:
                place += 1
            histogram[place] += 1
        return cls(
            count=len(ordered),
            mean=round(sum(ordered) / len(ordered), 6) if ordered else 0.0,
            p50=_percentile(ordered, 50),
            p90=_percentile(ordered, 90),
            p99=_percentile(ordered, 99),
            max=_percentile(ordered, 100),
            histogram=tuple(histogram),
        )

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        plain["histogram"] = dict(zip(NAMES, self.histogram, strict=True))
        return plain


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """The smallest that so many percent do not exceed."""
    if not ordered:
        return 0.0
    return round(ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)], 6)
