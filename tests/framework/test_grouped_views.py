"""Decisions by groups of rows: when they are made, and plugins that are not called again."""

from random import Random

import numpy as np
import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.workloads import Service
from moorage.core.cycle import SchedulingCycle
from moorage.framework.points import ByMax, Depends
from moorage.framework.status import SKIP, SUCCESS, unschedulable
from moorage.framework.views.grouped import GroupedScores
from moorage.testing import make_node, make_pod

NO = unschedulable("no")
POD = make_pod("p")
NODES = [make_node(f"n{i}", labels={"zone": f"z{i % 3}"}) for i in range(9)]


class ByZone:
    """Rejects the zone in `closed` and prefers zones with a high number."""

    name = "ByZone"
    depends = Depends.PLACEMENTS
    normalizer = ByMax()

    closed = None
    raises = False
    most = 100
    calls = 0

    def pre_filter(self, state, pod):
        type(self).calls += 1
        return SUCCESS

    def filter(self, state, pod, node):
        return NO if node.labels["zone"] == self.closed else SUCCESS

    def filter_changes(self, state, pod, since):
        return 0, None

    def score(self, state, pod, node):
        return int(node.labels["zone"][1:])

    def group_keys(self, state, pod):
        type(self).calls += 1
        return (state.table.label("zone"),)

    def filter_groups(self, state, pod, groups):
        if self.raises:
            raise ValueError("out of order")
        return [zone != self.closed for zone in self._zones(state, groups)]

    def score_groups(self, state, pod, groups):
        return [int(zone[1:]) for zone in self._zones(state, groups)]

    def _zones(self, state, groups):
        column = state.table.label("zone")
        return [column.values[code] for code in groups.of(column)]


class Rejecting:
    """A cached filter that comes after the one of groups."""

    name = "Rejecting"
    depends = Depends.NODE

    def filter(self, state, pod, node):
        return NO if node.name == "n8" else SUCCESS


class Skipping:
    """Would skip the pod again while `key` is the same."""

    name = "Skipping"
    depends = Depends.PLACEMENTS

    key, calls = 1, 0

    def skip_key(self, state, pod):
        return self.key

    def pre_filter(self, state, pod):
        type(self).calls += 1
        return SKIP

    def filter(self, state, pod, node):
        return NO


@pytest.fixture
def decide(bench):
    def made(*plugins, pod=POD):
        workbench = bench([*plugins], nodes=NODES)
        cluster, templates = workbench.cluster, workbench.templates
        cycle = SchedulingCycle(cluster, templates, {}, Random(0))
        profile = workbench.profile

        def once(by_group=True):  # noqa: FBT002
            return cycle.decide(profile, pod, templates.of(pod), 0.0, by_group=by_group)

        once()
        once()
        return once

    return made


def test_groups_are_evaluated_from_the_third_pod_on(decide):
    decision = decide(ByZone)()
    assert isinstance(decision.scored, GroupedScores)
    assert decision.node in ("n2", "n5", "n8")
    assert decision.best_nodes(4)[0].node == decision.node
    assert decision.feasible_count == 9
    assert decision.scored.totals.max() == 100


def test_a_closed_group(decide, monkeypatch):
    once = decide(ByZone)
    monkeypatch.setattr(ByZone, "closed", "z2")
    decision = once()
    assert isinstance(decision.scored, GroupedScores)
    assert decision.node in ("n1", "n4", "n7")
    assert (decision.feasible_count, decision.rejected_by()) == (6, {"ByZone": 3})


def test_rows_are_evaluated_for_readers_of_every_row(decide):
    decision = decide(ByZone)(by_group=False)
    assert not isinstance(decision.scored, GroupedScores)
    assert np.count_nonzero(decision.filtered.fits) == 9


def test_rows_are_evaluated_if_a_later_filter_rejects_some(decide, monkeypatch):
    """Which filter rejects a row first would not be known."""
    once = decide(ByZone, Rejecting)
    monkeypatch.setattr(ByZone, "closed", "z2")
    decision = once()
    assert not isinstance(decision.scored, GroupedScores)
    assert decision.rejected_by() == {"ByZone": 3}


def test_a_plugin_that_raises_fails_the_pod(decide, monkeypatch):
    once = decide(ByZone)
    monkeypatch.setattr(ByZone, "raises", True)
    assert "out of order" in once().status.message
    monkeypatch.setattr(ByZone, "raises", False)
    assert once().node


def test_a_plugin_that_skips_the_pod_is_called_again_only_after_its_key_changed(
    decide, monkeypatch
):
    once = decide(Skipping, ByZone)
    monkeypatch.setattr(Skipping, "calls", 0)
    once()
    once()
    assert Skipping.calls == 0


def test_keys_are_asked_for_again_only_after_a_change_of_nodes_or_objects(decide, monkeypatch):
    once = decide(ByZone)
    once()
    monkeypatch.setattr(ByZone, "calls", 0)
    state = once().state
    once()
    assert ByZone.calls == 0
    state.cluster.put(Service(metadata=ObjectMeta(name="s", namespace="default")))
    assert isinstance(once().scored, GroupedScores)
    assert ByZone.calls == 2
    state.table.set_node(make_node("n9", labels={"zone": "z9"}))
    assert once().node == "n9"
    assert ByZone.calls == 4


def test_other_plugins_run_for_every_pod(decide, monkeypatch):
    class Counting(Skipping):
        name = "Counting"

        def skip_key(self, state, pod):
            return None

    once = decide(Counting, ByZone)
    monkeypatch.setattr(Counting, "calls", 0)
    assert isinstance(once().scored, GroupedScores)
    assert isinstance(once().scored, GroupedScores)
    assert Counting.calls == 2


class OfNamespaceA(ByZone):
    """Scores pods of its namespace only."""

    name = namespace = "A"

    def pre_score(self, state, pod, feasible):
        return SUCCESS if pod.namespace == self.namespace else SKIP

    def score_groups(self, state, pod, groups):
        return super().score_groups(state, pod, groups) if pod.namespace == self.namespace else None


class OfNamespaceB(OfNamespaceA):
    name = namespace = "B"


def test_templates_share_groups_but_not_scores_of_groups(bench):
    workbench = bench([OfNamespaceA, OfNamespaceB], nodes=NODES)
    cluster, templates, profile = workbench.cluster, workbench.templates, workbench.profile
    cycle = SchedulingCycle(cluster, templates, {}, Random(0))
    pods = [make_pod("p", namespace=name) for name in "AB"]

    def once(pod):
        return cycle.decide(profile, pod, templates.of(pod), 0.0, by_group=True)

    for _ in range(2):
        for pod in pods:
            once(pod)
    of_a, of_b = (once(pod).scored for pod in pods)
    assert isinstance(of_a, GroupedScores)
    assert isinstance(of_b, GroupedScores)
    assert of_a._ranked is of_b._ranked
    assert (of_a.scores(2), of_b.scores(2)) == ({"A": 100}, {"B": 100})


def test_the_best_nodes_of_several_groups(decide):
    """Those with the highest totals first, and of equal totals the first rows."""
    decision = decide(ByZone)()
    names = decision.state.table.names[:9]
    by_zone = [[name for name in names if int(name[1:]) % 3 == zone] for zone in (2, 1, 0)]
    expected = [decision.node, *[n for zone in by_zone for n in zone if n != decision.node]]
    for count in range(1, 10):
        assert [scored.node for scored in decision.best_nodes(count)] == expected[:count]
