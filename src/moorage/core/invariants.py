"""What must always hold between cache, table and queue; checked after every simulated step."""

from collections.abc import Sequence

from moorage.api.pod import Pod
from moorage.core.cache import Cache
from moorage.core.journal import Journal
from moorage.errors import InvariantError
from moorage.nodes.table import NodeTable


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


def _check_sums(table: NodeTable, name: str, row: int) -> None:
    total: dict[str, int] = {}
    for placed in table.placed[row].values():
        for resource, amount in placed.usage.requested:
            total[resource] = total.get(resource, 0) + amount
    for resource, column in table.requested_columns.columns.items():
        if int(column[row]) != total.get(resource, 0):
            raise InvariantError(f"node {name}: {resource} requested is miscounted")
