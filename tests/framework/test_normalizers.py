"""Raw scores to 0..100. Numbers are rows of the specification of the node plugins."""

import numpy as np
import pytest

from moorage.framework.points import ByMax
from moorage.plugins.inter_pod_affinity.scoring import MinMax
from moorage.plugins.pod_topology_spread.scoring import FewestBest


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


@pytest.mark.parametrize(
    "normalizer", [MinMax(), FewestBest()], ids=lambda each: type(each).__name__
)
@pytest.mark.parametrize(
    "raw", [[0], [7, 7], [0, 29, 100], [-1, 0, 5], [-1, -1], [3, 0, 0, 12, 7]], ids=str
)
def test_lists_are_normalised_as_arrays(normalizer, raw):
    summary = normalizer.summarize(np.array(raw))
    assert normalizer.of_list(raw) == normalizer.apply(np.array(raw), summary).tolist()
