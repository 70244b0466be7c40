"""DaemonSet: one pod on every eligible node, pinned there by node affinity.

The scheduler binds the pods like any other. Taints for node conditions and cordoned nodes do not
keep them away; other taints, node selectors and node affinity do.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from moorage.api import selectors
from moorage.api.meta import NodeSelector
from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.controllers import objects, ownership, pods, writes
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, Write

KIND = "apps/DaemonSet"
REVISION_LABEL = "controller-revision-hash"
GENERATION_LABEL = "pod-template-generation"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"

_TOLERATED = dict.fromkeys(("not-ready", "unreachable"), "NoExecute") | dict.fromkeys(
    ("disk-pressure", "memory-pressure", "pid-pressure", "unschedulable"), "NoSchedule"
)


class Eligibility(NamedTuple):
    """Whether a pod should run on a node, and whether an existing one may stay."""

    should_run: bool
    may_stay: bool


PodsByNode = Mapping[str, Sequence[Object]]
EligibilityByNode = Mapping[str, Eligibility]


def reconcile(workload: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create and delete pods per node, and set the status."""
    owned, adoptions = ownership.claim(workload, "Pod", index)
    yield from adoptions
    by_node: dict[str, list[Object]] = {}
    for pod in owned:
        by_node.setdefault(target_node(pod), []).append(pod)
    eligible = {objects.name(node): eligibility(workload, node) for node in index.all("Node")}
    if not objects.is_terminating(workload):
        for node, rule in eligible.items():
            yield from _reconcile_node(workload, node, by_node.get(node, []), rule)
        yield from _replace_old_pods(workload, by_node, eligible, now)
    yield from _status(workload, by_node, eligible, now)


def _reconcile_node(
    workload: Object, node: str, existing: Sequence[Object], rule: Eligibility
) -> Iterator[Write]:
    active = [pod for pod in existing if pods.is_active(pod)]
    for pod in existing:
        if pods.is_ended(pod) and not objects.is_terminating(pod):
            yield Delete(pod)
    if rule.should_run and not existing:
        yield Create(pod_for(workload, node))
    else:
        surplus = sorted(active, key=pods.created_at)[1:] if rule.may_stay else active
        yield from map(Delete, surplus)


def _replace_old_pods(
    workload: Object, by_node: PodsByNode, eligible: EligibilityByNode, now: float
) -> Iterator[Write]:
    """Delete pods of an older template, at most `maxUnavailable` at a time."""
    strategy = objects.spec(workload).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    nodes = [node for node, rule in eligible.items() if rule.should_run]
    limit = (strategy.get("rollingUpdate") or {}).get("maxUnavailable", 1)
    max_unavailable = max(1, objects.int_or_percent(limit, len(nodes), round_up=True))
    min_ready = objects.spec_number(workload, "minReadySeconds")
    current = objects.template_hash(objects.template(workload))
    available, old = 0, []
    for node in nodes:
        active = [pod for pod in by_node.get(node, ()) if pods.is_active(pod)]
        healthy = any(pods.is_available(pod, min_ready, now) for pod in active)
        available += healthy
        old += [(healthy, pod) for pod in active if pod_revision(pod) != current]
    unavailable = len(nodes) - available
    for healthy, pod in sorted(old, key=lambda each: each[0]):
        if healthy and unavailable >= max_unavailable:
            return
        unavailable += healthy
        yield Delete(pod)


def eligibility(workload: Object, node: Object) -> Eligibility:
    """Whether a pod of the set should run on a node."""
    spec = objects.template(workload).get("spec") or {}
    if not _selects(spec, node):
        return Eligibility(should_run=False, may_stay=False)
    tolerations = msgspec.convert(_tolerations(spec), tuple[Toleration, ...])
    taints = msgspec.convert(objects.spec(node).get("taints") or [], tuple[Taint, ...])
    repelling = [each for each in taints if not selectors.tolerates_any(tolerations, each)]
    effects = {taint.effect for taint in repelling} - {"PreferNoSchedule"}
    return Eligibility(should_run=not effects, may_stay="NoExecute" not in effects)


def _selects(spec: Mapping[str, Any], node: Object) -> bool:
    """Whether node name, selector and required affinity of the template match a node."""
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
    """The template's tolerations, and those that every DaemonSet pod gets."""
    network = {"network-unavailable": "NoSchedule"} if spec.get("hostNetwork") else {}
    added = [
        {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": effect}
        for key, effect in (_TOLERATED | network).items()
    ]
    own = list(spec.get("tolerations") or ())
    return own + [each for each in added if each not in own]


def pod_for(workload: Object, node: str) -> Object:
    """The set's pod for a node: its affinity admits that node only."""
    labels = {
        REVISION_LABEL: objects.template_hash(objects.template(workload)),
        GENERATION_LABEL: str(workload["metadata"].get("generation", 1)),
    }
    pod = pods.from_template(workload, **labels)
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


def target_node(pod: Object) -> str:
    """The node that a pod is on, or that its affinity names."""
    if pods.node_name(pod):
        return pods.node_name(pod)
    affinity = (objects.spec(pod).get("affinity") or {}).get("nodeAffinity") or {}
    for term in (affinity.get(REQUIRED) or {}).get("nodeSelectorTerms") or ():
        for field in term.get("matchFields") or ():
            if field.get("key") == "metadata.name" and len(field.get("values") or ()) == 1:
                return str(field["values"][0])
    return ""


def pod_revision(pod: Object) -> str:
    return objects.labels(pod).get(REVISION_LABEL, "")


def _status(
    workload: Object, by_node: PodsByNode, eligible: EligibilityByNode, now: float
) -> Iterator[Write]:
    min_ready = objects.spec_number(workload, "minReadySeconds")
    nodes = [node for node, rule in eligible.items() if rule.should_run]
    oldest = {node: min(found, key=pods.created_at) for node, found in by_node.items() if found}
    running = [oldest[node] for node in nodes if node in oldest]
    available = sum(pods.is_available(pod, min_ready, now) for pod in running)
    latest = objects.template_hash(objects.template(workload))
    changed = objects.with_status(
        workload,
        desiredNumberScheduled=len(nodes),
        currentNumberScheduled=len(running),
        numberMisscheduled=len(oldest.keys() - set(nodes)),
        numberReady=sum(map(pods.is_ready, running)),
        numberAvailable=available or None,
        numberUnavailable=(len(nodes) - available) or None,
        updatedNumberScheduled=sum(pod_revision(pod) == latest for pod in running) or None,
        observedGeneration=objects.generation(workload),
    )
    yield from writes.update_if_changed(workload, changed)
    yield from writes.requeue(pods.next_available_at(running, min_ready, now))
