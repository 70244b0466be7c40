"""Trials of members in placements leave nothing behind."""

from tests.core.test_pod_group_cycle import bound, in_placements

from moorage.core.journal import Decided
from moorage.testing import make_pod


def test_pods_after_a_group_are_decided_on_all_nodes(machine):
    turned, _ = in_placements(machine, ("n2",), ("n3",))
    assert bound(turned) == ["p0", "p1", "p2"]
    lone = make_pod("lone")
    turned.schedule(lone)
    [fact] = turned.facts(lone, Decided)
    assert (fact.nodes, fact.feasible) == (3, 2)  # A filter rejects n1.
