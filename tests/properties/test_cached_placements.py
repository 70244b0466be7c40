"""Cached results of affinity and spreading equal results computed from scratch.

A few pods are scheduled repeatedly while other pods and nodes are added, removed and changed. One
profile lives through the whole history. For every decision another profile is built, and the
table's counters are rebuilt. They must agree on every verdict, reason, score and total. So must a
third one that also lives through the history and decides by groups of nodes where it can.
"""

import pickle
from collections import Counter
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace
from tests.random_cluster import HOSTNAME, ZONE, RandomCluster

from moorage.core.cycle import SchedulingCycle
from moorage.framework.profile import Profile
from moorage.framework.views import grouped, ranked_groups, row_sets, view
from moorage.framework.views.grouped import GroupedScores
from moorage.framework.views.row_sets import RowBlocks
from moorage.nodes import domains, groups, interning
from moorage.nodes.template import Templates
from moorage.nodes.usage import Usage
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.plugins.pod_topology_spread import scoring as spread_scoring
from moorage.testing import make_node

from .dropped_caches import rebuild

WAITING = 4


def profile(cluster):
    plugins = [
        NodeResourcesFit(),
        PodTopologySpread(),
        InterPodAffinity(),
        NodeResourcesBalancedAllocation(),
    ]
    weighted = [(plugin, 2) for plugin in plugins]
    points = ("pre_filter", "filter", "pre_score", "score")
    return Profile(
        "lives",
        {point: [each for each in weighted if hasattr(each[0], point)] for point in points},
        cluster,
    )


def decide(cluster, pod, kept, templates, *, by_group=False):
    cycle = SchedulingCycle(cluster, templates, {}, Random(0))
    return cycle.decide(kept, pod, templates.of(pod), 0.0, by_group=by_group)


def decide_anew(random_cluster, pod):
    cluster = pickle.loads(pickle.dumps(random_cluster.cluster))
    rebuild(cluster.table)
    cluster._derived.clear()
    return decide(cluster, pod, profile(cluster), Templates())


def contents(decision):
    """All parts of a decision that are compared."""
    rows = np.flatnonzero(decision.state.table.active_rows).tolist()
    filtered, scored = decision.filtered, decision.scored
    parts = {
        "status": decision.status,
        "node": decision.node,
        "feasible": decision.feasible_count,
        "rejected by": decision.rejected_by(),
        "diagnosis": decision.diagnosis,
        "skipped": decision.pre.skipped,
    }
    if filtered is not None:
        parts["fits"] = [row for row in rows if filtered.fits[row]]
        parts["reasons"] = {row: filtered.status(row) for row in rows if not filtered.fits[row]}
    if scored is not None:
        parts["totals"] = scored.totals.tolist()
        parts["scores"] = {row: scored.scores(row) for row in parts["fits"]}
        parts["best"] = list(scored.best())
    return parts


def check_by_group(decision, expected):
    """Compare a decision by groups with another one; it has nothing of rows that do not fit."""
    assert decision.status == expected.status
    assert (decision.node, decision.feasible_count) == (expected.node, expected.feasible_count)
    assert decision.rejected_by() == expected.rejected_by()
    assert decision.pre.skipped == expected.pre.skipped
    one, other = decision.scored, expected.scored
    if other is None:
        assert one is None
        return
    assert one.totals.tolist() == other.totals.tolist()
    best = one.best()
    assert [best[index] for index in range(len(best))] == list(other.best())
    for row in np.flatnonzero(one.totals >= 0).tolist():
        assert one.total(row) == other.total(row)
        # The order of plugins is the same, too.
        assert [*one.scores(row).items()] == [*other.scores(row).items()]
    for count in (1, 3, 9):
        assert decision.best_nodes(count) == expected.best_nodes(count)


def place_another(random_cluster, pod, node):
    """Place one more pod of the same template on a node."""
    name = f"{pod.name}-{len(random_cluster.pods)}-{random_cluster.table.changes.position}"
    meta = replace(pod.metadata, name=name, uid=name)
    placed = replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))
    random_cluster.pods[placed.uid] = placed
    random_cluster.table.add_pod(node, placed, Usage.of(placed))


class UniformCluster(RandomCluster):
    """All nodes have a zone and a unique hostname, as in most clusters."""

    def random_node(self, name):
        return make_node(name, labels={ZONE: self._rng.choice(("z1", "z2")), HOSTNAME: name})


@pytest.mark.parametrize("kind", [RandomCluster, UniformCluster])
@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({}, id="default limits"),
        pytest.param(
            {
                (view, "FEW_ROWS"): 2,
                (domains, "LONGEST"): 3,
                (spread_scoring, "FEW_SCORES"): 8,
                (interning, "FEW_VALUES"): 1,
                (interning, "MOST_VALUES"): 1,
                (groups, "ROW_COST"): 1,
                (row_sets, "MOST_LISTED"): 1,
                (ranked_groups, "MOST_LISTED"): 1,
                (RowBlocks, "BLOCK"): 2,
            },
            id="small limits",
        ),
        pytest.param(
            {(grouped, "MOST_GROUPS"): 3, (groups, "FEW_ROWS"): 0}, id="few groups and moves"
        ),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_cached_decisions_equal_new_ones(seed, limits, kind, monkeypatch):
    for (module, name), value in limits.items():
        monkeypatch.setattr(module, name, value)
    rng = Random(seed)
    random_cluster = kind(rng)
    kept, saw = profile(random_cluster.cluster), Counter()
    in_groups = profile(random_cluster.cluster)
    waiting = [random_cluster.incoming() for _ in range(WAITING)]
    for _ in range(120):
        if rng.randrange(3) == 0:
            random_cluster.step()
        if rng.randrange(20) == 0:
            waiting[rng.randrange(WAITING)] = random_cluster.incoming()
        pod = rng.choice(waiting)
        decision = decide(random_cluster.cluster, pod, kept, random_cluster.templates)
        anew = decide_anew(random_cluster, pod)
        assert contents(decision) == contents(anew)
        grouped_decision = decide(
            random_cluster.cluster, pod, in_groups, random_cluster.templates, by_group=True
        )
        check_by_group(grouped_decision, anew)
        saw["grouped"] += isinstance(grouped_decision.scored, GroupedScores)
        saw["scored" if decision.scored else "refused"] += 1
        if decision.node and rng.randrange(2):
            place_another(random_cluster, pod, decision.node)
    assert saw["scored"] > 20, saw
    assert saw["grouped"] > 10 or limits, saw
