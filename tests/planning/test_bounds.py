"""Sums that no placement can beat."""

import pytest

from moorage.planning import bounds
from moorage.testing import make_node, make_pod


@pytest.mark.parametrize(
    ("lacking", "largest", "expected"),
    [
        pytest.param({"cpu": 10}, {"cpu": 4}, 3, id="rounded up"),
        pytest.param({"cpu": 8}, {"cpu": 4}, 2, id="exactly"),
        pytest.param({"cpu": 1, "memory": 9}, {"cpu": 4, "memory": 3}, 3, id="the scarcest counts"),
        pytest.param({"cpu": -5}, {"cpu": 4}, 0, id="there is room already"),
        pytest.param({"gpu": 1}, {"cpu": 4}, None, id="nobody has any"),
        pytest.param({}, {}, 0, id="nothing is asked for"),
    ],
)
def test_fewest(lacking, largest, expected):
    assert bounds.fewest(lacking, largest) == expected


@pytest.mark.parametrize(
    ("wanted", "sizes", "expected"),
    [
        pytest.param({"cpu": 9}, [4, 8, 2], 2, id="the largest first"),
        pytest.param({"cpu": 99}, [4, 8, 2], 3, id="never more than there are"),
        pytest.param({"cpu": 0}, [4], 0, id="none at all"),
    ],
)
def test_fewest_of(wanted, sizes, expected):
    assert bounds.fewest_of(wanted, [{"cpu": size} for size in sizes]) == expected


def test_an_overfull_node_owes_nobody_anything():
    nodes = [make_node("a"), make_node("b")]
    pods = [make_pod("p", requests={"cpu": "9"}, node="a"), make_pod("q", node="b")]
    assert bounds.free(nodes, pods)["cpu"] == 4000
    assert bounds.free(nodes, pods)["pods"] == 2 * 110 - 2
    assert bounds.asked_for(pods) == {"cpu": 9000, "pods": 2}
