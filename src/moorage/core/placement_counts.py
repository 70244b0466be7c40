"""PlacementCounts: how many members of a group fit in each placement, without trying them.

Equal members take nodes until none has room. If all filters read only the node itself, the order
does not matter: as many members fit as the nodes of the placement have room for. A filter says how
many equal pods a node has room for (`filter_copies`). For all other groups, members are tried.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from moorage.core.decision import Decision
from moorage.framework import invoke
from moorage.framework.points import Depends, depends_of
from moorage.framework.profile import Profile
from moorage.framework.views.feasible import NO_FILTER, NO_NODE
from moorage.nodes.pod_groups import GroupPlacement

OBJECTS = frozenset((Depends.NODE, Depends.NODES))
OF_NODE = OBJECTS | {Depends.RESOURCES, Depends.USAGE}
RESERVE, PERMIT = ("reserve", "reserve"), ("permit", "permit")
POST_FILTER = ("post_filter", "post_filter")


class PlacementCounts(NamedTuple):
    """For each placement: how many members fit, and the plugins that reject the others."""

    fits: list[int]
    rejectors: list[set[str]]


def count(
    first: Decision, members: int, placements: Sequence[GroupPlacement]
) -> PlacementCounts | None:
    """The counts for equal members, from a decision on one of them; None if they must be tried."""
    profile, filtered = first.profile, first.filtered
    if filtered is None or filtered.has_errors or not _depends_on_nodes(first):
        return None
    table, room = first.state.table, None
    counting = [p for p in _active(first, profile.filters) if depends_of(p) not in OBJECTS]
    for plugin in counting:
        copies = profile.method(plugin, "filter_copies")
        if copies is None:
            return None
        more = copies.call(first.state, first.pod, table)
        if not isinstance(more, np.ndarray) or (more.dtype.kind, more.shape) != (
            "i",
            table.active_rows.shape,
        ):
            raise copies.returned(more, "an array with an integer per row")
        room = more if room is None else np.minimum(room, more)
    if room is None:
        return None
    room = np.where(filtered.fits, np.minimum(room, members), 0)
    fits = [min(int(room[placement.rows].sum()), members) for placement in placements]
    if min(fits, default=members) < members and not _never_preempts(profile):
        return None
    full = {plugin.name for plugin in counting}
    rejectors = [_rejectors(first, placement, full) for placement in placements]
    return PlacementCounts(fits, rejectors)


def _active(decision: Decision, plugins: Sequence[Any]) -> list[Any]:
    return [plugin for plugin in plugins if plugin.name not in decision.pre.skipped]


def _depends_on_nodes(decision: Decision) -> bool:
    """Whether nothing but the nodes themselves decides about the next equal pod."""
    profile, pre = decision.profile, decision.pre
    if pre.rejected is not None or pre.names is not None or decision.check is not None:
        return False
    if any(method.name not in decision.state.idle for method in profile.methods(*RESERVE)):
        return False
    permits = [method.plugin for method in profile.methods(*PERMIT)]
    if not all(getattr(plugin, "permits_by_count", False) for plugin in permits):
        return False
    return all(
        depends_of(plugin) in OF_NODE or _skips_again(decision, plugin)
        for plugin in (*profile.pre_filters, *profile.filters)
    )


def _skips_again(decision: Decision, plugin: Any) -> bool:
    """Whether a plugin skips the pod, and will skip the next one."""
    if plugin.name not in decision.pre.skipped:
        return False
    method = decision.profile.method(plugin, "skip_key")
    key = None if method is None else invoke.skip_key(method, decision.state, decision.pod)
    return key is not None


def _never_preempts(profile: Profile) -> bool:
    """Whether no plugin nominates a node for a member that fits nowhere in a placement."""
    plugins = [method.plugin for method in profile.methods(*POST_FILTER)]
    return not any(getattr(plugin, "preempts_in_placements", True) for plugin in plugins)


def _rejectors(decision: Decision, placement: GroupPlacement, full: set[str]) -> set[str]:
    """The plugins that reject the nodes of a placement: at once, or when they are full."""
    filtered = decision.filtered
    assert filtered is not None
    first = set(np.unique(filtered.first[placement.rows]).tolist())
    names = {filtered.names[index] for index in first - {NO_FILTER, NO_NODE}}
    return names | full if NO_FILTER in first else names
