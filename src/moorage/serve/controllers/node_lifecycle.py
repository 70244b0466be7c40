"""Nodes that are unwell: taints by condition, and who has to leave because of taints.

Ready is False                      not-ready, NoSchedule and NoExecute
Ready is Unknown                    unreachable, NoSchedule and NoExecute
nobody has heard of it for a while  Ready becomes Unknown, and so does that of its pods
cordoned                            unschedulable, NoSchedule
a pod that does not tolerate        is deleted, at once or after its tolerationSeconds
  a NoExecute taint
a pod on a node that is gone        is taken for lost after a while, and removed
"""

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from moorage.api import selectors
from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.serve import timestamps
from moorage.serve.controllers import objects, pods
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import DeleteObject, RequeueAt, UpdateObject, Write

KIND = "Node"
LEASE = "coordination.k8s.io/Lease"
LEASE_NAMESPACE = "kube-node-lease"
PREFIX = "node.kubernetes.io/"
NOT_READY, UNREACHABLE = f"{PREFIX}not-ready", f"{PREFIX}unreachable"
UNSCHEDULABLE = f"{PREFIX}unschedulable"
# How long a node may stay silent, if its lease does not say.
GRACE_SECONDS = 40.0
OURS = (NOT_READY, UNREACHABLE, UNSCHEDULABLE)
PRESSURES = {
    "MemoryPressure": f"{PREFIX}memory-pressure",
    "DiskPressure": f"{PREFIX}disk-pressure",
    "PIDPressure": f"{PREFIX}pid-pressure",
    "NetworkUnavailable": f"{PREFIX}network-unavailable",
}


def reconcile(node: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Gather the node's lease and pods, and decide."""
    lease = view.get(LEASE, LEASE_NAMESPACE, objects.name(node))
    here = view.pods_on(objects.name(node))
    yield from decide(node, lease, here, now)


def decide(
    node: Object, lease: Object | None, here: Sequence[Object], now: float
) -> Iterator[Write]:
    """The node's condition and taints, and the pods that have to leave."""
    if objects.is_terminating(node):
        return
    silent_at = heard_at(node, lease) + grace_seconds(lease)
    changed = _silent(node, now) if silent_at <= now else node
    changed = tainted(changed, now)
    if changed != node:
        yield UpdateObject(changed)
    if silent_at > now and objects.condition(node, "Ready"):
        yield RequeueAt(silent_at)
    if objects.condition(changed, "Ready").get("status", "True") != "True":
        yield from (UpdateObject(_unready(pod, now)) for pod in here if pods.is_ready(pod))
    for pod in here:
        yield from evicted(pod, objects.spec(changed).get("taints") or [], now)


# Heartbeats ------------------------------------------------------------------------------------


def heard_at(node: Object, lease: Object | None) -> float:
    """When the node's kubelet last gave a sign."""
    beats = [timestamps.to_seconds(objects.condition(node, "Ready").get("lastHeartbeatTime"))]
    beats.append(timestamps.to_seconds(node["metadata"].get("creationTimestamp")))
    if lease is not None:
        beats.append(timestamps.to_seconds(objects.spec(lease).get("renewTime")))
    return max(beats)


def grace_seconds(lease: Object | None) -> float:
    said = None if lease is None else objects.spec(lease).get("leaseDurationSeconds")
    return float(said) if said else GRACE_SECONDS


def _silent(node: Object, now: float) -> Object:
    """The node as it is known after a long silence."""
    return objects.with_condition(
        node,
        timestamps.to_text(now),
        type="Ready",
        status="Unknown",
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
    )


def _unready(pod: Object, now: float) -> Object:
    return objects.with_condition(pod, timestamps.to_text(now), type="Ready", status="False")


# Taints ----------------------------------------------------------------------------------------


def tainted(node: Object, now: float) -> Object:
    """The node with the taints that its conditions call for, and no others of that sort."""
    wanted = wanted_taints(node)
    old: list[dict[str, Any]] = objects.spec(node).get("taints") or []
    ours = {*OURS, *PRESSURES.values()}
    kept = [_dated(t, now) for t in old if t.get("key") not in ours or _pair(t) in wanted]
    there = {_pair(taint) for taint in kept}
    new = []
    for key, effect in wanted:
        if (key, effect) not in there:
            new.append(_dated({"key": key, "effect": effect}, now))
    taints = [*kept, *new]
    if taints == old:
        return node
    spec = {k: v for k, v in objects.spec(node).items() if k != "taints"}
    return {**node, "spec": {**spec, "taints": taints} if taints else spec}


def wanted_taints(node: Object) -> list[tuple[str, str]]:
    ready = objects.condition(node, "Ready").get("status")
    found = []
    key = {"False": NOT_READY, "Unknown": UNREACHABLE}.get(ready or "True")
    if key is not None:
        found += [(key, "NoSchedule"), (key, "NoExecute")]
    found += [
        (taint, "NoSchedule")
        for type_, taint in PRESSURES.items()
        if objects.condition(node, type_).get("status") == "True"
    ]
    if objects.spec(node).get("unschedulable"):
        found.append((UNSCHEDULABLE, "NoSchedule"))
    return found


def _dated(taint: dict[str, Any], now: float) -> dict[str, Any]:
    """A taint that makes pods leave tells since when, whoever put it there."""
    if taint.get("effect") != "NoExecute" or taint.get("timeAdded"):
        return taint
    return {**taint, "timeAdded": timestamps.to_text(now)}


def _pair(taint: dict[str, Any]) -> tuple[str, str]:
    return taint.get("key", ""), taint.get("effect", "")


# Evictions -------------------------------------------------------------------------------------


def evicted(pod: Object, taints: Sequence[dict[str, Any]], now: float) -> Iterator[Write]:
    """Whether a pod has to leave because of its node's taints, and when."""
    if not pods.is_active(pod):
        return
    moments = [leave_at(pod, taint, now) for taint in taints if taint.get("effect") == "NoExecute"]
    at = min((moment for moment in moments if moment is not None), default=None)
    if at is not None and at <= now:
        yield DeleteObject(pod)
    elif at is not None:
        yield RequeueAt(at)


def leave_at(pod: Object, taint: dict[str, Any], now: float) -> float | None:
    """When a pod has to leave because of a taint; None if it may stay for ever."""
    told = msgspec.convert(objects.spec(pod).get("tolerations") or [], tuple[Toleration, ...])
    wanted = msgspec.convert(taint, Taint)
    matching = [each for each in told if selectors.tolerates(each, wanted)]
    # Whoever came after the taint has all of its time still before it.
    arrived = objects.condition(pod, "PodScheduled").get("lastTransitionTime")
    since = max(timestamps.to_seconds(taint.get("timeAdded"), now), timestamps.to_seconds(arrived))
    if not matching:
        return since
    limits = [each.toleration_seconds for each in matching if each.toleration_seconds is not None]
    return since + max(0, min(limits)) if limits else None
