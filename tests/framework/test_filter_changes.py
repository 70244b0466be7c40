"""Plugins that read more than the node and report changed rows with `filter_changes`."""

import numpy as np
import pytest

from moorage.errors import PluginError
from moorage.framework.points import Depends
from moorage.framework.status import SKIP, SUCCESS, unschedulable
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
