"""DaemonSet: a pod on every node that it fits, pinned there by node affinity.

The pods go through the scheduler like any other. Taints that say that a node is unwell or cordoned
do not keep them away; other taints do, and so do node selectors and node affinity.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec

from moorage.api import selectors
from moorage.api.node import Taint
from moorage.api.pod import NodeSelector, Toleration
from moorage.serve.controllers import objects, ownership, pods
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import (
    CreateObject,
    DeleteObject,
    RequeueAt,
    UpdateObject,
    Write,
)

KIND = "apps/DaemonSet"
REVISION_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_TOLERATED = (
    ("not-ready", "NoExecute"),
    ("unreachable", "NoExecute"),
    ("disk-pressure", "NoSchedule"),
    ("memory-pressure", "NoSchedule"),
    ("pid-pressure", "NoSchedule"),
    ("unschedulable", "NoSchedule"),
)


def reconcile(workload: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Gather the set's pods and all nodes, and decide."""
    orphans = view.orphans("Pod", objects.namespace(workload))
    owned = view.controlled("Pod", objects.uid(workload))
    mine, writes = ownership.claim(workload, objects.selector(workload), owned, orphans)
    yield from writes
    yield from decide(workload, mine, view.all("Node"), now)


def decide(
    workload: Object, mine: Sequence[Object], nodes: Sequence[Object], now: float
) -> Iterator[Write]:
    """The pods to make and to delete, and the status."""
    there: dict[str, list[Object]] = {}
    for pod in mine:
        there.setdefault(target(pod), []).append(pod)
    verdicts = {objects.name(node): eligible(workload, node) for node in nodes}
    if not objects.is_terminating(workload):
        for node, (should_run, should_stay) in verdicts.items():
            yield from _on_node(workload, node, there.get(node, []), should_run, should_stay)
        yield from _replaced(workload, there, verdicts, now)
    yield from _status(workload, there, verdicts, now)


def _on_node(
    workload: Object,
    node: str,
    here: Sequence[Object],
    should_run: bool,  # noqa: FBT001
    should_stay: bool,  # noqa: FBT001
) -> Iterator[Write]:
    active = [pod for pod in here if pods.is_active(pod)]
    for pod in here:
        if pods.is_ended(pod) and not objects.is_terminating(pod):
            yield DeleteObject(pod)
    if should_run and not here:
        yield CreateObject(pod_for(workload, node))
    elif not should_stay:
        for pod in active:
            yield DeleteObject(pod)
    else:
        for pod in sorted(active, key=pods.created_at)[1:]:
            yield DeleteObject(pod)


def _replaced(
    workload: Object,
    there: Mapping[str, Sequence[Object]],
    verdicts: Mapping[str, tuple[bool, bool]],
    now: float,
) -> Iterator[Write]:
    """Pods of an older template go, as many at a time as may be unavailable."""
    strategy = objects.spec(workload).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    wanted = [node for node, (should_run, _) in verdicts.items() if should_run]
    allowed = (strategy.get("rollingUpdate") or {}).get("maxUnavailable")
    budget = max(1, objects.scaled(1 if allowed is None else allowed, len(wanted), round_up=True))
    min_ready = int(objects.spec(workload).get("minReadySeconds") or 0)
    current = revision(workload)
    available, old = 0, []
    for node in wanted:
        active = [pod for pod in there.get(node, ()) if pods.is_active(pod)]
        well = any(pods.is_available(pod, min_ready, now) for pod in active)
        available += well
        old += [(well, pod) for pod in active if revision_of(pod) != current]
    missing = len(wanted) - available
    for well, pod in sorted(old, key=lambda each: each[0]):
        if well and missing >= budget:
            return
        missing += well
        yield DeleteObject(pod)


# Nodes and pods --------------------------------------------------------------------------------


def eligible(workload: Object, node: Object) -> tuple[bool, bool]:
    """Whether a pod should run on a node, and whether one that is there may stay."""
    template = objects.spec(workload).get("template") or {}
    spec = template.get("spec") or {}
    if not _is_wanted(spec, node):
        return False, False
    tolerations = msgspec.convert(_tolerations(spec), tuple[Toleration, ...])
    taints = msgspec.convert(objects.spec(node).get("taints") or [], tuple[Taint, ...])
    bad = {taint.effect for taint in taints if not selectors.tolerates_any(tolerations, taint)} - {
        "PreferNoSchedule"
    }
    return not bad, "NoExecute" not in bad


def _is_wanted(spec: Mapping[str, Any], node: Object) -> bool:
    """Whether node name, selector and required affinity of the template agree with a node."""
    if spec.get("nodeName") and spec["nodeName"] != objects.name(node):
        return False
    labels = objects.labels(node)
    if any(labels.get(key) != value for key, value in (spec.get("nodeSelector") or {}).items()):
        return False
    required = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(REQUIRED)
    if not required:
        return True
    try:
        matcher = selectors.compile_node_selector(msgspec.convert(required, NodeSelector))
    except (selectors.SelectorError, msgspec.ValidationError):
        return False
    return matcher.matches(labels, objects.name(node))


def _tolerations(spec: Mapping[str, Any]) -> list[Object]:
    """The template's tolerations, and those that every daemon has."""
    unwell = list(_TOLERATED)
    if spec.get("hostNetwork"):
        unwell.append(("network-unavailable", "NoSchedule"))
    added = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
        for key, effect in unwell
    ]
    own = list(spec.get("tolerations") or ())
    return own + [each for each in added if each not in own]


def pod_for(workload: Object, node: str) -> Object:
    """The set's pod for a node: whatever else the template requires, only that node will do."""
    template = objects.spec(workload).get("template")
    labels = {
        REVISION_LABEL: revision(workload),
        GENERATION_LABEL: str(workload["metadata"].get("generation", 1)),
    }
    pod = pods.from_template(workload, template, **labels)
    spec = objects.spec(pod)
    affinity = spec.get("affinity") or {}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    pinned = {
        **(affinity.get("nodeAffinity") or {}),
        REQUIRED: {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    return objects.with_spec(
        pod, affinity={**affinity, "nodeAffinity": pinned}, tolerations=_tolerations(spec)
    )


def target(pod: Object) -> str:
    """The node that a daemon's pod is on, or is meant for."""
    if pods.node_name(pod):
        return pods.node_name(pod)
    affinity = (objects.spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


def revision(workload: Object) -> str:
    return objects.fingerprint(objects.spec(workload).get("template") or {})


def revision_of(pod: Object) -> str:
    return objects.labels(pod).get(REVISION_LABEL, "")


# The status ------------------------------------------------------------------------------------


def _status(
    workload: Object,
    there: Mapping[str, Sequence[Object]],
    verdicts: Mapping[str, tuple[bool, bool]],
    now: float,
) -> Iterator[Write]:
    min_ready = int(objects.spec(workload).get("minReadySeconds") or 0)
    wanted = [node for node, (should_run, _) in verdicts.items() if should_run]
    first = {node: sorted(here, key=pods.created_at)[0] for node, here in there.items() if here}
    running = [first[node] for node in wanted if node in first]
    available = sum(pods.is_available(pod, min_ready, now) for pod in running)
    latest = revision(workload)
    changed = objects.with_status(
        workload,
        desiredNumberScheduled=len(wanted),
        currentNumberScheduled=len(running),
        numberMisscheduled=sum(not verdicts.get(node, (False, False))[0] for node in first),
        numberReady=sum(map(pods.is_ready, running)),
        numberAvailable=available or None,
        numberUnavailable=(len(wanted) - available) or None,
        updatedNumberScheduled=sum(revision_of(pod) == latest for pod in running) or None,
        observedGeneration=workload["metadata"].get("generation", 0),
    )
    if changed != workload:
        yield UpdateObject(changed)
    at = pods.available_next_at(running, min_ready, now)
    if at is not None:
        yield RequeueAt(at)
