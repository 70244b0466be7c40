"""Result: the outcome of a simulation at one moment, for tables, JSON, CSV, HTML and notebooks.

All amounts are plain numbers: seconds of virtual time, shares from 0 to 1, milli-CPU, bytes or
pieces. Only the JSON of a node also has Kubernetes quantities.
"""

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, structs

from moorage.api import quantity, requests
from moorage.api.devices import ResourceClaim
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import PODS
from moorage.expansion.refusals import Refusal
from moorage.sim.outcomes import PodEviction
from moorage.sim.results import spread
from moorage.sim.results.samples import QUEUES, Sample
from moorage.sim.results.spread import SpreadViolation

if TYPE_CHECKING:
    from moorage.sim.results.recorder import Recorder
    from moorage.sim.run import Simulation

N = TypeVar("N", int, float)

PREEMPTION, DRAIN, NODE_FAILURE = "preemption", "drain", "node failure"

# Upper bounds of the histogram of waits, in seconds, and what each bar is called.
WAIT_BOUNDS = {
    "at once": 0.0,
    "≤ 1 s": 1.0,
    "≤ 5 s": 5.0,
    "≤ 15 s": 15.0,
    "≤ 1 min": 60.0,
    "≤ 5 min": 300.0,
    "≤ 15 min": 900.0,
    "≤ 1 h": 3600.0,
    "> 1 h": math.inf,
}


class Disruption(Struct, frozen=True, kw_only=True):
    """A pod that had to leave its node before its time: for another pod, or because of the node."""

    pod: str
    node: str
    at: float
    cause: str
    by: str


class Placement(Struct, frozen=True, kw_only=True, gc=False):
    """A pod that was created, its node if it got one, and when: in seconds of virtual time."""

    pod: str
    uid: str
    node: str
    created_at: float
    # None if the pod was created with its node, or was never bound.
    bound_at: float | None = None
    ended_at: float | None = None


class WaitTimes(Struct, frozen=True, kw_only=True):
    """Seconds from a pod's creation to its binding, over all pods that were bound."""

    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float
    histogram: tuple[int, ...]

    @classmethod
    def of(cls, seconds: Sequence[float]) -> "WaitTimes":
        ordered = sorted(seconds)
        bounds = list(WAIT_BOUNDS.values())
        bars = Counter(bisect_left(bounds, each) for each in ordered)
        p50, p90, p99 = (percentile(ordered or [0.0], percent) for percent in (50, 90, 99))
        return cls(
            count=len(ordered),
            mean=round(sum(ordered) / len(ordered), 6) if ordered else 0.0,
            p50=round(p50, 6),
            p90=round(p90, 6),
            p99=round(p99, 6),
            max=round(max(ordered, default=0.0), 6),
            histogram=tuple(bars[bar] for bar in range(len(bounds))),
        )

    def to_dict(self) -> dict[str, Any]:
        plain: dict[str, Any] = msgspec.to_builtins(self)
        plain["histogram"] = dict(zip(WAIT_BOUNDS, self.histogram, strict=True))
        return plain


class QueueResult(Struct, frozen=True, kw_only=True):
    """The outcome for one queue and its children; shares are dominant ones, 0 to 1."""

    name: str
    running: int
    pending: int
    waits: WaitTimes
    # At the end, and the mean over time.
    share: float
    mean_share: float
    # What it can expect if all queues ask for more.
    entitled: float

    def to_dict(self) -> dict[str, Any]:
        return {
            "running": self.running,
            "pending": self.pending,
            "share": self.share,
            "meanShare": self.mean_share,
            "entitled": self.entitled,
            "timeToSchedule": self.waits.to_dict(),
        }


class Utilisation(NamedTuple):
    """The requested share of a resource: the mean over time, the peak, and the last value."""

    mean: float
    peak: float
    last: float


@dataclass(slots=True)
class NodeUse:
    """A node with what its pods request; `new` has the pods that the simulation placed there."""

    name: str
    allocatable: dict[str, int]
    requested: Counter[str] = field(default_factory=Counter)
    new: list[str] = field(default_factory=list)

    @property
    def pods(self) -> int:
        return self.requested[PODS]

    @property
    def offered(self) -> dict[str, int]:
        """The resources of which the node has any."""
        return {name: amount for name, amount in self.allocatable.items() if amount}

    @property
    def share(self) -> float:
        """The requested share of the resource that the node has least left of."""
        shares = (self.requested[n] / each for n, each in self.offered.items() if n != PODS)
        return round(max(shares, default=0.0), 6)

    def to_dict(self) -> dict[str, Any]:
        """The node as plain data; `requested` and `allocatable` are Kubernetes quantities."""
        requested = {name: self.requested[name] for name in self.allocatable}
        return {
            "pods": self.pods,
            "requested": _quantities({**requested, **self.requested}),
            "allocatable": _quantities(self.allocatable),
            "share": self.share,
            "offered": self.offered,
        }


class PodDevice(Struct, frozen=True, kw_only=True):
    """A device that is allocated for a pod: claim and request, driver, pool and name."""

    claim: str
    request: str
    driver: str
    pool: str
    device: str


class PendingGroup(NamedTuple):
    """Pods that are pending for the same reason."""

    reason: str
    pods: tuple[str, ...]


def by_reason(reasons: Mapping[str, str]) -> list[PendingGroup]:
    """Pods by reason, the most frequent reason first."""
    found: dict[str, list[str]] = {}
    for pod, reason in reasons.items():
        found.setdefault(reason, []).append(pod)
    groups = (PendingGroup(reason, tuple(pods)) for reason, pods in found.items())
    return sorted(groups, key=lambda group: (-len(group.pods), group.reason))


@dataclass(frozen=True)
class Result:
    """The outcome of a simulation: of `simulate`, of a scenario, of a trace, of a sweep's run."""

    seconds: float
    placements: Mapping[str, str | None]
    # The devices of every pod that has any.
    devices: Mapping[str, list[PodDevice]]
    # Every pod without a node, with the reason.
    pending_pods: Mapping[str, str]
    # Stateful sets: the pod that has to run first, and how many pods are created after it.
    held_back: Mapping[str, tuple[str, int]]
    # What quotas and limit ranges keep from being created, with the number of missing pods.
    refused: list[Refusal]
    # Keys of existing pods: placed by the simulation, created with a node, gated.
    placed: list[str]
    already_running: list[str]
    gated: list[str]
    # Counts over the whole run. `ended` includes deleted and evicted pods, `finished` does not;
    # `running` are the pods on a node at the end.
    created: int
    bound: int
    ended: int
    finished: int
    running: int
    waits: WaitTimes
    # Every pod that was ever created.
    history: list[Placement]
    # When the scheduler selected the node, by the UID of the pod.
    scheduled_at: Mapping[str, float]
    evictions: list[PodEviction]
    disruptions: list[Disruption]
    nodes: list[NodeUse]
    samples: list[Sample]
    # The highest requested share of each resource at any time, between samples too.
    peaks: Mapping[str, float]
    # The node names for the rows of each sample's `packing`.
    rows: list[str]
    queues: list[QueueResult]
    _pods: list[Pod]
    _nodes: list[Node]

    @cached_property
    def pending(self) -> list[PendingGroup]:
        """Pending pods by reason, the most frequent reason first."""
        return by_reason(self.pending_pods)

    @property
    def refused_pods(self) -> int:
        """How many pods do not exist because quotas or limit ranges refuse them."""
        return sum(each.pods for each in self.refused)

    @property
    def pending_count(self) -> int:
        return len(self.pending_pods)

    @cached_property
    def spread_violations(self) -> list[SpreadViolation]:
        """The topology spread constraints that do not hold."""
        return spread.violations(self._pods, self._nodes)

    @property
    def resources(self) -> list[str]:
        """The resources that nodes offered at any time; cpu and memory first."""
        return list(dict.fromkeys(name for sample in self.samples for name in sample.offered))

    def utilisation(self) -> dict[str, Utilisation]:
        """The requested share of each resource."""
        return {name: self._utilisation(name) for name in self.resources}

    def _utilisation(self, resource: str) -> Utilisation:
        last = self.samples[-1]
        share = last.share(resource)
        mean = self.mean_share(resource, 0.0, last.at) if last.at else share
        return Utilisation(round(mean, 6), round(self.peaks[resource], 6), share)

    def mean_share(self, resource: str, start: float, end: float) -> float:
        """The mean requested share of a resource between two moments.

        Exact where both are moments of samples, because samples carry integrals.
        """
        first, last = (self._share_seconds(resource, at) for at in (start, end))
        return (last - first) / (end - start)

    def _share_seconds(self, resource: str, at: float) -> float:
        index = bisect_left(self.samples, at, key=lambda sample: sample.at)
        later = self.samples[min(index, len(self.samples) - 1)]
        found = later.share_seconds.get(resource, 0.0)
        if index == 0 or at >= later.at:
            return found
        earlier = self.samples[index - 1]
        start = earlier.share_seconds.get(resource, 0.0)
        return start + (found - start) * (at - earlier.at) / (later.at - earlier.at)

    def mean_shares(self, resource: str) -> list[float]:
        """For each sample, the mean requested share since the sample before; the first: its own."""
        means = [self.samples[0].share(resource)]
        for earlier, later in pairwise(self.samples):
            grown = later.share_seconds.get(resource, 0.0) - earlier.share_seconds.get(resource, 0)
            means.append(round(grown / (later.at - earlier.at), 6))
        return means

    def causes(self) -> list[tuple[str, str, int]]:
        """How many disruptions each pod or node caused, the most first: (cause, by, count)."""
        counts = Counter((each.cause, each.by) for each in self.disruptions)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return [(cause, by, count) for (cause, by), count in ordered]

    def summary(self) -> dict[str, Any]:
        """The figures that fit a few lines."""
        last = self.samples[-1]
        return {
            "pods": len(self.placements),
            "nodes": len(self.nodes),
            "placed": len(self.placed),
            "running": len(self.already_running),
            "ended": self.finished,
            "evicted": len(self.evictions),
            "pending": self.pending_count,
            "refused": self.refused_pods,
            "gated": len(self.gated),
            "seconds": self.seconds,
            "created": self.created,
            "bound": self.bound,
            "runningTotal": self.running,
            "endedTotal": self.ended,
            "disrupted": len(self.disruptions),
            "spreadViolations": len(self.spread_violations),
            "utilisation": {name: each._asdict() for name, each in self.utilisation().items()},
            "fragmentation": last.fragmentation,
            "imbalance": last.imbalance,
            "timeToSchedule": self.waits.to_dict(),
        }

    def to_dict(self) -> dict[str, Any]:
        """The whole result as plain data; samples are a list per quantity."""
        queues = {each.name: each.to_dict() for each in self.queues}
        return {
            "placements": self.placements,
            "devices": msgspec.to_builtins(self.devices),
            "pending": self.pending_pods,
            "heldBack": {
                name: {"waitsFor": pod, "pods": count}
                for name, (pod, count) in self.held_back.items()
            },
            "refused": [each.to_dict() for each in self.refused],
            "evictions": [structs.asdict(each) for each in self.evictions],
            "nodes": {node.name: node.to_dict() for node in self.nodes},
            "summary": self.summary(),
            "pendingReasons": [
                {"reason": reason, "count": len(pods), "pods": list(pods)}
                for reason, pods in self.pending
            ],
            "disruptions": [structs.asdict(each) for each in self.disruptions],
            "causes": [
                {"cause": cause, "by": by, "count": count} for cause, by, count in self.causes()
            ],
            "spreadViolations": msgspec.to_builtins(self.spread_violations),
            "samples": self._columns(),
            **({"queues": queues} if queues else {}),
        }

    def _columns(self) -> dict[str, Any]:
        counts = ("at", "nodes", "running", "pending", *QUEUES, "bound")
        found: dict[str, Any] = {name: [getattr(s, name) for s in self.samples] for name in counts}
        for name in ("offered", "requested", "fragmentation", "imbalance"):
            found[name] = {
                resource: [getattr(sample, name).get(resource, 0) for sample in self.samples]
                for resource in self.resources
            }
        found["meanShare"] = {name: self.mean_shares(name) for name in self.resources}
        if self.queues:
            found["queueShare"] = {
                each.name: [sample.queue_shares.get(each.name, 0.0) for sample in self.samples]
                for each in self.queues
            }
        return found


def collect(simulation: "Simulation", recorder: "Recorder") -> Result:
    """The result of a simulation as it stands now."""
    pods, nodes = simulation.cluster.by_key(Pod), list(simulation.cluster.all(Node))
    given = recorder.given_with_node
    placements: dict[str, str | None] = {}
    placed, already_running, gated = [], [], []
    # One pass: there may be a million pods, and reading one again from memory takes long.
    for key, pod in pods.items():
        spec = pod.spec
        placements[key] = spec.node_name or None
        if not spec.node_name:
            if spec.scheduling_gates:
                gated.append(key)
        elif key not in given:
            placed.append(key)
        elif not pod.is_terminal:
            already_running.append(key)
    evictions, rows = simulation.evictions, recorder.usage.rows
    preemptions = [
        Disruption(pod=each.pod, node=each.node, at=each.at, cause=PREEMPTION, by=each.by)
        for each in evictions
    ]
    return Result(
        seconds=simulation.now,
        placements=placements,
        devices=_devices(simulation.cluster.all(ResourceClaim)),
        pending_pods=simulation.pending,
        held_back=simulation.held_back,
        refused=simulation.refusals,
        placed=placed,
        already_running=already_running,
        gated=gated,
        created=recorder.created,
        bound=len(recorder.waits),
        ended=recorder.ended,
        finished=recorder.finished,
        running=recorder.running,
        waits=WaitTimes.of(recorder.waits),
        history=recorder.placements(),
        scheduled_at=simulation.scheduled_at,
        evictions=evictions,
        disruptions=sorted([*preemptions, *recorder.disruptions], key=lambda each: each.at),
        # A deleted node that is created again keeps its row.
        nodes=_node_uses(sorted(nodes, key=lambda n: rows[n.name]), recorder),
        samples=(samples := recorder.until_now()),
        peaks={name: recorder.peak(name) for sample in samples for name in sample.offered},
        rows=list(recorder.usage.names),
        queues=recorder.queue_results(),
        _pods=list(pods.values()),
        _nodes=nodes,
    )


def _devices(claims: Iterable[ResourceClaim]) -> dict[str, list[PodDevice]]:
    found: dict[str, list[PodDevice]] = {}
    for claim in claims:
        if claim.status.allocation is None:
            continue
        devices = [
            PodDevice(
                claim=claim.name,
                request=each.request,
                driver=each.driver,
                pool=each.pool,
                device=each.device,
            )
            for each in claim.status.allocation.devices.results
        ]
        for user in claim.status.reserved_for:
            found.setdefault(f"{claim.namespace}/{user.name}", []).extend(devices)
    return found


def _node_uses(nodes: Iterable[Node], recorder: "Recorder") -> list[NodeUse]:
    devices, given = recorder.devices, recorder.given_with_node
    found = {
        node.name: NodeUse(
            node.name,
            devices.with_offered(node.name, requests.allocatable(node)),
            Counter(devices.allocated.get(node.name, {})),
        )
        for node in nodes
    }
    for pod in recorder.pods():
        if (use := found.get(pod.node)) is None:
            continue
        requested = use.requested
        for name, amount in pod.amounts.items():
            requested[name] += amount
        if pod.key not in given:
            use.new.append(pod.key)
    return list(found.values())


def _quantities(amounts: dict[str, int]) -> dict[str, str]:
    return {name: quantity.format_value(amount, name) for name, amount in amounts.items()}


def percentile(values: Sequence[N], percent: int) -> N:
    """The smallest value that so many percent of all values do not exceed."""
    return sorted(values)[max(0, math.ceil(len(values) * percent / 100) - 1)]
