"""Samples: the state of a simulated cluster at selected times.

Without an interval every moment is kept at first. When there are too many samples, every second one
is dropped and the least gap between two samples doubles, so that a year needs no more memory than
an hour. With an interval a sample is taken at each multiple of it.
"""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

MOST_SAMPLES = 720

# The queue's states, as samples, CSV columns and charts name them.
QUEUES = ("active", "backoff", "unschedulable", "gated")

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
    # The integral of the requested share over the time from 0 to this moment.
    share_seconds: dict[str, float]
    # The share of the free amount that is on nodes where a typical pod does not fit.
    fragmentation: dict[str, float]
    # The standard deviation of the nodes' shares.
    imbalance: dict[str, float]
    # Per row, the requested percentage of the resource that the node has least left of.
    packing: Percents
    # The dominant share of each queue.
    queue_shares: dict[str, float]

    def share(self, resource: str) -> float:
        """The requested share of a resource, 0 to 1."""
        offered = self.offered.get(resource, 0)
        return round(self.requested.get(resource, 0) / offered, 6) if offered else 0.0


@dataclass(slots=True)
class Samples:
    """Samples by time; their number is bounded."""

    interval: float | None = None
    kept: list[Sample] = field(default_factory=list)
    _gap: float = 0.0
    _next: float = 0.0

    def due(self, now: float, to: float) -> list[float]:
        """The times at which a sample is due while time passes from `now` to `to`."""
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
        """Keep a sample; it replaces one of the same time."""
        if self.kept and self.kept[-1].at >= sample.at:
            self.kept.pop()
        self.kept.append(sample)
        if self.interval is None and len(self.kept) > MOST_SAMPLES:
            self.kept = self.kept[::2]
            self._gap = 2 * (self.kept[-1].at - self.kept[0].at) / len(self.kept)
