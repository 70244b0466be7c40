"""QueueTree: the queues of a cluster with their usage, kept up to date from change logs.

Usage is that of the pods on nodes, assumed ones included, so it is exact after a restart. A pod
that comes or goes changes the queues on its path, and no loop over pods or nodes is needed. Every
queue with children also has an unnamed child, for pods that name the queue itself.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple, TypeVar

from moorage import plugin as mp

T = TypeVar("T", str, int)
Amounts = Mapping[str, int]
Path = tuple[str, ...]
Rank = tuple[int, float]

PODS = "pods"
# Pods that name no queue, in no namespace of a queue, belong to it if it exists.
DEFAULT = "default"
# Unlisted ones are 0 in the `max` of an ElasticQuota.
NATIVE = ("cpu", "memory", "ephemeral-storage")

OUTSIDE: Path = ("",)
# Pods without a queue are not subject to fair shares: they are tried first.
OUTSIDE_RANK: Rank = (-1, 0.0)
BELOW_GUARANTEE, ABOVE_GUARANTEE = 0, 1


class QueueLimits(NamedTuple):
    """What an object says about a queue."""

    parent: str
    guaranteed: dict[str, int]
    max: dict[str, int]
    weight: int
    namespaces: tuple[str, ...]


class QueueNode:
    """A queue in the tree, with what its pods and those of its children use."""

    def __init__(self, name: str, limits: QueueLimits, parent: "QueueNode | None") -> None:
        self.name = name
        self.parent = parent
        self.path: Path = (name,) if parent is None else (*parent.path, name)
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
        return max((used / totals[r] for r, used in self.used.items() if totals.get(r)), default=0)

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
        self._position = (-1, -1, -1)
        self.totals: dict[str, int] = {}
        self.queues: dict[str, QueueNode] = {}
        # For queues that cannot be used: why.
        self.problems: dict[str, str] = {}
        # The queues that pods join: by name, and by namespace.
        self._joined: dict[str, QueueNode] = {}
        self._by_namespace: dict[str, QueueNode] = {}
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
        if self._nodes_seen != table.node_changes.position:
            self._nodes_seen = table.node_changes.position
            columns = table.allocatable_columns.columns
            totals = {name: int(column.sum()) for name, column in columns.items()}
            if totals != self.totals:
                self.totals = totals
                self._rank(self.queues.values())
        if not self._pods.is_current:
            changed = self._pods.changed()
            if changed is None:
                self._recount()
            else:
                for placed, sign in changed:
                    self._count(placed, sign)
            self._pods.commit()

    def find(self, pod: mp.Pod) -> QueueNode | None:
        """The queue of a pod; None if it has none, or a queue that cannot be used."""
        name = mp.queue_name(pod)
        if name:
            return self._joined.get(name)
        found = self._by_namespace.get(pod.metadata.namespace)
        return self._joined.get(DEFAULT) if found is None else found

    def problem(self, pod: mp.Pod) -> str:
        """Why a pod cannot use the queue that it names; empty if it names none."""
        name = mp.queue_name(pod)
        if not name or name in self._joined:
            return ""
        return self.problems.get(name, f'queue "{name}" not found')

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
        limits = dict(_limits(self._cluster))
        self.queues, self.problems, self._changed = {}, {}, None
        parents = {each.parent for each in limits.values()}
        for name in limits:
            self._add(name, limits, ())
        for name in parents & self.queues.keys():
            unnamed = QueueLimits(name, {}, {}, 1, ())
            self.queues[f"{name}/"] = QueueNode("", unnamed, self.queues[name])
        self._joined = {
            name: self.queues.get(f"{name}/", self.queues[name])
            for name in limits
            if name in self.queues
        }
        self._by_namespace = {
            namespace: queue
            for name, queue in self._joined.items()
            for namespace in limits[name].namespaces
        }

    def _add(self, name: str, limits: Mapping[str, QueueLimits], below: tuple[str, ...]) -> None:
        """Add a queue after its parent."""
        if name in self.queues or name in self.problems:
            return
        parent = limits[name].parent
        if name in below:
            self.problems[name] = f'queue "{name}": its parents form a cycle'
            return
        if parent and parent not in limits:
            self.problems[name] = f'queue "{name}": its parent "{parent}" does not exist'
            return
        if parent:
            self._add(parent, limits, (*below, name))
            if parent not in self.queues:
                problem = f'queue "{name}": its parent "{parent}" cannot be used'
                self.problems.setdefault(name, problem)
                return
        above = self.queues[parent] if parent else None
        self.queues[name] = QueueNode(name, limits[name], above)

    def _recount(self) -> None:
        """Count all pods on nodes."""
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
        node, request = pod.spec.node_name, requested(placed)
        _tally(found.pods_on, node, sign)
        _tally(found.priorities, pod.priority, sign)
        for queue in found.lineage:
            add(queue.used, request, sign)
            if pod.is_terminating:
                add(queue.leaving, request, sign)
        self._rank(found.lineage)

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


def requested(placed: mp.Placed) -> dict[str, int]:
    """What a pod counts for in its queue."""
    return {**dict(placed.usage.requested), PODS: 1}


def request_of(pod: mp.Pod) -> dict[str, int]:
    """The same for a pod without a node."""
    return {**mp.requests.requested(pod), PODS: 1}


def _limits(cluster: mp.Cluster) -> Iterator[tuple[str, QueueLimits]]:
    """The queues of a cluster, in the order of their names."""
    for queue in sorted(cluster.all(mp.Queue), key=lambda each: each.name):
        spec = queue.spec
        weight = max(spec.weight, 1)
        yield (
            queue.name,
            QueueLimits(
                spec.parent,
                mp.requests.units(spec.guaranteed),
                mp.requests.units(spec.max),
                weight,
                spec.namespaces,
            ),
        )
    for quota in sorted(cluster.all(mp.ElasticQuota), key=lambda each: each.key):
        most = mp.requests.units(quota.spec.max)
        if most:
            most = dict.fromkeys(NATIVE, 0) | most
        yield (
            quota.key,
            QueueLimits("", mp.requests.units(quota.spec.min), most, 1, (quota.namespace,)),
        )
