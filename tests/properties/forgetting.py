"""A scheduler that keeps nothing: before every decision all that can be found out again is lost.

What stays is what the world told and what was decided: objects, who is where, who is promised
what, the queue, the seed. Sheets, views, counts per domain, columns, compiled templates, trials of
preemption and whatever plugins derived from the cluster are made anew, from the same rows.
"""

from contextlib import contextmanager

from moorage.core.cycle import SchedulingCycle
from moorage.framework.promises import Promises
from moorage.framework.sheets import Sheets
from moorage.framework.template import Templates
from moorage.nodes.table import NodeTable
from moorage.plugins.default_preemption import DefaultPreemption
from moorage.plugins.default_preemption.results import PreemptionCache


@contextmanager
def forgetful(monkeypatch):
    """All schedulers are forgetful for as long as this lasts."""
    decide = SchedulingCycle.decide

    def decide_anew(cycle, profile, pod, template, now):
        templates = Templates()
        forget(cycle, profile, templates)
        return decide(cycle, profile, pod, templates.of(pod), now)

    with monkeypatch.context() as patch:
        patch.setattr(SchedulingCycle, "decide", decide_anew)
        yield


def forget(cycle, profile, templates):
    cluster = cycle._cluster
    rebuild(cluster.table)
    cluster._derived.clear()
    cluster._logs.clear()
    cluster._by_namespace.clear()
    cycle._promises = Promises(cluster, templates)
    profile.sheets = Sheets(profile)
    profile._questions.clear()
    for plugin in profile.plugins():
        if isinstance(plugin, DefaultPreemption):
            plugin._cache = PreemptionCache()


def rebuild(table):
    """Read all nodes and pods of a table again, each into the row in which it was."""
    anew = NodeTable(table.capacity)
    for name, row in table.row_of.items():
        anew._free = [row]
        anew._claim(name)
        if table.nodes[row] is not None:
            anew.set_node(table.nodes[row])
        for placed in table.placed[row].values():
            anew.add_pod(name, placed.pod, placed.usage)
    # In which order nodes are visited, and which row is the next to be given away, is history.
    anew._free, anew.zone_order = table._free, table.zone_order
    for name in NodeTable.__slots__:
        if name not in ("_table", "_index"):
            setattr(table, name, getattr(anew, name))
    table.placements._table = table
