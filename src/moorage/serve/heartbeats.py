"""The kubelets of all nodes, as far as nodes notice them: they register and stay in touch.

A node's annotation `moorage.dev/kubelet` says whether its kubelet works: `not-ready` makes the node
NotReady, `stopped` silences it altogether, and anything else is a kubelet in good health.
"""

from collections.abc import Iterator
from typing import Any

from moorage.serve import times
from moorage.serve.controllers import objects
from moorage.serve.controllers.node_lifecycle import LEASE_NAMESPACE
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import Again, Create, Update, Write

KUBELET = "moorage.dev/kubelet"
NOT_READY, STOPPED = "not-ready", "stopped"

HEARTBEAT_SECONDS = 10.0
# Many nodes beat less often, lest heartbeats are all that the server does.
HEARTBEATS_PER_SECOND = 20
MISSED_HEARTBEATS = 4
USUAL_CAPACITY = {"cpu": "8", "memory": "32Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def health(node: Object) -> str:
    return objects.annotations(node).get(KUBELET, "")


def of_node(node: Object, lease: Object | None, nodes: int, now: float) -> Iterator[Write]:
    """A node registers, stays in touch, and says whether it is ready."""
    if objects.is_terminating(node) or health(node) == STOPPED:
        return
    registered = with_readiness(with_capacity(node), now)
    if registered != node:
        yield Update(registered)
    every = max(HEARTBEAT_SECONDS, nodes / HEARTBEATS_PER_SECOND)
    last = 0.0 if lease is None else times.seconds(objects.spec(lease).get("renewTime"))
    if last + every > now:
        yield Again(last + every)
        return
    fresh = new_lease(node, every * MISSED_HEARTBEATS, now)
    yield Create(fresh) if lease is None else Update({**lease, "spec": fresh["spec"]})
    yield Again(now + every)


def with_capacity(node: Object) -> Object:
    """The node with what it has to offer; one that says nothing gets the usual."""
    status = objects.status(node)
    capacity = status.get("capacity") or status.get("allocatable") or USUAL_CAPACITY
    allocatable = status.get("allocatable") or capacity
    fields: dict[str, Any] = {"capacity": capacity, "allocatable": allocatable}
    if not status.get("addresses"):
        fields["addresses"] = [
            {"type": "InternalIP", "address": address(node)},
            {"type": "Hostname", "address": objects.name(node)},
        ]
    if not status.get("nodeInfo"):
        fields["nodeInfo"] = _node_info(node)
    node = objects.with_status(node, **fields)
    labels = objects.labels(node)
    usual = {
        "kubernetes.io/hostname": objects.name(node),
        "kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
    }
    return objects.with_metadata(node, labels={**usual, **labels})


def with_readiness(node: Object, now: float) -> Object:
    ready = health(node) != NOT_READY
    status = "True" if ready else "False"
    if objects.condition(node, "Ready").get("status") == status:
        return node
    at = times.text(now)
    for type_ in ("MemoryPressure", "DiskPressure", "PIDPressure"):
        if not objects.condition(node, type_):
            node = objects.with_condition(node, at, type=type_, status="False")
    return objects.with_condition(
        node,
        at,
        type="Ready",
        status=status,
        lastHeartbeatTime=at,
        reason="KubeletReady" if ready else "KubeletNotReady",
        message="kubelet is posting ready status" if ready else f"annotation {KUBELET} says so",
    )


def address(node: Object) -> str:
    """The node's own address, or one that looks like it."""
    for each in objects.status(node).get("addresses") or ():
        if each.get("type") == "InternalIP":
            return str(each.get("address", ""))
    number = objects.uid_number(objects.uid(node)) % (256 * 256)
    return f"172.18.{number >> 8}.{number & 255}"


def _node_info(node: Object) -> Object:
    return {
        "architecture": objects.labels(node).get("kubernetes.io/arch", "amd64"),
        "operatingSystem": objects.labels(node).get("kubernetes.io/os", "linux"),
        "osImage": "moorage",
        "kernelVersion": "0",
        "kubeletVersion": "v1.36.0",
        "kubeProxyVersion": "",
        "containerRuntimeVersion": "moorage://0",
        "machineID": "",
        "systemUUID": "",
        "bootID": "",
    }


def new_lease(node: Object, duration_seconds: float, now: float) -> Object:
    """The object by which a node shows that its kubelet is alive."""
    owner = {k: node[k] for k in ("apiVersion", "kind")}
    owner |= {"name": objects.name(node), "uid": objects.uid(node)}
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {
            "name": objects.name(node),
            "namespace": LEASE_NAMESPACE,
            "ownerReferences": [owner],
        },
        "spec": {
            "holderIdentity": objects.name(node),
            "leaseDurationSeconds": int(duration_seconds),
            "renewTime": times.micro_text(now),
        },
    }
