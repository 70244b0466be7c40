"""Reclaim: which pods may be evicted for one pod, and which of them on a node.

A pod *claims* what a queue of its lineage guarantees, if that queue stays within its guarantee with
the pod. It may evict *borrowed* pods: those of queues that use more of a claimed resource than
their own guarantee, they and all their ancestors up to the common one. A victim uses some of what
is borrowed. A queue that is within its guarantee, in every resource that it guarantees, loses no
pod. A pod that is borrowed in part, so that its queue falls below its guarantee without it, is
evicted only if no other pods make room. A pod may also evict pods of lower priority of its own
queue. Pods outside all queues evict only each other, by priority.
"""

import math
from collections.abc import Iterable

from moorage import plugin as mp
from moorage.plugins.disruption_budgets import Budgets
from moorage.plugins.fair_share.tree import Amounts, QueueNode, QueueTree, add

# System-critical pods (`system-cluster-critical` has this priority) are never evicted.
CRITICAL = 2_000_000_000

AmountsByQueue = dict[QueueNode, dict[str, int]]


class Reclaim:
    """One pod's search for victims."""

    def __init__(
        self,
        tree: QueueTree,
        table: mp.NodeTable,
        pod: mp.Pod,
        request: Amounts,
        nominated: Iterable[mp.Placed] = (),
        evicting: Iterable[mp.Placed] = (),
    ) -> None:
        self._tree = tree
        self._table = table
        self._pod = pod
        self._request = request
        self.queue = tree.find(pod)
        self._lineage = () if self.queue is None else self.queue.lineage
        # What queues will get from nominated pods, and lose to evictions that are not observed yet.
        self._coming: AmountsByQueue = {}
        self._going: AmountsByQueue = {}
        self._evicted = set()
        for each in nominated:
            if each.pod.uid != pod.uid:
                self._add(self._coming, each)
        for each in evicting:
            self._evicted.add(each.pod.uid)
            if not each.pod.is_terminating:
                self._add(self._going, each)
        self._claims: dict[QueueNode, tuple[str, ...]] = {}

    # What may be evicted

    def claimed(self, queue: QueueNode) -> tuple[str, ...]:
        """The resources that the pod may reclaim from another queue."""
        found = self._claims.get(queue)
        if found is None:
            above = set(queue.lineage)
            own = (each for each in self._lineage if each not in above)
            found = next((claim for each in own if (claim := self._claim(each))), ())
            self._claims[queue] = found
        return found

    def _claim(self, queue: QueueNode) -> tuple[str, ...]:
        """The resources that a queue guarantees to the pod."""
        wanted = [r for r in queue.guaranteed if self._request.get(r)]
        coming = self._coming.get(queue, {})
        within = all(
            self._staying(queue, r) + coming.get(r, 0) + self._request[r] <= queue.guaranteed[r]
            for r in wanted
        )
        return tuple(wanted) if within else ()

    def has_claim(self, below: QueueNode | None = None) -> bool:
        """Whether a queue of the pod's lineage guarantees it something; or one below another."""
        end = len(self._lineage) if below is None else self._lineage.index(below)
        return any(self._claim(queue) for queue in self._lineage[:end])

    def nodes(self) -> list[str]:
        """The nodes with pods that may be evicted, sorted; all nodes for a pod without a queue."""
        if self.queue is None:
            return sorted(self._table.row_of)
        queues = [queue for queue in self._tree.queues.values() if self._is_borrowing(queue)]
        if min(self.queue.priorities, default=math.inf) < self._pod.priority:
            queues.append(self.queue)
        return sorted({node for queue in queues for node in queue.pods_on})

    def _is_borrowing(
        self,
        queue: QueueNode,
        removed: AmountsByQueue | None = None,
        amounts: Amounts | None = None,
    ) -> bool:
        """Whether a queue, and its ancestors below the common one, use more than guaranteed.

        With the `amounts` of one of its pods: of a resource that the pod uses.
        """
        gone = removed or {}
        apart = self._apart(queue)
        return not any(self._is_within(each, gone) for each in apart) and any(
            all(self._left(each, r, gone) > each.guaranteed.get(r, 0) for each in apart)
            for r in self.claimed(queue)
            if amounts is None or amounts.get(r)
        )

    def _apart(self, queue: QueueNode) -> list[QueueNode]:
        """The queue and its ancestors, without those that the pod's queue has as well."""
        return [each for each in queue.lineage if each not in self._lineage]

    def _is_within(self, queue: QueueNode, removed: AmountsByQueue) -> bool:
        """Whether a queue uses no more than it guarantees; one without a guarantee never does."""
        guaranteed = queue.guaranteed.items()
        return bool(guaranteed) and all(
            self._left(queue, r, removed) <= amount for r, amount in guaranteed
        )

    def _keeps_guarantee(self, queue: QueueNode, removed: AmountsByQueue, amounts: Amounts) -> bool:
        """Whether a queue and its ancestors have their guarantees without these amounts."""
        return all(
            self._left(each, r, removed) - amounts.get(r, 0) >= guaranteed
            for each in self._apart(queue)
            for r, guaranteed in each.guaranteed.items()
            if amounts.get(r)
        )

    def _left(self, queue: QueueNode, resource: str, removed: AmountsByQueue) -> int:
        return self._staying(queue, resource) - removed.get(queue, {}).get(resource, 0)

    def _staying(self, queue: QueueNode, resource: str) -> int:
        """What a queue uses without pods that leave."""
        going = self._going.get(queue, {})
        leaving = queue.leaving.get(resource, 0) + going.get(resource, 0)
        return queue.used.get(resource, 0) - leaving

    def _may_evict(
        self, each: mp.Placed, removed: AmountsByQueue, *, borrowed_in_part: bool
    ) -> bool:
        pod = each.pod
        if pod.priority >= CRITICAL:
            return False
        queue = self._tree.find(pod)
        if queue is self.queue:
            return pod.priority < self._pod.priority
        if queue is None or self.queue is None or not self.claimed(queue):
            return False
        if self._is_leaving(pod):
            return True
        amounts = self._tree.released(each)
        return self._is_borrowing(queue, removed, amounts) and (
            borrowed_in_part or self._keeps_guarantee(queue, removed, amounts)
        )

    def _is_leaving(self, pod: mp.Pod) -> bool:
        return pod.is_terminating or pod.uid in self._evicted

    # One node

    def on_node(self, node: mp.HypotheticalNode, budgets: Budgets) -> mp.Candidate | None:
        """The fewest victims that make room on a node; None if evictions do not help there.

        Pods that leave anyway are no victims. If they are enough, there are none.
        """
        victims: list[mp.Placed] = []
        removed: AmountsByQueue = {}
        there = sorted(node.info.placed().values(), key=importance, reverse=True)
        for borrowed_in_part in (False, True):
            kept: list[mp.Placed] = []
            for each in there:
                if not self._may_evict(each, removed, borrowed_in_part=borrowed_in_part):
                    kept.append(each)
                    continue
                node.remove(each)
                if not self._is_leaving(each.pod):
                    victims.append(each)
                    self._add(removed, each)
            if len(kept) < len(there) and self._fits(node, removed):
                break
            there = kept
        else:
            return None
        victims.reverse()
        violated = budgets.violated_by(victims)
        # Pods are added back while the pod still fits: protected ones first, then by importance.
        for each in sorted(victims, key=lambda each: each.pod.uid not in violated):
            node.add(each)
            self._add(removed, each, -1)
            if self._fits(node, removed):
                victims.remove(each)
            else:
                node.remove(each)
                self._add(removed, each)
        broken = [violated[each.pod.uid] for each in victims if each.pod.uid in violated]
        names = tuple(dict.fromkeys(key for keys in broken for key in keys))
        pods = tuple(each.pod for each in victims)
        return mp.Candidate(node.info.name, pods, len(broken), names)

    def harm(self, candidate: mp.Candidate) -> tuple[float, ...]:
        """What candidates are compared by; the least is chosen."""
        priorities = [pod.priority for pod in candidate.victims]
        if not priorities:
            return (-1.0,)
        top = max(priorities)
        first = min(started_at(pod) for pod in candidate.victims if pod.priority == top)
        broken = self._broken_guarantees(candidate)
        return broken, candidate.violations, top, len(priorities), sum(priorities), -first

    def _broken_guarantees(self, candidate: mp.Candidate) -> int:
        """How many queues fall below their guarantee without the victims."""
        placed = self._table.placed[self._table.row_of[candidate.node]]
        removed: AmountsByQueue = {}
        for pod in candidate.victims:
            self._add(removed, placed[pod.uid])
        return sum(
            any(
                gone.get(r) and self._left(queue, r, removed) < amount
                for r, amount in queue.guaranteed.items()
            )
            for queue, gone in removed.items()
            if queue not in self._lineage
        )

    def _fits(self, node: mp.HypotheticalNode, removed: AmountsByQueue) -> bool:
        """Whether the pod fits the node, and all queues are within their maximum in the end."""
        for queue in self._lineage:
            gone, coming = removed.get(queue, {}), self._coming.get(queue, {})
            for r, most in queue.max.items():
                used = self._staying(queue, r) + coming.get(r, 0) - gone.get(r, 0)
                if self._request.get(r) and used + self._request[r] > most:
                    return False
        return node.status().is_success

    def _add(self, total: AmountsByQueue, each: mp.Placed, sign: int = 1) -> None:
        found = self._tree.find(each.pod)
        if found is not None:
            amounts = self._tree.released(each)
            for queue in found.lineage:
                add(total.setdefault(queue, {}), amounts, sign)


def importance(each: mp.Placed) -> tuple[int, float]:
    """The order of pods, the most important first: a higher priority, then an earlier start."""
    return -each.pod.priority, started_at(each.pod)


def started_at(pod: mp.Pod) -> float:
    """When a pod was started; a pod that has not started counts as the latest."""
    text = pod.status.start_time
    found = None if text is None else mp.timestamps.seconds(text, 0.0)
    return math.inf if found is None else found
