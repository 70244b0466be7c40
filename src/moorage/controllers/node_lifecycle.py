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

from moorage.api import selectors, timestamps
from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.controllers import objects, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Delete, RequeueAt, Update, Write

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
    """Set the node's condition and taints, and evict pods."""
    if objects.is_terminating(node):
        return
    lease = index.get(LEASE, LEASE_NAMESPACE, objects.name(node))
    on_node = index.pods_on(objects.name(node))
    unreachable_at = last_heartbeat(node, lease) + grace_seconds(lease)
    changed, at = node, timestamps.to_text(now)
    if unreachable_at <= now:
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown"}
        text = "Kubelet stopped posting node status."
        changed = objects.with_condition(node, at, **unknown, message=text)
    changed = with_taints(changed, at)
    yield from writes.update_if_changed(node, changed)
    if unreachable_at > now and objects.condition(node, "Ready"):
        yield RequeueAt(unreachable_at)
    if objects.condition(changed, "Ready").get("status", "True") != "True":
        for pod in on_node:
            if pods.is_ready(pod):
                yield Update(objects.with_condition(pod, at, type="Ready", status="False"))
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


def with_taints(node: Object, at: str) -> Object:
    """The node with the taints for its conditions; other taints of users are kept."""
    required = condition_taints(node)
    old: list[dict[str, Any]] = objects.spec(node).get("taints") or []
    kept = [t for t in old if t.get("key") not in MANAGED_TAINTS or _key_effect(t) in required]
    existing = set(map(_key_effect, kept))
    new = [{"key": k, "effect": effect} for k, effect in required if (k, effect) not in existing]
    # A NoExecute taint gets `timeAdded`, whether a user or this controller added it.
    taints = [
        {**taint, "timeAdded": at}
        if taint.get("effect") == "NoExecute" and not taint.get("timeAdded")
        else taint
        for taint in (*kept, *new)
    ]
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


def _key_effect(taint: dict[str, Any]) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


def evict(pod: Object, taints: Sequence[dict[str, Any]], now: float) -> Iterator[Write]:
    """Delete a pod that does not tolerate the NoExecute taints of its node, or requeue it."""
    if not pods.is_active(pod):
        return
    times = [evict_at(pod, taint, now) for taint in taints if taint.get("effect") == "NoExecute"]
    at = min((at for at in times if at is not None), default=None)
    if at is not None:
        yield Delete(pod) if at <= now else RequeueAt(at)


def evict_at(pod: Object, taint: dict[str, Any], now: float) -> float | None:
    """When a taint evicts a pod; None if the pod tolerates it without a limit."""
    given, typed = objects.spec(pod).get("tolerations") or [], msgspec.convert(taint, Taint)
    tolerations = msgspec.convert(given, list[Toleration])
    matching = [each for each in tolerations if selectors.tolerates(each, typed)]
    # A pod that arrived after the taint has its whole toleration time from then on.
    arrived = objects.condition(pod, "PodScheduled").get("lastTransitionTime")
    since = max(timestamps.to_seconds(taint.get("timeAdded"), now), timestamps.to_seconds(arrived))
    if not matching:
        return since
    limits = [each.toleration_seconds for each in matching if each.toleration_seconds is not None]
    return since + max(0, min(limits)) if limits else None
