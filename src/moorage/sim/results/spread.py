"""Topology spread constraints that do not hold, whatever the cause."""

from collections.abc import Iterable, Mapping

import msgspec
from msgspec import Struct

from moorage.api import selectors
from moorage.api.meta import LabelSelector
from moorage.api.node import Node
from moorage.api.pod import Pod, TopologySpreadConstraint
from moorage.api.selectors import SelectorError


class SpreadViolation(Struct, frozen=True, kw_only=True, rename="camel"):
    """A topology spread constraint that does not hold, for the pods of a namespace that have it."""

    namespace: str
    selector: str
    topology_key: str
    when_unsatisfiable: str
    max_skew: int
    skew: int
    pods: int


def violations(pods: Iterable[Pod], nodes: Iterable[Node]) -> list[SpreadViolation]:
    """Every constraint of a running pod whose skew is larger than its maxSkew.

    All nodes with the topology key count, whether or not the pods could run there: this measures
    how even the placement is, not whether the scheduler was right.
    """
    labels_of = {node.name: node.labels for node in nodes}
    placed: dict[str, list[Pod]] = {}
    constraints: dict[tuple[str, bytes], tuple[TopologySpreadConstraint, int]] = {}
    for pod in pods:
        if pod.node_name not in labels_of or pod.is_terminal:
            continue
        placed.setdefault(pod.namespace, []).append(pod)
        for constraint in pod.spec.topology_spread_constraints:
            key = (pod.namespace, msgspec.json.encode(constraint))
            constraints[key] = (constraint, constraints.get(key, (constraint, 0))[1] + 1)
    found = []
    for (namespace, _), (constraint, count) in constraints.items():
        skew = _skew(constraint, placed[namespace], labels_of)
        if skew > constraint.max_skew:
            found.append(
                SpreadViolation(
                    namespace=namespace,
                    selector=_text(constraint.label_selector),
                    topology_key=constraint.topology_key,
                    when_unsatisfiable=constraint.when_unsatisfiable or "DoNotSchedule",
                    max_skew=constraint.max_skew,
                    skew=skew,
                    pods=count,
                )
            )
    return found


def _skew(
    constraint: TopologySpreadConstraint,
    pods: Iterable[Pod],
    labels_of: Mapping[str, Mapping[str, str]],
) -> int:
    key = constraint.topology_key
    counts = {labels[key]: 0 for labels in labels_of.values() if key in labels}
    try:
        selector = selectors.compile_label_selector(constraint.label_selector)
    except SelectorError:
        return 0
    for pod in pods:
        domain = labels_of[pod.node_name].get(key)
        if domain is not None and selector.matches(pod.labels):
            counts[domain] += 1
    return max(counts.values()) - min(counts.values()) if counts else 0


def _text(selector: LabelSelector | None) -> str:
    """A selector as kubectl takes it."""
    if selector is None:
        return ""
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    for each in selector.match_expressions:
        values = f" ({','.join(each.values)})" if each.values else ""
        parts.append(f"{each.key} {each.operator}{values}")
    return ",".join(parts)
