"""What a pod takes of its node."""

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


def test_pods_of_equal_requests_have_equal_usage():
    first, second = (make_pod(name, requests={"cpu": "1"}, host_ports=[80]) for name in "ab")
    assert Usage.of(first) == Usage.of(second)
    assert Usage.of(first).ports == (("0.0.0.0", "TCP", 80),)
