"""What a pod takes of its node."""

from dataclasses import asdict

import pytest

from moorage.api.pod import Container, ResourceRequirements
from moorage.nodes.usage import Usage
from moorage.testing import make_pod

MIB = 1 << 20


def test_requests_non_zero_requests_and_ports():
    pod = make_pod(
        containers=(
            Container(name="a", resources=ResourceRequirements(requests={"cpu": "250m"})),
            Container(
                name="b",
                resources=ResourceRequirements(requests={"memory": "1Mi", "example.com/gpu": "2"}),
            ),
        )
    )
    usage = Usage.of(pod)
    assert dict(usage.requested) == {"cpu": 250, "memory": MIB, "example.com/gpu": 2}
    assert usage.nonzero == (("cpu", 350), ("memory", 201 * MIB))


def test_what_is_zero_takes_no_column():
    usage = Usage.of(make_pod(requests={"cpu": "0", "example.com/gpu": 0}))
    assert usage.requested == ()
    assert usage.nonzero == (("cpu", 0), ("memory", 200 * MIB))


def test_pods_that_differ_in_name_have_equal_usage():
    first, second = (make_pod(name, requests={"cpu": "1"}, host_ports=[80]) for name in "ab")
    assert asdict(Usage.of(first)) == asdict(Usage.of(second))
    assert Usage.of(first).has_same_requests(Usage.of(second))
    assert Usage.of(first).ports == (("0.0.0.0", "TCP", 80),)


@pytest.mark.parametrize(
    ("requests", "same"),
    [
        pytest.param({"cpu": "1", "memory": "1Mi"}, True, id="equal"),
        pytest.param({"cpu": "2", "memory": "1Mi"}, False, id="more cpu"),
        pytest.param({"cpu": "1", "memory": "1Mi", "example.com/gpu": "1"}, False, id="a device"),
    ],
)
def test_requests_are_compared(requests, same):
    usage = Usage.of(make_pod(requests={"cpu": "1", "memory": "1Mi"}, labels={"app": "web"}))
    assert usage.has_same_requests(Usage.of(make_pod(requests=requests))) is same


def test_labels_and_affinity_terms():
    pod = make_pod(namespace="team", labels={"app": "web", "tier": "front"})
    assert Usage.of(pod).labels == ("team", frozenset({("app", "web"), ("tier", "front")}))
    assert Usage.of(pod).terms == b""
