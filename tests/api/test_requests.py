"""What a pod asks for, in each of the ways in which Kubernetes asks."""

import sys

import pytest

from moorage.api import quantity, requests
from moorage.api.meta import Condition
from moorage.api.node import Node, NodeStatus
from moorage.api.pod import (
    Container,
    ContainerPort,
    ContainerStatus,
    Pod,
    PodSpec,
    PodStatus,
    ResourceRequirements,
)

MI = 2**20


def wants(requests=None, **named):
    """Requests by name: cpu="1", or a dict for names that are no Python words."""
    return ResourceRequirements(requests={**(requests or {}), **named})


def container(name="main", **asks):
    return Container(name=name, resources=wants(asks))


def sidecar(name="side", **asks):
    return Container(name=name, resources=wants(asks), restart_policy="Always")


def make_pod(*containers, init=(), overhead=None, level=None, status=None):
    return Pod(
        spec=PodSpec(
            containers=containers,
            init_containers=tuple(init),
            overhead=overhead or {},
            resources=None if level is None else wants(level),
        ),
        status=status or PodStatus(),
    )


@pytest.mark.parametrize(
    ("init", "main", "cpu"),
    [
        pytest.param(
            [container(cpu=5), sidecar(cpu=1), sidecar(cpu=2), container(cpu=5), sidecar(cpu=3)],
            1,
            8,
            id="an init container runs beside the sidecars before it",
        ),
        pytest.param(
            [container(cpu=5), sidecar(cpu=1), sidecar(cpu=2), sidecar(cpu=3)],
            1,
            7,
            id="sidecars run beside the containers",
        ),
        pytest.param(
            [sidecar(cpu=10), container(cpu=200)], 100, 210, id="the init phase needs the most"
        ),
        pytest.param([container(cpu=1), container(cpu=2)], 1, 2, id="init containers take turns"),
    ],
)
def test_init_containers(init, main, cpu):
    assert requests.filter_request(make_pod(container(cpu=main), init=init)) == {"cpu": cpu * 1000}


INFEASIBLE = (Condition(type="PodResizePending", reason="Infeasible"),)


@pytest.mark.parametrize(
    ("spec", "allocated", "actual", "conditions", "cpu"),
    [
        pytest.param(4, {}, {"cpu": 2}, (), 4, id="growing"),
        pytest.param(4, {}, {"cpu": 2}, INFEASIBLE, 2, id="will never grow"),
        pytest.param(6, {"cpu": 4}, {"cpu": 2}, INFEASIBLE, 4, id="was promised a part of it"),
        pytest.param(
            4,
            {},
            {"cpu": 2},
            (Condition(type="PodResizePending", reason="Deferred"), *INFEASIBLE),
            4,
            id="only the first condition counts",
        ),
    ],
)
def test_resize(spec, allocated, actual, conditions, cpu):
    status = ContainerStatus(name="main", resources=wants(actual), allocated_resources=allocated)
    pod = make_pod(
        container(cpu=spec), status=PodStatus(conditions=conditions, container_statuses=(status,))
    )
    assert requests.requested(pod) == {"cpu": cpu * 1000}
    assert requests.filter_request(pod) == {"cpu": spec * 1000}  # The filter reads the spec only.


def test_resize_takes_the_highest_of_three():
    names = ("cpu", "memory", "ephemeral-storage")
    spec, allocated, actual = (
        dict(zip(names, amounts, strict=True))
        for amounts in (("30m", "20M", "10G"), ("20m", "10M", "30G"), ("10m", "30M", "20G"))
    )
    status = ContainerStatus(name="main", resources=wants(actual), allocated_resources=allocated)
    pod = make_pod(container(**spec), status=PodStatus(container_statuses=(status,)))
    assert requests.requested(pod) == {
        "cpu": 30,
        "memory": 30_000_000,
        "ephemeral-storage": 30_000_000_000,
    }


@pytest.mark.parametrize(
    ("init", "cpu"),
    [
        pytest.param(sidecar("init", cpu=1), 3000, id="a sidecar is resized"),
        pytest.param(container("init", cpu=1), 1000, id="an init container is not"),
    ],
)
def test_resize_of_init_containers(init, cpu):
    status = ContainerStatus(name="init", resources=wants(cpu=3))
    pod = make_pod(init=[init], status=PodStatus(init_container_statuses=(status,)))
    assert requests.requested(pod) == {"cpu": cpu}


def test_a_status_without_resources_is_ignored():
    status = ContainerStatus(name="main", allocated_resources={"cpu": 5})
    pod = make_pod(container(cpu=1), status=PodStatus(container_statuses=(status,)))
    assert requests.requested(pod) == {"cpu": 1000}


@pytest.mark.parametrize(
    ("level", "main", "exact"),
    [
        pytest.param(
            {"memory": "2Mi"},
            {"cpu": "2m"},
            {"memory": "2Mi", "cpu": "2m"},
            id="each name for itself",
        ),
        pytest.param(
            {"storage": "2Mi"}, {"storage": "3Mi"}, {"storage": "3Mi"}, id="unsupported names"
        ),
        pytest.param({"cpu": 1}, {"cpu": 2}, {"cpu": 1}, id="replaces a larger sum"),
        pytest.param({"cpu": 3}, {"cpu": 2}, {"cpu": 3}, id="replaces a smaller sum"),
        pytest.param(
            {"hugepages-2Mi": "4Mi"}, {}, {"hugepages-2Mi": "4Mi"}, id="huge pages are supported"
        ),
    ],
)
def test_pod_level(level, main, exact):
    pod = make_pod(container(**main), level=level)
    assert requests.effective(pod) == {name: quantity.nano(q) for name, q in exact.items()}


def test_overhead_comes_on_top_of_the_pod_level():
    pod = make_pod(container(cpu=5), level={"cpu": 2}, overhead={"cpu": "250m", "memory": 7})
    assert requests.filter_request(pod) == {"cpu": 2250, "memory": 7}


@pytest.mark.parametrize(
    ("conditions", "cpu"),
    [
        pytest.param((), 4000, id="the maximum of the three"),
        pytest.param(INFEASIBLE, 3000, id="an infeasible resize does not count"),
    ],
)
def test_pod_level_resize(conditions, cpu):
    status = PodStatus(
        resources=wants(cpu=2), allocated_resources={"cpu": 3, "memory": 9}, conditions=conditions
    )
    pod = make_pod(container(cpu=1), level={"cpu": 4}, status=status)
    assert requests.requested(pod) == {"cpu": cpu}  # Memory is not asked for at pod level.
    assert requests.filter_request(pod) == {"cpu": 4000}


@pytest.mark.parametrize(
    ("pod", "cpu", "memory"),
    [
        pytest.param(make_pod(container(), container()), 200, 400 * MI, id="two without requests"),
        pytest.param(
            make_pod(
                container(cpu=1, memory="1Mi"), container(), overhead={"cpu": 1, "memory": "1Mi"}
            ),
            2100,
            202 * MI,
            id="one with, one without, and overhead",
        ),
        pytest.param(
            make_pod(
                container(cpu=1, memory="1Mi"),
                container(),
                init=[container(cpu=3)],
                overhead={"cpu": 1, "memory": "1Mi"},
            ),
            4000,
            202 * MI,
            id="an init container that needs more",
        ),
        pytest.param(
            make_pod(overhead={"cpu": 1, "memory": "1Mi"}), 1000, MI, id="nothing but overhead"
        ),
        pytest.param(
            make_pod(
                container(cpu="3m", memory=3), init=[container(), container(cpu="1m", memory=1)]
            ),
            100,
            200 * MI,
            id="an init container without requests",
        ),
        pytest.param(
            make_pod(
                container(cpu="3m", memory=3),
                container(),
                init=[container(), container(cpu="1m", memory=1)],
            ),
            103,
            200 * MI + 3,
            id="and a container without requests",
        ),
        pytest.param(make_pod(container(cpu=0, memory=0)), 0, 0, id="an explicit zero is kept"),
        pytest.param(make_pod(), 0, 0, id="no containers, no defaults"),
    ],
)
def test_scoring_request_and_nonzero(pod, cpu, memory):
    assert requests.scoring_request(pod) == {"cpu": cpu, "memory": memory}
    assert requests.nonzero_requested(pod) == (cpu, memory)


def test_scoring_does_not_see_the_pod_level():
    pod = make_pod(container(), level={"cpu": 2})
    assert requests.scoring_request(pod)["cpu"] == 100
    assert requests.balanced_request(pod) == {"cpu": 2000}


@pytest.mark.parametrize(
    ("pod", "nonzero"),
    [
        pytest.param(
            make_pod(container(), init=[container()], level={"memory": "5Mi"}),
            (100, 5 * MI),
            id="memory at pod level, cpu by default",
        ),
        pytest.param(
            make_pod(container(cpu=1), container(), level={"memory": "5Mi"}),
            (1000, 5 * MI),
            id="one container requests cpu, so there is no default",
        ),
        pytest.param(
            make_pod(container(), level={"memory": "5Mi"}, overhead={"cpu": 1}),
            (1000, 5 * MI),
            id="overhead counts as a request",
        ),
    ],
)
def test_nonzero_with_pod_level(pod, nonzero):
    assert requests.nonzero_requested(pod) == nonzero


def test_rounding_happens_once_after_the_sum():
    pod = make_pod(container(cpu="0.1005"), container(cpu="0.1005"))
    assert requests.requested(pod) == {"cpu": 201}


def test_negative_requests_are_clamped_for_the_filter_only():
    pod = make_pod(container(cpu=-1))
    assert requests.filter_request(pod) == {"cpu": 0}
    assert requests.requested(pod) == {"cpu": -1000}


def test_allocatable():
    node = Node(
        status=NodeStatus(
            allocatable={"cpu": "0.1005", "pods": "110", "storage": 1, "example.com/gpu": "1.5"},
            capacity={"cpu": 99, "memory": 1},
        )
    )
    assert requests.allocatable(node) == {"cpu": 101, "pods": 110, "example.com/gpu": 2}


@pytest.mark.parametrize(
    ("name", "native", "extended", "scalar"),
    [
        pytest.param("cpu", True, False, False, id="cpu"),
        pytest.param("storage", True, False, False, id="storage"),
        pytest.param("foo", True, False, False, id="an unknown word"),
        pytest.param("hugepages-2Mi", True, False, True, id="huge pages"),
        pytest.param("attachable-volumes-aws-ebs", True, False, True, id="volumes"),
        pytest.param("kubernetes.io/batch-cpu", True, False, True, id="Kubernetes' own domain"),
        pytest.param("foo.kubernetes.io/x", True, False, True, id="below Kubernetes' domain"),
        pytest.param("nvidia.com/gpu", False, True, True, id="a device"),
        pytest.param("requests.nvidia.com/gpu", False, False, False, id="the name of a quota"),
        pytest.param("NVIDIA.com/gpu", False, False, False, id="an invalid prefix"),
        pytest.param("nvidia.com/gpu/0", False, False, False, id="two slashes"),
        pytest.param("nvidia.com/", False, False, False, id="no name"),
        pytest.param("a" * 245 + ".com/x", False, False, False, id="too long with `requests.`"),
    ],
)
def test_resource_names(name, native, extended, scalar):
    kinds = requests.is_native(name), requests.is_extended(name), requests.is_scalar(name)
    assert kinds == (native, extended, scalar)


def test_names_that_nodes_do_not_count_are_dropped():
    pod = make_pod(container(**{"storage": 1, "foo": 1, "pods": 1, "example.com/gpu": 1}))
    assert requests.requested(pod) == {"example.com/gpu": 1}
    assert requests.balanced_request(pod)["storage"] == 1


def test_host_ports():
    port = ContainerPort(container_port=80, host_port=80)
    local = ContainerPort(host_port=53, host_ip="127.0.0.1", protocol="UDP")
    unused = ContainerPort(container_port=9000)
    pod = make_pod(
        Container(ports=(local, unused)),
        init=[Container(ports=(local,)), Container(ports=(port,), restart_policy="Always")],
    )
    assert requests.host_ports(pod) == (("0.0.0.0", "TCP", 80), ("127.0.0.1", "UDP", 53))


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        pytest.param({"cpu": 2, "memory": 1}, {"cpu": 1, "memory": 1}, ("cpu",), id="less cpu"),
        pytest.param({"cpu": 2}, {"cpu": 2}, (), id="the same"),
        pytest.param({"cpu": 2}, {"cpu": 3, "memory": 1}, (), id="more"),
        pytest.param({"cpu": 2, "memory": 1}, {"cpu": 2}, ("memory",), id="one is gone"),
        pytest.param({"cpu": "1000001n"}, {"cpu": "1000002n"}, (), id="within a thousandth"),
    ],
)
def test_decreased(old, new, names):
    before, after = make_pod(container(**old)), make_pod(container(**new))
    assert requests.decreased(before, after) == names


def test_another_thread_may_ask_for_another_pod_at_any_line():
    small, large = make_pod(container(cpu="1")), make_pod(container(cpu="2"))
    asked = requests.requested
    code, lines, tracing = asked.__code__, 0, sys.gettrace()

    def interrupt(frame, event, _argument):
        nonlocal lines
        if frame.f_code is not code:
            return None
        if event == "line":
            lines += 1
            assert asked(large)["cpu"] == 2000  # As if another thread ran here.
        return interrupt

    sys.settrace(interrupt)
    try:
        found = [asked(small)["cpu"] for _ in range(3)]
    finally:
        sys.settrace(tracing)
    assert found == [1000] * 3
    assert lines > 6
    assert (asked(small)["cpu"], asked(large)["cpu"]) == (1000, 2000)


def test_pods_that_share_containers_differ_in_everything_else_that_counts():
    shared = (container(cpu=1),)
    sized = ContainerStatus(name="main", resources=wants(cpu=3), allocated_resources={"cpu": 3})
    running = PodStatus(container_statuses=(sized,))
    infeasible = PodStatus(container_statuses=running.container_statuses, conditions=INFEASIBLE)
    larger = (container(cpu=4),)
    pods = [
        (make_pod(*shared), 1000),
        (Pod(spec=PodSpec(containers=shared)), 1000),
        (Pod(spec=PodSpec(containers=shared, init_containers=larger)), 4000),
        (Pod(spec=PodSpec(containers=shared, overhead={"cpu": 1})), 2000),
        (Pod(spec=PodSpec(containers=shared, resources=wants(cpu=2))), 2000),
        (Pod(spec=PodSpec(containers=shared), status=running), 3000),
        (Pod(spec=PodSpec(containers=larger), status=running), 4000),
        (Pod(spec=PodSpec(containers=larger), status=infeasible), 3000),
    ]
    for each, cpu in (*pods, *reversed(pods)):
        assert requests.requested(each)["cpu"] == cpu


def test_the_result_is_one_object_for_pods_that_share_containers():
    shared = (container(cpu=1),)
    one, two = (Pod(spec=PodSpec(node_name=node, containers=shared)) for node in ("a", "b"))
    assert requests.requested(one) is requests.requested(two)


def test_nodes_of_one_size_share_their_allocatable():
    one, other, larger = (
        Node(status=NodeStatus(allocatable={"cpu": cpu, "pods": 110})) for cpu in ("4", "4", "8")
    )
    assert requests.allocatable(one) is requests.allocatable(other)
    assert requests.allocatable(larger) == {"cpu": 8000, "pods": 110}
