"""Defaults: the fields that an API server fills in, per kind, into plain JSON objects.

`api/defaults.py` does the same for structs that a scheduler reads without a server. Here no field
may be lost, so the dict of the request is filled in place.
"""

from collections.abc import Callable
from typing import Any

from moorage.api import quantity
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import Resource

Spec = dict[str, Any]

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_PATIENCE_SECONDS = 300


def fill_pod_spec(spec: Spec) -> None:
    """The defaults of a pod spec, wherever it stands."""
    for container in (*spec.get("initContainers", ()), *spec.get("containers", ())):
        _container(container, host_network=bool(spec.get("hostNetwork")))
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("securityContext", {})
    if not spec.get("schedulerName"):
        spec["schedulerName"] = DEFAULT_SCHEDULER
    if "overhead" in spec:
        spec["overhead"] = round_to_millis(spec["overhead"])
    for volume in spec.get("volumes", ()):
        _pod_volume(volume)


def fill_created_pod(obj: Spec) -> None:
    """What only a pod that is being created gets: tolerations, selectors by its own labels."""
    spec = obj["spec"]
    spec.setdefault("enableServiceLinks", True)
    labels = obj["metadata"].get("labels", {})
    tolerations = spec.setdefault("tolerations", [])
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(_covers(each, key) for each in tolerations):
            tolerations.append(
                {
                    "key": key,
                    "operator": "Exists",
                    "effect": "NoExecute",
                    "tolerationSeconds": _PATIENCE_SECONDS,
                }
            )
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge_keys(constraint, labels)
    affinity = spec.get("affinity", {})
    for sort in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(sort, {})
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(term, labels)
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(weighted.get("podAffinityTerm", {}), labels)


def qos_class(spec: Spec) -> str:
    """Guaranteed, Burstable or BestEffort, as the kubelet would rank the pod."""
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    asked = [each.get("resources", {}) for each in containers]
    named = [
        {**each.get("requests", {}), **each.get("limits", {})}.keys() & {"cpu", "memory"}
        for each in asked
    ]
    if not any(named):
        return "BestEffort"
    for each in asked:
        limits, requests = each.get("limits", {}), each.get("requests", {})
        for name in ("cpu", "memory"):
            if name not in limits:
                return "Burstable"
            wanted = requests.get(name, limits[name])
            if quantity.nano(wanted) != quantity.nano(limits[name]):
                return "Burstable"
    return "Guaranteed"


def round_to_millis(amounts: Spec) -> Spec:
    """Amounts finer than a thousandth are rounded up when they are stored."""
    return {
        name: f"{quantity.milli(each)}m" if quantity.nano(each) % quantity.MICRO else _text(each)
        for name, each in amounts.items()
    }


def _text(amount: Any) -> Any:
    """Numbers become text, as an API server's own encoder writes quantities."""
    return amount if isinstance(amount, str) else str(amount)


def _container(container: Spec, *, host_network: bool) -> None:
    resources = container.setdefault("resources", {})
    for field in ("limits", "requests"):
        if resources.get(field):
            resources[field] = round_to_millis(resources[field])
    if resources.get("limits"):
        resources["requests"] = {**resources["limits"], **resources.get("requests", {})}
    for port in container.get("ports", ()):
        port.setdefault("protocol", "TCP")
        if host_network and not port.get("hostPort") and "containerPort" in port:
            port["hostPort"] = port["containerPort"]
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        image = str(container.get("image", ""))
        last = image.rpartition("/")[2]
        latest = image.endswith(":latest") or (":" not in last and "@" not in last)
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"


def _pod_volume(volume: Spec) -> None:
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 420)
    if "hostPath" in volume and isinstance(volume["hostPath"], dict):
        volume["hostPath"].setdefault("type", "")
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}


def _covers(toleration: Spec, key: str) -> bool:
    return toleration.get("key", "") in ("", key) and toleration.get("effect", "") in (
        "",
        "NoExecute",
    )


def _merge_keys(term: Spec, labels: Spec) -> None:
    """Keys under which a pod wants to be matched become requirements on its labels of today."""
    selector = term.get("labelSelector")
    if selector is None:  # It matches nothing, and stays so.
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field, ()):
            if key in labels:
                wanted = {"key": key, "operator": operator, "values": [labels[key]]}
                expressions = selector.setdefault("matchExpressions", [])
                if wanted not in expressions:
                    expressions.append(wanted)


def fill(resource: Resource, obj: Object) -> None:
    """Fill in what the object, already checked, leaves open."""
    if not resource.custom and (filler := _FILLERS.get(resource.kind)) is not None:
        filler(obj)


def _pod(obj: Object) -> None:
    fill_pod_spec(obj["spec"])


def _template(obj: Object) -> None:
    template = obj["spec"].get("template")
    if template:
        template.setdefault("metadata", {})
        fill_pod_spec(template.setdefault("spec", {}))


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
            status[field] = round_to_millis(status[field])
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
