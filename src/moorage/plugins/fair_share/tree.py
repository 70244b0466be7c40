"""QueueTree: the queues of a cluster with their usage, kept up to date from change logs.

Usage is that of the pods on nodes, assumed ones included, so it is exact after a restart. A pod
that comes or goes changes the queues on its path, and no loop over pods or nodes is needed. Every
queue with children also has an unnamed child, for pods that name the queue itself.

Devices of claims count under the name of their DeviceClass. A claim that several pods of a queue
use counts once. As long as a claim has alternatives, each class counts with the most that it may
need.
"""

from collections.abc import Iterable
from typing import TypeVar

from moorage import plugin as mp

T = TypeVar("T", str, int)
Amounts = mp.queues.Amounts
Path = tuple[str, ...]
Rank = tuple[int, float]

PODS = "pods"

OUTSIDE: Path = ("",)
# Pods without a queue are not subject to fair shares: they are tried first.
OUTSIDE_RANK: Rank = (-1, 0.0)
# A claim that is not observed yet.
UNKNOWN = mp.resource_claims.ClaimDevices({}, is_final=False)
BELOW_GUARANTEE, ABOVE_GUARANTEE = 0, 1


class QueueNode:
    """A queue in the tree, with what its pods and those of its children use."""

    def __init__(
        self, name: str, limits: mp.queues.QueueLimits, parent: "QueueNode | None"
    ) -> None:
        self.name = name
        self.parent = parent
        self.path: Path = (name,) if parent is None else (*parent.path, name)
        self.key = "/".join(self.path)
        # The queue and its ancestors.
        self.lineage: tuple[QueueNode, ...] = (self, *(() if parent is None else parent.lineage))
        self.guaranteed = limits.guaranteed
        self.max = limits.max
        self.weight = limits.weight
        self.used: dict[str, int] = {}
        # The part of it that terminating pods use.
        self.leaving: dict[str, int] = {}
        # How many pods it has on each node, and of each priority, without those of children.
        self.pods_on: dict[str, int] = {}
        self.priorities: dict[int, int] = {}
        self.rank: Rank = (ABOVE_GUARANTEE, 0.0)

    @property
    def title(self) -> str:
        """The name for messages: of an unnamed child, that of its parent."""
        return self.name or (self.parent.name if self.parent is not None else "")

    def share(self, totals: Amounts) -> float:
        """The dominant share: the largest part that it uses of any resource of the cluster."""
        return mp.queues.dominant_share(self.used, totals)

    def find_rank(self, totals: Amounts) -> Rank:
        """The order among siblings: below the guarantee first, then the smallest weighted share."""
        filled = [self.used.get(r, 0) / amount for r, amount in self.guaranteed.items() if amount]
        if filled and max(filled) < 1:
            return BELOW_GUARANTEE, max(filled)
        return ABOVE_GUARANTEE, self.share(totals) / self.weight

    def over_max(self, request: Amounts) -> "tuple[QueueNode, str] | None":
        """The first queue of the lineage and resource whose maximum a pod would exceed."""
        for queue in self.lineage:
            for resource, most in queue.max.items():
                asked = request.get(resource, 0)
                if asked and queue.used.get(resource, 0) + asked > most:
                    return queue, resource
        return None


class QueueTree:
    """See the module; `refresh` before reading."""

    def __init__(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        self._pods = mp.Cursor(cluster.table.pod_changes())
        self._versions: tuple[int, int] | None = None
        self._nodes_seen = -1
        self._devices_seen = (-1, -1)
        self._claims_seen = -1
        self._position = (-1, -1, -1)
        self.totals: dict[str, int] = {}
        self.queues: dict[str, QueueNode] = {}
        self._forest = mp.queues.QueueForest()
        # The queues that pods join, by name.
        self._joined: dict[str, QueueNode] = {}
        self._device_counts = mp.device_classes.DeviceCounts()
        self._device_totals: dict[str, int] = {}
        self._claims = mp.queues.ClaimUsers()
        # Claims whose number of devices may change, with the queue that uses them.
        self._open_claims: dict[tuple[str, str], QueueNode] = {}
        # For the queue of pods: paths whose rank changed; None if the tree changed.
        self._changed: dict[Path, None] | None = None

    def refresh(self) -> None:
        """Read what changed since the last call."""
        cluster, table = self._cluster, self._cluster.table
        position = cluster.version, table.node_changes.position, self._pods.log.position
        if position == self._position:
            return  # The usual case: this is called several times per pod.
        self._position = position
        versions = cluster.version_of(mp.Queue), cluster.version_of(mp.ElasticQuota)
        if versions != self._versions:
            self._versions = versions
            self._build()
            self._pods.restart()
        self._read_totals()
        if not self._pods.is_current:
            changed = self._pods.changed()
            if changed is None:
                self._recount()
            else:
                for placed, sign in changed:
                    self._count(placed, sign)
            self._pods.commit()
        if self._open_claims and self._claims_seen != cluster.version_of(mp.ResourceClaim):
            self._claims_seen = cluster.version_of(mp.ResourceClaim)
            for (name, key), queue in list(self._open_claims.items()):
                devices = self._devices(key)
                self._change(queue, self._claims.replace(name, key, devices.amounts))
                if devices.is_final:
                    del self._open_claims[name, key]

    def _read_totals(self) -> None:
        """Count what the nodes offer, and the devices of each class."""
        cluster, table = self._cluster, self._cluster.table
        devices = cluster.version_of(mp.ResourceSlice), cluster.version_of(mp.DeviceClass)
        if self._nodes_seen == table.node_changes.position and self._devices_seen == devices:
            return
        self._nodes_seen = table.node_changes.position
        if self._devices_seen != devices:
            self._devices_seen = devices
            classes, slices = cluster.all(mp.DeviceClass), cluster.all(mp.ResourceSlice)
            self._device_totals = self._device_counts.update(classes, slices)
        totals = self._device_totals | table.allocatable_columns.totals()
        if totals != self.totals:
            self.totals = totals
            self._rank(self.queues.values())

    def find(self, pod: mp.Pod) -> QueueNode | None:
        """The queue of a pod; None if it has none, or a queue that cannot be used."""
        return self._joined.get(self._forest.named_by(pod))

    def problem(self, pod: mp.Pod) -> str:
        """Why a pod cannot use the queue that it names; empty if it names none."""
        return self._forest.problem(pod)

    def request(self, pod: mp.Pod) -> dict[str, int]:
        """What a pod without a node would add to its queue."""
        found = {**mp.requests.requested(pod), PODS: 1}
        if pod.spec.resource_claims and (queue := self.find(pod)) is not None:
            for key in mp.resource_claims.keys_of(pod):
                if not self._claims.count(queue.key, key):
                    add(found, self._devices(key).amounts)
        return found

    def released(self, placed: mp.Placed) -> dict[str, int]:
        """What the end of a pod would take from its queue."""
        found = {**dict(placed.usage.requested), PODS: 1}
        pod = placed.pod
        if pod.spec.resource_claims and (queue := self.find(pod)) is not None:
            for key in mp.resource_claims.keys_of(pod):
                if self._claims.count(queue.key, key) == 1:
                    add(found, self._devices(key).amounts)
        return found

    def all_devices_of(self, pod: mp.Pod) -> tuple[str, ...]:
        """Device classes of which a pod requests all devices of a node."""
        keys = mp.resource_claims.keys_of(pod)
        return tuple(name for key in keys for name in self._devices(key).all_of)

    def path(self, pod: mp.Pod) -> Path:
        """Where a pod waits in the scheduling queue."""
        found = self.find(pod)
        return OUTSIDE if found is None else found.path

    def rank(self, path: Path) -> Rank:
        """The present order of a path among its siblings."""
        if path == OUTSIDE:
            return OUTSIDE_RANK
        found = self.queues.get(path[-1] or f"{path[-2]}/")
        return OUTSIDE_RANK if found is None else found.rank

    def take_changes(self) -> list[Path] | None:
        """The paths whose rank changed since the last call; None if pods may have other paths."""
        changed, self._changed = self._changed, {}
        return None if changed is None else list(changed)

    def _build(self) -> None:
        """Read the tree from the objects."""
        cluster = self._cluster
        self._forest = mp.queues.QueueForest(cluster.all(mp.Queue), cluster.all(mp.ElasticQuota))
        self.queues, self._changed = {}, None
        limits = self._forest.limits
        for name, own in limits.items():
            above = self.queues[own.parent] if own.parent else None
            self.queues[name] = QueueNode(name, own, above)
        for name in {each.parent: None for each in limits.values() if each.parent}:
            unnamed = mp.queues.QueueLimits(name, {}, {})
            self.queues[f"{name}/"] = QueueNode("", unnamed, self.queues[name])
        self._joined = {name: self.queues.get(f"{name}/", self.queues[name]) for name in limits}

    def _recount(self) -> None:
        """Count all pods on nodes."""
        self._claims, self._open_claims = mp.queues.ClaimUsers(), {}
        for queue in self.queues.values():
            queue.used, queue.leaving, queue.pods_on, queue.priorities = {}, {}, {}, {}
        for placed in self._cluster.table.placed:
            for each in placed.values():
                self._count(each, 1)
        self._rank(self.queues.values())

    def _count(self, placed: mp.Placed, sign: int) -> None:
        pod = placed.pod
        found = self.find(pod)
        if found is None:
            return
        node, request = pod.spec.node_name, {**dict(placed.usage.requested), PODS: 1}
        _tally(found.pods_on, node, sign)
        _tally(found.priorities, pod.priority, sign)
        leaving = dict(request) if pod.is_terminating else {}
        for key in mp.resource_claims.keys_of(pod):
            self._count_claim(found, key, sign)
            if leaving:
                add(leaving, self._devices(key).amounts)
        for queue in found.lineage:
            add(queue.used, request, sign)
            add(queue.leaving, leaving, sign)
        self._rank(found.lineage)

    def _count_claim(self, queue: QueueNode, key: str, sign: int) -> None:
        if sign > 0:
            devices = self._devices(key)
            self._change(queue, self._claims.add(queue.key, key, devices.amounts))
            if not devices.is_final:
                self._open_claims[queue.key, key] = queue
        else:
            self._change(queue, self._claims.remove(queue.key, key), -1)
            if not self._claims.count(queue.key, key):
                self._open_claims.pop((queue.key, key), None)

    def _devices(self, key: str) -> mp.resource_claims.ClaimDevices:
        claim = self._cluster.latest(mp.ResourceClaim, key)
        return UNKNOWN if claim is None else mp.resource_claims.devices_of(claim)

    def _change(self, queue: QueueNode, devices: Amounts, sign: int = 1) -> None:
        if devices:
            for each in queue.lineage:
                add(each.used, devices, sign)
            self._rank(queue.lineage)

    def _rank(self, queues: Iterable[QueueNode]) -> None:
        for queue in queues:
            rank = queue.find_rank(self.totals)
            if rank != queue.rank:
                queue.rank = rank
                if self._changed is not None:
                    self._changed[queue.path] = None


def _tally(counts: dict[T, int], key: T, change: int) -> None:
    """Change a count; one of 0 is left out."""
    count = counts[key] = counts.get(key, 0) + change
    if not count:
        del counts[key]


def add(amounts: dict[str, int], more: Amounts, sign: int = 1) -> None:
    """Add to amounts in place, or subtract."""
    for resource, amount in more.items():
        amounts[resource] = amounts.get(resource, 0) + sign * amount
