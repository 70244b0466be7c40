"""The per-node form and the whole-cluster form of a plugin agree."""

from collections.abc import Callable, Iterable
from typing import Any

from moorage.api.pod import Pod
from moorage.framework.cluster import Cluster
from moorage.framework.points import Plugin
from moorage.nodes.table import NodeTable
from moorage.testing.checks import showing
from moorage.testing.cycle import Form, PluginCycle, active_rows


def check_twins(plugin: Plugin, pod: Pod, cluster: Cluster | NodeTable) -> None:
    """Prove that the per-node form and the whole-cluster form agree for one pod and cluster."""
    cycle = PluginCycle(plugin, pod, cluster)
    rows = active_rows(cycle.table)
    slices = [rows, rows[::-1], rows[::2], rows[:1], []]
    if cycle.filters:
        _compare_forms(cycle, "filter", cycle.statuses, slices)
    if cycle.scores:
        _compare_forms(cycle, "score", cycle.raw, slices)


def _compare_forms(
    cycle: PluginCycle,
    point: str,
    ask: Callable[[list[int], Form], list[Any]],
    slices: Iterable[list[int]],
) -> None:
    first, *others = cycle.forms(point)
    for rows in slices:
        expected = ask(rows, first)
        for form in others:
            for row, one, other in zip(rows, expected, ask(rows, form), strict=True):
                assert one == other, (
                    f"{first.value.format(point)} says {showing.shown(one)}, "
                    f"{form.value.format(point)} says {showing.shown(other)}; they have to agree"
                    f"\n  pod:  {showing.shown(cycle.pod)}"
                    f"\n  node: {showing.shown(cycle.table.nodes[row])}"
                )
