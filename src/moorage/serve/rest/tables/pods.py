"""Pods and nodes."""

from typing import Any

from moorage.serve.controllers.objects import Object
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.cells import NONE, UNKNOWN, Column, at, maps, number, text, wide

POD_COLUMNS = (
    Column("Ready"),
    Column("Status"),
    Column("Restarts"),
    Column("Age"),
    wide("IP"),
    wide("Node"),
    wide("Nominated Node"),
    wide("Readiness Gates"),
)
NODE_COLUMNS = (
    Column("Status"),
    Column("Roles"),
    Column("Age"),
    Column("Version"),
    wide("Internal-IP"),
    wide("External-IP"),
    wide("OS-Image"),
    wide("Kernel-Version"),
    wide("Container-Runtime"),
)
_ROLE = "node-role.kubernetes.io/"


def pod(obj: Object, now: float) -> list[Any]:
    """A pod's cells."""
    statuses = maps(obj, "status", "containerStatuses")
    ready = sum(each.get("ready") is True for each in statuses)
    total = len(maps(obj, "spec", "containers"))
    restarts = sum(number(each, "restartCount") for each in statuses)
    gates = maps(obj, "spec", "readinessGates")
    passed = sum(
        cells.condition(obj, text(each, "conditionType")).get("status") == "True" for each in gates
    )
    return [
        f"{ready}/{total}",
        pod_status(obj),
        str(restarts),
        cells.age(at(obj, "metadata", "creationTimestamp"), now),
        text(obj, "status", "podIP", otherwise=NONE),
        text(obj, "spec", "nodeName", otherwise=NONE),
        text(obj, "status", "nominatedNodeName", otherwise=NONE),
        f"{passed}/{len(gates)}" if gates else NONE,
    ]


def pod_status(obj: Object) -> str:
    """The one word that says how a pod is doing."""
    phase = text(obj, "status", "phase")
    reason = text(obj, "status", "reason", otherwise=phase or "Unknown")
    if cells.condition(obj, "PodScheduled").get("reason") == "SchedulingGated":
        reason = "SchedulingGated"
    running = False
    for each in reversed(maps(obj, "status", "containerStatuses")):
        waiting, ended = at(each, "state", "waiting"), at(each, "state", "terminated")
        if text(waiting, "reason"):
            reason = text(waiting, "reason")
        elif isinstance(ended, dict):
            code = f"ExitCode:{number(ended, 'exitCode')}"
            reason = text(ended, "reason", otherwise=code)
        elif each.get("ready") is True and at(each, "state", "running") is not None:
            running = True
    if reason == "Completed" and running:
        ready = cells.condition(obj, "Ready").get("status") == "True"
        reason = "Running" if ready else "NotReady"
    if at(obj, "metadata", "deletionTimestamp"):
        if text(obj, "status", "reason") == "NodeLost":
            return "Unknown"
        if phase not in ("Succeeded", "Failed"):
            return "Terminating"
    return reason


def node(obj: Object, now: float) -> list[Any]:
    """A node's cells."""
    state = cells.condition(obj, "Ready").get("status")
    words = ["Ready" if state == "True" else "NotReady" if state else "Unknown"]
    if at(obj, "spec", "unschedulable") is True:
        words.append("SchedulingDisabled")
    info = at(obj, "status", "nodeInfo")
    return [
        ",".join(words),
        _roles(obj),
        cells.age(at(obj, "metadata", "creationTimestamp"), now),
        text(info, "kubeletVersion", otherwise=UNKNOWN),
        _address(obj, "InternalIP"),
        _address(obj, "ExternalIP"),
        text(info, "osImage", otherwise=UNKNOWN),
        text(info, "kernelVersion", otherwise=UNKNOWN),
        text(info, "containerRuntimeVersion", otherwise=UNKNOWN),
    ]


def _roles(obj: Object) -> str:
    labels = at(obj, "metadata", "labels") or {}
    roles = {key.removeprefix(_ROLE) for key in labels if key.startswith(_ROLE)}
    roles |= {value for key, value in labels.items() if key == "kubernetes.io/role"}
    return ",".join(sorted(role for role in roles if role)) or NONE


def _address(obj: Object, type_: str) -> str:
    for each in maps(obj, "status", "addresses"):
        if each.get("type") == type_:
            return text(each, "address", otherwise=NONE)
    return NONE
