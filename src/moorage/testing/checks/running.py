"""What a plugin says of one node."""

from collections.abc import Iterable
from typing import NamedTuple

from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.framework.points import Plugin
from moorage.framework.status import Status
from moorage.testing.builders import make_cluster
from moorage.testing.cycle import PluginCycle, active_rows


class Ran(NamedTuple):
    """What a plugin said of a node; scores are None where it gives none."""

    status: Status
    score: int | None
    raw: int | None


def run_plugin(
    plugin: Plugin,
    pod: Pod,
    node: Node,
    *,
    others: Iterable[Node] = (),
    pods: Iterable[Pod] = (),
    objects: Iterable[KubeObject] = (),
) -> Ran:
    """What a plugin says of a node, from pre_filter to the normalised score.

    `others` are further nodes of the cluster, `pods` run on any of them, `objects` are neither.
    The score is normalised among all these nodes and given even where the filter refuses, so that
    one example shows both.
    """
    cluster = make_cluster([node, *others], pods, objects)
    cycle, table = PluginCycle(plugin, pod, cluster), cluster.table
    row = table.row_of[node.name]
    if not cycle.scores:
        return Ran(cycle.status(row), None, None)
    rows = active_rows(table)
    raw = cycle.raw(rows, cycle.forms("score")[0])
    here = rows.index(row)
    return Ran(cycle.status(row), cycle.normalized(raw)[here], raw[here])
