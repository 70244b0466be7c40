"""Verdict and reason of a pair of nodes, from the totals at both decisions."""

from dataclasses import dataclass

import pytest

from moorage.shadow.comparison import (
    BETTER,
    CONFIGURATION,
    EQUAL,
    SAME,
    SAMPLING,
    TIE,
    TIME,
    WORSE,
    PodComparison,
    differences,
    judge,
)


@dataclass
class Totals:
    totals: dict
    feasible: int = 2

    @property
    def top(self):
        return max(self.totals.values())

    def of(self, node):
        return self.totals.get(node)


@pytest.mark.parametrize(
    ("ours", "early", "late", "feasible", "changed", "expected"),
    [
        pytest.param("b", {"b": 1}, {"b": 1}, 2, True, (SAME, ""), id="the same node"),
        pytest.param("a", {"a": 9, "b": 9}, {"a": 9, "b": 9}, 2, False, (EQUAL, TIE), id="a tie"),
        pytest.param(
            "a", {"a": 9, "b": 8}, {"a": 7, "b": 8}, 2, True, (BETTER, TIME), id="ours filled up"
        ),
        pytest.param("a", {"a": 9, "b": 8}, {"b": 8}, 2, True, (BETTER, TIME), id="ours is full"),
        pytest.param(
            "a", {"a": 9, "b": 9}, {"a": 9, "b": 8}, 2, True, (WORSE, TIME), id="the other's filled"
        ),
        pytest.param(
            "a", {"a": 7, "b": 5}, {"a": 9, "b": 8}, 2, True, (WORSE, TIME), id="totals overlap"
        ),
        pytest.param(
            "a",
            {"a": 9, "b": 5},
            {"a": 9, "b": 6},
            2,
            True,
            (WORSE, CONFIGURATION),
            id="worse at both moments",
        ),
        pytest.param(
            "a",
            {"a": 9, "b": 9},
            {"a": 9, "b": 8},
            2,
            False,
            (WORSE, CONFIGURATION),
            id="nothing changed",
        ),
        pytest.param(
            "a",
            {"a": 9, "b": 5},
            {"a": 9, "b": 6},
            150,
            True,
            (WORSE, SAMPLING),
            id="more feasible nodes than are sampled",
        ),
        pytest.param(
            "a",
            None,
            {"a": 9, "b": 6},
            2,
            True,
            (WORSE, CONFIGURATION),
            id="decided at the binding",
        ),
        pytest.param(
            "a", {"a": 9, "b": 8}, {"a": 9}, 2, True, (WORSE, TIME), id="infeasible meanwhile"
        ),
        pytest.param(
            "a", {"a": 9}, {"a": 9}, 2, True, (WORSE, CONFIGURATION), id="our filters reject it"
        ),
        pytest.param("", None, {"b": 9}, 2, True, (BETTER, TIME), id="rejected, feasible now"),
        pytest.param("", None, {"c": 9}, 2, True, (BETTER, CONFIGURATION), id="rejected for good"),
    ],
)
def test_judge(ours, early, late, feasible, changed, expected):
    first = None if early is None else Totals(early)
    second = Totals(late, feasible)
    assert judge(ours, "b", first, second, nodes=100, has_changed=changed) == expected


def test_the_plugin_that_favours_our_node_most():
    plugins = differences({"Fit": 60, "Balanced": 90, "Spread": 5}, {"Fit": 50, "Balanced": 95})
    assert plugins == {"Fit": 10, "Balanced": -5, "Spread": 5}
    found = PodComparison(pod="p", node="a", other_node="b", verdict=WORSE, plugins=plugins)
    assert found.deciding_plugin == "Fit"
