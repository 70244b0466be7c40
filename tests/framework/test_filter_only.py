"""FILTER_ONLY from pre_filter: the plugin filters, and is not called for the pod after that."""

import pytest

from moorage.framework.points import Depends
from moorage.framework.status import FILTER_ONLY, SKIP, SUCCESS
from moorage.testing import make_pod

CALLS: list[str] = []


class Choosy:
    """Has more to do than to filter for pods with the name `more`."""

    name = "Choosy"
    depends = Depends.PLACEMENTS

    def pre_filter(self, state, pod):
        return SUCCESS if pod.name.startswith("more") else FILTER_ONLY

    def filter(self, state, pod, node):
        CALLS.append("filter")
        return SUCCESS

    def pre_score(self, state, pod, feasible):
        CALLS.append("pre_score")
        return SKIP

    def score(self, state, pod, node):
        raise AssertionError("pre_score skips the pod")

    def reserve(self, state, pod, node):
        return SUCCESS


def called(bench, pod):
    """The points that the plugin is called at, and whether reserve is one of those to come."""
    CALLS.clear()
    results = bench.run(pod)
    to_come = results.profile.active_points(results.state.idle)
    return dict.fromkeys(CALLS), "reserve" in to_come


@pytest.mark.parametrize("others", [(), ("more-0", "more-1", "p0", "p1")], ids=["first", "later"])
def test_points_after_filter(bench, others):
    made = bench([Choosy])
    for name in others:
        made.run(make_pod(name))
    assert called(made, make_pod("p2")) == ({"filter": None}, False)
    assert called(made, make_pod("more-2")) == ({"filter": None, "pre_score": None}, True)
    assert called(made, make_pod("p3")) == ({"filter": None}, False)


def test_it_is_a_success():
    assert FILTER_ONLY == SUCCESS
    assert FILTER_ONLY is not SUCCESS
