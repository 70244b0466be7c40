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
from moorage.controllers import objects, ownership, pods, revisions, writes
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
    history = revisions.history(workload, index, REVISION_LABEL)
    latest = revisions.hash_of(history.latest, REVISION_LABEL)
    by_node: dict[str, list[Object]] = {}
    for pod in owned:
        by_node.setdefault(target_node(pod), []).append(pod)
    eligible = {objects.name(node): eligibility(workload, node) for node in index.all("Node")}
    if not objects.is_terminating(workload):
        yield from history.recorded()
        surge = _allows_surge(workload)
        for node, rule in eligible.items():
            found = by_node.get(node, [])
            if index.failure(workload):  # The pods of other nodes would be refused, too.
                rule = rule._replace(should_run=False)
            yield from _reconcile_node(workload, node, found, rule, latest, surge=surge, now=now)
        replace = _surge if surge else _replace_old_pods
        yield from replace(workload, by_node, eligible, latest, now)
        hashes = {pod_revision(pod) for pod in owned}
        used = [
            objects.name(each)
            for each in history.known
            if revisions.hash_of(each, REVISION_LABEL) in hashes
        ]
        yield from history.pruned(workload, used)
    yield from _status(workload, by_node, eligible, latest, now)


def _reconcile_node(
    workload: Object,
    node: str,
    existing: Sequence[Object],
    rule: Eligibility,
    latest: str,
    *,
    surge: bool,
    now: float,
) -> Iterator[Write]:
    active = sorted((pod for pod in existing if pods.is_active(pod)), key=pods.created_at)
    for pod in existing:
        if pods.is_ended(pod) and not objects.is_terminating(pod):
            yield Delete(pod)
    if rule.should_run and not (active if surge else existing):
        yield Create(pod_for(workload, node, latest))
    elif not rule.may_stay:
        yield from map(Delete, active)
    elif not surge:
        yield from map(Delete, active[1:])
    elif len(active) > 1:
        new = [pod for pod in active if pod_revision(pod) == latest]
        old = [pod for pod in active if pod_revision(pod) != latest]
        yield from map(Delete, [*new[1:], *old[1:]])
        min_ready = objects.spec_number(workload, "minReadySeconds")
        replaced = new and pods.is_available(new[0], min_ready, now)
        if new and old and (replaced or not pods.is_ready(old[0])):
            yield Delete(old[0])


def _rolling_update(workload: Object, field: str, default: int, nodes: int) -> int:
    rolling = (objects.spec(workload).get("updateStrategy") or {}).get("rollingUpdate") or {}
    return objects.int_or_percent(rolling.get(field, default), nodes, round_up=True)


def _allows_surge(workload: Object) -> bool:
    strategy = objects.spec(workload).get("updateStrategy") or {}
    return strategy.get("type") != "OnDelete" and _rolling_update(workload, "maxSurge", 0, 100) > 0


def _replace_old_pods(
    workload: Object, by_node: PodsByNode, eligible: EligibilityByNode, latest: str, now: float
) -> Iterator[Write]:
    """Delete pods of an older template, at most `maxUnavailable` at a time."""
    strategy = objects.spec(workload).get("updateStrategy") or {}
    if strategy.get("type") == "OnDelete":
        return
    nodes = [node for node, rule in eligible.items() if rule.should_run]
    max_unavailable = max(1, _rolling_update(workload, "maxUnavailable", 1, len(nodes)))
    min_ready = objects.spec_number(workload, "minReadySeconds")
    available, old = 0, []
    for node in nodes:
        active = [pod for pod in by_node.get(node, ()) if pods.is_active(pod)]
        healthy = any(pods.is_available(pod, min_ready, now) for pod in active)
        available += healthy
        old += [(healthy, pod) for pod in active if pod_revision(pod) != latest]
    unavailable = len(nodes) - available
    for healthy, pod in sorted(old, key=lambda each: each[0]):
        if healthy and unavailable >= max_unavailable:
            return
        unavailable += healthy
        yield Delete(pod)


def _surge(
    workload: Object, by_node: PodsByNode, eligible: EligibilityByNode, latest: str, now: float
) -> Iterator[Write]:
    """Create new pods beside old ones, at most `maxSurge` at a time."""
    nodes = [node for node, rule in eligible.items() if rule.should_run]
    left = _rolling_update(workload, "maxSurge", 0, len(nodes))
    min_ready = objects.spec_number(workload, "minReadySeconds")
    candidates = []
    for node in nodes:
        active = [pod for pod in by_node.get(node, ()) if pods.is_active(pod)]
        new = [pod for pod in active if pod_revision(pod) == latest]
        if len(active) > len(new) and not new:
            candidates.append((pods.is_available(active[0], min_ready, now), node))
        elif new and len(active) > len(new) and not pods.is_available(new[0], min_ready, now):
            left -= 1
    for available, node in sorted(candidates, key=lambda each: each[0]):
        if available and left <= 0:
            return
        left -= available
        yield Create(pod_for(workload, node, latest))


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


def pod_for(workload: Object, node: str, revision: str = "") -> Object:
    """The set's pod for a node: its affinity admits that node only."""
    labels = {
        REVISION_LABEL: revision or objects.template_hash(objects.template(workload)),
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
    workload: Object, by_node: PodsByNode, eligible: EligibilityByNode, latest: str, now: float
) -> Iterator[Write]:
    min_ready = objects.spec_number(workload, "minReadySeconds")
    nodes = [node for node, rule in eligible.items() if rule.should_run]
    oldest = {node: min(found, key=pods.created_at) for node, found in by_node.items() if found}
    running = [oldest[node] for node in nodes if node in oldest]
    available = sum(pods.is_available(pod, min_ready, now) for pod in running)
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
    # A surging pod is not the oldest one of its node, and its predecessor waits for it.
    every = [pod for found in by_node.values() for pod in found]
    yield from writes.requeue(pods.next_available_at(every, min_ready, now))
