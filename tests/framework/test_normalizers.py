"""Raw scores to 0..100. Numbers are rows of the specification of the node plugins."""

import numpy as np
import pytest

from moorage.framework.points import ByMax


@pytest.mark.parametrize(
    ("reverse", "raw", "normalised"),
    [
        pytest.param(False, [1, 2, 3, 4], [25, 50, 75, 100], id="54: in proportion"),
        pytest.param(True, [1, 2, 3, 4], [75, 50, 25, 0], id="54: reversed"),
        pytest.param(False, [1000, 1, 1, 1], [100, 0, 0, 0], id="54: rounded down"),
        pytest.param(True, [0, 0], [100, 100], id="54: all zero, reversed"),
        pytest.param(False, [0, 0], [0, 0], id="all zero"),
        pytest.param(True, [1000, 1, 1, 1], [0, 100, 100, 100], id="rounded, then reversed"),
    ],
)
def test_54_by_max(reverse, raw, normalised):
    normalizer = ByMax(reverse)
    scores = np.array(raw)
    summary = normalizer.summarize(scores)
    assert normalizer.apply(scores, summary).tolist() == normalised
    assert [normalizer.apply(one, summary) for one in raw] == normalised


def test_no_node_is_feasible():
    assert ByMax().summarize(np.zeros(0, dtype=np.int64)) == 0
