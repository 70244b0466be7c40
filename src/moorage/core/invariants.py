"""What must always hold between cache, table and queue; checked after every simulated step."""

from collections.abc import Container

from moorage.api import quantity
from moorage.api.pod import Pod
from moorage.core.cache import Cache
from moorage.core.queue_states import IN_FLIGHT
from moorage.core.state import SchedulerState
from moorage.errors import InvariantError
from moorage.framework.cluster import Cluster
from moorage.nodes.table import NodeTable


def check(state: SchedulerState, bindings: Container[str]) -> None:
    """Raise InvariantError if a pod is lost, in two states, or counted wrongly."""
    state.queue.check()
    for pod in filter(state.is_ours, state.pods.values()):
        found = _states(pod, state, bindings)
        if len(found) != 1:
            history = "\n".join(map(str, state.journal.story(pod.uid)))
            states = " and ".join(found) or "in no state"
            raise InvariantError(f"pod {pod.key} is {states}\n{history}")
    _check_table(state.cluster.table, state.cache)
    _check_assumed(state.cluster, bindings)
    if state.cluster.pod_groups is not None:
        state.cluster.pod_groups.check(state.pods, {cached.pod.uid for cached in state.cache})


def _states(pod: Pod, state: SchedulerState, bindings: Container[str]) -> list[str]:
    """The states of a pod in cache, queue and bindings; there must be one."""
    cached, queued = state.cache.get(pod.uid), state.queue.where(pod.uid)
    found = [] if cached is None else [cached.state]
    # A pod that waits on permit is assumed and, for the queue, still in flight.
    if queued is not None and not (queued == IN_FLIGHT and cached is not None):
        found.append(queued)
    if not found and pod.uid in bindings:
        found.append("binding")
    # A pod that is deleted before it has a node needs no state.
    if not found and pod.is_terminating:
        found.append("terminating")
    return found


def _check_table(table: NodeTable, cache: Cache) -> None:
    """The table has the pods of the cache, and the sums of their requests."""
    cached_on = {(cached.node, cached.pod.uid) for cached in cache}
    placed = {(table.name(row), uid) for row, pods in enumerate(table.placed) for uid in pods}
    if cached_on != placed:
        raise InvariantError(f"cache and table disagree: {sorted(cached_on ^ placed)}")
    for name, row in table.row_of.items():
        _check_sums(table, name, row)


def _check_assumed(cluster: Cluster, bindings: Container[str]) -> None:
    """An assumed object is held by a pod with a binding cycle, or was written already."""
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
        if int(column[row]) != quantity.wrapped(total.get(resource, 0)):
            raise InvariantError(f"node {name}: {resource} requested is miscounted")
