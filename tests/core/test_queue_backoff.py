"""Backoff: duration, heap and order (rows 12 to 16 of the specification)."""

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.core import backoff
from moorage.core.backoff import BackoffQueue
from moorage.core.queued_pod import QueuedPod


def make_entry(name="p", *, at=0.0, refusals=0, errors=0):
    pod = Pod(metadata=ObjectMeta(name=name, namespace="ns", uid=f"uid-{name}"))
    entry = QueuedPod(pod, at, unschedulable_count=refusals, consecutive_errors=errors)
    if not errors:
        entry.rejected_by(["A"])
    return entry


@pytest.mark.parametrize(
    ("failures", "initial", "maximum", "seconds"),
    [
        *(
            pytest.param(count, 1, 10, seconds, id=f"12: failure {count} by default")
            for count, seconds in enumerate([1, 2, 4, 8, 10, 10, 10], start=1)
        ),
        pytest.param(5, 3e-9, 1000e-9, 48e-9, id="13: nanoseconds"),
        pytest.param(64, 1, 2**63 - 1, 2**63 - 1, id="13: as many doublings as bits"),
        pytest.param(10**6, 1.0, 10.0, 10.0, id="a million failures do not overflow"),
        pytest.param(1, 20, 10, 10, id="an initial span above the maximum is cut"),
    ],
)
def test_doubling(failures, initial, maximum, seconds):
    assert backoff.seconds(failures, initial, maximum) == pytest.approx(seconds, rel=1e-15)


@pytest.mark.parametrize(
    ("entry", "maximum", "until"),
    [
        pytest.param(make_entry(refusals=5, errors=16), 32, 32, id="14: errors win"),
        pytest.param(make_entry(refusals=5), 32, 16, id="14: refusals count without errors"),
        pytest.param(make_entry(at=10.7, refusals=1), 10, 11, id="15: cut to the whole second"),
        pytest.param(make_entry(), 10, float("-inf"), id="no failure, no back-off"),
        pytest.param(make_entry(refusals=3), 0, float("-inf"), id="a maximum of 0 switches it off"),
    ],
)
def test_until(entry, maximum, until):
    assert BackoffQueue(1, maximum).until(entry) == until


def test_the_end_is_kept_until_the_next_failure():
    waiting, entry = BackoffQueue(1, 10), make_entry(at=5.0, refusals=1)
    assert waiting.until(entry) == 6
    entry.unschedulable_count = 3
    assert waiting.until(entry) == 6
    entry.failed(20.0)
    assert waiting.until(entry) == 28


@pytest.mark.parametrize(
    ("now", "waits"),
    [
        pytest.param(11.0, True, id="15: the second of its end has begun"),
        pytest.param(11.999, True, id="15: and is not over"),
        pytest.param(12.0, False, id="15: over"),
    ],
)
def test_a_pod_waits_through_its_last_second(now, waits):
    waiting, entry = BackoffQueue(1, 10), make_entry(at=10.7, refusals=1)
    waiting.put(entry, 0)
    assert waiting.deadline == 12
    assert waiting.is_backing_off(entry, now) is waits
    assert (waiting.pop_over(now) is None) is waits


def test_16_windows_then_the_order_of_the_active_queue():
    waiting = BackoffQueue(1, 10)
    for name, at, priority in [
        ("late-high", 2.1, 9),
        ("early-low", 1.9, 1),
        ("early-high", 1.95, 9),
        ("late-low", 2.0, 1),
        ("early-high-older", 1.2, 9),
    ]:
        waiting.put(make_entry(name, at=at, refusals=1), (-priority, at))
    assert [entry.pod.name for entry in waiting] == [
        "early-high-older",
        "early-high",
        "early-low",
        "late-high",
        "late-low",
    ]


def test_16_priority_does_not_count_after_errors():
    waiting = BackoffQueue(1, 10)
    for name, at, priority in [("low", 1.1, 1), ("high", 1.2, 9), ("earlier", 0.5, 1)]:
        waiting.put(make_entry(name, at=at, errors=1), (-priority, at))
    assert [entry.pod.name for entry in waiting] == ["earlier", "low", "high"]
    assert len(waiting.failed) == 3


def test_refused_pods_leave_before_failed_ones():
    waiting = BackoffQueue(1, 10)
    waiting.put(make_entry("failed", at=0.0, errors=1), 0)
    waiting.put(make_entry("refused", at=3.0, refusals=1), 0)
    assert waiting.deadline == 2
    names = [waiting.pop_over(9.0).pod.name for _ in range(2)]
    assert names == ["refused", "failed"]
    assert waiting.pop_over(9.0) is None
    assert waiting.deadline is None


def test_discard_finds_either_heap():
    waiting = BackoffQueue(1, 10)
    waiting.put(make_entry("failed", errors=1), 0)
    waiting.put(make_entry("refused", refusals=1), 0)
    for key in ("ns/failed", "ns/refused", "ns/unknown"):
        waiting.discard(key)
        assert key not in waiting
    assert len(waiting) == 0
