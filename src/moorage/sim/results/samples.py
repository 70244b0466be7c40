"""Samples: the course of a simulation, a list per quantity.

Without an interval every moment is kept at first. When there are too many, every second one is
dropped and moments have to lie further apart from then on, so that a year takes no more room than
an hour. With an interval a sample is taken at each multiple of it.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

MOST_SAMPLES = 720

Percents = npt.NDArray[np.uint8]


@dataclass(slots=True)
class Sample:
    """The cluster at one moment. Shares are 0 to 1; amounts are milli-CPU, bytes or pieces."""

    at: float
    nodes: int
    running: int
    pending: int
    active: int
    backoff: int
    unschedulable: int
    gated: int
    bound: int
    offered: dict[str, int]
    requested: dict[str, int]
    # The share of what is free that lies where a typical pod does not fit.
    fragmentation: dict[str, float]
    # The standard deviation of the nodes' shares.
    imbalance: dict[str, float]
    # How full each row is, in percent of what it has least left of.
    packing: Percents


@dataclass(slots=True)
class Samples:
    """Samples in order; never very many."""

    interval: float | None = None
    kept: list[Sample] = field(default_factory=list)
    _gap: float = 0.0
    _next: float = 0.0

    def due(self, now: float, to: float) -> list[float]:
        """The moments to take a sample at, while time passes from one instant to a later one."""
        if self.interval is None:
            if not self.kept or now >= self.kept[-1].at + max(self._gap, 1e-9):
                return [now]
            return []
        found = []
        while self._next < to:
            found.append(self._next)
            self._next += self.interval
        return found

    def add(self, sample: Sample) -> None:
        """Keep a sample; one of the same moment takes the other's place."""
        if self.kept and self.kept[-1].at >= sample.at:
            self.kept.pop()
        self.kept.append(sample)
        if self.interval is None and len(self.kept) > MOST_SAMPLES:
            self.kept = self.kept[::2]
            self._gap = 2 * (self.kept[-1].at - self.kept[0].at) / len(self.kept)
