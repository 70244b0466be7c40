"""QueueUsage: what the pods of each queue use, and how long they waited.

A share is the dominant one: the largest part that the pods of a queue, and of its children, use of
any resource.
"""

from collections import Counter
from collections.abc import Iterable

from moorage.api import resource_claims
from moorage.api.devices import DeviceClass, ResourceClaim, ResourceSlice
from moorage.api.pod import Pod
from moorage.api.queues import (
    Amounts,
    ClaimUsers,
    ElasticQuota,
    Queue,
    QueueForest,
    dominant_share,
)
from moorage.api.requests import PODS
from moorage.nodes.device_classes import DeviceCounts


class QueueUsage:
    """See the module."""

    def __init__(self) -> None:
        # All queues, in order.
        self.names: list[str] = []
        # Seconds from creation to binding.
        self.waits: dict[str, list[float]] = {}
        # Of the pods that name a queue, without those of its children.
        self._own: dict[str, Counter[str]] = {}
        self._used: dict[str, Counter[str]] = {}
        self._share_seconds: dict[str, float] = {}
        self._objects: dict[str, Queue | ElasticQuota] = {}
        self._forest = QueueForest()
        self._claims = ClaimUsers()
        # Queues with pods on nodes whose claims do not exist yet, by claim.
        self._missing: dict[str, list[str]] = {}
        self._device_counts = DeviceCounts()
        self._device_totals: Amounts = {}

    def put(self, obj: Queue | ElasticQuota) -> None:
        """A queue came or changed."""
        self._objects[f"{type(obj).__name__} {obj.key}"] = obj
        self._changed()

    def drop(self, obj: Queue | ElasticQuota) -> None:
        """A queue is gone."""
        del self._objects[f"{type(obj).__name__} {obj.key}"]
        self._changed()

    def _changed(self) -> None:
        """Count again what the pods of children use."""
        known = self._objects.values()
        queues = [each for each in known if isinstance(each, Queue)]
        self._forest = QueueForest(queues, [it for it in known if isinstance(it, ElasticQuota)])
        self.names = sorted({*self._forest.limits, *self._forest.problems})
        self._used = {}
        for queue, used in self._own.items():
            for name in self.lineage(queue):
                self._used.setdefault(name, Counter()).update(used)

    def queue_of(self, pod: Pod) -> str:
        """The queue that a pod names, or that of its namespace; it need not exist."""
        return self._forest.named_by(pod)

    def lineage(self, queue: str) -> tuple[str, ...]:
        """A queue and its ancestors."""
        return self._forest.lineages.get(queue, ())

    # Pods

    def add(self, queue: str, amounts: Amounts, sign: int = 1) -> None:
        """Count a pod, or devices of a pod, that comes to a node or leaves it."""
        if (own := self._own.get(queue)) is None:
            own = self._own[queue] = Counter()
        for resource, amount in amounts.items():
            own[resource] += sign * amount
        for name in self._forest.lineages.get(queue, ()):
            used = self._used.setdefault(name, Counter())
            for resource, amount in amounts.items():
                used[resource] += sign * amount

    def running(self, queue: str) -> int:
        """How many pods of a queue, and of its children, are on nodes."""
        return self._used.get(queue, Counter())[PODS]

    def take_claim(self, queue: str, key: str, claim: ResourceClaim | None) -> None:
        """Count the devices of a claim of a pod; in a file, the claim may come after the pod."""
        if claim is None:
            self._missing.setdefault(key, []).append(queue)
        else:
            devices = resource_claims.devices_of(claim).amounts
            self.add(queue, self._claims.add(queue, key, devices))

    def leave_claim(self, queue: str, key: str) -> None:
        """A pod uses a claim no longer."""
        self.add(queue, self._claims.remove(queue, key), -1)

    def claim_added(self, claim: ResourceClaim) -> None:
        """Count the devices of a claim for the pods that came before it."""
        for queue in self._missing.pop(claim.key, ()):
            self.take_claim(queue, claim.key, claim)

    def waited(self, queue: str, seconds: float) -> None:
        """Count the wait of a pod that was bound."""
        for name in self.lineage(queue):
            self.waits.setdefault(name, []).append(seconds)

    def offer(self, classes: Iterable[DeviceClass], slices: Iterable[ResourceSlice]) -> None:
        """Count the devices of each class."""
        self._device_totals = self._device_counts.update(classes, slices)

    # Shares

    def shares(self, totals: Amounts) -> dict[str, float]:
        """The dominant share of every queue."""
        offered = {**self._device_totals, **totals}
        return {
            name: round(dominant_share(self._used.get(name, {}), offered), 6) for name in self.names
        }

    def integrate(self, seconds: float, totals: Amounts) -> None:
        """Count the shares for a time in which nothing changes."""
        if not self.names:
            return
        for name, share in self.shares(totals).items():
            self._share_seconds[name] = self._share_seconds.get(name, 0.0) + share * seconds

    def mean_share(self, queue: str, seconds: float) -> float:
        """The mean share over so many seconds since the start."""
        return round(self._share_seconds.get(queue, 0.0) / seconds, 6) if seconds else 0.0

    def entitled(self, queue: str, totals: Amounts) -> float:
        """The share that a queue can expect if all queues ask for more."""
        return round(self._forest.entitled(queue, {**self._device_totals, **totals}), 6)
