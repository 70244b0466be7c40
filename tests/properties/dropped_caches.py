"""A scheduler without caches: before every decision everything that can be derived is dropped.

What stays is what was observed and decided: objects, placements, nominations, the queue, the seed.
Views, counts per domain, columns, compiled templates, preemption results and everything else that
plugins derived from the cluster are rebuilt from the same rows.
"""

from contextlib import contextmanager

from moorage.core.cycle import SchedulingCycle
from moorage.framework.views.cache import ViewCache
from moorage.nodes.nominated import NominatedPods
from moorage.nodes.table import NodeTable
from moorage.nodes.template import Templates
from moorage.plugins.default_preemption import DefaultPreemption
from moorage.plugins.default_preemption.results import PreemptionCache


@contextmanager
def without_caches(monkeypatch):
    """All schedulers drop their caches before every decision while this lasts."""
    decide = SchedulingCycle.decide

    def decide_anew(cycle, profile, pod, template, now, **_):
        # Without caches, decisions are made row by row.
        templates = Templates()
        drop_caches(cycle, profile, templates)
        return decide(cycle, profile, pod, templates.of(pod), now)

    with monkeypatch.context() as patch:
        patch.setattr(SchedulingCycle, "decide", decide_anew)
        yield


def drop_caches(cycle, profile, templates):
    cluster = cycle._cluster
    rebuild(cluster.table)
    cluster._derived.clear()
    cluster._logs.clear()
    cluster._by_namespace.clear()
    cycle._nominated_pods = NominatedPods(cluster.table, cluster.nomination_changes, templates)
    profile.views = ViewCache(profile)
    profile._what_if_plans.clear()
    for plugin in profile.plugins():
        if isinstance(plugin, DefaultPreemption):
            plugin._cache = PreemptionCache()


def rebuild(table):
    """Read all nodes and pods of a table again, each into the row that it had."""
    anew = NodeTable(table.capacity)
    for name, row in table.row_of.items():
        anew._free = [row]
        anew._claim(name)
        if table.nodes[row] is not None:
            anew.set_node(table.nodes[row])
        for placed in table.placed[row].values():
            anew.add_pod(name, placed.pod, placed.usage)
    # The order in which nodes are visited and rows are reused depends on history.
    anew._free, anew.zone_order = table._free, table.zone_order
    for name, value in vars(anew).items():
        if name not in ("_table", "_index"):
            setattr(table, name, value)
    table.placements._table = table
