"""What must always hold between cache, table and queue; checked after every simulated step."""

from collections.abc import Container, Sequence

from moorage.api.pod import Pod
from moorage.core.cache import Cache
from moorage.core.journal import Journal
from moorage.core.queue import IN_FLIGHT, SchedulingQueue
from moorage.errors import InvariantError
from moorage.framework.cluster import Cluster
from moorage.nodes.table import NodeTable


def places(pod: Pod, cache: Cache, queue: SchedulingQueue, bindings: Container[str]) -> list[str]:
    """Where a pod is."""
    cached = cache.get(pod.uid)
    queued = queue.where(pod.uid)
    found = []
    if cached is not None:
        found.append("assumed" if cached.assumed else "on a node")
    # A pod that waits on permit is assumed and, for the queue, still in flight.
    if queued is not None and not (queued == IN_FLIGHT and cached is not None):
        found.append(queued)
    if not found and pod.uid in bindings:
        found.append("binding")
    # A pod that is being deleted before it had a node is nobody's concern any more.
    if not found and pod.is_terminating:
        found.append("terminating")
    return found


def check_one_place(pod: Pod, places: Sequence[str], journal: Journal) -> None:
    """A pod is always in exactly one place."""
    if len(places) != 1:
        where = " and ".join(places) or "no place"
        story = "\n".join(map(str, journal.story(pod.uid)))
        raise InvariantError(f"pod {pod.key} is in {where}\n{story}")


def check_table(table: NodeTable, cache: Cache) -> None:
    """The table holds the pods that the cache has placed, and its sums are theirs."""
    booked = {(cached.node, cached.pod.uid) for cached in cache}
    placed = {(table.name(row), uid) for row, pods in enumerate(table.placed) for uid in pods}
    if booked != placed:
        raise InvariantError(f"cache and table disagree: {sorted(booked ^ placed)}")
    for name, row in table.row_of.items():
        _check_sums(table, name, row)


def check_assumed(cluster: Cluster, bindings: Container[str]) -> None:
    """What is assumed is held by a pod on its way to a node, or carried out already."""
    for assumption in cluster.assumed:
        if assumption.holder and assumption.holder not in bindings:
            what = f"{type(assumption.obj).__name__} {assumption.obj.key}"
            raise InvariantError(f"{what} is held for a pod that is not being bound")


def _check_sums(table: NodeTable, name: str, row: int) -> None:
    total: dict[str, int] = {}
    for placed in table.placed[row].values():
        for resource, amount in placed.usage.requested:
            total[resource] = total.get(resource, 0) + amount
    for resource, column in table.requested_columns.columns.items():
        if int(column[row]) != total.get(resource, 0):
            raise InvariantError(f"node {name}: {resource} requested is miscounted")
