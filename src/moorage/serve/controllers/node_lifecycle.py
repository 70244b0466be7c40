"""Node lifecycle: heartbeats, taints for conditions, and eviction of pods by taints.

Ready is False                    taint not-ready, NoSchedule and NoExecute
Ready is Unknown                  taint unreachable, NoSchedule and NoExecute
no heartbeat for the grace period set Ready to Unknown, and the pods to not ready
cordoned                          taint unschedulable, NoSchedule
a NoExecute taint that a pod      delete the pod, at once or after its tolerationSeconds
  does not tolerate
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from moorage.api import selectors
from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.serve import timestamps
from moorage.serve.controllers import objects, pods, writes
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import DeleteObject, RequeueAt, UpdateObject, Write

LEASE = "coordination.k8s.io/Lease"
LEASE_NAMESPACE = "kube-node-lease"
PREFIX = "node.kubernetes.io/"
NOT_READY, UNREACHABLE = f"{PREFIX}not-ready", f"{PREFIX}unreachable"
UNSCHEDULABLE = f"{PREFIX}unschedulable"
# How long a node may miss heartbeats, if its lease has no duration.
GRACE_SECONDS = 40.0
PRESSURE_TAINTS = {
    "MemoryPressure": f"{PREFIX}memory-pressure",
    "DiskPressure": f"{PREFIX}disk-pressure",
    "PIDPressure": f"{PREFIX}pid-pressure",
    "NetworkUnavailable": f"{PREFIX}network-unavailable",
}
MANAGED_TAINTS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE, *PRESSURE_TAINTS.values())


def reconcile(node: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Collect the node's lease and pods, and decide."""
    lease = index.get(LEASE, LEASE_NAMESPACE, objects.name(node))
    yield from decide(node, lease, index.pods_on(objects.name(node)), now)


def decide(
    node: Object, lease: Object | None, on_node: Sequence[Object], now: float
) -> Iterator[Write]:
    """The node's condition and taints, and the pods to evict."""
    if objects.is_terminating(node):
        return
    unreachable_at = last_heartbeat(node, lease) + grace_seconds(lease)
    changed = _with_unknown_status(node, now) if unreachable_at <= now else node
    changed = with_taints(changed, now)
    yield from writes.update_if_changed(node, changed)
    if unreachable_at > now and objects.condition(node, "Ready"):
        yield RequeueAt(unreachable_at)
    if objects.condition(changed, "Ready").get("status", "True") != "True":
        at = timestamps.to_text(now)
        for pod in on_node:
            if pods.is_ready(pod):
                yield UpdateObject(objects.with_condition(pod, at, type="Ready", status="False"))
    for pod in on_node:
        yield from evict(pod, objects.spec(changed).get("taints") or [], now)


def last_heartbeat(node: Object, lease: Object | None) -> float:
    """When the node's kubelet last renewed its lease or its status."""
    times = [
        objects.condition(node, "Ready").get("lastHeartbeatTime"),
        node["metadata"].get("creationTimestamp"),
    ]
    if lease is not None:
        times.append(objects.spec(lease).get("renewTime"))
    return max(map(timestamps.to_seconds, times))


def grace_seconds(lease: Object | None) -> float:
    duration = None if lease is None else objects.spec(lease).get("leaseDurationSeconds")
    return float(duration) if duration else GRACE_SECONDS


def _with_unknown_status(node: Object, now: float) -> Object:
    return objects.with_condition(
        node,
        timestamps.to_text(now),
        type="Ready",
        status="Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
    )


def with_taints(node: Object, now: float) -> Object:
    """The node with the taints for its conditions; other taints of users are kept."""
    required = condition_taints(node)
    old: list[dict[str, Any]] = objects.spec(node).get("taints") or []
    kept = [t for t in old if t.get("key") not in MANAGED_TAINTS or _key_effect(t) in required]
    existing = set(map(_key_effect, kept))
    new = [
        {"key": key, "effect": effect} for key, effect in required if (key, effect) not in existing
    ]
    taints = [_with_time_added(taint, now) for taint in (*kept, *new)]
    if taints == old:
        return node
    spec = {k: v for k, v in objects.spec(node).items() if k != "taints"}
    return {**node, "spec": {**spec, "taints": taints} if taints else spec}


def condition_taints(node: Object) -> list[tuple[str, str]]:
    """Key and effect of the taints that the node's conditions require."""
    ready = objects.condition(node, "Ready").get("status")
    found = []
    key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready or "True")
    if key is not None:
        found += [(key, "NoSchedule"), (key, "NoExecute")]
    found += [
        (taint, "NoSchedule")
        for type_, taint in PRESSURE_TAINTS.items()
        if objects.is_condition_true(node, type_)
    ]
    if objects.spec(node).get("unschedulable"):
        found.append((UNSCHEDULABLE, "NoSchedule"))
    return found


def _with_time_added(taint: dict[str, Any], now: float) -> dict[str, Any]:
    """A NoExecute taint gets `timeAdded`, whether a user or this controller added it."""
    if taint.get("effect") != "NoExecute" or taint.get("timeAdded"):
        return taint
    return {**taint, "timeAdded": timestamps.to_text(now)}


def _key_effect(taint: dict[str, Any]) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def evict(pod: Object, taints: Sequence[dict[str, Any]], now: float) -> Iterator[Write]:
    """Delete a pod that does not tolerate the NoExecute taints of its node, or requeue it."""
    if not pods.is_active(pod):
        return
    times = [evict_at(pod, taint, now) for taint in taints if taint.get("effect") == "NoExecute"]
    at = min((at for at in times if at is not None), default=None)
    if at is not None:
        yield DeleteObject(pod) if at <= now else RequeueAt(at)


def evict_at(pod: Object, taint: dict[str, Any], now: float) -> float | None:
    """When a taint evicts a pod; None if the pod tolerates it without a limit."""
    tolerations = msgspec.convert(
        objects.spec(pod).get("tolerations") or [], tuple[Toleration, ...]
    )
    typed = msgspec.convert(taint, Taint)
    matching = [each for each in tolerations if selectors.tolerates(each, typed)]
    # A pod that arrived after the taint has its whole toleration time from then on.
    arrived = objects.condition(pod, "PodScheduled").get("lastTransitionTime")
    since = max(timestamps.to_seconds(taint.get("timeAdded"), now), timestamps.to_seconds(arrived))
    if not matching:
        return since
    limits = [each.toleration_seconds for each in matching if each.toleration_seconds is not None]
    return since + max(0, min(limits)) if limits else None
