"""Result: what came of a simulation, summed up at one moment.

All figures are plain numbers: seconds of virtual time, shares from 0 to 1, milli-CPU, bytes or
pieces.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from moorage.api.requests import PODS
from moorage.sim.results import disruptions
from moorage.sim.results.disruptions import Disruption
from moorage.sim.results.samples import Sample
from moorage.sim.results.spread import SpreadViolation
from moorage.sim.results.waits import Waits

MOST_EXAMPLES = 5


@dataclass(slots=True, frozen=True)
class Utilisation:
    """The share of a resource that is requested: on average over time, at most, at the end."""

    mean: float
    peak: float
    last: float


@dataclass(slots=True, frozen=True)
class NodePacking:
    """A node at the end: how many pods, and how much of what it offers is requested."""

    name: str
    pods: int
    offered: dict[str, int]
    requested: dict[str, int]

    @property
    def share(self) -> float:
        """The share of what it has least left of."""
        shares = [self.requested[n] / self.offered[n] for n in self.offered if n != PODS]
        return round(max(shares, default=0.0), 6)


@dataclass(slots=True, frozen=True)
class PendingGroup:
    """Pods that wait for the same reason."""

    reason: str
    pods: tuple[str, ...]


@dataclass(slots=True, frozen=True)
class Result:
    """What came of a simulation."""

    seconds: float
    created: int
    bound: int
    ended: int
    running: int
    waits: Waits
    samples: list[Sample]
    # The names of the rows of each sample's packing.
    rows: list[str]
    pending: list[PendingGroup]
    disruptions: list[Disruption]
    nodes: list[NodePacking]
    spread_violations: list[SpreadViolation]

    @property
    def pending_count(self) -> int:
        return sum(len(group.pods) for group in self.pending)

    @property
    def resources(self) -> list[str]:
        """What nodes offered at any time; cpu and memory first."""
        return list(dict.fromkeys(name for sample in self.samples for name in sample.offered))

    def utilisation(self) -> dict[str, Utilisation]:
        """Requested of what is offered, for each resource."""
        return {name: self._utilisation(name) for name in self.resources}

    def _utilisation(self, resource: str) -> Utilisation:
        shares = [share(sample, resource) for sample in self.samples]
        spans = [
            later.at - sample.at
            for sample, later in zip(self.samples, self.samples[1:], strict=False)
        ]
        weighted = sum(s * span for s, span in zip(shares, spans, strict=False))
        mean = weighted / sum(spans) if sum(spans) > 0 else shares[-1]
        return Utilisation(round(mean, 6), max(shares), shares[-1])

    def summary(self) -> dict[str, Any]:
        """The figures that fit a few lines."""
        last = self.samples[-1]
        return {
            "seconds": self.seconds,
            "nodes": len(self.nodes),
            "created": self.created,
            "bound": self.bound,
            "ended": self.ended,
            "running": self.running,
            "pending": self.pending_count,
            "disrupted": len(self.disruptions),
            "spreadViolations": len(self.spread_violations),
            "utilisation": {
                name: {"mean": each.mean, "peak": each.peak, "last": each.last}
                for name, each in self.utilisation().items()
            },
            "fragmentation": last.fragmentation,
            "imbalance": last.imbalance,
            "timeToSchedule": self.waits.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """All of it as plain data; the course as a list per quantity."""
        return {
            "summary": self.summary(),
            "pending": [
                {"reason": group.reason, "count": len(group.pods), "pods": list(group.pods)}
                for group in self.pending
            ],
            "disruptions": [each.to_dict() for each in self.disruptions],
            "causes": [
                {"cause": cause, "by": by, "count": count}
                for cause, by, count in disruptions.by_cause(self.disruptions)
            ],
            "spreadViolations": [each.to_dict() for each in self.spread_violations],
            "nodes": {
                node.name: {
                    "pods": node.pods,
                    "share": node.share,
                    "requested": node.requested,
                    "offered": node.offered,
                }
                for node in self.nodes
            },
            "samples": self._columns(),
        }

    def _columns(self) -> dict[str, Any]:
        counts = ("at", "nodes", "running", "pending", *QUEUES, "bound")
        found: dict[str, Any] = {name: [getattr(s, name) for s in self.samples] for name in counts}
        for name in ("offered", "requested", "fragmentation", "imbalance"):
            found[name] = {
                resource: [getattr(sample, name).get(resource, 0) for sample in self.samples]
                for resource in self.resources
            }
        return found


QUEUES = ("active", "backoff", "unschedulable", "gated")


def share(sample: Sample, resource: str) -> float:
    """How much of a resource is requested at one moment, 0 to 1."""
    offered = sample.offered.get(resource, 0)
    return round(sample.requested.get(resource, 0) / offered, 6) if offered else 0.0


def grouped(pending: Mapping[str, str]) -> list[PendingGroup]:
    """Pending pods by reason, the most frequent first."""
    by_reason: dict[str, list[str]] = {}
    for key, reason in pending.items():
        by_reason.setdefault(reason, []).append(key)
    ordered = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    return [PendingGroup(reason, tuple(keys)) for reason, keys in ordered]
