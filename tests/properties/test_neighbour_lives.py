"""What is kept of pods' neighbours equals what is found out anew, after any history.

A few pods are decided upon again and again while other pods and nodes come, go and change. One
profile lives as long as that lasts; the other is made for every decision, and so is all that the
table counts. They must agree on every verdict, reason, score and total.
"""

import pickle
from collections import Counter
from random import Random

import numpy as np
import pytest
from msgspec.structs import replace
from tests.random_cluster import HOSTNAME, ZONE, RandomCluster

from moorage import plugin
from moorage.core.cycle import SchedulingCycle
from moorage.framework.profile import Profile
from moorage.framework.template import Templates
from moorage.framework.views import view
from moorage.nodes import domains
from moorage.nodes.usage import Usage
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.inter_pod_affinity import scoring as affinity_scoring
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.pod_topology_spread import PodTopologySpread
from moorage.plugins.pod_topology_spread import scoring as spread_scoring
from moorage.testing import make_node

from .forgetting import rebuild

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


def decide(cluster, pod, kept, templates):
    cycle = SchedulingCycle(cluster, templates, {}, Random(0))
    return cycle.decide(kept, pod, templates.of(pod), 0.0)


def decide_anew(world, pod):
    cluster = pickle.loads(pickle.dumps(world.cluster))
    rebuild(cluster.table)
    cluster._derived.clear()
    return decide(cluster, pod, profile(cluster), Templates())


def told(decision):
    """All that a decision says of nodes."""
    rows = np.flatnonzero(decision.state.table.active_rows).tolist()
    filtered, scored = decision.filtered, decision.scored
    said = {
        "status": decision.status,
        "node": decision.node,
        "feasible": decision.feasible_count,
        "rejected by": decision.rejected_by(),
        "diagnosis": decision.diagnosis,
        "skipped": decision.pre.skipped,
    }
    if filtered is not None:
        said["fits"] = [row for row in rows if filtered.fits[row]]
        said["reasons"] = {row: filtered.status(row) for row in rows if not filtered.fits[row]}
    if scored is not None:
        said["totals"] = scored.totals.tolist()
        said["scores"] = {row: scored.of(row) for row in said["fits"]}
        said["best"] = list(scored.best)
    return said


def place_another(world, pod, node):
    """One more pod of a kind, on a node."""
    name = f"{pod.name}-{len(world.pods)}-{world.table.changes.position}"
    meta = replace(pod.metadata, name=name, uid=name)
    placed = replace(pod, metadata=meta, spec=replace(pod.spec, node_name=node))
    world.pods[placed.uid] = placed
    world.table.add_pod(node, placed, Usage.of(placed))


class Orderly(RandomCluster):
    """All nodes have a zone and a name of their own, as in most clusters."""

    def random_node(self, name):
        return make_node(name, labels={ZONE: self._rng.choice(("z1", "z2")), HOSTNAME: name})


@pytest.mark.parametrize("kind", [RandomCluster, Orderly])
@pytest.mark.parametrize(
    "limits",
    [
        pytest.param({}, id="as it is"),
        pytest.param(
            {
                (view, "FEW_ROWS"): 2,
                (domains, "LONGEST"): 3,
                (affinity_scoring, "MOST_SPARSE_ROWS"): 2,
                (spread_scoring, "MOST_GROUPS"): 8,
                (plugin, "FEW_ROWS"): 1,
            },
            id="with everything soon too much",
        ),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_a_life_among_neighbours(seed, limits, kind, monkeypatch):
    for (module, name), value in limits.items():
        monkeypatch.setattr(module, name, value)
    rng = Random(seed)
    world = kind(rng)
    kept, saw = profile(world.cluster), Counter()
    waiting = [world.incoming() for _ in range(WAITING)]
    for _ in range(120):
        if rng.randrange(3) == 0:
            world.step()
        if rng.randrange(20) == 0:
            waiting[rng.randrange(WAITING)] = world.incoming()
        pod = rng.choice(waiting)
        decision = decide(world.cluster, pod, kept, world.templates)
        assert told(decision) == told(decide_anew(world, pod))
        saw["scored" if decision.scored else "refused"] += 1
        if decision.node and rng.randrange(2):
            place_another(world, pod, decision.node)
    assert saw["scored"] > 20, saw
