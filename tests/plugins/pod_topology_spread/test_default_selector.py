import pytest
from msgspec.structs import replace
from tests.affinity_builders import make_selector

from moorage import plugin as mp
from moorage.api.meta import LabelSelector, ObjectMeta, OwnerReference
from moorage.api.workloads import ReplicationControllerSpec, SelectedSpec, ServiceSpec
from moorage.framework.cluster import Cluster
from moorage.plugins.pod_topology_spread.constraints import DefaultSelector
from moorage.testing import make_pod

META = ObjectMeta(name="w", namespace="default")


def service(selector, namespace="default", name="s"):
    meta = ObjectMeta(name=name, namespace=namespace)
    return mp.Service(metadata=meta, spec=ServiceSpec(selector=selector))


def controller(selector):
    return mp.ReplicationController(
        metadata=META, spec=ReplicationControllerSpec(selector=selector)
    )


def replica_set(selector):
    return mp.ReplicaSet(metadata=META, spec=SelectedSpec(selector=selector))


def stateful_set(selector):
    return mp.StatefulSet(metadata=META, spec=SelectedSpec(selector=selector))


def pod(kind=None, api_version="apps/v1", *, manages=True):
    made = make_pod(labels={"k1": "v1", "k2": "v2"})
    if kind is None:
        return made
    owner = OwnerReference(api_version=api_version, kind=kind, name="w", controller=manages)
    return replace(made, metadata=replace(made.metadata, owner_references=(owner,)))


K1, K2 = {"k1": "v1"}, {"k2": "v2"}
BAD = LabelSelector(match_labels={"k2": "{{.bad-value.}}"})


@pytest.mark.parametrize(
    ("pod", "objects", "selector"),
    [
        pytest.param(pod(), [], "", id="no service, no owner"),
        pytest.param(pod(), [service(K1)], "k1=v1", id="a service"),
        pytest.param(pod(), [service(K1), service(K2, name="t")], "k1=v1,k2=v2", id="two services"),
        pytest.param(pod(), [service({"k1": "other"})], "", id="a service of other pods"),
        pytest.param(pod(), [service(K1, namespace="other")], "", id="... of another namespace"),
        pytest.param(pod(), [service(None)], "", id="... without a selector"),
        pytest.param(pod(), [service({})], "", id="... with an empty one"),
        pytest.param(
            pod("ReplicationController", "v1"),
            [service(K1), controller(K2)],
            "k1=v1,k2=v2",
            id="a replication controller",
        ),
        pytest.param(
            pod("ReplicationController", "v1"),
            [service(K1), controller({"k1": "other"})],
            "k1=other",
            id="... whose labels win",
        ),
        pytest.param(
            pod("ReplicationController", "v1"), [controller(None)], "", id="... that has none"
        ),
        pytest.param(
            pod("ReplicaSet"),
            [service(K1), replica_set(make_selector("k2=v2,k3 notin (v3)"))],
            "k1=v1,k2=v2,k3 notin (v3)",
            id="a replica set",
        ),
        pytest.param(
            pod("StatefulSet"),
            [service(K1), stateful_set(make_selector("k2=v2"))],
            "k1=v1,k2=v2",
            id="a stateful set",
        ),
        pytest.param(
            pod("ReplicaSet"), [service(K1), replica_set(None)], "k1=v1", id="... without selector"
        ),
        pytest.param(
            pod("ReplicaSet"), [service(K1), replica_set(BAD)], "k1=v1", id="... with a bad one"
        ),
        pytest.param(pod("ReplicaSet"), [service(K1)], "k1=v1", id="... that is not known"),
        pytest.param(
            pod("ReplicaSet", "apps/v1beta1"),
            [replica_set(make_selector("k2=v2"))],
            "",
            id="an old version of it",
        ),
        pytest.param(pod("Job", "batch/v1"), [service(K1)], "k1=v1", id="an owner of another kind"),
        pytest.param(
            pod("ReplicaSet", manages=False),
            [replica_set(make_selector("k2=v2"))],
            "",
            id="an owner that does not manage the pod",
        ),
    ],
)
def test_selector(pod, objects, selector):
    cluster = Cluster()
    for each in objects:
        cluster.put(each)
    default = DefaultSelector(pod)
    default.refresh(cluster)
    assert default.current == mp.selectors.parse_label_selector(selector)


def test_it_is_made_anew_only_when_something_changed():
    cluster = Cluster()
    default = DefaultSelector(pod("ReplicaSet"))
    assert not default.refresh(cluster)
    cluster.put(replica_set(make_selector("k2=v2")))
    assert default.refresh(cluster)
    assert not default.refresh(cluster)
    cluster.put(replica_set(make_selector("k2=v2")))  # written again, and the same
    assert not default.refresh(cluster)
    cluster.put(service(K1))
    assert default.refresh(cluster)
    cluster.put(replica_set(make_selector("k2=other")))
    assert default.refresh(cluster)
    assert default.current == mp.selectors.parse_label_selector("k1=v1,k2=other")
