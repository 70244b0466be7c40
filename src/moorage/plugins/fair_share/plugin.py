"""FairShare: teams share a cluster by queues with guarantees, limits and weights.

The scheduling queue is ordered by weighted dominant shares. A pod that would exceed the maximum of
its queue, or of a parent, is rejected. A pod that stays within the guarantee of its queue may
evict pods that other queues borrowed. `tree` has the queues and their usage, `reclaim` the victims.

FairShare replaces PrioritySort and DefaultPreemption, which know nothing of queues.
"""

from collections.abc import Iterator
from typing import NamedTuple

from moorage import plugin as mp
from moorage.plugins.disruption_budgets import Budgets
from moorage.plugins.fair_share.reclaim import Reclaim
from moorage.plugins.fair_share.tree import (
    Amounts,
    Path,
    QueueNode,
    QueueTree,
    add,
)

UNDER_WAY = mp.unresolvable("waiting for the preemption for this pod to be finished")
RESERVED = mp.unschedulable("node(s) were reclaimed for a queue within its guarantee")
NEVER = mp.unschedulable("preemption: not eligible due to preemptionPolicy=Never.")
TERMINATING = mp.unschedulable(
    "preemption: not eligible due to a terminating pod on the nominated node."
)
NOT_HELPFUL = "preemption: not helpful for scheduling"
NO_CLAIM = "preemption: its queue would exceed its guaranteed share, and nothing may be reclaimed"
NOTHING_BORROWED = "preemption: no other queue uses more than its guaranteed share"
NO_CANDIDATE = "preemption: evicting borrowed pods makes no room on any node"
UNCOUNTED = 'queue "{}" has a maximum of {}, and the pod requests all devices of a node'
CHOSEN = "it does the least harm of {} nodes"
CLEAR = ""

# A reclaimed node is kept for its pod for so long, also from pods of higher priority.
RESERVED_SECONDS = 60.0
# So many nodes are tried, and so many with victims are compared, at most.
MOST_TRIED, MOST_CANDIDATES = 500, 100
MOST_TURNED_AWAY = 10_000
SPARE_PODS = 10

RESERVED_NODES = mp.StateKey[frozenset[str]]("FairShare.reserved")


class Reclaimed(NamedTuple):
    """The victims for a pod, and the node that is kept for it."""

    victims: tuple[mp.Placed, ...]
    node: str
    priority: int
    until: float


class RequeuedPods:
    """The pods that one event requeues: as many as there is room for, and some to spare.

    Thousands may wait for the maximum of a queue, and few of them get what one pod leaves. Those
    to spare are for pods that do not fit any node. Pods of lower priority, or of other queues, do
    not count: the order of the queue decides between them.
    """

    def __init__(self, event: mp.Pod | None = None) -> None:
        self.event = event
        self._amounts: dict[tuple[int, QueueNode], dict[str, int]] = {}
        self._spare: dict[tuple[int, QueueNode], int] = {}

    def add(self, queue: QueueNode, priority: int, request: Amounts) -> bool:
        """Count a pod; whether it is requeued."""
        if self._is_full(queue, priority, request):
            spare = self._spare.setdefault((priority, queue), SPARE_PODS)
            self._spare[priority, queue] = max(spare - 1, 0)
            return spare > 0
        add(self._amounts.setdefault((priority, queue), {}), request)
        return True

    def _is_full(self, queue: QueueNode, priority: int, request: Amounts) -> bool:
        total = dict(request)
        for (least, each), amounts in self._amounts.items():
            if each is queue and least >= priority:
                add(total, amounts)
        return queue.over_max(total) is not None


class FairShare:
    name = "FairShare"
    reads_kinds = (
        "Queue",
        "ElasticQuota",
        "PodDisruptionBudget",
        "ResourceClaim",
        "ResourceSlice",
        "DeviceClass",
    )

    def __init__(self) -> None:
        # By UID of the pods for which others are evicted: decisions for members of one group in one
        # cycle, evictions in progress, and nodes that are kept.
        self._cycle = (-1.0, "")
        self._decided: dict[str, Reclaimed] = {}
        self._evicting: dict[str, Reclaimed] = {}
        self._reserved: dict[str, Reclaimed] = {}
        # UIDs of pods within all maxima that may not reclaim anything; only as many as fit.
        self._turned_away: set[str] = set()
        self._requeued = RequeuedPods()

    def attach(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster

    def _tree(self) -> QueueTree:
        tree = self._cluster.derived(QueueTree)
        tree.refresh()
        return tree

    # The order of the queue

    def queue_sort(self, pod: mp.Pod, queued_at: float) -> tuple[int, float]:
        return -pod.priority, queued_at

    def queue_path(self, pod: mp.Pod) -> Path:
        return self._tree().path(pod)

    def queue_path_key(self, path: Path) -> tuple[int, float]:
        return self._tree().rank(path)

    def queue_path_changes(self) -> list[Path] | None:
        return self._tree().take_changes()

    # Limits

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> str | None:
        tree = self._tree()
        return None if tree.find(pod) is not None or tree.problem(pod) else "outside"

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        tree = self._tree()
        queue = tree.find(pod)
        self._turned_away.discard(pod.uid)
        if queue is None:
            problem = tree.problem(pod)
            return mp.unresolvable(problem) if problem else mp.SKIP
        request = tree.request(pod)
        if pod.spec.resource_claims and (limited := _limited(queue, tree.all_devices_of(pod))):
            return mp.unresolvable(UNCOUNTED.format(*limited))
        if (over := queue.over_max(request)) is not None:
            full, resource = over
            reason = f'queue "{full.title}" is at its maximum of {resource}'
            # Only if children of the full queue borrow from this one, evictions may help.
            may_reclaim = Reclaim(tree, state.table, pod, request).has_claim(below=full)
            state[RESERVED_NODES] = frozenset()
            return mp.unschedulable(reason) if may_reclaim else mp.unresolvable(reason)
        nodes = self._reserved_from(pod, state.now)
        if not nodes:
            return mp.SKIP
        state[RESERVED_NODES] = nodes
        return mp.SUCCESS

    def _reserved_from(self, pod: mp.Pod, now: float) -> frozenset[str]:
        """Nodes that a pod must not take although their nominated pod is less important."""
        if not self._reserved:
            return frozenset()
        self._reserved = {uid: each for uid, each in self._reserved.items() if each.until > now}
        tree = self._tree()
        if Reclaim(tree, self._cluster.table, pod, tree.request(pod)).has_claim():
            return frozenset()
        found = {each.node for each in self._reserved.values() if each.priority < pod.priority}
        return frozenset(found)

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return RESERVED if node.name in state[RESERVED_NODES] else mp.SUCCESS

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        reserved = state[RESERVED_NODES]
        return mp.Verdicts(fits=~table.named(reserved), otherwise=RESERVED)

    def reserve(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> mp.Status:
        self._reserved.pop(pod.uid, None)
        return mp.SUCCESS

    # Reclaim

    def pre_enqueue(self, pod: mp.Pod) -> mp.Status:
        return UNDER_WAY if pod.uid in self._evicting else mp.SUCCESS

    def preemption_started(self, pod: mp.Pod) -> None:
        if (found := self._decided.pop(pod.uid, None)) is not None:
            self._evicting[pod.uid] = self._reserved[pod.uid] = found

    def preemption_finished(self, pod: mp.Pod) -> None:
        self._evicting.pop(pod.uid, None)

    def post_filter(
        self, state: mp.CycleState, pod: mp.Pod, failure: mp.NoFeasibleNode
    ) -> mp.PostFiltered:
        if pod.spec.preemption_policy == "Never":
            return mp.PostFiltered(NEVER)
        if failure.nominated and _has_victims(state.table, failure.nominated):
            return mp.PostFiltered(TERMINATING)
        rejected = failure.pre.rejected
        if rejected is not None and (
            rejected.plugin != self.name or rejected.code is not mp.Code.UNSCHEDULABLE
        ):
            return mp.PostFiltered(mp.unschedulable(NOT_HELPFUL), CLEAR)
        going = self._victims(pod, state.now)
        tree = self._tree()
        search = Reclaim(tree, state.table, pod, tree.request(pod), _nominated(failure), going)
        nodes = search.nodes()
        if not nodes:
            return self._nothing(pod, NOTHING_BORROWED if search.has_claim() else NO_CLAIM)
        found = self._candidates(search, nodes, state.table, failure)
        if not found:
            return self._nothing(pod, NO_CANDIDATE)
        best = min(found, key=search.harm)
        placed = state.table.placed[state.table.row_of[best.node]]
        victims = tuple(placed[victim.uid] for victim in best.victims)
        until = state.now + RESERVED_SECONDS
        self._decided[pod.uid] = Reclaimed(victims, best.node, pod.priority, until)
        why = CHOSEN.format(len(found))
        return mp.PostFiltered(
            mp.SUCCESS, nominated=best.node, victims=best.victims, candidates=found, why=why
        )

    def _nothing(self, pod: mp.Pod, reason: str) -> mp.PostFiltered:
        """Nothing may be reclaimed, until a queue changes."""
        if len(self._turned_away) >= MOST_TURNED_AWAY:
            self._turned_away.clear()
        self._turned_away.add(pod.uid)
        return mp.PostFiltered(mp.unschedulable(reason), CLEAR, rejected_by=(self.name,))

    def _victims(self, pod: mp.Pod, now: float) -> list[mp.Placed]:
        """Pods that are being evicted, or will be if the pod's group is complete in this cycle."""
        cycle = now, mp.group_key(pod)
        if cycle != self._cycle or not cycle[1] or pod.uid in self._decided:
            self._cycle, self._decided = cycle, {}
        reclaimed = (*self._evicting.values(), *self._decided.values())
        return [victim for each in reclaimed for victim in each.victims]

    def _candidates(
        self, search: Reclaim, nodes: list[str], table: mp.NodeTable, failure: mp.NoFeasibleNode
    ) -> list[mp.Candidate]:
        """Nodes with their victims, from a random node on."""
        budgets = Budgets(self._cluster)
        start = failure.random.randrange(len(nodes))
        found: list[mp.Candidate] = []
        for name in (nodes[start:] + nodes[:start])[:MOST_TRIED]:
            row = table.row_of.get(name)
            if row is None or table.nodes[row] is None:
                continue
            if failure.status(row).code is not mp.Code.UNSCHEDULABLE:
                continue  # Evictions do not change why the node was rejected.
            candidate = search.on_node(failure.what_if.node(row), budgets)
            if candidate is not None:
                found.append(candidate)
                if len(found) == MOST_CANDIDATES:
                    break
        return found

    # Requeueing

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.POD_DELETE: self._has_room,
            mp.ClusterEvent.UPDATE_POD_SCALE_DOWN: self._has_room,
            mp.ClusterEvent.UPDATE_POD_LABEL: self._has_room,
            mp.ClusterEvent.QUEUE_CHANGE: None,
            mp.ClusterEvent.ELASTIC_QUOTA_CHANGE: None,
        }

    def _has_room(self, pod: mp.Pod, old: mp.Pod | None, new: mp.Pod | None) -> mp.Hint:
        """A pod of the tree ended, or changed: whether to try a pod that waits for its maximum."""
        if pod.uid in self._turned_away:
            return mp.Hint.QUEUE_SKIP  # It lacks room on nodes, for which others have hints.
        tree = self._tree()
        queue = tree.find(pod)
        if queue is None:
            return mp.Hint.QUEUE_SKIP if tree.problem(pod) else mp.Hint.QUEUE
        request = tree.request(pod)
        if queue.over_max(request) is not None:
            return mp.Hint.QUEUE_SKIP
        if self._requeued.event is not (old or new):
            self._requeued = RequeuedPods(old or new)
        is_next = self._requeued.add(queue, pod.priority, request)
        return mp.Hint.QUEUE if is_next else mp.Hint.QUEUE_SKIP

    # Explanation

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        tree = rejection.cluster.derived(QueueTree)
        tree.refresh()
        queue = tree.find(rejection.pod)
        if queue is None or rejection.reason == NOT_HELPFUL:
            return ""
        request = tree.request(rejection.pod)
        if (over := queue.over_max(request)) is not None:
            full, resource = over
            asked = mp.texts.amount(request[resource], resource)
            return f"{_level(full, resource, full.max, 'at most ')}; the pod requests {asked}."
        levels = [
            _level(each, resource, each.guaranteed)
            for each in queue.lineage
            for resource in each.guaranteed
            if request.get(resource)
        ]
        if not levels:
            return f"{queue.title} has no guaranteed share."
        return "; ".join(levels) + "."


def _limited(queue: QueueNode, classes: tuple[str, ...]) -> tuple[str, str] | None:
    """The first queue of the lineage that limits one of these resources, with its name."""
    for each in queue.lineage:
        for name in classes:
            if name in each.max:
                return each.title, name
    return None


def _level(queue: QueueNode, resource: str, limits: dict[str, int], most: str = "") -> str:
    """As in `team-a is at 40 of 40 guaranteed cpu`, or `at 60 of at most 60 cpu`."""
    used, limit = (
        mp.texts.amount(each, resource) for each in (queue.used.get(resource, 0), limits[resource])
    )
    word = "" if most else "guaranteed "
    return f"{queue.title} is at {used} of {most}{limit} {word}{resource}"


def _has_victims(table: mp.NodeTable, node: str) -> bool:
    """Whether pods are terminating on a node because a scheduler preempted them."""
    row = table.row_of.get(node)
    placed = {} if row is None else table.placed[row]
    return any(
        each.pod.is_terminating and each.pod.condition("DisruptionTarget") is not None
        for each in placed.values()
    )


def _nominated(failure: mp.NoFeasibleNode) -> Iterator[mp.Placed]:
    """All nominated pods."""
    nominated = failure.what_if.nominated
    for row in nominated.rows().tolist():
        yield from nominated.on(row)
