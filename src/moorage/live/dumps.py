"""What queue and cache hold, for people who look for a mistake; and what does not add up."""

from collections.abc import Iterable
from typing import Any

from moorage.api import quantity
from moorage.core.queued_pod import QueuedPod
from moorage.core.scheduler import Scheduler
from moorage.live.reflector import Reflector


def queue(scheduler: Scheduler) -> dict[str, Any]:
    """Every pod that waits, and why."""
    return {
        "counts": scheduler.queue.counts(),
        **{
            place: [_entry(entry) for entry in entries]
            for place, entries in scheduler.queue.dump().items()
        },
    }


def _entry(entry: QueuedPod) -> dict[str, Any]:
    told = {
        "pod": entry.key,
        "uid": entry.uid,
        "schedulerName": entry.pod.spec.scheduler_name,
        "priority": entry.pod.priority,
        "attempts": entry.attempts,
        "queuedAt": entry.queued_at,
        "unschedulablePlugins": sorted(entry.unschedulable_plugins),
        "pendingPlugins": sorted(entry.pending_plugins),
        "gatingPlugin": entry.gating_plugin,
        "nominatedNode": entry.pod.status.nominated_node_name,
    }
    return {name: value for name, value in told.items() if value not in ("", [])}


def cache(scheduler: Scheduler) -> dict[str, Any]:
    """Every node with its pods and what they take; assumed pods are marked."""
    table = scheduler.cluster.table
    nodes = [table.info(row) for row in table.zone_order.rows().tolist()]
    return {
        "nodes": len(nodes),
        "pods": len(scheduler.cache),
        "assumed": sorted(each.pod.key for each in scheduler.cache if each.assumed),
        "table": [
            {
                "node": node.name,
                "pods": sorted(each.pod.key for each in node.placed().values()),
                "requested": _amounts(node, "requested"),
                "allocatable": _amounts(node, "allocatable"),
            }
            for node in nodes
        ],
    }


def _amounts(node: Any, which: str) -> dict[str, str]:
    of = getattr(node, which)
    return {name: quantity.format_value(of(name), name) for name in ("cpu", "memory") if of(name)}


def differences(scheduler: Scheduler, reflectors: Iterable[Reflector]) -> list[str]:
    """What the cache has and the reflectors have not, or the other way round."""
    found: list[str] = []
    for reflector in reflectors:
        if reflector.kind.name == "Node":
            ours = set(scheduler.cluster.table.row_of)
            found += _compared("node", ours, set(reflector.keys()))
        elif reflector.kind.name == "Pod":
            ours = {pod.key for pod in scheduler.known_pods()}
            found += _compared("pod", ours, set(reflector.keys()))
    return found


def _compared(kind: str, ours: set[str], theirs: set[str]) -> list[str]:
    lost = [f"{kind} {key} is not in the cache" for key in sorted(theirs - ours)]
    return lost + [f"{kind} {key} is only in the cache" for key in sorted(ours - theirs)]
