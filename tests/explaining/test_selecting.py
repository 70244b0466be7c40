"""Which pods are explained."""

import pytest

from moorage.errors import InputError
from moorage.expansion.refusals import Refusal
from moorage.explaining import DryRun
from moorage.explaining.selecting import refused, select


def pod(pod_name, namespace="default", labels=None, node=None, **owner):
    meta = {"name": pod_name, "namespace": namespace, "labels": labels or {}}
    if owner:
        meta["ownerReferences"] = [{"controller": True, "uid": "1", **owner}]
    spec = {"containers": [{"name": "c"}]} | ({"nodeName": node} if node else {})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def workload(kind, name, replicas=2):
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [{"name": "c"}]}}
    spec = {"replicas": replicas, "template": template, "selector": {"matchLabels": {"app": name}}}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": name}, "spec": spec}


OBJECTS = DryRun(
    [
        pod("a", labels={"app": "a"}),
        pod("a", "other", labels={"app": "b"}),
        pod("placed", node="n", labels={"app": "a"}),
        pod("full-1", node="n", kind="StatefulSet", name="full"),
        pod("old-5f-x", kind="ReplicaSet", name="old-5f"),
        workload("Deployment", "web"),
        workload("StatefulSet", "db"),
    ]
).objects


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        pytest.param({"name": "placed"}, ["default/placed"], id="name"),
        pytest.param({"name": "pod/placed"}, ["default/placed"], id="pod/name"),
        pytest.param({"name": "other/a"}, ["other/a"], id="namespace/name"),
        pytest.param({"name": "a", "namespace": "other"}, ["other/a"], id="-n"),
        pytest.param({"name": "po/a", "namespace": "other"}, ["other/a"], id="-n pod/name"),
        pytest.param({"name": "sts/db"}, ["default/db-0", "default/db-1"], id="workload"),
        pytest.param({"name": "sts/full"}, ["default/full-1"], id="all have nodes: one of them"),
        pytest.param({"name": "deployment/old"}, ["default/old-5f-x"], id="through a ReplicaSet"),
        pytest.param({"labels": "app=a"}, ["default/a"], id="-l: pending ones"),
        pytest.param({"labels": "app in (a, b)", "namespace": "other"}, ["other/a"], id="-l -n"),
        pytest.param({"namespace": "other"}, ["other/a"], id="all pending of a namespace"),
    ],
)
def test_select(asked, found):
    assert [each.key for each in select(OBJECTS, **asked)] == found


def test_all_pending():
    assert len(select(OBJECTS)) == 2 + 1 + 2 + 2
    assert len(select(OBJECTS, "deployment/web")) == 2


@pytest.mark.parametrize(
    ("asked", "problem"),
    [
        ({"labels": "app=x"}, "-l app=x: matches none of 9 pods"),
        ({"labels": "app in"}, "-l app in: "),
        ({"name": "job/x"}, "Job 'x' owns none of 9 pods; owners of pods are ReplicaSet/"),
        ({"name": "a", "namespace": "nowhere"}, "no pod 'nowhere/a' among the 9 given"),
        ({"name": "other/a", "namespace": "default"}, "-n default: other/a is in another namespac"),
        ({"namespace": "nowhere"}, "-n nowhere: there is no pod in this namespace, only in "),
    ],
)
def test_errors(asked, problem):
    with pytest.raises(InputError) as caught:
        select(OBJECTS, **asked)
    assert str(caught.value).startswith(problem)


REFUSALS = [
    Refusal("ReplicaSet", "team", "api-6b7f9c4d8x", 2, "exceeded quota"),
    Refusal("Deployment", "default", "web", 1, "exceeded quota"),
    Refusal("Pod", "default", "p", 1, "exceeded quota"),
]


@pytest.mark.parametrize(
    ("name", "namespace", "found"),
    [
        pytest.param(None, None, ["api-6b7f9c4d8x", "web"], id="all workloads"),
        pytest.param(None, "team", ["api-6b7f9c4d8x"], id="those of a namespace"),
        pytest.param("deploy/web", None, ["web"], id="a workload"),
        pytest.param("deployment/api", None, ["api-6b7f9c4d8x"], id="the set of a deployment"),
        pytest.param("web", None, [], id="a pod"),
    ],
)
def test_refused_workloads(name, namespace, found):
    assert [each.name for each in refused(REFUSALS, name, namespace=namespace)] == found
