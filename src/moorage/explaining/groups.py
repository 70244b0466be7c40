"""Why a pod group does not fit: how many members fit in each placement, and what they lack."""

from collections import Counter
from collections.abc import Iterable

from moorage.api import requests
from moorage.api.pod_groups import PodGroup
from moorage.core.group_results import Trial
from moorage.core.pod_group_placements import PlacementError
from moorage.core.scheduler import Scheduler
from moorage.explaining.explanation import GroupExplanation, MoreNodes, PlacementExplanation
from moorage.nodes.table import NodeTable

# The plugin whose rejections more nodes of the same kind resolve.
ROOM = frozenset(("NodeResourcesFit",))


def explain(scheduler: Scheduler, key: str) -> GroupExplanation | None:
    """Why a group does not fit; None if it does."""
    group, known = scheduler.cluster.get(PodGroup, key), scheduler.cluster.members(key)
    if known is None or scheduler.groups is None:
        return None
    trials: list[Trial] = []
    error = ""
    try:
        trials = scheduler.groups.trials(key, 0.0)
    except PlacementError as failure:
        error = str(failure)
    if any(trial.result.goes_on for trial in trials):
        return None
    needed = 1 if group is None else group.min_count or 1
    scheduled, table = len(known.scheduled), scheduler.cluster.table
    placements = [_placement(trial, needed - scheduled, table) for trial in trials]
    tried = len(trials[0].members) if trials else len(known.unscheduled)
    return GroupExplanation(key, needed, scheduled, tried, placements, error)


def _placement(trial: Trial, needed: int, table: NodeTable) -> PlacementExplanation:
    reasons = Counter(m.status.message for m in trial.members if not m.node)
    fit = sum(bool(member.node) for member in trial.members)
    more = _more_nodes(trial, needed - fit, table)
    return PlacementExplanation(trial.placement.name, fit, dict(reasons), more)


def _more_nodes(trial: Trial, missing: int, table: NodeTable) -> MoreNodes | None:
    """How many more nodes of a kind that the placement has would take the missing members.

    None if members lack more than room, or no node of the placement could take one. The answer
    counts what members request, and no pods but theirs on the new nodes.
    """
    without = [member for member in trial.members if not member.node]
    decisions = [member.decision for member in without]
    if missing <= 0 or any(each is None or each.rejected_by().keys() != ROOM for each in decisions):
        return None
    # The largest members come last in the worst case; all others fit where these do.
    wanted = [requests.requested(member.entry.pod) for member in without]
    most = {name: max(each.get(name, 0) for each in wanted) for each in wanted for name in each}
    best, name = 0, ""
    for row in trial.placement.rows.nonzero()[0].tolist():
        node = table.nodes[row]
        if node is not None and (count := _capacity(most, requests.allocatable(node))) > best:
            best, name = count, node.name
    return MoreNodes(-(-missing // best), name) if best else None


def _capacity(wanted: dict[str, int], offered: dict[str, int]) -> int:
    """How many pods of a size fit on an empty node."""
    return min(_parts(wanted, offered))


def _parts(wanted: dict[str, int], offered: dict[str, int]) -> Iterable[int]:
    yield offered.get(requests.PODS, 0)
    for name, amount in wanted.items():
        if amount:
            yield offered.get(name, 0) // amount
