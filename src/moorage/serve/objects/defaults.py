"""What an API server fills into objects of each kind, as plain JSON.

`api/defaults.py` does the same for objects that a scheduler reads without a server. Here nothing
may be dropped, so the dict of the request is filled in place.
"""

from collections.abc import Callable

from moorage.serve.controllers.objects import Object
from moorage.serve.objects import pod_defaults
from moorage.serve.resources import Resource


def fill(resource: Resource, obj: Object) -> None:
    """Fill in what the object, already checked, leaves open."""
    if not resource.custom and (filler := _FILLERS.get(resource.kind)) is not None:
        filler(obj)


def _pod(obj: Object) -> None:
    pod_defaults.fill(obj["spec"])


def _template(obj: Object) -> None:
    template = obj["spec"].get("template")
    if template:
        template.setdefault("metadata", {})
        pod_defaults.fill(template.setdefault("spec", {}))


def _strategy(spec: Object, field: str, rolling: Object) -> None:
    strategy = spec.setdefault(field, {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        said = strategy.setdefault("rollingUpdate", {})
        if isinstance(said, dict):
            said.update(rolling | said)


def _deployment(obj: Object) -> None:
    _template(obj)
    spec = obj["spec"]
    spec.setdefault("replicas", 1)
    spec.setdefault("revisionHistoryLimit", 10)
    spec.setdefault("progressDeadlineSeconds", 600)
    _strategy(spec, "strategy", {"maxUnavailable": "25%", "maxSurge": "25%"})


def _replica_set(obj: Object) -> None:
    _template(obj)
    obj["spec"].setdefault("replicas", 1)


def _replication_controller(obj: Object) -> None:
    _replica_set(obj)
    labels = obj["spec"].get("template", {}).get("metadata", {}).get("labels", {})
    obj["spec"].setdefault("selector", labels)


def _stateful_set(obj: Object) -> None:
    _replica_set(obj)
    spec = obj["spec"]
    spec.setdefault("podManagementPolicy", "OrderedReady")
    spec.setdefault("revisionHistoryLimit", 10)
    _strategy(spec, "updateStrategy", {"partition": 0})


def _daemon_set(obj: Object) -> None:
    _template(obj)
    spec = obj["spec"]
    spec.setdefault("revisionHistoryLimit", 10)
    _strategy(spec, "updateStrategy", {"maxUnavailable": 1, "maxSurge": 0})


def _job(obj: Object) -> None:
    _template(obj)
    spec = obj["spec"]
    if "completions" not in spec and "parallelism" not in spec:
        spec["completions"] = 1
    spec.setdefault("parallelism", 1)
    spec.setdefault("backoffLimit", 6)
    spec.setdefault("completionMode", "NonIndexed")
    spec.setdefault("suspend", False)


def _service(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("type", "ClusterIP")
    spec.setdefault("sessionAffinity", "None")
    ports = spec.get("ports")
    for port in ports if isinstance(ports, list) else ():
        if isinstance(port, dict):
            port.setdefault("protocol", "TCP")
            if "port" in port:
                port.setdefault("targetPort", port["port"])


def _namespace(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _node(obj: Object) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    for field in ("capacity", "allocatable"):
        if field in status:
            status[field] = pod_defaults.whole_millis(status[field])
    if "capacity" in status and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _priority_class(obj: Object) -> None:
    obj.setdefault("value", 0)
    obj.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _claim(obj: Object) -> None:
    obj.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
    obj.setdefault("status", {}).setdefault("phase", "Pending")


def _volume(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("volumeMode", "Filesystem")
    spec.setdefault("persistentVolumeReclaimPolicy", "Retain")
    claimed = bool((spec.get("claimRef") or {}).get("uid"))
    obj.setdefault("status", {}).setdefault("phase", "Bound" if claimed else "Available")


def _storage_class(obj: Object) -> None:
    obj.setdefault("reclaimPolicy", "Delete")
    obj.setdefault("volumeBindingMode", "Immediate")


def _csi_driver(obj: Object) -> None:
    spec = obj.setdefault("spec", {})
    spec.setdefault("attachRequired", True)
    spec.setdefault("podInfoOnMount", False)
    spec.setdefault("storageCapacity", False)


def _secret(obj: Object) -> None:
    obj.setdefault("type", "Opaque")


_FILLERS: dict[str, Callable[[Object], None]] = {
    "Pod": _pod,
    "Deployment": _deployment,
    "ReplicaSet": _replica_set,
    "ReplicationController": _replication_controller,
    "StatefulSet": _stateful_set,
    "DaemonSet": _daemon_set,
    "Job": _job,
    "Service": _service,
    "Namespace": _namespace,
    "Node": _node,
    "PriorityClass": _priority_class,
    "PersistentVolumeClaim": _claim,
    "PersistentVolume": _volume,
    "StorageClass": _storage_class,
    "CSIDriver": _csi_driver,
    "Secret": _secret,
}
