"""Controllers handle every object that the API accepts: valid objects with one changed field."""

import copy
import logging
from random import Random

import pytest

from moorage.cluster.status_errors import StatusError

LABELS = {"app": "web"}
SELECTOR = {"matchLabels": LABELS}
AFFINITY = {
    "nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {
            "nodeSelectorTerms": [
                {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
            ]
        }
    }
}
CLAIM = {
    "accessModes": ["ReadWriteOnce"],
    "storageClassName": "fast",
    "resources": {"requests": {"storage": "1Gi"}},
}
POD = {
    "containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": "100m"}}}],
    "volumes": [
        {"name": "v", "persistentVolumeClaim": {"claimName": "data"}},
        {"name": "w", "ephemeral": {"volumeClaimTemplate": {"spec": CLAIM}}},
    ],
    "tolerations": [{"key": "a", "effect": "NoExecute", "tolerationSeconds": 5}],
    "nodeSelector": {"a": "b"},
    "affinity": AFFINITY,
}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": POD}
OBJECTS = {
    "Deployment": {
        "spec": {
            "replicas": 2,
            "selector": SELECTOR,
            "template": TEMPLATE,
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": "25%"}},
            "minReadySeconds": 1,
            "revisionHistoryLimit": 2,
        }
    },
    "StatefulSet": {
        "spec": {
            "serviceName": "x",
            "replicas": 2,
            "ordinals": {"start": 1},
            "selector": SELECTOR,
            "template": TEMPLATE,
            "updateStrategy": {"rollingUpdate": {"partition": 1}},
            "podManagementPolicy": "Parallel",
            "volumeClaimTemplates": [{"metadata": {"name": "d"}, "spec": CLAIM}],
        }
    },
    "DaemonSet": {
        "spec": {
            "selector": SELECTOR,
            "template": TEMPLATE,
            "updateStrategy": {"rollingUpdate": {"maxUnavailable": 1}},
        }
    },
    "Job": {
        "spec": {
            "completions": 2,
            "parallelism": 1,
            "backoffLimit": 1,
            "activeDeadlineSeconds": 20,
            "ttlSecondsAfterFinished": 5,
            "completionMode": "Indexed",
            "template": {"spec": {**POD, "restartPolicy": "Never"}},
        }
    },
    "PodDisruptionBudget": {"spec": {"minAvailable": 1, "selector": SELECTOR}},
    "Node": {
        "spec": {"taints": [{"key": "a", "effect": "NoExecute"}], "unschedulable": False},
        "status": {
            "capacity": {"cpu": "4"},
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": "InternalIP", "address": "1.2.3.4"}],
        },
    },
    "PersistentVolumeClaim": {"spec": {**CLAIM, "volumeName": "v", "selector": SELECTOR}},
    "PersistentVolume": {
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": {"namespace": "default", "name": "data", "uid": "1"},
            "persistentVolumeReclaimPolicy": "Delete",
            "hostPath": {"path": "/a"},
        }
    },
    "StorageClass": {"provisioner": "a/b", "volumeBindingMode": "WaitForFirstConsumer"},
    "Pod": {"spec": POD},
}
JUNK = (0, -1, 3, 2**31, 1.5, "x", "", "50%", "abc%", True, [], {}, [1], [{}], ["x"], {"a": 1})


def places(value, path=()):
    """The path of every field."""
    inside = value.items() if isinstance(value, dict) else ()
    inside = enumerate(value) if isinstance(value, list) else inside
    for step, each in inside:
        yield (*path, step)
        yield from places(each, (*path, step))


def spoilt(obj, random):
    obj = copy.deepcopy(obj)
    *way, last = random.choice(list(places(obj)))
    inside = obj
    for step in way:
        inside = inside[step]
    inside[last] = copy.deepcopy(random.choice(JUNK))
    return obj


@pytest.mark.parametrize("kind", OBJECTS)
def test_controllers_handle_unexpected_objects(world, kind, caplog):
    random = Random(kind)
    world.nodes(2, a="b")
    world.create("StorageClass", "fast", provisioner="x")
    let_in = 0
    for number in range(40):
        obj = OBJECTS[kind] if number == 0 else spoilt(OBJECTS[kind], random)
        try:
            world.create(kind, f"o{number}", **obj)
        except StatusError:
            continue
        let_in += 1
        world.run(3)
        if world.exists(kind, f"o{number}"):  # A volume whose claim is gone has left by itself.
            world.delete(kind, f"o{number}")
        world.run(3)
    assert let_in > 1
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []
