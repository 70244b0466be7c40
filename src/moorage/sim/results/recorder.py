"""Recorder: follows a cluster one change at a time, so that nothing is ever counted anew."""

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from moorage.api import requests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.requests import PODS
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.clock import Clock
from moorage.sim.cluster import Cluster
from moorage.sim.results.disruptions import Disruption
from moorage.sim.results.result import NodePacking
from moorage.sim.results.rooms import Amounts, Rooms
from moorage.sim.results.samples import Sample, Samples

Mask = npt.NDArray[np.bool_]
Depths = Callable[[], dict[str, int]]

# In a packing: no node is there, at this moment.
GONE = 255


class Known(Struct):
    """A pod that is there: since when it waits, what it takes, and where it is."""

    created_at: float
    containers: object
    amounts: Amounts
    node: str = ""


class Recorder:
    """Keeps count of pods and rooms, and takes samples."""

    def __init__(self, cluster: Cluster, clock: Clock[object], depths: Depths) -> None:
        self.rooms = Rooms()
        self.samples = Samples()
        # Seconds from creation to binding, of each pod that was bound.
        self.waits: list[float] = []
        self.created = 0
        self.ended = 0
        self.running = 0
        # Those that the schedulers do not tell of.
        self.disruptions: list[Disruption] = []
        self._clock = clock
        self._depths = depths
        self._pods: dict[str, Known] = {}
        # The sum of what all pods ask that are there, for the typical one.
        self._asked: dict[str, int] = {}
        cluster.watch(self._changed)

    @property
    def pending(self) -> int:
        """How many pods have no node."""
        return len(self._pods) - self.running

    def passing(self, to: float) -> None:
        """Time is about to pass; a sample may be due."""
        for at in self.samples.due(self._clock.now, to):
            self.samples.add(self.sample(at))

    def until_now(self) -> list[Sample]:
        """All samples, and one of this moment."""
        kept, now = self.samples.kept, self._clock.now
        earlier = kept[:-1] if kept and kept[-1].at >= now else kept
        return [*earlier, self.sample(now)]

    def packing(self) -> list[NodePacking]:
        """Every node that is there, with what it offers and what of it is requested."""
        rooms = self.rooms
        resources, there = rooms.resources(), rooms.there()
        return [
            NodePacking(
                name=name,
                pods=int(rooms.taken[PODS][row]),
                offered={
                    each: int(rooms.offered[each][row])
                    for each in resources
                    if rooms.offered[each][row]
                },
                requested={
                    each: int(rooms.taken[each][row])
                    for each in resources
                    if rooms.offered[each][row]
                },
            )
            for name, row in rooms.rows.items()
            if there[row]
        ]

    def sample(self, at: float) -> Sample:
        """The cluster as it is."""
        rooms, depths = self.rooms, self._depths()
        resources, there = rooms.resources(), rooms.there()
        fits = self._fits_typical(resources) & there
        shares = {name: rooms.shares(name)[rooms.offered[name] > 0] for name in resources}
        percents = np.clip(np.rint(100 * rooms.dominant(resources)), 0, 200).astype(np.uint8)
        percents[~there] = GONE
        return Sample(
            at=at,
            nodes=rooms.count,
            running=self.running,
            pending=self.pending,
            bound=len(self.waits),
            offered={name: int(rooms.offered[name].sum()) for name in resources},
            requested={name: int(rooms.taken[name][there].sum()) for name in resources},
            fragmentation={name: self._stranded(name, there, fits) for name in resources},
            imbalance={name: _deviation(column) for name, column in shares.items()},
            packing=percents[: len(rooms.names)],
            **depths,
        )

    def _fits_typical(self, resources: list[str]) -> Mask:
        """The rows that would take another pod as large as the average of those there are."""
        rooms, count = self.rooms, max(1, len(self._pods))
        fits = rooms.taken[PODS] < rooms.offered[PODS]
        for name in resources:
            typical = self._asked.get(name, 0) // count
            if name != PODS and typical and not requests.is_extended(name):
                fits &= rooms.offered[name] - rooms.taken[name] >= typical
        return fits

    def _stranded(
        self,
        resource: str,
        there: Mask,
        fits: Mask,
    ) -> float:
        free = np.maximum(self.rooms.offered[resource] - self.rooms.taken[resource], 0)
        total = int(free[there].sum())
        return round(1 - int(free[fits].sum()) / total, 6) if total else 0.0

    def _changed(self, observation: Observation) -> None:
        match observation:
            case Updated(obj=Pod() as pod):
                self._pod_updated(pod)
            case Added(obj=Pod() as pod):
                self._pod_added(pod)
            case Deleted(obj=Pod() as pod):
                self._pod_gone(pod)
            case Added(obj=Node() as node) | Updated(obj=Node() as node):
                self.rooms.put_node(node.name, requests.allocatable(node))
            case Deleted(obj=Node() as node):
                self.rooms.drop_node(node.name)

    def _pod_added(self, pod: Pod) -> None:
        if pod.is_terminal:
            return
        self.created += 1
        amounts = requests.requested(pod)
        self._pods[pod.uid] = Known(self._clock.now, pod.spec.containers, amounts)
        self._ask(amounts, 1)
        if pod.node_name:
            self._place(self._pods[pod.uid], pod.node_name)

    def _pod_updated(self, pod: Pod) -> None:
        known = self._pods.get(pod.uid)
        if known is None:
            return
        if pod.is_terminal:
            self._pod_gone(pod)
            return
        if known.containers is not pod.spec.containers or pod.status.container_statuses:
            self._resize(known, pod)
        if pod.node_name and not known.node:
            self.waits.append(self._clock.now - known.created_at)
            self._place(known, pod.node_name)

    def _pod_gone(self, pod: Pod) -> None:
        known = self._pods.pop(pod.uid, None)
        if known is None:
            return
        self.ended += 1
        self._ask(known.amounts, -1)
        if known.node:
            self.running -= 1
            self.rooms.book(known.node, known.amounts, -1)

    def _place(self, known: Known, node: str) -> None:
        known.node = node
        self.running += 1
        self.rooms.book(node, known.amounts)

    def _resize(self, known: Known, pod: Pod) -> None:
        amounts = requests.requested(pod)
        self._ask(known.amounts, -1)
        self._ask(amounts, 1)
        if known.node:
            self.rooms.book(known.node, known.amounts, -1)
            self.rooms.book(known.node, amounts)
        known.amounts, known.containers = amounts, pod.spec.containers

    def _ask(self, amounts: Amounts, sign: int) -> None:
        asked = self._asked
        for resource, amount in amounts.items():
            asked[resource] = asked.get(resource, 0) + sign * amount


def _deviation(column: npt.NDArray[np.float64]) -> float:
    return round(float(np.std(column)), 6) if len(column) else 0.0
