"""Cached results equal results computed from scratch, after any history.

One profile lives as long as the cluster and caches its results. For every decision a new profile
without caches is built. They must agree on every verdict, reason, score and total, and so on the
selected node. The plugins are built-in ones and some for each kind of dependency.
"""

import pickle
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule
from msgspec.structs import replace

from moorage.core import sampling
from moorage.core.cycle import SchedulingCycle
from moorage.framework import points
from moorage.framework.cluster import Cluster
from moorage.framework.points import ByMax, Depends
from moorage.framework.profile import Profile
from moorage.framework.state import StateKey
from moorage.framework.status import (
    SKIP,
    SUCCESS,
    Verdicts,
    only_nodes,
    pending,
    unresolvable,
    unschedulable,
)
from moorage.framework.views.template import TemplateViews
from moorage.nodes import changes
from moorage.nodes.columns import Column
from moorage.nodes.table import NodeTable
from moorage.nodes.template import Templates
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_name import NodeName
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.plugins.node_unschedulable import NodeUnschedulable
from moorage.plugins.taint_toleration import TaintToleration
from moorage.testing import strategies

NAMES = tuple(f"n{i}" for i in range(24))
TIERS = ("", "a", "b", "5", "07")


def tier(obj):
    return TIERS.index(obj.labels.get("tier", ""))


TIER = Column("tier", np.int64, read=tier, default=9)


class Tiers:
    """Depends on the node's object; per-node form."""

    name = "Tiers"
    depends = Depends.NODE
    normalizer = ByMax(reverse=True)

    def filter(self, state, pod, node):
        return unschedulable("tier too high") if tier(node) > tier(pod) + 2 else SUCCESS

    def score(self, state, pod, node):
        return abs(tier(node) - tier(pod))


class TiersOfAll:
    """Depends on the node's object; whole-cluster form with reasons built at run time."""

    name = "TiersOfAll"
    depends = Depends.NODE

    def reads(self, pod):
        return tier(pod)

    def pre_filter(self, state, pod):
        return SKIP if tier(pod) == 4 else SUCCESS

    def filter(self, state, pod, node):
        gap = node[TIER] - tier(pod)
        return unresolvable(f"{gap} tiers apart") if gap > 2 else SUCCESS

    def filter_all(self, state, pod, table):
        gap = table[TIER] - tier(pod)
        codes = np.where(gap > 2, gap, 0)
        return Verdicts(codes=codes, status_of=lambda code: unresolvable(f"{code} tiers apart"))

    def pre_score(self, state, pod, feasible):
        return SKIP if tier(pod) == 3 else SUCCESS

    def score(self, state, pod, node):
        return 7 * node[TIER]

    def score_all(self, state, pod, table):
        return 7 * table[TIER]


class PodCounts:
    """Depends on the pods of a node, not only on their requests; per-node form."""

    name = "PodCounts"
    depends = Depends.USAGE

    def filter(self, state, pod, node):
        alike = sum(other.labels.get("tier") == pod.labels.get("tier") for other in node.pods)
        return pending("too many alike") if alike > 4 else SUCCESS

    def score(self, state, pod, node):
        if any(other.priority == 10 for other in node.pods) and node.pod_count > 4:
            raise ValueError(f"{node.name} is a mess")
        return max(100 - 10 * node.pod_count, 0)


class PodCountsOfAll:
    """Depends on the resources of a node; whole-cluster form."""

    name = "PodCountsOfAll"
    depends = Depends.RESOURCES
    normalizer = ByMax()

    def filter(self, state, pod, node):
        return unschedulable("crowded") if node.pod_count > 6 else SUCCESS

    def filter_all(self, state, pod, table):
        return Verdicts(fits=table.pod_count <= 6, otherwise=unschedulable("crowded"))

    def score(self, state, pod, node):
        return node.requested("cpu")

    def score_all(self, state, pod, table):
        return table.requested("cpu")


class FreeCpu:
    """Depends on the resources of a node; per-node form, which sometimes raises."""

    name = "FreeCpu"
    depends = Depends.RESOURCES

    def filter(self, state, pod, node):
        return unschedulable("odd") if node.requested("cpu") % 700 == 600 else SUCCESS

    def score(self, state, pod, node):
        if node.pod_count == 5 and node.nonzero_requested("cpu") > 2000:
            raise ValueError(f"{node.name} is full")
        return max(0, node.allocatable("cpu") - node.requested("cpu")) % 120


COUNTS = StateKey("Rarity.counts")


class Rarity:
    """Depends on all nodes together."""

    name = "Rarity"
    depends = Depends.NODES
    normalizer = ByMax()

    def reads(self, pod):
        return ()

    def pre_filter(self, state, pod):
        tiers = [tier(node) for node in state.table.nodes if node is not None]
        state[COUNTS] = {number: tiers.count(number) for number in range(len(TIERS))}
        return SKIP if len(tiers) < 3 else SUCCESS

    def filter(self, state, pod, node):
        return unschedulable("too common") if state[COUNTS][tier(node)] > 12 else SUCCESS

    def score(self, state, pod, node):
        return state[COUNTS][tier(node)] * node.table.size


class Zones:
    """Depends on the pods of all nodes, so it is called in every cycle."""

    name = "Zones"
    depends = Depends.PLACEMENTS

    def filter(self, state, pod, node):
        return unschedulable("zone is full") if self.score(state, pod, node) > 60 else SUCCESS

    def score(self, state, pod, node):
        zone = node.labels.get("zone")
        rows = np.flatnonzero(state.table.active)
        infos = (state.table.info(int(row)) for row in rows)
        return sum(info.pod_count for info in infos if info.labels.get("zone") == zone)


class TimeOfDay:
    """Depends on more than the cluster; returns a node set for some pods."""

    name = "TimeOfDay"

    def pre_filter(self, state, pod):
        if pod.labels.get("zone") == "b":
            return only_nodes(NAMES[: 3 + int(state.now) % 3])
        return SUCCESS

    def filter(self, state, pod, node):
        return unschedulable("new moon") if (int(state.now) + tier(node)) % 7 == 6 else SUCCESS

    def score(self, state, pod, node):
        return (int(state.now) + tier(node)) % 5

    def normalize_score(self, state, pod, scores):
        return scores * 20


PLUGINS = [
    (NodeUnschedulable(), 1),
    (NodeName(), 1),
    (TimeOfDay(), 1),
    (TaintToleration(), 3),
    (NodeAffinity(), 2),
    (NodePorts(), 1),
    (TiersOfAll(), 1),
    (NodeResourcesFit(), 1),
    (PodCounts(), 1),
    (Zones(), 2),
    (Tiers(), 4),
    (PodCountsOfAll(), 1),
    (FreeCpu(), 1),
    (Rarity(), 2),
    (NodeResourcesBalancedAllocation(), 1),
    (ImageLocality(), 1),
]
# If all scores are cached, totals are cached as well.
CACHED_PLUGINS = [(p, w) for p, w in PLUGINS if not isinstance(p, Zones | TimeOfDay)]
# If results depend on nodes and resources only, decisions are repeated for equal pods.
BY_RESOURCES = [
    (p, w) for p, w in CACHED_PLUGINS if not isinstance(p, PodCounts | PodCountsOfAll | NodePorts)
]
BUILT_IN = [(p, w) for p, w in BY_RESOURCES if "plugins" in type(p).__module__]


class ChangingCluster:
    """A cluster that changes at random, and two schedulers that decide for it."""

    def __init__(self, rng, plugins=PLUGINS, percentage=None):
        self.rng = rng
        self.plugins = plugins
        self.percentage = percentage
        self.cluster = Cluster(NodeTable(capacity=2))
        self.templates = Templates()
        self.nominated_pods = {}
        self.kept = self.profile()
        self.long_lived = self.cycle()
        self.uncached = self.cycle()
        self.now = 0
        self.placed = {}
        self.saw = Counter()
        # Few templates, so that each occurs often; some request little.
        self.pods = [strategies.random_pod(rng)]
        self.pods += [
            strategies.make_pod(
                labels={"tier": rng.choice(TIERS), "zone": rng.choice(("a", "b", None))},
                requests={"cpu": rng.choice(strategies.CPUS)},
                tolerations=[strategies.Toleration(operator="Exists")],
                priority=rng.choice((0, 10)),
            )
            for _ in range(6)
        ]

    def profile(self):
        by_point = {
            point: [(p, weight) for p, weight in self.plugins if points.implements(p, point)]
            for point in points.METHODS
        }
        return Profile("default-scheduler", by_point, self.cluster, self.percentage)

    def cycle(self):
        return SchedulingCycle(self.cluster, self.templates, self.nominated_pods, Random(0))

    # Changes

    def set_node(self):
        name = self.rng.choice(NAMES)
        node = strategies.random_node(self.rng, name)
        if self.rng.randrange(4):  # Most nodes are schedulable.
            images = {image: size for image, size in strategies.IMAGES.items() if "b" in image}
            node = strategies.make_node(name, labels=node.labels, images=images)
        self.cluster.table.set_node(node)

    def relabel(self):
        node = self.some_node()
        if node is not None:
            labels = {**node.labels, "tier": self.rng.choice(TIERS)}
            self.cluster.table.set_node(
                replace(node, metadata=replace(node.metadata, labels=labels))
            )

    def remove_node(self):
        node = self.some_node()
        if node is not None:
            self.cluster.table.remove_node(node.name)

    def some_node(self):
        nodes = [node for node in self.cluster.table.nodes if node is not None]
        return self.rng.choice(nodes) if nodes else None

    def place(self, pod=None, node=None):
        pod = pod or self.rng.choice(self.pods)
        self.now += 1
        uid = f"uid-{self.now}"
        pod = replace(
            pod,
            metadata=replace(pod.metadata, name=uid, uid=uid),
            spec=replace(pod.spec, node_name=node or self.rng.choice(NAMES)),
        )
        self.cluster.table.add_pod(pod.node_name, pod, self.templates.of(pod).usage)
        self.placed[uid] = pod

    def unplace(self):
        if self.placed:
            pod = self.placed.pop(self.rng.choice(sorted(self.placed)))
            self.cluster.table.remove_pod(pod.node_name, pod.uid)

    def change_pod(self):
        if self.placed:
            uid = self.rng.choice(sorted(self.placed))
            old, like = self.placed[uid], self.rng.choice(self.pods)
            spec = replace(like.spec, node_name=old.node_name)
            new = replace(old, metadata=replace(old.metadata, labels=like.labels), spec=spec)
            self.cluster.table.replace_pod(old.node_name, new, self.templates.of(new).usage)
            self.placed[uid] = new

    def nominate(self):
        """Nominate some nodes for pods that are not scheduled yet."""
        names = self.rng.sample(NAMES, self.rng.choice((0, 0, 1, 2)))
        before = list(self.nominated_pods)
        self.nominated_pods.clear()
        self.nominated_pods.update({name: [self.nominated_pod()] for name in names})
        for name in dict.fromkeys((*before, *self.nominated_pods)):
            row = self.cluster.table.row_of.get(name)
            if row is not None:
                self.cluster.nomination_changes.add(row)

    def nominated_pod(self):
        pod = self.rng.choice(self.pods)
        return replace(pod, metadata=replace(pod.metadata, name="nominated", uid="nominated"))

    def burst(self):
        for _ in range(self.rng.choice((8, 40))):
            self.rng.choice((self.place, self.unplace, self.unplace, self.relabel))()

    def fork(self):
        self.cluster, self.templates, self.kept = pickle.loads(
            pickle.dumps((self.cluster, self.templates, self.kept))
        )
        walk, uncached_walk = self.long_lived._walk, self.uncached._walk
        random, other_random = self.long_lived._random, self.uncached._random
        self.long_lived, self.uncached = self.cycle(), self.cycle()
        self.long_lived._walk, self.uncached._walk = walk, uncached_walk
        self.long_lived._random, self.uncached._random = random, other_random

    CHANGES = (
        *(set_node, set_node, set_node, relabel, remove_node),
        *(place, place, unplace, unplace, change_pod, nominate, burst),
    )

    # Checks

    def decide(self, pod=None):
        pod = pod or self.rng.choice(self.pods)
        template = self.templates.of(pod)
        kept = self.long_lived.decide(self.kept, pod, template, self.now)
        anew = self.uncached.decide(self.profile(), pod, Templates().of(pod), self.now)
        assert contents(kept) == contents(anew)
        self.saw["scored" if kept.scored else "picked" if kept.node else "refused"] += 1
        if kept.node:
            self.place(pod, kept.node)


def contents(decision):
    """All parts of a decision that are compared."""
    table = decision.state.table
    parts = {
        "status": decision.status,
        "node": decision.node,
        "feasible": decision.feasible_count,
        "rejected by": decision.rejected_by(),
        "diagnosis": decision.diagnosis,
        "with nominated pods": decision.rejected_beside_nominated,
        "skipped": decision.pre.skipped,
    }
    if decision.filtered is not None:
        rows = np.flatnonzero(table.active).tolist()
        fits = decision.filtered.fits
        parts["fits"] = [row for row in rows if fits[row]]
        parts["reasons"] = {row: decision.filtered.status(row) for row in rows if not fits[row]}
    if decision.scored is not None:
        scored = np.flatnonzero(decision.scored.totals >= 0).tolist()
        parts["totals"] = {row: int(decision.scored.totals[row]) for row in scored}
        parts["scores"] = {row: decision.scored.parts.of(row) for row in scored}
    return parts


@pytest.mark.parametrize(
    ("plugins", "percentage"),
    [
        pytest.param(CACHED_PLUGINS, None, id="all results cached"),
        pytest.param(PLUGINS, None, id="some results cached"),
        pytest.param(CACHED_PLUGINS, 40, id="all results cached, sampling nodes"),
        pytest.param(PLUGINS, 40, id="some results cached, sampling nodes"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_cached_decisions_equal_new_ones(seed, plugins, percentage, monkeypatch):
    monkeypatch.setattr(changes, "LONGEST", 300)
    monkeypatch.setattr(sampling, "FEWEST_NODES", 4)
    rng = Random(seed)
    cluster = ChangingCluster(rng, plugins, percentage)
    for _ in range(12):
        cluster.set_node()
    for step in range(400):
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            rng.choice(ChangingCluster.CHANGES)(cluster)
        if step % 100 == 99:
            cluster.fork()
        cluster.decide()
    # A history in which no pod is scheduled, or none is rejected, proves little.
    assert all(cluster.saw[what] > 20 for what in ("scored", "refused")), cluster.saw


@pytest.mark.parametrize(
    ("plugins", "most_placed", "fewest_repeated"),
    [
        pytest.param(BY_RESOURCES, 100, 0, id="with errors"),
        pytest.param(BUILT_IN, 30, 5, id="built-in plugins"),
    ],
)
@pytest.mark.parametrize("seed", range(2))
def test_decisions_for_equal_pods_equal_new_ones(
    seed, plugins, most_placed, fewest_repeated, monkeypatch
):
    repeated = []
    repeat = TemplateViews.repeat

    def watched(views):
        found = repeat(views)
        repeated.append(found is not None)
        return found

    monkeypatch.setattr(TemplateViews, "repeat", watched)
    rng = Random(seed)
    cluster = ChangingCluster(rng, plugins)
    for _ in range(12):
        cluster.set_node()
    for _ in range(60):
        while len(cluster.placed) > most_placed:
            cluster.unplace()
        for _ in range(rng.choice((0, 0, 1, 1, 2, 3))):
            rng.choice(ChangingCluster.CHANGES)(cluster)
        pod = rng.choice(cluster.pods)
        for _ in range(rng.choice((1, 4, 12))):
            cluster.decide(pod)
            if not rng.randrange(3):
                rng.choice((cluster.place, cluster.unplace))()
    assert sum(repeated) >= fewest_repeated, cluster.saw


class CachedViews(RuleBasedStateMachine):
    """The same in short histories, which Hypothesis can shrink to a minimal failure."""

    @initialize(
        seed=st.integers(0, 1000),
        plugins=st.sampled_from((CACHED_PLUGINS, BY_RESOURCES, PLUGINS)),
        percentage=st.sampled_from((None, None, 40)),
    )
    def begin(self, seed, plugins, percentage):
        self.cluster = ChangingCluster(Random(seed), plugins, percentage)
        for _ in range(6):
            self.cluster.set_node()

    @rule(change=st.sampled_from(ChangingCluster.CHANGES))
    def apply_change(self, change):
        change(self.cluster)

    @rule()
    def decide(self):
        self.cluster.decide()

    @rule()
    def decide_equal_pods(self):
        for _ in range(3):
            self.cluster.decide(self.cluster.pods[1])

    @rule()
    def fork(self):
        self.cluster.fork()


TestCachedViews = CachedViews.TestCase
TestCachedViews.settings = settings(
    max_examples=settings.default.max_examples // 2, stateful_step_count=40
)
