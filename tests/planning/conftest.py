"""Clusters as plain dicts, the way a user writes them."""

import pytest

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node(name, cpu=4000, memory=8192, pods=110, *, zone=None, labels=None, **spec):
    """A node; CPU in milli, memory in Mi."""
    labels = {HOST: name} | ({ZONE: zone} if zone else {}) | (labels or {})
    allocatable = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", "pods": str(pods)}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": spec,
        "status": {"allocatable": allocatable},
    }


def pod(name, cpu=0, memory=0, *, labels=None, owner=None, annotations=None, **spec):
    """A pod; `owner` is the kind and the name of its controller."""
    requests = {"cpu": f"{cpu}m"} if cpu else {}
    if memory:
        requests["memory"] = f"{memory}Mi"
    meta = {"name": name, "labels": labels or {}, "annotations": annotations or {}}
    if owner:
        kind, _, owned_by = owner.partition("/")
        reference = {"apiVersion": "apps/v1", "kind": kind, "name": owned_by, "controller": True}
        meta["ownerReferences"] = [reference]
    container = {"name": "c", "image": "i", "resources": {"requests": requests}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [container], **spec},
    }


def budget(name, labels, **spec):
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"matchLabels": labels}, **spec},
    }


@pytest.fixture
def make_node():
    return node


@pytest.fixture
def make_pod():
    return pod


@pytest.fixture
def make_budget():
    return budget
