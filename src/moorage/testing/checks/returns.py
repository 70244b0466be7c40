"""What a plugin returns is what its points allow, and the same whenever it is asked."""

import pickle

from moorage.api.meta import NodeName
from moorage.framework import points
from moorage.framework.effects import Request
from moorage.framework.normalizers import BEST
from moorage.framework.points import Plugin
from moorage.framework.status import SUCCESS
from moorage.nodes.table import NodeTable
from moorage.testing.checks import showing
from moorage.testing.checks.examples import Example
from moorage.testing.cycle import Answers, PluginCycle, allow


def check_scores(cycle: PluginCycle, said: Answers) -> None:
    """Normalised scores stay in their bounds."""
    raw = list(said.raw.values())
    scores = cycle.normalized(raw)
    assert all(0 <= score <= BEST for score in scores), (
        f"scores must be 0 to {BEST}, once normalised; {raw} became {scores}"
        f"\n  pod:  {showing.shown(cycle.pod)}"
    )


def check_repeats(plugin: Plugin, example: Example, table: NodeTable, said: Answers) -> None:
    """Answers follow from arguments alone."""
    again = PluginCycle(plugin, example.pod, table).answers()
    showing.check_same(
        said, again, "asked twice, it answers differently; answers are to follow from arguments"
    )
    afresh = PluginCycle(_copy(plugin), example.pod, example.table()).answers()
    showing.check_same(
        said,
        afresh,
        "a copy of it answers differently on an equal table; it must not remember anything "
        "between pods, nor write into the table's arrays",
    )


def check_other_points(plugin: Plugin, example: Example) -> None:
    """The points that look at no node, or at the one that has been picked."""
    plugin = _copy(plugin)  # Who reserves may well remember it.
    cycle = PluginCycle(plugin, example.pod, example.table())
    pod, node = example.pod, NodeName(example.nodes[0].name)
    if isinstance(plugin, points.PreEnqueue):
        allow("pre_enqueue", plugin.pre_enqueue(pod))
    if isinstance(plugin, points.QueueSort):
        # Raises where two keys cannot be compared.
        sorted([plugin.queue_sort(pod, 1.0), plugin.queue_sort(example.other, 2.0)])
    if not cycle.status(cycle.table.row_of[node]).is_success:
        return
    for method in ("reserve", "permit", "bind"):
        ask = getattr(plugin, method, None)
        said = SUCCESS if ask is None else ask(cycle.state, pod, node)
        if not (method == "bind" and isinstance(said, Request)):
            allow(method, said)


def _copy(plugin: Plugin) -> Plugin:
    copied: Plugin = pickle.loads(pickle.dumps(plugin))
    return copied
