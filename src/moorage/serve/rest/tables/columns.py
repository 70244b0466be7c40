"""The columns that `kubectl get` prints of each built-in kind, after the name.

A kind that is not in `COLUMNS` has its age only. To print another column, add it to the kind's
tuple: its header, and the function that reads the cell from an object.
"""

from collections.abc import Callable

from moorage.api import timestamps
from moorage.controllers.objects import Object, value_at
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.cells import NONE, UNKNOWN, UNSET, maps, number, text
from moorage.serve.rest.tables.column import (
    Cell,
    TableColumn,
    boolean_column,
    count_column,
    declared_text,
    integer_column,
    path_cell,
    text_column,
    wide,
)


def _age(obj: Object, now: float) -> str:
    return cells.age(value_at(obj, "metadata", "creationTimestamp"), now)


def _phase(obj: Object, _now: float) -> str:
    deleting = value_at(obj, "metadata", "deletionTimestamp")
    return "Terminating" if deleting else text(obj, "status", "phase")


def _container_columns(*template: str) -> tuple[TableColumn, TableColumn]:
    """Names and images of the containers of a pod template."""

    def all_texts(obj: Object, field: str) -> str:
        found = maps(obj, *template, "spec", "containers")
        return ",".join(text(each, field) for each in found)

    return (
        wide(TableColumn("Containers", lambda obj, now: all_texts(obj, "name"))),
        wide(TableColumn("Images", lambda obj, now: all_texts(obj, "image"))),
    )


def _selector(path: str) -> Cell:
    value = path_cell(path, value_at)
    return lambda obj, now: cells.selector(value(obj, now))


AGE = TableColumn("Age", _age)
CREATED_AT = TableColumn("Created At", path_cell("metadata.creationTimestamp"), "date")
_CONTAINERS = _container_columns("spec", "template")
_TEMPLATE = (*_CONTAINERS, wide(TableColumn("Selector", _selector("spec.selector"))))


# Pods and nodes --------------------------------------------------------------------------------


def _ready_containers(obj: Object, _now: float) -> str:
    statuses = maps(obj, "status", "containerStatuses")
    ready = sum(each.get("ready") is True for each in statuses)
    return f"{ready}/{len(maps(obj, 'spec', 'containers'))}"


def _restarts(obj: Object, _now: float) -> str:
    statuses = maps(obj, "status", "containerStatuses")
    return str(sum(number(each, "restartCount") for each in statuses))


def _readiness_gates(obj: Object, _now: float) -> str:
    gates = maps(obj, "spec", "readinessGates")
    passed = sum(
        cells.condition(obj, text(each, "conditionType")).get("status") == "True" for each in gates
    )
    return f"{passed}/{len(gates)}" if gates else NONE


def pod_status(obj: Object, _now: float) -> str:
    """The STATUS column of a pod."""
    phase = text(obj, "status", "phase")
    reason = text(obj, "status", "reason", default=phase or "Unknown")
    if cells.condition(obj, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    running = False
    for each in reversed(maps(obj, "status", "containerStatuses")):
        waiting, ended = value_at(each, "state", "waiting"), value_at(each, "state", "terminated")
        if text(waiting, "reason"):
            reason = text(waiting, "reason")
        elif isinstance(ended, dict):
            code = f"ExitCode:{number(ended, 'exitCode')}"
            reason = text(ended, "reason", default=code)
        elif each.get("ready") is True and value_at(each, "state", "running") is not None:
            running = True
    if reason == "Completed" and running:
        ready = cells.condition(obj, "Ready").get("status") == "True"
        reason = "Running" if ready else "NotReady"
    if value_at(obj, "metadata", "deletionTimestamp"):
        if text(obj, "status", "reason") == "NodeLost":
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def _node_status(obj: Object, _now: float) -> str:
    ready = cells.condition(obj, "Ready").get("status")
    status = "Ready" if ready == "True" else "NotReady" if ready else "Unknown"
    cordoned = value_at(obj, "spec", "unschedulable") is True
    return f"{status},SchedulingDisabled" if cordoned else status


def _node_roles(obj: Object, _now: float) -> str:
    prefix = "node-role.kubernetes.io/"
    labels = value_at(obj, "metadata", "labels") or {}
    roles = {key.removeprefix(prefix) for key in labels if key.startswith(prefix)}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role"}
    return ",".join(sorted(role for role in roles if role)) or NONE


def _node_address(name: str, type_: str) -> TableColumn:
    def address(obj: Object, _now: float) -> str:
        for each in maps(obj, "status", "addresses"):
            if each.get("type") == type_:
                return text(each, "address", default=NONE)
        return NONE

    return wide(TableColumn(name, address))


# Workloads -------------------------------------------------------------------------------------


def _ready_replicas(obj: Object, _now: float) -> str:
    return f"{number(obj, 'status', 'readyReplicas')}/{number(obj, 'spec', 'replicas')}"


def _job_status(obj: Object, _now: float) -> str:
    for type_ in ("Complete", "Failed", "Suspended"):
        if cells.condition(obj, type_).get("status") == "True":
            return type_
    return "Terminating" if value_at(obj, "metadata", "deletionTimestamp") else "Running"


def _job_completions(obj: Object, _now: float) -> str:
    succeeded = number(obj, "status", "succeeded")
    completions = value_at(obj, "spec", "completions")
    if completions is not None:
        return f"{succeeded}/{completions}"
    parallelism = number(obj, "spec", "parallelism")
    return f"{succeeded}/1 of {parallelism}" if parallelism > 1 else f"{succeeded}/1"


def _job_duration(obj: Object, now: float) -> str:
    started = value_at(obj, "status", "startTime")
    if not started:
        return ""
    ended = timestamps.to_seconds(value_at(obj, "status", "completionTime"), default=now)
    return cells.duration(ended - timestamps.to_seconds(started))


def _last_schedule(obj: Object, now: float) -> str:
    last = value_at(obj, "status", "lastScheduleTime")
    return cells.age(last, now) if last else NONE


# Storage ---------------------------------------------------------------------------------------

_ACCESS_MODES = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}


def _access_modes(part: str) -> Cell:
    modes = path_cell(f"{part}.accessModes", value_at)
    return lambda obj, now: ",".join(
        _ACCESS_MODES.get(str(each), str(each)) for each in modes(obj, now) or ()
    )


def _volume_claim(obj: Object, _now: float) -> str:
    claim = value_at(obj, "spec", "claimRef")
    return f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else ""


def _if_bound(cell: Cell) -> Cell:
    """A cell of a claim that is empty until the claim has a volume."""
    return lambda obj, now: cell(obj, now) if text(obj, "spec", "volumeName") else ""


_ATTRIBUTES_CLASS = text_column("VolumeAttributesClass", "spec.volumeAttributesClassName", UNSET)
_VOLUME_MODE = wide(text_column("VolumeMode", "spec.volumeMode", UNSET))


# Devices ---------------------------------------------------------------------------------------


def _claim_state(obj: Object, _now: float) -> str:
    """The STATE column of a ResourceClaim: `pending`, or `allocated,reserved`."""
    deleted = value_at(obj, "metadata", "deletionTimestamp") is not None
    allocated = value_at(obj, "status", "allocation") is not None
    reserved = allocated and bool(value_at(obj, "status", "reservedFor"))
    states = {
        "deleted": deleted,
        "pending": not deleted and not allocated,
        "allocated": allocated,
        "reserved": reserved,
    }
    return ",".join(state for state, holds in states.items() if holds)


# Pod groups -----------------------------------------------------------------------------------


def _group_policy(obj: Object, _now: float) -> str:
    return "Basic" if value_at(obj, "spec", "schedulingPolicy", "gang") is None else "Gang"


def _group_status(obj: Object, _now: float) -> str:
    """The STATUS column of a PodGroup, by its conditions."""
    shown = {text(each, "type"): each for each in maps(obj, "status", "conditions")}
    if (disrupted := shown.get("DisruptionTarget")) is not None:
        return text(disrupted, "reason")
    if (scheduled := shown.get("PodGroupScheduled")) is None:
        return "Pending"
    return "Scheduled" if text(scheduled, "status") == "True" else "Unschedulable"


# Other kinds -----------------------------------------------------------------------------------


def _external_addresses(obj: Object, _now: float) -> str:
    external = value_at(obj, "spec", "externalIPs")
    if text(obj, "spec", "type") == "ExternalName":
        return text(obj, "spec", "externalName")
    if text(obj, "spec", "type") == "LoadBalancer" and not external:
        ingress = maps(obj, "status", "loadBalancer", "ingress")
        return ",".join(text(each, "ip") for each in ingress) or "<pending>"
    return ",".join(map(str, external)) if isinstance(external, list) and external else NONE


def _service_ports(obj: Object, _now: float) -> str:
    ports = []
    for each in maps(obj, "spec", "ports"):
        node_port = f":{each['nodePort']}" if each.get("nodePort") else ""
        ports.append(f"{text(each, 'port')}{node_port}/{text(each, 'protocol')}")
    return ",".join(ports) or NONE


def _endpoints(obj: Object, _now: float) -> str:
    found = [
        text(address, "ip") + (f":{port['port']}" if "port" in port else "")
        for subset in maps(obj, "subsets")
        for address in maps(subset, "addresses")
        for port in maps(subset, "ports") or [{}]
    ]
    return ",".join(found) or NONE


def _data_count(obj: Object, _now: float) -> int:
    values = (value_at(obj, field) for field in ("data", "binaryData"))
    return sum(len(value) for value in values if isinstance(value, dict))


_DATA = TableColumn("Data", _data_count)


def _component_condition(obj: Object) -> Object:
    found = value_at(obj, "conditions") or ()
    return next((each for each in found if each.get("type") == "Healthy"), {})


def _component_status(obj: Object, now: float) -> str:
    texts = {"True": "Healthy", "False": "Unhealthy"}
    return texts.get(_component_condition(obj).get("status", ""), "Unknown")


def _component_text(field: str) -> Callable[[Object, float], str]:
    return lambda obj, now: str(_component_condition(obj).get(field, ""))


_REPLICAS = (
    integer_column("Desired", "spec.replicas"),
    integer_column("Current", "status.replicas"),
    integer_column("Ready", "status.readyReplicas"),
    AGE,
    *_TEMPLATE,
)


def _audiences(obj: Object, _now: float) -> str:
    found = maps(obj, "spec", "tokenRequests")
    return ",".join(text(each, "audience") for each in found) if found else UNSET


def _lifecycle_modes(obj: Object, _now: float) -> str:
    modes = value_at(obj, "spec", "volumeLifecycleModes")
    return ",".join(map(str, modes)) if isinstance(modes, list) and modes else NONE


_suspends = path_cell("spec.suspend", lambda obj, *path: value_at(obj, *path) is True)

COLUMNS: dict[str, tuple[TableColumn, ...]] = {
    "Pod": (
        TableColumn("Ready", _ready_containers),
        TableColumn("Status", pod_status),
        TableColumn("Restarts", _restarts),
        AGE,
        wide(text_column("IP", "status.podIP", NONE)),
        wide(text_column("Node", "spec.nodeName", NONE)),
        wide(text_column("Nominated Node", "status.nominatedNodeName", NONE)),
        wide(TableColumn("Readiness Gates", _readiness_gates)),
    ),
    "Node": (
        TableColumn("Status", _node_status),
        TableColumn("Roles", _node_roles),
        AGE,
        text_column("Version", "status.nodeInfo.kubeletVersion", UNKNOWN),
        _node_address("Internal-IP", "InternalIP"),
        _node_address("External-IP", "ExternalIP"),
        wide(text_column("OS-Image", "status.nodeInfo.osImage", UNKNOWN)),
        wide(text_column("Kernel-Version", "status.nodeInfo.kernelVersion", UNKNOWN)),
        wide(text_column("Container-Runtime", "status.nodeInfo.containerRuntimeVersion", UNKNOWN)),
    ),
    "Deployment": (
        TableColumn("Ready", _ready_replicas),
        declared_text(integer_column("Up-to-date", "status.updatedReplicas")),
        declared_text(integer_column("Available", "status.availableReplicas")),
        AGE,
        *_TEMPLATE,
    ),
    "ReplicaSet": _REPLICAS,
    "ReplicationController": _REPLICAS,
    "Scale": (
        integer_column("Desired", "spec.replicas"),
        integer_column("Available", "status.replicas"),
        AGE,
    ),
    "StatefulSet": (TableColumn("Ready", _ready_replicas), AGE, *_CONTAINERS),
    "DaemonSet": (
        integer_column("Desired", "status.desiredNumberScheduled"),
        integer_column("Current", "status.currentNumberScheduled"),
        integer_column("Ready", "status.numberReady"),
        integer_column("Up-to-date", "status.updatedNumberScheduled"),
        integer_column("Available", "status.numberAvailable"),
        TableColumn("Node Selector", _selector("spec.template.spec.nodeSelector")),
        AGE,
        *_TEMPLATE,
    ),
    "Job": (
        TableColumn("Status", _job_status),
        TableColumn("Completions", _job_completions),
        TableColumn("Duration", _job_duration),
        AGE,
        *_TEMPLATE,
    ),
    "CronJob": (
        text_column("Schedule", "spec.schedule"),
        text_column("Timezone", "spec.timeZone", NONE),
        TableColumn("Suspend", lambda obj, now: str(_suspends(obj, now)), "boolean"),
        count_column("Active", "status.active"),
        TableColumn("Last Schedule", _last_schedule),
        AGE,
        *_container_columns("spec", "jobTemplate", "spec", "template"),
        wide(TableColumn("Selector", lambda obj, now: NONE)),
    ),
    "PodDisruptionBudget": (
        text_column("Min Available", "spec.minAvailable", "N/A"),
        text_column("Max Unavailable", "spec.maxUnavailable", "N/A"),
        integer_column("Allowed Disruptions", "status.disruptionsAllowed"),
        AGE,
    ),
    "PersistentVolume": (
        text_column("Capacity", "spec.capacity.storage"),
        TableColumn("Access Modes", _access_modes("spec")),
        text_column("Reclaim Policy", "spec.persistentVolumeReclaimPolicy"),
        TableColumn("Status", _phase),
        TableColumn("Claim", _volume_claim),
        text_column("StorageClass", "spec.storageClassName"),
        _ATTRIBUTES_CLASS,
        text_column("Reason", "status.reason"),
        AGE,
        _VOLUME_MODE,
    ),
    "PersistentVolumeClaim": (
        TableColumn("Status", _phase),
        text_column("Volume", "spec.volumeName"),
        TableColumn("Capacity", _if_bound(path_cell("status.capacity.storage"))),
        TableColumn("Access Modes", _if_bound(_access_modes("status"))),
        text_column("StorageClass", "spec.storageClassName"),
        _ATTRIBUTES_CLASS,
        AGE,
        _VOLUME_MODE,
    ),
    "StorageClass": (
        text_column("Provisioner", "provisioner"),
        text_column("ReclaimPolicy", "reclaimPolicy", "Delete"),
        text_column("VolumeBindingMode", "volumeBindingMode", "Immediate"),
        declared_text(boolean_column("AllowVolumeExpansion", "allowVolumeExpansion")),
        AGE,
    ),
    "CSINode": (count_column("Drivers", "spec.drivers"), AGE),
    "CSIDriver": (
        TableColumn(
            "AttachRequired",
            lambda obj, now: value_at(obj, "spec", "attachRequired") is not False,
            "boolean",
        ),
        boolean_column("PodInfoOnMount", "spec.podInfoOnMount"),
        boolean_column("StorageCapacity", "spec.storageCapacity"),
        TableColumn("TokenRequests", _audiences),
        boolean_column("RequiresRepublish", "spec.requiresRepublish"),
        TableColumn("Modes", _lifecycle_modes),
        AGE,
    ),
    "VolumeAttachment": (
        text_column("Attacher", "spec.attacher"),
        text_column("PV", "spec.source.persistentVolumeName"),
        text_column("Node", "spec.nodeName"),
        boolean_column("Attached", "status.attached"),
        AGE,
    ),
    "Namespace": (text_column("Status", "status.phase"), AGE),
    "Service": (
        text_column("Type", "spec.type", "ClusterIP"),
        text_column("Cluster-IP", "spec.clusterIP", NONE),
        TableColumn("External-IP", _external_addresses),
        TableColumn("Port(s)", _service_ports),
        AGE,
        wide(TableColumn("Selector", _selector("spec.selector"))),
    ),
    "Endpoints": (TableColumn("Endpoints", _endpoints), AGE),
    "ComponentStatus": (
        TableColumn("Status", _component_status),
        TableColumn("Message", _component_text("message")),
        TableColumn("Error", _component_text("error")),
    ),
    "ConfigMap": (_DATA, AGE),
    "Secret": (text_column("Type", "type"), _DATA, AGE),
    "Lease": (text_column("Holder", "spec.holderIdentity"), AGE),
    "PriorityClass": (
        integer_column("Value", "value"),
        boolean_column("Global-Default", "globalDefault"),
        AGE,
        text_column("PreemptionPolicy", "preemptionPolicy"),
    ),
    "PodGroup": (
        TableColumn("Policy", _group_policy),
        text_column("Workload", "spec.podGroupTemplateRef.workload.workloadName", NONE),
        TableColumn("Status", _group_status),
        AGE,
    ),
    "Queue": (
        text_column("Parent", "spec.parent", NONE),
        integer_column("Weight", "spec.weight"),
        AGE,
    ),
    "ResourceClaim": (TableColumn("State", _claim_state), AGE),
    "ResourceSlice": (
        text_column("Node", "spec.nodeName"),
        text_column("Driver", "spec.driver"),
        text_column("Pool", "spec.pool.name"),
        AGE,
    ),
    "CustomResourceDefinition": (CREATED_AT,),
}
