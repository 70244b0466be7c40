"""A pod that waits on permit. The first signal decides."""

import pytest

from moorage.core.bindings import expire
from moorage.framework.cluster import WaitingPod
from moorage.framework.status import SUCCESS, Code, unschedulable
from moorage.testing import make_pod


def waiting(*, now=0.0, **seconds):
    until = {plugin: now + span for plugin, span in seconds.items()}
    return WaitingPod(make_pod(), "n1", until)


def test_a_pod_continues_when_all_plugins_have_allowed_it():
    pod = waiting(A=1, B=2)
    assert pod.plugins == ["A", "B"]
    pod.allow("A")
    pod.allow("A")
    pod.allow("Stranger")
    assert (pod.plugins, pod.signal) == (["B"], None)
    pod.allow("B")
    assert pod.signal is SUCCESS


@pytest.mark.parametrize(
    ("first", "code"),
    [
        pytest.param(lambda pod: pod.allow("A"), Code.SUCCESS, id="allowed"),
        pytest.param(lambda pod: pod.reject("A", "no"), Code.UNSCHEDULABLE, id="rejected"),
        pytest.param(lambda pod: pod.preempt("room"), Code.ERROR, id="preempted"),
        pytest.param(lambda pod: expire(pod, 9, 0), Code.UNSCHEDULABLE, id="expired"),
    ],
)
def test_the_first_signal_decides(first, code):
    pod = waiting(A=1)
    first(pod)
    decided = pod.signal
    assert decided.code is code
    assert pod.reject("A", "later") is False
    assert pod.preempt("later") is False
    pod.allow("A")
    expire(pod, 99, 0)
    assert pod.signal is decided


def test_the_message_of_a_rejection():
    rejected, preempted = waiting(A=1), waiting(A=1)
    assert rejected.reject("A", "no quorum")
    assert rejected.signal == unschedulable("no quorum").by("A")
    assert preempted.preempt("its place is needed")
    assert preempted.signal.message == "waiting on permit for pod: its place is needed"


TIMEOUT = "rejected due to timeout after waiting {} at plugin {}"


@pytest.mark.parametrize(
    ("seconds", "now", "waited", "plugin"),
    [
        pytest.param({"A": 0, "B": 1}, 0.0, "0s", "A", id="52: a timeout of zero"),
        pytest.param({"A": 10}, 10.0, "10s", "A", id="seconds"),
        pytest.param({"A": 60}, 60.0, "1m0s", "A", id="minutes"),
        pytest.param({"A": 900}, 900.0, "15m0s", "A", id="the longest wait"),
        pytest.param({"A": 3723}, 9999.0, "1h2m3s", "A", id="hours"),
        pytest.param({"A": 0.5}, 1.0, "500ms", "A", id="half a second"),
        pytest.param({"A": 0.0005}, 1.0, "500µs", "A", id="less than a millisecond"),
        pytest.param({"A": 12.345678}, 13.0, "12.345678s", "A", id="fractions keep all digits"),
        pytest.param(
            {"A": 9, "B": 3}, 99.0, "3s", "B", id="checked late: the shortest timeout is reported"
        ),
    ],
)
def test_52_a_timeout_rejects_the_pod(seconds, now, waited, plugin):
    pod = waiting(**seconds)
    expire(pod, now, 0.0)
    assert pod.signal == unschedulable(TIMEOUT.format(waited, plugin)).by(plugin)


@pytest.mark.parametrize("seconds", [0.1, 10, 61.5], ids=str)
def test_a_unix_timestamp_does_not_add_rounding_errors_to_the_message(seconds):
    now = 1_763_238_000.123
    pod = waiting(now=now, A=seconds)
    expire(pod, now + 100, now)
    assert pod.signal.message == TIMEOUT.format(
        {0.1: "100ms", 10: "10s", 61.5: "1m1.5s"}[seconds], "A"
    )


def test_a_pod_keeps_waiting_before_its_timeout():
    pod = waiting(A=2, B=1)
    expire(pod, 0.999, 0.0)
    assert pod.signal is None
    pod.allow("B")
    expire(pod, 1.5, 0.0)
    assert pod.signal is None
