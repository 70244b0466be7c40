"""Storage as plain dicts, the way a user writes it: classes, claims, disks, what nodes can attach.

Tests that want objects instead find them in `tests.storage_builders`.
"""

DRIVER = "disk.example.com"
BY_HAND = "kubernetes.io/no-provisioner"


def storage_class(name="disk", provisioner=DRIVER, mode="WaitForFirstConsumer", **more):
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
        **more,
    }


def claim_spec(class_name="disk"):
    return {
        "storageClassName": class_name,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "5Gi"}},
    }


def claim(name="data", class_name="disk"):
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "default"},
        "spec": claim_spec(class_name),
    }


def claimed(claim):
    """A pod's volume that is there by a claim."""
    return {"name": claim, "persistentVolumeClaim": {"claimName": claim}}


def local_disk(name, key, value, class_name="disk"):
    """A disk that only nodes with that label reach."""
    here = {"key": key, "operator": "In", "values": [value]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "10Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": class_name,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def csi_node(name, limit=None, keys=()):
    """What a node's driver says: how many disks it attaches, and which labels they go by."""
    room = {} if limit is None else {"allocatable": {"count": limit}}
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": list(keys), **room}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver]},
    }
