"""Plugins that read more than the node and report changed rows with `filter_changes`."""

import numpy as np
import pytest

from moorage.errors import PluginError
from moorage.framework.points import ByMax, Depends
from moorage.framework.status import SKIP, SUCCESS, ScoresByGroup, SparseScores, unschedulable
from moorage.testing import make_pod

POD = make_pod("p")
NO = unschedulable("no")
NODES = [f"n{i}" for i in range(40)]


class Rejecting:
    """Rejects the nodes in `refused`, and reports every change of that set."""

    name = "Rejecting"
    depends = Depends.PLACEMENTS

    def __init__(self):
        self.refused, self.changed, self.calls = set(), [], []
        self.tells = self.skips = self.raises = False

    def pre_filter(self, state, pod):
        return SKIP if self.skips else SUCCESS

    def filter(self, state, pod, node):
        self.calls.append(node.name)
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
    return Rejecting()


@pytest.fixture
def run(bench, watch):
    made = bench(
        [type("Rejecting", (Rejecting,), {"__new__": lambda cls, **_: watch})], nodes=NODES
    )

    def fitting():
        watch.calls.clear()
        results = made.run(POD)
        table = made.cluster.table
        fits = {table.name(int(row)) for row in np.flatnonzero(results.filtered.fits)}
        assert results.filtered.count == len(fits)
        assert sum(results.filtered.rejected_by) == len(NODES) - len(fits)
        refused = [row for row in range(table.capacity) if results.filtered.is_rejected(row)]
        assert {table.name(row) for row in refused} == set(NODES) - fits
        assert (
            {table.name(int(row)) for row in results.scored.best()} <= fits
            if results.scored
            else True
        )
        return fits

    return fitting


def test_only_changed_rows_are_filtered_again(run, watch):
    assert run() == set(NODES)  # Nothing is cached for the first pod of a template.
    assert run() == set(NODES)
    assert run() == set(NODES)
    assert watch.calls == []
    watch.turn("n3", "n5")
    assert run() == set(NODES) - {"n3", "n5"}
    assert watch.calls == ["n3", "n5"]
    watch.turn("n3")
    assert run() == set(NODES) - {"n5"}


def test_changes_of_many_rows(run, watch):
    run()
    watch.turn(*NODES[:35])
    assert run() == set(NODES[35:])
    watch.turn(*NODES[:34])
    assert run() == set(NODES) - {"n34"}


def test_changes_while_the_plugin_skips_the_pod_are_not_lost(run, watch):
    run()
    watch.skips = True
    watch.turn("n1")
    assert run() == set(NODES)
    watch.skips = False
    assert run() == set(NODES) - {"n1"}


def test_all_nodes_are_filtered_again_after_an_error(run, watch):
    run()
    watch.turn("n1")
    watch.raises = True
    with pytest.raises(PluginError, match="out of order"):
        run()
    watch.raises = False
    assert run() == set(NODES) - {"n1"}
    assert sorted(watch.calls) == sorted(NODES)


class Preferring:
    """Scores some rows higher than others."""

    name = "Preferring"
    depends = Depends.PLACEMENTS
    normalizer = ByMax()

    raw = np.zeros(0, dtype=np.int64)

    def score(self, state, pod, node):
        return self.raw.item(node.row)

    def score_all(self, state, pod, table):
        return self.raw[: len(table)]


class PreferringCompact(Preferring):
    def score_compact(self, state, pod):
        scores, kinds = np.unique(self.raw, return_inverse=True)
        return ScoresByGroup(scores, np.bincount(kinds), kinds)


class PreferringFewRows(Preferring):
    rest = 0

    def score_compact(self, state, pod):
        rows = np.flatnonzero(self.raw != self.rest).tolist()
        return SparseScores({row: self.raw.item(row) for row in rows}, self.rest)


class Base:
    """Cached scores: the higher the row, the lower the score."""

    name = "Base"
    depends = Depends.NODE

    def filter(self, state, pod, node):
        return NO if node.name in ("n0", "n4") else SUCCESS

    def score(self, state, pod, node):
        return max(50 - int(node.name[1:]) // 3, 0)


@pytest.mark.parametrize(
    ("liked", "rest"),
    [
        pytest.param({}, 0, id="no row"),
        pytest.param({7: 5}, 0, id="one row"),
        pytest.param({7: 5, 8: 5, 30: 2}, 0, id="several rows"),
        pytest.param({0: 9, 7: 5}, 0, id="the best row is infeasible"),
        pytest.param({1: 0, 2: 0}, 4, id="all rows but a few"),
        pytest.param({row: 1 + row % 2 for row in range(40)}, 0, id="all rows"),
    ],
)
@pytest.mark.parametrize("brief", [PreferringCompact, PreferringFewRows])
def test_compact_scores_equal_full_scores(bench, brief, liked, rest):
    said = []
    for kind in (Preferring, brief):
        made = bench([Base, kind], nodes=NODES)
        table = made.cluster.table
        raw = np.full(table.capacity, rest, dtype=np.int64)
        for number, points in liked.items():
            raw[table.row_of[f"n{number}"]] = points
        kind.raw, kind.rest = raw, rest
        scored = made.run(POD).scored
        rows = np.flatnonzero(scored.totals >= 0).tolist()
        said.append(
            (scored.totals.tolist(), list(scored.best()), [scored.parts.of(row) for row in rows])
        )
    assert said[0] == said[1]
