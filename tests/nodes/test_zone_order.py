"""The order of nodes: zones take turns; numbers are rows of the specification."""

import pytest

from moorage.nodes.zone_order import BETA_REGION, BETA_ZONE, REGION, ZONE, zone_of
from moorage.testing import make_node, make_table


def node(name, zone=None, **labels):
    return make_node(name, labels={ZONE: zone, **labels})


def names(table):
    return [table.name(row) for row in table.zone_order.rows().tolist()]


def test_34_a_zone_that_appears_later_takes_its_turn_after_the_first():
    table = make_table([node("2", "B"), node("3", "B")])
    assert names(table) == ["2", "3"]
    table.set_node(node("4", "B"))
    table.set_node(node("0", "A"))
    assert names(table) == ["2", "0", "3", "4"]


def test_34_zones_take_turns():
    assert names(make_table([node("1", "A"), node("3", "B"), node("2", "A")])) == ["1", "3", "2"]


@pytest.mark.parametrize(
    ("labels", "zone"),
    [
        pytest.param({}, ("", ""), id="none"),
        pytest.param({ZONE: "a"}, ("", "a"), id="zone only"),
        pytest.param({REGION: "r", ZONE: "a"}, ("r", "a"), id="region and zone"),
        pytest.param({BETA_ZONE: "old"}, ("", "old"), id="35: deprecated only"),
        pytest.param(
            {BETA_ZONE: "old", ZONE: "a"},
            ("", "old"),
            id="35: the deprecated one wins",
        ),
        pytest.param({BETA_ZONE: "", ZONE: "a"}, ("", ""), id="35: even if it is empty"),
        pytest.param(
            {BETA_REGION: "old", REGION: "r", ZONE: "a"},
            ("old", "a"),
            id="35: region and zone each for itself",
        ),
    ],
)
def test_35_zone_of(labels, zone):
    assert zone_of(make_node(labels=labels)) == zone


def test_equal_zones_of_two_regions_are_two_zones():
    table = make_table(
        [
            node("1", "a", **{REGION: "r1"}),
            node("2", "a", **{REGION: "r1"}),
            node("3", "a", **{REGION: "r2"}),
        ]
    )
    assert names(table) == ["1", "3", "2"]


def test_36_a_node_that_moves_keeps_its_place_until_another_comes_or_goes():
    table = make_table([node("1", "A"), node("2", "A"), node("3", "B")])
    assert names(table) == ["1", "3", "2"]
    table.set_node(node("1", "B"))
    assert names(table) == ["1", "3", "2"]
    table.set_node(node("4", "A"))
    assert names(table) == ["2", "3", "4", "1"]


def test_a_zone_that_became_empty_comes_last_when_it_is_back():
    table = make_table([node("1", "A"), node("2", "B")])
    table.remove_node("1")
    table.set_node(node("1", "A"))
    assert names(table) == ["2", "1"]


def test_nodes_without_pods_or_with_them_but_no_ghosts():
    table = make_table([node("1"), node("2")])
    table.remove_node("1")
    assert names(table) == ["2"]
    table.remove_node("2")
    assert names(table) == []
