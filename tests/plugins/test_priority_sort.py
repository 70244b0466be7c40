import pytest

from moorage.plugins.priority_sort import PrioritySort
from moorage.testing import check_plugin, make_pod


def key(priority, queued_at):
    return PrioritySort().queue_sort(make_pod(priority=priority), queued_at)


@pytest.mark.parametrize(
    ("sooner", "later"),
    [
        pytest.param((10, 2.0), (5, 1.0), id="higher priority beats longer waiting"),
        pytest.param((10, 1.0), (10, 2.0), id="equal priority: the pod that was queued first"),
        pytest.param((None, 2.0), (-1, 1.0), id="no priority counts as 0, above negative ones"),
        pytest.param((None, 1.0), (0, 2.0), id="no priority and 0 are equal"),
    ],
)
def test_order(sooner, later):
    assert key(*sooner) < key(*later)


def test_equal_in_both_means_neither_is_sooner():
    assert key(None, 1.0) == key(0, 1.0)


def test_conforms():
    check_plugin(PrioritySort())
