"""What the cluster's own scheduler recorded about a pod."""

import pytest

from moorage import explain
from moorage.api import manifests
from moorage.explaining import recorded

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}} | {
    "status": {"allocatable": {"cpu": "2", "memory": "4Gi", "pods": "10"}}
}


def pod(cpu="4", message=None):
    conditions = []
    if message is not None:
        conditions = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}]
        conditions[0]["message"] = message
    containers = [{"name": "c", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "default"},
        "spec": {"containers": containers},
        "status": {"conditions": conditions},
    }


def event(reason, at, message="m", **more):
    return {"reason": reason, "lastTimestamp": at, "message": message, **more}


def test_condition_and_last_event():
    [read] = manifests.from_dicts([pod(message="no room")])
    events = [
        event("FailedScheduling", "2026-01-01T00:00:02Z", "later", reportingComponent="mine"),
        event("FailedScheduling", "2026-01-01T00:00:01Z", "earlier"),
        event("Pulled", "2026-01-01T00:00:03Z"),
    ]
    found = recorded.read(read, events)
    assert found.condition == "Unschedulable: no room"
    assert found.event == "FailedScheduling at 2026-01-01T00:00:02Z, by mine: later"
    assert not recorded.read(*manifests.from_dicts([pod()]))


@pytest.mark.parametrize(
    ("cpu", "message", "differs"),
    [
        ("4", "0/1 nodes are available: 1 Insufficient cpu. preemption: ...", False),
        ("4", "0/1 nodes are available: 1 Insufficient memory.", True),
        ("1", "0/1 nodes are available: 1 Insufficient cpu.", True),
        ("4", None, False),
    ],
)
def test_differs(cpu, message, differs):
    objects = [NODE, pod(cpu, message)]
    explained = explain(objects, "p")
    found = recorded.read(explained.pod)
    assert recorded.differs(found, explained) == differs
