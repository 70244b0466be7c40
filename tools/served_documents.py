"""Nodes and pods as kube-apiserver v1.36 shows them, with fields that no scheduler reads.

`live_cost.py` and `start_cost.py` measure with them, because decoding takes a part of the time.
"""

import json
from typing import Any

STAMP = "2026-11-18T01:02:03Z"


def managed_fields(manager: str, fields: int) -> list[dict[str, Any]]:
    """As the API server keeps them: nothing that a scheduler reads, and a third of an object."""
    owned = {f"f:field{i}": {".": {}, "f:value": {}} for i in range(fields)}
    entry = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": STAMP}
    return [{**entry, "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": owned}}]


def node_document(i: int) -> dict[str, Any]:
    name = f"node-{i}"
    amounts = {
        "cpu": "64",
        "memory": "263856244Ki",
        "pods": "250",
        "ephemeral-storage": "95491281146",
    }
    conditions = [
        {
            "type": kind,
            "status": str(kind == "Ready"),
            "lastHeartbeatTime": STAMP,
            "lastTransitionTime": STAMP,
            "reason": f"KubeletHas{kind}",
            "message": f"kubelet has sufficient {kind} available",
        }
        for kind in ("MemoryPressure", "DiskPressure", "PIDPressure", "Ready")
    ]
    images = [
        {
            "names": [
                f"registry.example.com/team/image-{j}@sha256:{j:064x}",
                f"registry.example.com/team/image-{j}:v1.{j}",
            ],
            "sizeBytes": 100_000_000 + j,
        }
        for j in range(20)
    ]
    return {
        "kind": "Node",
        "apiVersion": "v1",
        "metadata": {
            "name": name,
            "uid": f"00000000-0000-4000-8000-{i:012}",
            "resourceVersion": "1",
            "creationTimestamp": STAMP,
            "labels": {
                "kubernetes.io/arch": "amd64",
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": f"zone-{i % 3}",
            },
            "annotations": {"node.alpha.kubernetes.io/ttl": "0"},
            "managedFields": managed_fields("kubelet", 40),
        },
        "spec": {"podCIDR": "10.0.0.0/24", "providerID": f"cloud:///{name}"},
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": conditions,
            "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "nodeInfo": {"kubeletVersion": "v1.36.4", "osImage": "Linux", "architecture": "amd64"},
            "images": images,
        },
    }


def pod_document() -> dict[str, Any]:
    """A pod of a ReplicaSet; NAME and VERSION are replaced for each."""
    mount = {
        "name": "kube-api-access-x7k2m",
        "readOnly": True,
        "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
    }
    owner = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "name": "web-6d4cf56db6",
        "uid": "11111111-1111-4111-8111-111111111111",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    projected = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
    ]
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {
            "name": "NAME",
            "generateName": "web-6d4cf56db6-",
            "namespace": "default",
            "uid": "uid-of-NAME",
            "resourceVersion": "VERSION",
            "generation": 1,
            "creationTimestamp": STAMP,
            "labels": {"app": "web", "pod-template-hash": "6d4cf56db6"},
            "ownerReferences": [owner],
            "managedFields": managed_fields("kube-controller-manager", 24),
        },
        "spec": {
            "volumes": [{"name": mount["name"], "projected": {"sources": projected}}],
            "containers": [
                {
                    "name": "main",
                    "image": "registry.example.com/team/image-1:v1.1",
                    "ports": [{"containerPort": 8080, "protocol": "TCP"}],
                    "env": [{"name": f"SETTING_{i}", "value": f"value {i}"} for i in range(4)],
                    "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}},
                    "volumeMounts": [mount],
                    "terminationMessagePath": "/dev/termination-log",
                    "terminationMessagePolicy": "File",
                    "imagePullPolicy": "IfNotPresent",
                }
            ],
            "restartPolicy": "Always",
            "terminationGracePeriodSeconds": 30,
            "dnsPolicy": "ClusterFirst",
            "serviceAccountName": "default",
            "serviceAccount": "default",
            "securityContext": {},
            "schedulerName": "default-scheduler",
            "tolerations": [
                {
                    "key": f"node.kubernetes.io/{key}",
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": 300,
                }
                for key in ("not-ready", "unreachable")
            ],
            "priority": 0,
            "enableServiceLinks": True,
            "preemptionPolicy": "PreemptLowerPriority",
        },
        "status": {"phase": "Pending", "qosClass": "Burstable"},
    }


def bound_document() -> dict[str, Any]:
    """The same pod on NODE."""
    pod = pod_document()
    pod["spec"]["nodeName"] = "NODE"
    condition = {
        "type": "PodScheduled",
        "status": "True",
        "observedGeneration": 1,
        "lastProbeTime": None,
        "lastTransitionTime": STAMP,
    }
    pod["status"]["conditions"] = [condition]
    return pod


def compact(document: Any) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def running_document(i: int, node: str, pods_per_owner: int = 20) -> dict[str, Any]:
    """A pod that has run on a node for a while; every ReplicaSet has a namespace of ten."""
    owner, nth = divmod(i, pods_per_owner)
    pod = bound_document()
    meta, spec = pod["metadata"], pod["spec"]
    app, template_hash = f"app-{owner}", f"{owner * 2654435761 % 2**32:08x}"
    second = f"{i // 60 % 60:02}:{i % 60:02}"
    started = f"2026-11-{1 + owner % 17:02}T{owner % 24:02}:{second}Z"
    meta["generateName"] = f"{app}-{template_hash}-"
    meta["name"] = f"{app}-{template_hash}-{nth:05}"
    meta["namespace"] = f"team-{owner // 10}"
    meta["uid"] = f"22222222-2222-4222-8222-{i:012}"
    meta["resourceVersion"] = str(1_000_000 + i)
    meta["creationTimestamp"] = started
    meta["labels"] = {"app": app, "pod-template-hash": template_hash}
    meta["ownerReferences"][0] |= {
        "name": f"{app}-{template_hash}",
        "uid": f"11111111-1111-4111-8111-{owner:012}",
    }
    del meta["managedFields"]  # kubectl leaves them out.
    spec["nodeName"] = node
    image = f"registry.example.com/team/image-{owner % 20}:v1.{owner % 20}"
    spec["containers"][0]["image"] = image
    kinds = (
        "PodReadyToStartContainers",
        "Initialized",
        "Ready",
        "ContainersReady",
        "PodScheduled",
    )
    address = f"10.{i // 62500}.{i // 250 % 250}.{i % 250}"
    pod["status"] = {
        "phase": "Running",
        "observedGeneration": 1,
        "conditions": [
            {
                "type": kind,
                "status": "True",
                "observedGeneration": 1,
                "lastProbeTime": None,
                "lastTransitionTime": started,
            }
            for kind in kinds
        ],
        "hostIP": "192.0.2.1",
        "hostIPs": [{"ip": "192.0.2.1"}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": started,
        "containerStatuses": [
            {
                "name": "main",
                "state": {"running": {"startedAt": started}},
                "lastState": {},
                "ready": True,
                "restartCount": 0,
                "image": image,
                "imageID": f"registry.example.com/team/image@sha256:{owner % 20:064x}",
                "containerID": f"containerd://{i:064x}",
                "started": True,
                "resources": {"requests": {"cpu": "10m", "memory": "10Mi"}},
            }
        ],
        "qosClass": "Burstable",
    }
    return pod
