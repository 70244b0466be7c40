"""Defaults: the fields that an API server fills in, per kind, into plain JSON objects.

`api/defaults.py` does the same for structs that a scheduler reads without a server. Here no field
may be lost, so the dict of the request is filled in place.
"""

from collections.abc import Callable
from typing import Any

from moorage.api import limit_ranges, quantity
from moorage.api.pod import DEFAULT_SCHEDULER
from moorage.cluster.objects.stored_kind_defaults import STORED_KIND_DEFAULTS
from moorage.cluster.objects.structs import WORKLOAD_KINDS
from moorage.cluster.resources import Resource
from moorage.controllers.objects import Object

Spec = dict[str, Any]

_NOT_READY = "node.kubernetes.io/not-ready"
_UNREACHABLE = "node.kubernetes.io/unreachable"
_MAX_INT32 = 2**31 - 1


def fill_pod_spec(spec: Spec) -> None:
    """Fill in the defaults of a pod spec, of a pod or of a template."""
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
    """Fill in what only a new pod gets: tolerations, and selectors from its labels."""
    spec = obj["spec"]
    spec.setdefault("enableServiceLinks", True)
    account = spec.get("serviceAccountName") or spec.get("serviceAccount") or "default"
    spec["serviceAccountName"] = spec["serviceAccount"] = account
    labels = obj["metadata"].get("labels", {})
    add_tolerations(spec)
    for constraint in spec.get("topologySpreadConstraints", ()):
        _merge_keys(constraint, labels)
    affinity = spec.get("affinity", {})
    for kind in ("podAffinity", "podAntiAffinity"):
        terms = affinity.get(kind, {})
        for term in terms.get("requiredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(term, labels)
        for weighted in terms.get("preferredDuringSchedulingIgnoredDuringExecution", ()):
            _merge_keys(weighted.get("podAffinityTerm", {}), labels)


def add_tolerations(spec: Spec) -> None:
    """Tolerate a node that is not ready or unreachable for 300 seconds, unless stated otherwise."""
    tolerations = spec.setdefault("tolerations", [])
    for key in (_NOT_READY, _UNREACHABLE):
        if not any(_covers(each, key) for each in tolerations):
            new = {"key": key, "operator": "Exists", "effect": "NoExecute"}
            tolerations.append({**new, "tolerationSeconds": 300})


def qos_class(spec: Spec) -> str:
    """The QoS class: Guaranteed, Burstable or BestEffort."""
    containers = [*spec.get("initContainers", ()), *spec.get("containers", ())]
    resources = [each.get("resources", {}) for each in containers]
    named = [
        {**each.get("requests", {}), **each.get("limits", {})}.keys() & {"cpu", "memory"}
        for each in resources
    ]
    if not any(named):
        return "BestEffort"
    for each in resources:
        limits, requests = each.get("limits", {}), each.get("requests", {})
        for name in ("cpu", "memory"):
            if name not in limits:
                return "Burstable"
            request = requests.get(name, limits[name])
            if quantity.nano(request) != quantity.nano(limits[name]):
                return "Burstable"
    return "Guaranteed"


def round_to_millis(amounts: Spec) -> Spec:
    """Quantities as strings, rounded up to thousandths, as an API server stores them."""
    return {
        name: f"{quantity.milli(each)}m" if quantity.nano(each) % quantity.MICRO else str(each)
        for name, each in amounts.items()
    }


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
    for variable in container.get("env", ()):
        _field_reference(variable.get("valueFrom"))
    container.setdefault("terminationMessagePath", "/dev/termination-log")
    container.setdefault("terminationMessagePolicy", "File")
    if "imagePullPolicy" not in container:
        image = str(container.get("image", ""))
        last = image.rpartition("/")[2]
        latest = image.endswith(":latest") or (":" not in last and "@" not in last)
        container["imagePullPolicy"] = "Always" if latest else "IfNotPresent"


def _field_reference(holder: Any) -> None:
    if isinstance(holder, dict) and isinstance(holder.get("fieldRef"), dict):
        holder["fieldRef"].setdefault("apiVersion", "v1")


def _pod_volume(volume: Spec) -> None:
    for source in ("configMap", "secret", "projected", "downwardAPI"):
        if isinstance(volume.get(source), dict):
            volume[source].setdefault("defaultMode", 420)
    downward = volume.get("downwardAPI")
    for item in (downward.get("items") or ()) if isinstance(downward, dict) else ():
        _field_reference(item)
    if isinstance(volume.get("hostPath"), dict):
        volume["hostPath"].setdefault("type", "")
    if not volume.keys() - {"name"}:
        volume["emptyDir"] = {}


def _covers(toleration: Spec, key: str) -> bool:
    effect = toleration.get("effect", "")
    return toleration.get("key", "") in ("", key) and effect in ("", "NoExecute")


def _merge_keys(term: Spec, labels: Spec) -> None:
    """Add the requirements of matchLabelKeys and mismatchLabelKeys to the selector of a term."""
    selector = term.get("labelSelector")
    if selector is None:  # It matches nothing.
        return
    for field, operator in (("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")):
        for key in term.get(field, ()):
            if key in labels:
                requirement = {"key": key, "operator": operator, "values": [labels[key]]}
                expressions = selector.setdefault("matchExpressions", [])
                if requirement not in expressions:
                    expressions.append(requirement)


# Kinds -----------------------------------------------------------------------------------------

# The defaults of each kind by path, in the order in which they are filled in.
_FIELDS: dict[str, dict[str, Any]] = {
    "Deployment": {
        "spec.replicas": 1,
        "spec.revisionHistoryLimit": 10,
        "spec.progressDeadlineSeconds": 600,
    },
    "ReplicaSet": {"spec.replicas": 1},
    "ReplicationController": {"spec.replicas": 1},
    "StatefulSet": {
        "spec.replicas": 1,
        "spec.podManagementPolicy": "OrderedReady",
        "spec.revisionHistoryLimit": 10,
        "spec.serviceName": "",
        "spec.persistentVolumeClaimRetentionPolicy.whenDeleted": "Retain",
        "spec.persistentVolumeClaimRetentionPolicy.whenScaled": "Retain",
    },
    "DaemonSet": {"spec.revisionHistoryLimit": 10},
    "Job": {
        "spec.parallelism": 1,
        "spec.completionMode": "NonIndexed",
        "spec.suspend": False,
        "spec.manualSelector": False,
    },
    "Service": {"spec.type": "ClusterIP", "spec.sessionAffinity": "None"},
    "PriorityClass": {"value": 0, "preemptionPolicy": "PreemptLowerPriority"},
    "PersistentVolumeClaim": {"spec.volumeMode": "Filesystem", "status.phase": "Pending"},
    "PersistentVolume": {
        "spec.volumeMode": "Filesystem",
        "spec.persistentVolumeReclaimPolicy": "Retain",
    },
    "CronJob": {
        "spec.concurrencyPolicy": "Allow",
        "spec.suspend": False,
        "spec.successfulJobsHistoryLimit": 3,
        "spec.failedJobsHistoryLimit": 1,
    },
    "StorageClass": {"reclaimPolicy": "Delete", "volumeBindingMode": "Immediate"},
    "Secret": {"type": "Opaque"},
    "PodGroup": {"spec.disruptionMode": "Pod"},
    "Queue": {"spec.weight": 1},
}
_WORKLOADS = (*WORKLOAD_KINDS, "ReplicationController")
# The field of the update strategy, and the defaults of its rolling update.
_STRATEGIES: dict[str, tuple[str, Object]] = {
    "Deployment": ("strategy", {"maxUnavailable": "25%", "maxSurge": "25%"}),
    "StatefulSet": ("updateStrategy", {"partition": 0}),
    "DaemonSet": ("updateStrategy", {"maxUnavailable": 1, "maxSurge": 0}),
}


def fill(resource: Resource, obj: Object) -> None:
    """Fill in the defaults of a validated object."""
    kind = resource.built_in_kind
    if kind == "Pod":
        fill_pod_spec(obj.setdefault("spec", {}))
    if kind in _WORKLOADS and (template := obj.setdefault("spec", {}).get("template")):
        template.setdefault("metadata", {})
        fill_pod_spec(template.setdefault("spec", {}))
    if kind == "CronJob":
        _fill_cron_job(obj)
    if kind == "Job":
        _fill_job(obj["spec"])
    for path, value in _FIELDS.get(kind, {}).items():
        *parents, field = path.split(".")
        holder = obj
        for parent in parents:
            holder = holder.setdefault(parent, {})
        holder.setdefault(field, value)
    if kind in _STRATEGIES:
        _fill_strategy(obj["spec"], *_STRATEGIES[kind])
    if (special := _SPECIAL.get(kind)) is not None:
        special(obj)


def _fill_job(spec: Object) -> None:
    if not spec.keys() & {"completions", "parallelism"}:
        spec["completions"] = 1
    policy = "Failed" if "podFailurePolicy" in spec else "TerminatingOrFailed"
    spec.setdefault("podReplacementPolicy", policy)
    spec.setdefault("backoffLimit", 6 if spec.get("backoffLimitPerIndex") is None else _MAX_INT32)
    for rule in (spec.get("podFailurePolicy") or {}).get("rules") or ():
        for pattern in rule.get("onPodConditions") or ():
            pattern.setdefault("status", "True")


def _fill_stateful_set(obj: Object) -> None:
    for claim in obj["spec"].get("volumeClaimTemplates") or ():
        claim.update({"apiVersion": "v1", "kind": "PersistentVolumeClaim"} | claim)
        claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
        claim.setdefault("status", {}).setdefault("phase", "Pending")


def _fill_cron_job(obj: Object) -> None:
    job = obj.setdefault("spec", {}).setdefault("jobTemplate", {})
    job.setdefault("metadata", {})
    spec = job.setdefault("spec", {})
    if template := spec.get("template"):
        template.setdefault("metadata", {})
        fill_pod_spec(template.setdefault("spec", {}))


def _fill_pod_template(obj: Object) -> None:
    template = obj.setdefault("template", {})
    template.setdefault("metadata", {})
    fill_pod_spec(template.setdefault("spec", {}))


def _fill_strategy(spec: Object, field: str, rolling: Object) -> None:
    strategy = spec.setdefault(field, {})
    strategy.setdefault("type", "RollingUpdate")
    if strategy["type"] == "RollingUpdate":
        given = strategy.setdefault("rollingUpdate", {})
        if isinstance(given, dict):
            given.update(rolling | given)


_TEMPLATE_GENERATION = "deprecated.daemonset.template.generation"


def fill_template_generation(obj: Object, before: Object | None = None) -> None:
    """Count the changes of a DaemonSet's template in an annotation, as an API server still does."""
    count = 1
    if before is not None:
        stated = str(before["metadata"].get("annotations", {}).get(_TEMPLATE_GENERATION, "1"))
        count = int(stated) if stated.isdecimal() else 1
        count += before["spec"].get("template") != obj["spec"].get("template")
    meta = obj["metadata"]
    meta["annotations"] = {**meta.get("annotations", {}), _TEMPLATE_GENERATION: str(count)}


def _fill_replication_controller(obj: Object) -> None:
    labels = obj["spec"].get("template", {}).get("metadata", {}).get("labels", {})
    if labels:
        obj["spec"].setdefault("selector", labels)
        if not obj["metadata"].get("labels"):
            obj["metadata"]["labels"] = dict(labels)


def _fill_service(obj: Object) -> None:
    spec, ports = obj["spec"], obj["spec"].get("ports")
    if spec["type"] != "ExternalName":
        family = "IPv6" if ":" in str(spec.get("clusterIP") or "") else "IPv4"
        headless = spec.get("clusterIP") == "None" and not spec.get("selector")
        if headless and not spec.keys() & {"ipFamilies", "ipFamilyPolicy"}:
            # Its endpoints are not known, and may be of both families.
            spec["ipFamilies"], spec["ipFamilyPolicy"] = ["IPv4", "IPv6"], "RequireDualStack"
        spec.setdefault("ipFamilies", [family])
        spec.setdefault("ipFamilyPolicy", "SingleStack")
        spec.setdefault("internalTrafficPolicy", "Cluster")
        if spec.get("clusterIP"):
            spec.setdefault("clusterIPs", [spec["clusterIP"]])
    if spec["type"] in ("NodePort", "LoadBalancer"):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    for port in ports if isinstance(ports, list) else ():
        if isinstance(port, dict):
            port.setdefault("protocol", "TCP")
            if "port" in port:
                # Protobuf always has the field: 0 and "" mean that it is not stated.
                port["targetPort"] = port.get("targetPort") or port["port"]


def _fill_namespace(obj: Object) -> None:
    labels = obj["metadata"].setdefault("labels", {})
    labels["kubernetes.io/metadata.name"] = obj["metadata"]["name"]
    obj.setdefault("spec", {}).setdefault("finalizers", ["kubernetes"])
    obj.setdefault("status", {}).setdefault("phase", "Active")


def _fill_node(obj: Object) -> None:
    obj.setdefault("spec", {})
    status = obj.setdefault("status", {})
    for field in ("capacity", "allocatable"):
        if field in status:
            status[field] = round_to_millis(status[field])
    if "capacity" in status and not status.get("allocatable"):
        status["allocatable"] = dict(status["capacity"])


def _fill_volume(obj: Object) -> None:
    if isinstance(obj["spec"].get("hostPath"), dict):
        obj["spec"]["hostPath"].setdefault("type", "")
    claimed = bool((obj["spec"].get("claimRef") or {}).get("uid"))
    obj.setdefault("status", {}).setdefault("phase", "Bound" if claimed else "Available")


def _fill_claim(obj: Object) -> None:
    _fill_device_requests(obj.setdefault("spec", {}))


def _fill_claim_template(obj: Object) -> None:
    template = obj.setdefault("spec", {})
    template.setdefault("metadata", {})
    _fill_device_requests(template.setdefault("spec", {}))


def _fill_device_requests(spec: Object) -> None:
    for request in spec.get("devices", {}).get("requests", ()):
        exact = [request["exactly"]] if "exactly" in request else []
        for each in (*exact, *request.get("firstAvailable", ())):
            each.setdefault("allocationMode", "ExactCount")
            if each["allocationMode"] == "ExactCount":
                each.setdefault("count", 1)
            for toleration in each.get("tolerations", ()):
                toleration.setdefault("operator", "Equal")


_SPECIAL: dict[str, Callable[[Object], object]] = {
    **STORED_KIND_DEFAULTS,
    "ReplicationController": _fill_replication_controller,
    "Service": _fill_service,
    "Namespace": _fill_namespace,
    "Node": _fill_node,
    "PersistentVolume": _fill_volume,
    "LimitRange": limit_ranges.with_defaults,
    "PodTemplate": _fill_pod_template,
    "StatefulSet": _fill_stateful_set,
    "ResourceClaim": _fill_claim,
    "ResourceClaimTemplate": _fill_claim_template,
}
