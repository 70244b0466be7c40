"""Which cluster events the update of a pod or a node stands for."""

import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition
from moorage.api.node import Taint
from moorage.api.pod import ContainerStatus, PodResourceClaimStatus, Toleration
from moorage.core import updates
from moorage.testing import make_node, make_pod

# Updates of pods


def with_status(obj, **fields):
    return replace(obj, status=replace(obj.status, **fields))


def with_meta(obj, **fields):
    return replace(obj, metadata=replace(obj.metadata, **fields))


POD = make_pod("p", requests={"cpu": "2"}, gates=["one", "two"])


@pytest.mark.parametrize(
    ("new", "actions"),
    [
        pytest.param(POD, ["Update"], id="nothing that has a name"),
        pytest.param(
            make_pod("p", requests={"cpu": "2"}, gates=["two"]), ["Update"], id="23: a gate"
        ),
        pytest.param(
            make_pod("p", requests={"cpu": "2"}),
            ["UpdatePodSchedulingGatesEliminated"],
            id="23: the last gate",
        ),
        pytest.param(with_meta(POD, labels={"a": "b"}), ["UpdatePodLabel"], id="labels"),
        pytest.param(
            make_pod("p", requests={"cpu": "1"}, gates=["one", "two"]),
            ["UpdatePodScaleDown"],
            id="less cpu",
        ),
        pytest.param(
            make_pod("p", gates=["one", "two"]), ["UpdatePodScaleDown"], id="no cpu any more"
        ),
        pytest.param(
            make_pod("p", requests={"cpu": "3"}, gates=["one", "two"]), ["Update"], id="more cpu"
        ),
        pytest.param(
            make_pod(
                "p",
                requests={"cpu": "2"},
                gates=["one", "two"],
                tolerations=[Toleration(operator="Exists")],
            ),
            ["UpdatePodToleration"],
            id="a toleration more",
        ),
        pytest.param(
            with_status(POD, resource_claim_statuses=(PodResourceClaimStatus(name="c"),)),
            ["UpdatePodGeneratedResourceClaim"],
            id="a claim was made",
        ),
        pytest.param(
            make_pod(
                "p", labels={"a": "b"}, requests={}, tolerations=[Toleration(operator="Exists")]
            ),
            [
                "UpdatePodLabel",
                "UpdatePodScaleDown",
                "UpdatePodSchedulingGatesEliminated",
                "UpdatePodToleration",
            ],
            id="several, in this order",
        ),
    ],
)
def test_23_pod_update(new, actions):
    assert [event.label for event in updates.pod_update(POD, new)] == [
        f"UnschedulablePod{action}" for action in actions
    ]


def test_an_update_of_a_placed_pod():
    old = make_pod("p", node="n", requests={"cpu": "2"})
    resized = with_status(old, container_statuses=(ContainerStatus(name="c0"),))
    assert [e.label for e in updates.pod_update(old, resized)] == ["AssignedPodUpdate"]
    less = make_pod("p", node="n", requests={"cpu": "1"})
    assert [e.label for e in updates.pod_update(old, less)] == ["AssignedPodUpdatePodScaleDown"]


# Updates of nodes


NODE = make_node("n")
READY = Condition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")
GPU = Taint(key="gpu", effect="NoSchedule")


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        pytest.param(NODE, with_meta(NODE, resource_version="7"), [], id="27: a heartbeat"),
        pytest.param(
            with_status(NODE, conditions=(READY,)),
            with_status(
                NODE, conditions=(replace(READY, last_transition_time=None, reason="KubeletReady"),)
            ),
            [],
            id="27: times and reasons of a condition",
        ),
        pytest.param(
            make_node("n", unschedulable=True), NODE, ["UpdateNodeTaint"], id="27: uncordoned"
        ),
        pytest.param(NODE, make_node("n", unschedulable=True), [], id="27: cordoned"),
        pytest.param(
            make_node("n", unschedulable=True, taints=[GPU]),
            NODE,
            ["UpdateNodeTaint", "UpdateNodeTaint"],
            id="uncordoned and another taint gone: twice",
        ),
        pytest.param(
            NODE,
            make_node("n", allocatable={"cpu": 1}),
            ["UpdateNodeAllocatable"],
            id="allocatable",
        ),
        pytest.param(NODE, make_node("n", labels={"a": "b"}), ["UpdateNodeLabel"], id="labels"),
        pytest.param(
            with_status(NODE, conditions=(READY,)),
            with_status(NODE, conditions=(replace(READY, status="False"),)),
            ["UpdateNodeCondition"],
            id="a condition's status",
        ),
        pytest.param(
            NODE,
            with_meta(NODE, annotations={"a": "b"}),
            ["UpdateNodeAnnotation"],
            id="annotations",
        ),
        pytest.param(
            NODE, make_node("n", features=["X"]), ["UpdateNodeDeclaredFeature"], id="features"
        ),
        pytest.param(NODE, make_node("n", images={"a:1": 1}), [], id="images cure nothing"),
        pytest.param(
            NODE,
            make_node("n", allocatable={}, labels={"a": "b"}, taints=[GPU], features=["X"]),
            [
                "UpdateNodeAllocatable",
                "UpdateNodeLabel",
                "UpdateNodeTaint",
                "UpdateNodeDeclaredFeature",
            ],
            id="several, in this order",
        ),
    ],
)
def test_27_node_update(old, new, actions):
    assert [event.label for event in updates.node_update(old, new)] == [
        f"Node{action}" for action in actions
    ]
