"""Plugins that look beyond the node, and say in few words what is new."""

import numpy as np
import pytest

from moorage.errors import PluginError
from moorage.framework.points import ByMax, Depends
from moorage.framework.status import SKIP, SUCCESS, ScoresByGroup, SparseScores, unschedulable
from moorage.testing import make_pod

POD = make_pod("p")
NO = unschedulable("no")
NODES = [f"n{i}" for i in range(40)]


class Watch:
    """Refuses the nodes that it is told to, and tells of every change."""

    name = "Watch"
    depends = Depends.PLACEMENTS

    def __init__(self):
        self.refused, self.changed, self.asked = set(), [], []
        self.tells = self.skips = self.raises = False

    def pre_filter(self, state, pod):
        return SKIP if self.skips else SUCCESS

    def filter(self, state, pod, node):
        self.asked.append(node.name)
        return NO if node.name in self.refused else SUCCESS

    def filter_changes(self, state, pod, since):
        if self.raises:
            raise ValueError("out of order")
        names = [] if since is None else self.changed[since:]
        rows = np.array([state.table.row_of[name] for name in names], dtype=np.intp)
        return len(self.changed), None if since is None else rows

    def turn(self, *names):
        self.refused ^= set(names)
        self.changed += names


@pytest.fixture
def watch():
    return Watch()


@pytest.fixture
def ask(bench, watch):
    made = bench([type("Watch", (Watch,), {"__new__": lambda cls, **_: watch})], nodes=NODES)

    def fitting():
        watch.asked.clear()
        asked = made.ask(POD)
        table = made.cluster.table
        fits = {table.name(int(row)) for row in np.flatnonzero(asked.filtered.fits)}
        assert asked.filtered.count == len(fits)
        assert sum(asked.filtered.rejected_by) == len(NODES) - len(fits)
        refused = [row for row in range(table.capacity) if asked.filtered.is_rejected(row)]
        assert {table.name(row) for row in refused} == set(NODES) - fits
        assert {table.name(int(row)) for row in asked.scored.best} <= fits if asked.scored else True
        return fits

    return fitting


def test_only_news_is_asked_about_again(ask, watch):
    assert ask() == set(NODES)  # The first time nothing is kept.
    assert ask() == set(NODES)
    assert ask() == set(NODES)
    assert watch.asked == []
    watch.turn("n3", "n5")
    assert ask() == set(NODES) - {"n3", "n5"}
    assert watch.asked == ["n3", "n5"]
    watch.turn("n3")
    assert ask() == set(NODES) - {"n5"}


def test_news_of_many_rows(ask, watch):
    ask()
    watch.turn(*NODES[:35])
    assert ask() == set(NODES[35:])
    watch.turn(*NODES[:34])
    assert ask() == set(NODES) - {"n34"}


def test_news_that_came_while_the_pod_was_skipped(ask, watch):
    ask()
    watch.skips = True
    watch.turn("n1")
    assert ask() == set(NODES)
    watch.skips = False
    assert ask() == set(NODES) - {"n1"}


def test_who_raises_is_asked_about_all_nodes_next_time(ask, watch):
    ask()
    watch.turn("n1")
    watch.raises = True
    with pytest.raises(PluginError, match="out of order"):
        ask()
    watch.raises = False
    assert ask() == set(NODES) - {"n1"}
    assert sorted(watch.asked) == sorted(NODES)


class Fair:
    """Likes some nodes better than others."""

    name = "Fair"
    depends = Depends.PLACEMENTS
    normalizer = ByMax()

    raw = np.zeros(0, dtype=np.int64)

    def score(self, state, pod, node):
        return self.raw.item(node.row)

    def score_all(self, state, pod, table):
        return self.raw[: len(table)]


class FairByKind(Fair):
    def score_compact(self, state, pod):
        scores, kinds = np.unique(self.raw, return_inverse=True)
        return ScoresByGroup(scores, np.bincount(kinds), kinds)


class FairToFew(Fair):
    rest = 0

    def score_compact(self, state, pod):
        rows = np.flatnonzero(self.raw != self.rest).tolist()
        return SparseScores({row: self.raw.item(row) for row in rows}, self.rest)


class Base:
    """Scores that are kept: the further down, the worse."""

    name = "Base"
    depends = Depends.NODE

    def filter(self, state, pod, node):
        return NO if node.name in ("n0", "n4") else SUCCESS

    def score(self, state, pod, node):
        return max(50 - int(node.name[1:]) // 3, 0)


@pytest.mark.parametrize(
    ("liked", "rest"),
    [
        pytest.param({}, 0, id="nobody"),
        pytest.param({7: 5}, 0, id="one"),
        pytest.param({7: 5, 8: 5, 30: 2}, 0, id="several"),
        pytest.param({0: 9, 7: 5}, 0, id="one that does not fit most of all"),
        pytest.param({1: 0, 2: 0}, 4, id="all but a few"),
        pytest.param({row: 1 + row % 2 for row in range(40)}, 0, id="everybody"),
    ],
)
@pytest.mark.parametrize("brief", [FairByKind, FairToFew])
def test_few_words_say_the_same(bench, brief, liked, rest):
    said = []
    for kind in (Fair, brief):
        made = bench([Base, kind], nodes=NODES)
        table = made.cluster.table
        raw = np.full(table.capacity, rest, dtype=np.int64)
        for number, points in liked.items():
            raw[table.row_of[f"n{number}"]] = points
        kind.raw, kind.rest = raw, rest
        scored = made.ask(POD).scored
        rows = np.flatnonzero(scored.totals >= 0).tolist()
        said.append((scored.totals.tolist(), list(scored.best), [scored.of(row) for row in rows]))
    assert said[0] == said[1]
