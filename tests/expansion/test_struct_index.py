"""Views of pods: what controllers read."""

import msgspec
import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition, ObjectMeta, OwnerReference
from moorage.api.pod import Container, Pod, PodSpec, PodStatus, ResourceRequirements, Toleration
from moorage.expansion.struct_index import StructIndex
from moorage.sim.cluster import MemoryCluster

CONTAINERS = (
    Container(name="c", image="i", resources=ResourceRequirements(requests={"cpu": "1"})),
)
OWNERS = (OwnerReference(kind="ReplicaSet", name="web", uid="r", controller=True),)
NO_STATUS = PodStatus()
READY = Condition(type="Ready", status="True", last_transition_time="2026-01-01T00:00:00Z")


def make_pod(name="web-1", node="", *, labels=None, status=NO_STATUS, **spec) -> Pod:
    meta = ObjectMeta(name=name, namespace="shop", uid=name, labels=labels or {"app": "web"})
    return Pod(
        api_version="v1",
        kind="Pod",
        metadata=replace(meta, owner_references=OWNERS, finalizers=("example.com/keep",)),
        spec=PodSpec(node_name=node, containers=CONTAINERS, **spec),
        status=status,
    )


@pytest.mark.parametrize(
    "pod",
    [
        pytest.param(make_pod(), id="without a node"),
        pytest.param(make_pod(node="n1"), id="on a node"),
        pytest.param(make_pod(labels={"app": "api"}), id="with other labels"),
        pytest.param(make_pod(tolerations=(Toleration(key="a"),)), id="with another spec"),
        pytest.param(
            make_pod(node="n1", status=PodStatus(phase="Running", conditions=(READY,))),
            id="with a status",
        ),
    ],
)
def test_a_view_is_the_pod_as_plain_data(pod):
    index = StructIndex(MemoryCluster())
    index.view(make_pod("first"))  # Its parts are shared.
    expected = {"spec": {}, "status": {}, **msgspec.to_builtins(pod)}
    assert index.view(pod) == expected


def test_views_share_what_pods_share():
    status = PodStatus(phase="Running", conditions=(READY,))
    index = StructIndex(MemoryCluster())
    one, other = (index.view(make_pod(name, name, status=status)) for name in ("a", "b"))
    assert one["spec"]["containers"] is other["spec"]["containers"]
    assert one["metadata"]["ownerReferences"] is other["metadata"]["ownerReferences"]
    assert one["status"]["conditions"][0] is other["status"]["conditions"][0]


def test_a_view_is_kept_until_the_pod_changes():
    index, pod = StructIndex(MemoryCluster()), make_pod()
    view = index.view(pod)
    assert index.view(pod) is view
    assert index.view(replace(pod, spec=replace(pod.spec, node_name="n1"))) is not view
