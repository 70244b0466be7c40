"""How many nodes are sampled, and where the next search starts. Numbers are specification rows."""

import numpy as np
import pytest

from moorage.core.sampling import Walk, enough


@pytest.mark.parametrize(
    ("nodes", "percentage", "wanted"),
    [
        pytest.param(10, 0, 10, id="40: few nodes are all looked at"),
        pytest.param(99, 1, 99, id="few nodes: all, at any percentage"),
        pytest.param(1000, 0, 420, id="40: adaptive"),
        pytest.param(1000, 40, 400, id="40: 40 %"),
        pytest.param(6000, 0, 300, id="40: adaptive, large"),
        pytest.param(6000, 40, 2400, id="40: 40 %, large"),
        pytest.param(200, 0, 100, id="40: never fewer than 100"),
        pytest.param(100_000, 0, 5000, id="never less than 5 %"),
        pytest.param(500, 100, 500, id="all"),
    ],
)
def test_40_enough(nodes, percentage, wanted):
    assert enough(nodes, percentage) == wanted


def walk(start, fits, wanted, order=None, nodes=None):
    walk = Walk(start)
    order = np.arange(len(fits)) if order is None else np.array(order, dtype=np.intp)
    nodes = len(fits) if nodes is None else nodes
    feasible, refused = walk.sample(order, np.array(fits, dtype=bool), wanted, nodes)
    return feasible.tolist(), refused.tolist(), walk.start


@pytest.mark.parametrize(
    ("start", "fits", "wanted", "feasible", "refused", "next_start"),
    [
        pytest.param(0, [1, 1, 1, 1], 2, [0, 1], [], 2, id="as many as wanted"),
        pytest.param(3, [1, 1, 1, 1], 2, [3, 0], [], 1, id="round the end"),
        pytest.param(0, [1, 0, 1, 0, 0, 1], 2, [0, 2], [1, 3, 4], 5, id="up to one too many"),
        pytest.param(0, [1, 0, 1, 0, 0, 0], 2, [0, 2], [1, 3, 4, 5], 0, id="never one too many"),
        pytest.param(2, [0, 0, 0], 2, [], [2, 0, 1], 2, id="no node is feasible"),
        pytest.param(0, [1, 1, 1], 3, [0, 1, 2], [], 0, id="all are wanted"),
    ],
)
def test_the_walk(start, fits, wanted, feasible, refused, next_start):
    assert walk(start, fits, wanted) == (feasible, refused, next_start)


def test_41_the_walk_goes_on_where_it_stopped():
    walk = Walk()
    order, fits = np.arange(500), np.ones(500, dtype=bool)
    starts = []
    for _ in range(4):
        feasible, _ = walk.sample(order, fits, enough(500, 30), 500)
        assert len(feasible) == 150
        starts.append(walk.start)
    assert starts == [150, 300, 450, 100]


def test_a_narrowed_walk_moves_the_start_by_what_it_saw():
    assert walk(5, [1] * 8, 2, order=[2, 4], nodes=8) == ([4, 2], [], 7)


def test_no_nodes_at_all():
    assert walk(0, [], 3) == ([], [], 0)
    assert walk(2, [1] * 4, 3, order=[], nodes=4) == ([], [], 2)
