"""Lower bounds by sums of resources, and the search that starts at them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.planning import bounds
from moorage.testing import make_node, make_pod


@pytest.mark.parametrize(
    ("lacking", "largest", "expected"),
    [
        pytest.param({"cpu": 10}, {"cpu": 4}, 3, id="rounded up"),
        pytest.param({"cpu": 8}, {"cpu": 4}, 2, id="exactly"),
        pytest.param({"cpu": 1, "memory": 9}, {"cpu": 4, "memory": 3}, 3, id="the scarcest counts"),
        pytest.param({"cpu": -5}, {"cpu": 4}, 0, id="enough is free"),
        pytest.param({"gpu": 1}, {"cpu": 4}, None, id="no node has any"),
        pytest.param({}, {}, 0, id="no requests"),
    ],
)
def test_fewest(lacking, largest, expected):
    assert bounds.fewest(lacking, largest) == expected


@pytest.mark.parametrize(
    ("total", "sizes", "expected"),
    [
        pytest.param({"cpu": 9}, [4, 8, 2], 2, id="the largest first"),
        pytest.param({"cpu": 99}, [4, 8, 2], 3, id="never more than there are"),
        pytest.param({"cpu": 0}, [4], 0, id="no requests"),
    ],
)
def test_fewest_of(total, sizes, expected):
    assert bounds.fewest_of(total, [{"cpu": size} for size in sizes]) == expected


def test_an_overcommitted_node_has_nothing_free():
    nodes = [make_node("a"), make_node("b")]
    pods = [make_pod("p", requests={"cpu": "9"}, node="a"), make_pod("q", node="b")]
    assert bounds.free(nodes, pods)["cpu"] == 4000
    assert bounds.free(nodes, pods)["pods"] == 2 * 110 - 2
    assert bounds.requested(pods) == {"cpu": 9000, "pods": 2}


@given(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300), st.integers(1, 40))
def test_the_smallest_number_with_any_estimate(low, width, answer, estimate):
    tried = []

    def lacking(number):
        tried.append(number)
        return 0 if number >= answer else estimate

    high = low + width
    expected = max(low, answer) if answer <= high else None
    assert bounds.smallest(lacking, low, high) == expected
    assert all(low <= number <= high for number in tried)
    assert len(tried) <= 2 * (width + 2).bit_length() + 2


@pytest.mark.parametrize(
    ("answer", "most"),
    [
        pytest.param(100, 1, id="the bound is tight"),
        pytest.param(107, 3, id="a good estimate"),
    ],
)
def test_a_good_estimate_saves_tries(answer, most):
    tried = []

    def lacking(number):
        tried.append(number)
        return max(0, answer - number)

    assert bounds.smallest(lacking, 100, 10_000) == answer
    # The number below the answer has to be tried, unless it is below the start.
    assert len(tried) <= most + (answer - 100).bit_length()


def test_an_empty_range():
    assert bounds.smallest(lambda number: 0, 3, 2) is None
