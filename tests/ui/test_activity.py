"""The figures of the last minutes are counted from the journal."""

import pytest

from moorage.core.journal import Bound, Decided, Gone, Journal, Queued, Refused
from moorage.ui.activity import KEPT_SECONDS, Activity


@pytest.fixture
def journal():
    return Journal(limit=100)


def make_activity(journal):
    return Activity(journal, lambda: {"active": len(journal), "in_flight": 3})


def queued(uid, at):
    return Queued(at=at, pod=f"default/{uid}", uid=uid, queue="active", event="UnschedulablePodAdd")


def bound(uid, at):
    return Bound(at=at, pod=f"default/{uid}", uid=uid, node="node-1")


def test_seconds_with_and_without_facts(journal):
    activity = make_activity(journal)
    activity.read(100.2)
    for fact in (queued("a", 100.3), queued("b", 100.4), bound("a", 100.8)):
        journal.add(fact)
    activity.read(101.2)
    journal.add(Refused(at=103.0, pod="default/b", uid="b", message="no", plugins=("Fit", "Taint")))
    journal.add(Refused(at=103.0, pod="default/c", uid="c", message="no profile"))
    journal.add(bound("b", 103.9))
    activity.read(104.1)
    found = activity.document()
    assert found["at"] == [100, 101, 102, 103, 104]
    assert found["bound"] == [0, 1, 0, 0, 1]
    assert found["rejected"] == [0, 0, 0, 0, 2]
    assert found["latency"] == [None, 0.5, None, None, 3.5]
    assert found["queues"]["active"] == [0, 3, 3, 3, 6]
    assert found["waits"] == {"count": 2, "p50": 0.5, "p99": 0.5}
    assert found["reasons"] == {"Fit, Taint": 1, "no profile": 1}
    assert [each["what"] for each in found["recent"]] == ["rejected", "rejected"]


def test_facts_are_counted_once_even_if_the_journal_forgets_them(journal):
    activity = make_activity(journal)
    for index in range(250):
        journal.add(bound(f"p{index}", 1.0))
        if index % 50 == 0:
            activity.read(1.0)
    activity.read(1.0)
    assert activity.document()["bound"] == [250]


def test_memory_is_limited(journal):
    activity = make_activity(journal)
    for second in range(2 * KEPT_SECONDS):
        journal.add(queued("gone", second))
        journal.add(Gone(at=second, uid="gone"))
        journal.add(Decided(at=second, uid="x", node="n", nodes=1, feasible=1))
        activity.read(second)
    activity.read(10 * KEPT_SECONDS)
    found = activity.document()
    assert len(found["at"]) == KEPT_SECONDS
    assert found["at"][-1] == 10 * KEPT_SECONDS
    assert len(found["recent"]) == 50
    assert activity._queued_at == {}
