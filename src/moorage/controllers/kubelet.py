"""The kubelets of all nodes: pods start, run, succeed and end; nodes register and send heartbeats.

    bound, all claims ready                 Running after START_SECONDS
    running                                 Ready after the initial delay of its probes, if the
                                            conditions of its readiness gates are true
    moorage.dev/run-seconds passed          Succeeded, or Failed with moorage.dev/exit-code
    being deleted                           removed after moorage.dev/stop-seconds (default one
                                            second) and `preStop.sleep`, never later than the
                                            grace period

A node's annotation `moorage.dev/kubelet` sets the health of its kubelet: `not-ready` makes the node
NotReady, `stopped` stops heartbeats and pods, and any other value is a healthy kubelet.
"""

import hashlib
import math
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from moorage.api import requests, timestamps
from moorage.controllers import objects, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.node_lifecycle import LEASE, LEASE_NAMESPACE
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, RequeueAt, Update, Write

RUN_SECONDS = "moorage.dev/run-seconds"
STOP_SECONDS = "moorage.dev/stop-seconds"
EXIT_CODE = "moorage.dev/exit-code"
KUBELET_ANNOTATION = "moorage.dev/kubelet"
NOT_READY, STOPPED = "not-ready", "stopped"

START_SECONDS = 0.5
DEFAULT_STOP_SECONDS = 1.0
STOPPED_EXIT_CODE = 143  # of a container that ends on SIGTERM
POD_CONDITIONS = ("Initialized", "Ready", "ContainersReady", "PodScheduled")

HEARTBEAT_SECONDS = 10.0
# In large clusters each node sends heartbeats less often, to limit the load on the server.
HEARTBEATS_PER_SECOND = 20
MISSED_HEARTBEATS = 4
DEFAULT_CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}
NODE_INFO = {
    "osImage": "moorage",
    "kernelVersion": "0",
    "kubeletVersion": "v1.36.0",
    "kubeProxyVersion": "",
    "containerRuntimeVersion": "moorage://0",
    **dict.fromkeys(("machineID", "systemUUID", "bootID"), ""),
}


def kubelet_health(node: Object) -> str:
    return objects.annotations(node).get(KUBELET_ANNOTATION, "")


# Pods ------------------------------------------------------------------------------------------


def reconcile_pod(
    pod: Object,
    node: Object | None,
    bound_at: float,
    now: float,
    *,
    claims_ready: bool,
    ports_free: bool = True,
) -> Iterator[Write]:
    """Start, finish or remove a pod; `bound_at` is when its kubelet first saw it."""
    if node is None or kubelet_health(node) == STOPPED:
        return
    if objects.is_terminating(pod):
        yield from _terminate(pod, now)
    elif pods.is_ended(pod) or kubelet_health(node) == NOT_READY:
        return
    elif pods.phase(pod) != "Running":
        if not ports_free:
            yield Update(objects.with_status(pod, phase="Failed", **_PORTS_TAKEN))
        elif claims_ready:
            at = bound_at + START_SECONDS
            yield Update(running_pod(pod, node, now)) if at <= now else RequeueAt(at)
    elif (at := _probed_at(pod, now)) > now:
        yield RequeueAt(at)
    elif (probed := with_pod_readiness(pod, now)) != pod:
        yield Update(probed)
    else:
        yield from _finish(pod, now)


_PORTS_TAKEN = {
    "reason": "NodePorts",
    "message": "Pod was rejected: Predicate NodePorts failed: node(s) didn't have free ports for "
    "the requested pod ports",
}


def has_free_ports(pod: Object, others: Iterable[Object]) -> bool:
    """Whether no other pod of the node uses the host ports of a pod.

    The scheduler sees to it, but a pod may be created on a node.
    """
    taken = {
        port
        for other in others
        if pods.phase(other) == "Running" and objects.uid(other) != objects.uid(pod)
        for port in host_ports(other)
    }
    return not any(
        (port, protocol) == (other, its_protocol)
        and (address == its or "0.0.0.0" in (address, its))
        for address, protocol, port in host_ports(pod)
        for its, its_protocol, other in taken
    )


def host_ports(pod: Object) -> list[tuple[str, str, int]]:
    """The address, protocol and number of each port that a pod takes on its node."""
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in objects.spec(pod).get("containers") or ()
        for port in container.get("ports") or ()
        if port.get("hostPort")
    ]


def annotated_seconds(annotations: Mapping[str, str], name: str) -> float | None:
    """A duration from an annotation; None if it is absent or malformed."""
    try:
        value = float(annotations[name])
    except (KeyError, ValueError):
        return None
    return value if 0 <= value < math.inf else None


def stop_seconds(annotations: Mapping[str, str], default_seconds: float) -> float:
    """How long a pod takes to stop, if its grace period allows it: its own time or the default."""
    own = annotated_seconds(annotations, STOP_SECONDS)
    return default_seconds if own is None else own


def exit_code(annotations: Mapping[str, str]) -> int:
    """The code with which the containers of a pod end when its run time is over."""
    text = annotations.get(EXIT_CODE, "0")
    return int(text) if text.isdecimal() else 0


def end_phase(code: int) -> str:
    return "Failed" if code else "Succeeded"


def _terminate(pod: Object, now: float) -> Iterator[Write]:
    grace = pod["metadata"].get("deletionGracePeriodSeconds") or 0
    # The deletion timestamp is the end of the grace period.
    deleted_at = timestamps.to_seconds(pod["metadata"].get("deletionTimestamp"), now) - grace
    stopping = stop_seconds(objects.annotations(pod), DEFAULT_STOP_SECONDS)
    stops_at = deleted_at + min(float(grace), stopping + _pre_stop_seconds(pod))
    if stops_at > now and not pods.is_ended(pod):
        yield RequeueAt(stops_at)
        return
    if objects.finalizers(pod) and not pods.is_ended(pod):
        # The owner of the finalizer, such as the Job controller, reads how the pod ended.
        yield Update(ended_pod(pod, "Failed", STOPPED_EXIT_CODE, now))
    yield Delete(pod, grace_seconds=0)


def _pre_stop_seconds(pod: Object) -> float:
    """How long the longest `preStop.sleep` of its containers takes."""
    sleeps = (
        objects.value_at(container, "lifecycle", "preStop", "sleep", "seconds") or 0
        for container in objects.spec(pod).get("containers") or ()
    )
    return float(max(sleeps, default=0))


def _probed_at(pod: Object, now: float) -> float:
    """When the first probes of a running pod succeed: after the longest of their delays."""
    delays = [
        sum(
            objects.value_at(container, probe, "initialDelaySeconds") or 0
            for probe in ("startupProbe", "readinessProbe")
        )
        for container in objects.spec(pod).get("containers") or ()
    ]
    delay = max(delays, default=0)
    started = objects.status(pod).get("startTime")
    return timestamps.to_seconds(started, now) + delay if delay else now


def with_pod_readiness(pod: Object, now: float) -> Object:
    """A running pod with its readiness: that of its containers, and its readiness gates."""
    at, ready = timestamps.to_text(now), _probed_at(pod, now) <= now
    gates = [
        each.get("conditionType", "") for each in objects.spec(pod).get("readinessGates") or ()
    ]
    closed = [each for each in gates if not objects.is_condition_true(pod, each)]
    containers_ready = pod_ready = {"status": "True"}
    if not ready:
        named = objects.spec(pod).get("containers") or ()
        names = ", ".join(str(each.get("name")) for each in named)
        containers_ready = pod_ready = {
            "status": "False",
            "reason": "ContainersNotReady",
            "message": f"containers with unready status: [{names}]",
        }
    elif closed:
        pod_ready = {
            "status": "False",
            "reason": "ReadinessGatesNotReady",
            "message": "; ".join(_gate_text(pod, gate) for gate in closed),
        }
    conditions = objects.status(pod).get("conditions") or []
    for type_, state in (("ContainersReady", containers_ready), ("Ready", pod_ready)):
        conditions = objects.set_condition(conditions, {"type": type_, **state}, at)
    statuses = [
        {**each, "ready": ready, "started": True}
        for each in objects.status(pod).get("containerStatuses") or ()
    ]
    return objects.with_status(pod, conditions=conditions, containerStatuses=statuses)


def _gate_text(pod: Object, gate: str) -> str:
    found = objects.condition(pod, gate)
    if not found:
        return f'corresponding condition of pod readiness gate "{gate}" does not exist.'
    state = found.get("status", "")
    return f'the status of pod readiness gate "{gate}" is not "True", but {state}'


def _finish(pod: Object, now: float) -> Iterator[Write]:
    """End a pod whose run time is over."""
    run_seconds = annotated_seconds(objects.annotations(pod), RUN_SECONDS)
    if run_seconds is None:
        return
    at = timestamps.to_seconds(objects.status(pod).get("startTime"), now) + run_seconds
    if at > now:
        yield RequeueAt(at)
        return
    code = exit_code(objects.annotations(pod))
    yield Update(ended_pod(pod, end_phase(code), code, now))


def running_pod(pod: Object, node: Object, now: float) -> Object:
    """The pod with all its containers running."""
    at = timestamps.to_text(now)
    conditions = objects.status(pod).get("conditions") or []
    for type_ in POD_CONDITIONS:
        # Reasons and messages, such as those of the scheduler, are obsolete now.
        old = objects.condition(pod, type_).items()
        new = {key: value for key, value in old if key not in ("reason", "message")}
        new |= {"type": type_, "status": "True"}
        conditions = objects.set_condition(conditions, new, at)
    address = made_up_address("10.244", pod)
    pod = objects.with_status(
        pod,
        phase="Running",
        conditions=conditions,
        hostIP=node_address(node),
        hostIPs=[{"ip": node_address(node)}],
        podIP=address,
        podIPs=[{"ip": address}],
        startTime=objects.status(pod).get("startTime") or at,
        containerStatuses=_container_statuses(pod, {"running": {"startedAt": at}}, ready=True),
    )
    return with_pod_readiness(pod, now)


def ended_pod(pod: Object, phase: str, code: int, now: float) -> Object:
    """The pod with all its containers terminated."""
    at = timestamps.to_text(now)
    succeeded = phase == "Succeeded"
    for type_ in ("Ready", "ContainersReady"):
        reason = "PodCompleted" if succeeded else "PodFailed"
        pod = objects.with_condition(pod, at, type=type_, status="False", reason=reason)
    ended = {
        "exitCode": code,
        "reason": "Completed" if succeeded else "Error",
        "startedAt": objects.status(pod).get("startTime") or at,
        "finishedAt": at,
    }
    statuses = _container_statuses(pod, {"terminated": ended}, ready=False)
    return objects.with_status(pod, phase=phase, containerStatuses=statuses)


def _container_statuses(pod: Object, state: Object, *, ready: bool) -> list[Object]:
    return [
        {
            "name": container.get("name", ""),
            "image": container.get("image", ""),
            "imageID": "",
            "ready": ready,
            "started": ready,
            "restartCount": 0,
            "state": state,
        }
        for container in objects.spec(pod).get("containers") or ()
    ]


def made_up_address(network: str, obj: Object) -> str:
    """An address that depends on the UID of a pod or node; no process listens there."""
    digest = hashlib.blake2b(objects.uid(obj).encode(), digest_size=8).digest()
    return f"{network}.{digest[-2]}.{digest[-1]}"


# Nodes -----------------------------------------------------------------------------------------


def reconcile_node(node: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Register a node, renew its lease and set its readiness."""
    if objects.is_terminating(node) or kubelet_health(node) == STOPPED:
        return
    yield from writes.update_if_changed(node, with_readiness(with_capacity(node), now))
    interval = max(HEARTBEAT_SECONDS, index.count("Node") / HEARTBEATS_PER_SECOND)
    lease = index.get(LEASE, LEASE_NAMESPACE, objects.name(node))
    last = 0.0 if lease is None else timestamps.to_seconds(objects.spec(lease).get("renewTime"))
    if last + interval > now:
        yield RequeueAt(last + interval)
        return
    renewed = new_lease(node, interval * MISSED_HEARTBEATS, now)
    yield Create(renewed) if lease is None else Update({**lease, "spec": renewed["spec"]})
    yield RequeueAt(now + interval)


def with_capacity(node: Object) -> Object:
    """The node with capacity, addresses and labels; missing ones get defaults."""
    status = objects.status(node)
    capacity = status.get("capacity") or status.get("allocatable") or DEFAULT_CAPACITY
    allocatable = status.get("allocatable") or capacity
    # Clients add extended resources to the capacity; a kubelet copies them.
    extended = {name: amount for name, amount in capacity.items() if requests.is_extended(name)}
    kept = {
        name: amount
        for name, amount in allocatable.items()
        if name in capacity or not requests.is_extended(name)
    }
    allocatable = {**extended, **kept}
    fields: dict[str, Any] = {"capacity": capacity, "allocatable": allocatable}
    if not status.get("addresses"):
        fields["addresses"] = [
            {"type": "InternalIP", "address": node_address(node)},
            {"type": "Hostname", "address": objects.name(node)},
        ]
    labels = {
        "kubernetes.io/hostname": objects.name(node),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        **objects.labels(node),
    }
    if not status.get("nodeInfo"):
        system = {"architecture": labels["kubernetes.io/arch"]}
        system["operatingSystem"] = labels["kubernetes.io/os"]
        fields["nodeInfo"] = {**system, **NODE_INFO}
    return objects.with_metadata(objects.with_status(node, **fields), labels=labels)


# Reason and message of the conditions of a node that lacks nothing.
_NO_PRESSURE = {
    "MemoryPressure": ("KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    "DiskPressure": ("KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    "PIDPressure": ("KubeletHasSufficientPID", "kubelet has sufficient PID available"),
}


def with_readiness(node: Object, now: float) -> Object:
    ready = kubelet_health(node) != NOT_READY
    status = "True" if ready else "False"
    if objects.condition(node, "Ready").get("status") == status:
        return node
    at = timestamps.to_text(now)
    for type_, (reason, message) in _NO_PRESSURE.items():
        if not objects.condition(node, type_):
            stated = {"type": type_, "status": "False", "reason": reason, "message": message}
            node = objects.with_condition(node, at, lastHeartbeatTime=at, **stated)
    not_ready = f"annotation {KUBELET_ANNOTATION} says so"
    return objects.with_condition(
        node,
        at,
        type="Ready",
        status=status,
        lastHeartbeatTime=at,
        reason="KubeletReady" if ready else "KubeletNotReady",
        message="kubelet is posting ready status" if ready else not_ready,
    )


def node_address(node: Object) -> str:
    """The node's internal address, or a made-up one."""
    for each in objects.status(node).get("addresses") or ():
        if each.get("type") == "InternalIP":
            return str(each.get("address", ""))
    return made_up_address("172.18", node)


def new_lease(node: Object, duration_seconds: float, now: float) -> Object:
    """The lease by which a node shows that its kubelet runs."""
    name = objects.name(node)
    owners = [objects.reference(node)]
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": LEASE_NAMESPACE, "ownerReferences": owners},
        "spec": {
            "holderIdentity": name,
            "leaseDurationSeconds": int(duration_seconds),
            "renewTime": timestamps.to_micro_text(now),
        },
    }
