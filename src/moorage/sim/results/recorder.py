"""Recorder: counts pods and requests incrementally from the cluster's watch events."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from moorage.api import requests, resource_claims
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.queues import ElasticQuota, Queue
from moorage.api.requests import PODS
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.results.device_usage import NETWORK, DeviceUsage
from moorage.sim.results.queue_usage import QueueUsage
from moorage.sim.results.result import Disruption, Placement, QueueResult, WaitTimes
from moorage.sim.results.samples import Sample, Samples
from moorage.sim.results.usage import Amounts, UsageTable

Mask = npt.NDArray[np.bool_]
Depths = Callable[[], dict[str, int]]

OTHER_KINDS = (Node, Queue, ElasticQuota, ResourceSlice, DeviceClass, ResourceClaim)
# In a sample's packing: the node does not exist at that time.
GONE = 255


class RecordedPod(Struct, gc=False):
    """A pod that has not ended: its creation time, its requests and its node."""

    key: str
    created_at: float
    containers: object
    amounts: Amounts
    queue: str
    node: str = ""
    bound_at: float | None = None
    # `namespace/name` of the device claims that it uses on the node.
    claims: tuple[str, ...] = ()


class Recorder:
    """Counts pods and requests, and takes samples."""

    def __init__(self, cluster: MemoryCluster, clock: Clock[object], depths: Depths) -> None:
        self.usage = UsageTable()
        self.devices = DeviceUsage(self._count_device)
        self.queues = QueueUsage()
        self.samples = Samples()
        # Seconds from creation to binding, of each pod that was bound.
        self.waits: list[float] = []
        self.created = 0
        # All pods that ended, and those that were not deleted, evicted or preempted.
        self.ended = 0
        self.finished = 0
        self.running = 0
        # Keys of the pods that were created with a node: those are not the scheduler's doing.
        self.given_with_node: set[str] = set()
        # Disruptions other than the scheduler's preemptions.
        self.disruptions: list[Disruption] = []
        self._cluster = cluster
        self._clock = clock
        self._depths = depths
        # Whether slices or classes of devices changed since they were counted for queues.
        self._has_other_devices = False
        self._pods: dict[str, RecordedPod] = {}
        self._ended_pods: list[Placement] = []
        self._allocatable: dict[str, dict[str, int]] = {}
        # Of each resource: the integral of its requested share over time, and the highest share.
        self._share_seconds: dict[str, float] = {}
        self._peaks: dict[str, float] = {}
        self._integrated_to = 0.0
        # The sum of the requests of all pods, for the average pod.
        self._requested: dict[str, int] = {}
        cluster.watch(self._pod_changed, Pod, running=self._pods_run)
        cluster.watch(self._changed, *OTHER_KINDS)

    @property
    def pending(self) -> int:
        """How many pods have no node."""
        return len(self._pods) - self.running

    def pods(self) -> Iterable[RecordedPod]:
        """The pods that have not ended, oldest first."""
        return self._pods.values()

    def placements(self) -> list[Placement]:
        """Every pod that was ever created: those that have ended first."""
        return [
            *self._ended_pods,
            *(_placement(uid, known, None) for uid, known in self._pods.items()),
        ]

    def passing(self, to: float) -> None:
        """Take the samples that are due before time passes to `to`, and integrate up to it."""
        for at in self.samples.due(self._clock.now, to):
            self._integrate(at)
            self.samples.add(self.sample(at))
        self._integrate(to)

    def _integrate(self, to: float) -> None:
        """Count the current shares for the time up to `to`, in which nothing changes."""
        seconds, self._integrated_to = to - self._integrated_to, to
        if not seconds:
            return
        if self._has_other_devices and self.queues.names:
            self._has_other_devices = False
            self.queues.offer(self._cluster.all(DeviceClass), self._cluster.all(ResourceSlice))
        self.queues.integrate(seconds, self.usage.total_offered)
        requested, integrals, peaks = self.usage.total_requested, self._share_seconds, self._peaks
        for name, offered in self.usage.total_offered.items():
            if offered:
                share = requested[name] / offered
                integrals[name] = integrals.get(name, 0.0) + share * seconds
                if share > peaks.get(name, 0.0):
                    peaks[name] = share

    def peak(self, resource: str) -> float:
        """The highest share of a resource that was ever requested."""
        usage = self.usage
        offered = usage.total_offered.get(resource, 0)
        now = usage.total_requested[resource] / offered if offered else 0.0
        return max(now, self._peaks.get(resource, 0.0))

    def queue_results(self) -> list[QueueResult]:
        """The outcome for every queue, in the order of their names."""
        queues, totals = self.queues, self.usage.total_offered
        shares = queues.shares(totals)
        pending = Counter(
            name
            for known in self._pods.values()
            if not known.node
            for name in queues.lineage(known.queue)
        )
        return [
            QueueResult(
                name=name,
                running=queues.running(name),
                pending=pending[name],
                waits=WaitTimes.of(queues.waits.get(name, [])),
                share=shares[name],
                mean_share=queues.mean_share(name, self._clock.now),
                entitled=queues.entitled(name, totals),
            )
            for name in queues.names
        ]

    def until_now(self) -> list[Sample]:
        """All samples, and one of the current time."""
        kept, now = self.samples.kept, self._clock.now
        earlier = kept[:-1] if kept and kept[-1].at >= now else kept
        return [*earlier, self.sample(now)]

    def sample(self, at: float) -> Sample:
        """A sample of the current state."""
        usage, depths = self.usage, self._depths()
        resources, existing = usage.resources(), usage.existing()
        fits = self._fits_typical(resources) & existing
        shares = {name: usage.shares(name)[usage.offered[name] > 0] for name in resources}
        percents = np.clip(np.rint(100 * usage.dominant(resources)), 0, 200).astype(np.uint8)
        percents[~existing] = GONE
        return Sample(
            at=at,
            nodes=usage.count,
            running=self.running,
            pending=self.pending,
            bound=len(self.waits),
            offered={name: usage.total_offered[name] for name in resources},
            requested={name: usage.total_requested[name] for name in resources},
            share_seconds=dict(self._share_seconds),
            fragmentation={name: self._stranded(name, existing, fits) for name in resources},
            imbalance={name: _deviation(column) for name, column in shares.items()},
            packing=percents[: len(usage.names)],
            queue_shares=self.queues.shares(usage.total_offered),
            **depths,
        )

    def _fits_typical(self, resources: list[str]) -> Mask:
        """The rows on which another pod of average size would fit."""
        usage, count = self.usage, max(1, len(self._pods))
        fits = usage.requested[PODS] < usage.offered[PODS]
        for name in resources:
            typical = self._requested.get(name, 0) // count
            if name != PODS and typical and not requests.is_extended(name):
                fits &= usage.offered[name] - usage.requested[name] >= typical
        return fits

    def _stranded(self, resource: str, existing: Mask, fits: Mask) -> float:
        """The share of the free amount that is on nodes where the average pod does not fit."""
        free = np.maximum(self.usage.offered[resource] - self.usage.requested[resource], 0)
        total = int(free[existing].sum())
        return round(1 - int(free[fits].sum()) / total, 6) if total else 0.0

    def _pod_changed(self, observation: Observation) -> None:
        match observation:
            case Updated(obj=Pod() as pod):
                self._pod_updated(pod)
            case Added(obj=Pod() as pod):
                self._pod_added(pod)
            case Deleted(obj=Pod() as pod):
                self._pod_ended(pod)

    def _changed(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Node() as node) | Updated(obj=Node() as node):
                self._allocatable[node.name] = requests.allocatable(node)
                self._put_node(node.name)
            case Added(obj=Queue() | ElasticQuota() as queue):
                self.queues.put(queue)
            case Updated(obj=Queue() | ElasticQuota() as queue):
                self.queues.put(queue)
            case Deleted(obj=Queue() | ElasticQuota() as queue):
                self.queues.drop(queue)
            case Deleted(obj=Node() as node):
                del self._allocatable[node.name]
                self.usage.drop_node(node.name)
            case Added(obj=ResourceSlice() as each) | Updated(obj=ResourceSlice() as each):
                self._offer_devices(self.devices.put_slice(each))
                self._has_other_devices = True
            case Deleted(obj=ResourceSlice() as each):
                self._offer_devices(self.devices.drop_slice(each))
                self._has_other_devices = True
            case Added(obj=DeviceClass()) | Updated(obj=DeviceClass()) | Deleted(obj=DeviceClass()):
                self._has_other_devices = True
            case Added(obj=ResourceClaim() as claim) | Updated(obj=ResourceClaim() as claim):
                self.devices.put_claim(claim)
                self.queues.claim_added(claim)
            case Deleted(obj=ResourceClaim() as claim):
                self.devices.drop_claim(claim)

    def _put_node(self, name: str) -> None:
        """Count what a node offers, its devices included."""
        if (amounts := self._allocatable.get(name)) is not None:
            self.usage.put_node(name, self.devices.with_offered(name, amounts))

    def _offer_devices(self, nodes: Iterable[str]) -> None:
        """Count the devices of nodes and of the network again."""
        for name in sorted(nodes):
            if name == NETWORK:
                self.usage.put_network(self.devices.offered[NETWORK])
            else:
                self._put_node(name)

    def _count_device(self, node: str, resource: str, difference: int) -> None:
        if node == NETWORK:
            self.usage.add_network_requests(resource, difference)
        else:
            self.usage.add_requests(node, {resource: difference})

    def _pod_added(self, pod: Pod) -> None:
        key, node = pod.key, pod.spec.node_name
        if node:
            self.given_with_node.add(key)
        if pod.is_terminal:
            self.finished += 1
            return
        self.created += 1
        amounts = requests.counted(pod)
        queue = self.queues.queue_of(pod)
        created = RecordedPod(key, self._clock.now, pod.spec.containers, amounts, queue)
        self._pods[pod.metadata.uid] = created
        self._add_requests(amounts, 1)
        if node:
            self._place(created, pod)

    def _pods_run(self, pods: Mapping[str, Pod]) -> None:
        """Count pods that were created with a node, and have no device claims."""
        known, now, queue_of = self._pods, self._clock.now, self.queues.queue_of
        new = []
        for key, pod in pods.items():
            spec, amounts = pod.spec, requests.counted(pod)
            each = RecordedPod(key, now, spec.containers, amounts, queue_of(pod), spec.node_name)
            known[pod.metadata.uid] = each
            new.append(each)
        self.given_with_node.update(pods)
        self.created += len(new)
        self.running += len(new)
        self.usage.add_many([each.node for each in new], [each.amounts for each in new])
        sizes = {id(each.amounts): each.amounts for each in new}
        for (queue, size), count in Counter([(it.queue, id(it.amounts)) for it in new]).items():
            amounts = {resource: count * amount for resource, amount in sizes[size].items()}
            self._add_requests(amounts, 1)
            self.queues.add(queue, amounts)

    def _pod_updated(self, pod: Pod) -> None:
        known = self._pods.get(pod.metadata.uid)
        if known is None:
            return
        if pod.is_terminal:
            self._pod_ended(pod)
            return
        if known.containers is not pod.spec.containers or pod.status.container_statuses:
            self._resize(known, pod)
        if not known.node and pod.spec.node_name:
            known.bound_at = self._clock.now
            self.waits.append(self._clock.now - known.created_at)
            self.queues.waited(known.queue, self._clock.now - known.created_at)
            self._place(known, pod)

    def _pod_ended(self, pod: Pod) -> None:
        known = self._pods.pop(pod.uid, None)
        if known is None:
            return
        self.ended += 1
        self._ended_pods.append(_placement(pod.uid, known, self._clock.now))
        if pod.is_terminal or not pod.is_terminating:
            self.finished += 1
        self._add_requests(known.amounts, -1)
        if known.node:
            self.running -= 1
            self.usage.add_requests(known.node, known.amounts, -1)
            self.queues.add(known.queue, known.amounts, -1)
            for key in known.claims:
                self.queues.leave_claim(known.queue, key)

    def _place(self, known: RecordedPod, pod: Pod) -> None:
        known.node = pod.spec.node_name
        self.running += 1
        self.usage.add_requests(known.node, known.amounts)
        self.queues.add(known.queue, known.amounts)
        if claims := resource_claims.keys_of(pod):
            known.claims = claims
            for key in claims:
                self.queues.take_claim(known.queue, key, self._cluster.get(ResourceClaim, key))

    def _resize(self, known: RecordedPod, pod: Pod) -> None:
        amounts = requests.counted(pod)
        self._add_requests(known.amounts, -1)
        self._add_requests(amounts, 1)
        if known.node:
            self.usage.add_requests(known.node, known.amounts, -1)
            self.usage.add_requests(known.node, amounts)
            self.queues.add(known.queue, known.amounts, -1)
            self.queues.add(known.queue, amounts)
        known.amounts, known.containers = amounts, pod.spec.containers

    def _add_requests(self, amounts: Amounts, sign: int) -> None:
        total = self._requested
        for resource, amount in amounts.items():
            total[resource] = total.get(resource, 0) + sign * amount


def _placement(uid: str, known: RecordedPod, ended_at: float | None) -> Placement:
    return Placement(
        pod=known.key,
        uid=uid,
        node=known.node,
        created_at=known.created_at,
        bound_at=known.bound_at,
        ended_at=ended_at,
    )


def _deviation(column: npt.NDArray[np.float64]) -> float:
    return round(float(np.std(column)), 6) if len(column) else 0.0
