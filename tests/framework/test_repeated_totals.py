"""Totals that are looked up for equal pods, one after the other, beside plugins that are called
for every pod: the results are those of a profile that has seen no pod before.
"""

import numpy as np
import pytest

from moorage.framework.points import Depends
from moorage.framework.status import SKIP, SUCCESS, Verdicts, unschedulable
from moorage.framework.views.totals import TotalView
from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod

NO = unschedulable("no")
NODES = ("n1", "n2", "n3", "n4")


class Room:
    """Filters and scores by the resources of a node, so its results are cached."""

    name = "Room"
    depends = Depends.RESOURCES

    def filter(self, state, pod, node):
        return SUCCESS if (node.allocatable("cpu") - node.requested("cpu")) >= 1000 else NO

    def score(self, state, pod, node):
        return min((node.allocatable("cpu") - node.requested("cpu")) // 100, 100)


class Moody:
    """Rejects and scores nodes by what it is set to; nothing of it is cached."""

    name = "Moody"
    rejects: frozenset[str] = frozenset()
    prefers = ""

    def filter(self, state, pod, node):
        return NO if node.name in self.rejects else SUCCESS

    def filter_all(self, state, pod, table):
        if not self.rejects:
            return Verdicts(all_fit=len(table))
        return Verdicts(fits=~table.named(self.rejects), otherwise=NO)

    def pre_score(self, state, pod, feasible):
        return SUCCESS if self.prefers else SKIP

    def score(self, state, pod, node):
        return 100 * (node.name == self.prefers)


class MoodyBefore(Moody):
    """The same with a pre_filter, so that it runs for every pod before anything is repeated."""

    def pre_filter(self, state, pod):
        return SUCCESS


class Placing:
    """Places equal pods, and compares every decision with that of a new profile."""

    def __init__(self, bench, moody):
        self.plugins = [Room, moody]
        self.moody = moody
        self.bench = bench
        self.nodes = [make_node(name, allocatable={"cpu": "9", "pods": 50}) for name in NODES]
        self.placed = []
        self.kept = bench(self.plugins, self.nodes)

    def place(self, rejects=(), prefers=""):
        self.moody.rejects, self.moody.prefers = frozenset(rejects), prefers
        pod = make_pod(f"p{len(self.placed)}", requests={"cpu": "1"})
        results = self.kept.run(pod)
        new = self.bench(self.plugins, self.nodes, self.placed).run(pod)
        assert results.fits == new.fits
        totals = {node: (results.total(node), results.scores(node)) for node in results.fits}
        assert totals == {node: (new.total(node), new.scores(node)) for node in results.fits}
        assert [results.name(row) for row in results.scored.best()] == [
            new.name(row) for row in new.scored.best()
        ]
        node = results.name(results.scored.best()[0])
        there = make_pod(pod.name, node=node, requests={"cpu": "1"})
        self.placed.append(there)
        self.kept.cluster.table.add_pod(node, there, Usage.of(there))
        return node


@pytest.fixture(params=[Moody, MoodyBefore])
def placing(request, bench):
    return Placing(bench, type("Moody", (request.param,), {}))


def test_totals_are_not_added_up_again(placing, monkeypatch):
    for _ in range(6):
        placing.place()
    refreshed = []
    refresh = TotalView.refresh
    monkeypatch.setattr(
        TotalView, "refresh", lambda self, *args: (refreshed.append(self), refresh(self, *args))
    )
    placing.place()
    assert len(refreshed) == 1, "only the new profile adds up its totals"


@pytest.mark.parametrize("seed", range(8))
def test_an_uncached_plugin_may_change_its_mind(placing, seed):
    random = np.random.default_rng(seed)
    for _ in range(24):
        rejects, prefers = [], ""
        if random.random() < 0.4:
            rejects = random.choice(NODES, size=random.integers(0, 3), replace=False).tolist()
            prefers = str(random.choice(("", *NODES)))
        placing.place(rejects, prefers)


def test_no_decision_is_repeated_without_an_uncached_filter_or_score(placing):
    for _ in range(6):
        placing.place()
    template = placing.kept.templates.of(make_pod("next", requests={"cpu": "1"}))
    assert placing.kept.profile.views.of(template).repeat() is None
    assert placing.place(rejects=NODES[:3]) == NODES[3]
    assert placing.place(prefers="n2") == "n2"


def test_a_node_changes(placing):
    for _ in range(5):
        placing.place()
    placing.nodes[1] = make_node("n2", allocatable={"cpu": "12", "pods": 50})
    placing.kept.cluster.table.set_node(placing.nodes[1])
    assert placing.place() == "n2"
