"""What is behind the reasons that neighbours give: whom to be with, whom to avoid, how to spread.

Pods are counted wherever they are, in the namespaces that a rule names. A rule that selects
namespaces by their labels is only stated.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from moorage.api import selectors, texts
from moorage.api.meta import LabelSelector
from moorage.api.pod import Pod, PodAffinityTerm, TopologySpreadConstraint
from moorage.api.selectors import Selector, SelectorError
from moorage.explaining.case import Case

LONGEST_LIST = 60


def line(case: Case) -> str:
    """What is behind a reason, or nothing if it is not one of neighbours."""
    told = _LINES.get(case.reason)
    return told(case) if told is not None else ""


def _lacking(case: Case) -> str:
    parts = []
    for key in dict.fromkeys(each.topology_key for each in _hard(case.pod)):
        without = [node.name for node in case.nodes if key not in node.labels]
        if without:
            nobody = all(key not in node.labels for node in case.everywhere)
            who = "no node has it" if nobody else f"not on {texts.listed(without, LONGEST_LIST)}"
            parts.append(f"the pod is spread over the label {key}: {who}")
    return f"{'; '.join(parts)}." if parts else ""


def _skewed(case: Case) -> str:
    return " ".join(_spread(case, each) for each in _hard(case.pod))


def _spread(case: Case, constraint: TopologySpreadConstraint) -> str:
    key = constraint.topology_key
    zones = {node.name: node.labels[key] for node in case.everywhere if key in node.labels}
    counts = Counter(dict.fromkeys(zones.values(), 0))
    matches = _compiled(constraint.label_selector).matches
    same = [(k, case.pod.labels[k]) for k in constraint.match_label_keys if k in case.pod.labels]
    for name, pod in _placed(case):
        alike = pod.namespace == case.pod.namespace and matches(pod.labels)
        if name in zones and alike and all(pod.labels.get(k) == v for k, v in same):
            counts[zones[name]] += 1
    there = [f"{n:,} in {zone}" for zone, n in sorted(counts.items(), key=lambda i: (i[1], i[0]))]
    return (
        f"between values of {key} the number of {_pods(constraint.label_selector)} may differ "
        f"by {constraint.max_skew}; there are {texts.listed(there, LONGEST_LIST)}."
    )


def _alone(case: Case) -> str:
    affinity = case.pod.spec.affinity
    wanted = affinity.pod_affinity if affinity is not None else None
    return _sharing(case, "has to share", wanted.required if wanted is not None else ())


def _crowded(case: Case) -> str:
    affinity = case.pod.spec.affinity
    avoided = affinity.pod_anti_affinity if affinity is not None else None
    return _sharing(case, "must not share", avoided.required if avoided is not None else ())


def _sharing(case: Case, verb: str, terms: Iterable[PodAffinityTerm]) -> str:
    return " ".join(
        f"the pod {verb} {term.topology_key} with {_pods(term.label_selector)}"
        f"{_whereabouts(case, term)}."
        for term in terms
    )


def _repelled(case: Case) -> str:
    hermits = [
        f"{other.key} on {name}"
        for name, other in _placed(case)
        if (affinity := other.spec.affinity) is not None
        and affinity.pod_anti_affinity is not None
        and any(_selects(t, other, case.pod) for t in affinity.pod_anti_affinity.required)
    ]
    return f"kept away by {texts.listed(hermits, LONGEST_LIST)}." if hermits else ""


_LINES: dict[str, Callable[[Case], str]] = {
    "node(s) didn't match pod topology spread constraints (missing required label)": _lacking,
    "node(s) didn't match pod topology spread constraints": _skewed,
    "node(s) didn't match pod affinity rules": _alone,
    "node(s) didn't match pod anti-affinity rules": _crowded,
    "node(s) didn't satisfy existing pods anti-affinity rules": _repelled,
}


def _hard(pod: Pod) -> Iterator[TopologySpreadConstraint]:
    for constraint in pod.spec.topology_spread_constraints:
        if constraint.when_unsatisfiable == "DoNotSchedule":
            yield constraint


def _placed(case: Case) -> Iterator[tuple[str, Pod]]:
    table = case.cluster.table
    for node in case.everywhere:
        for placed in table.info(table.row_of[node.name]).placed().values():
            yield node.name, placed.pod


def _selects(term: PodAffinityTerm, owner: Pod, other: Pod) -> bool:
    near = other.namespace in (term.namespaces or (owner.namespace,))
    matches = _compiled(term.label_selector).matches(other.labels)
    return matches and (near or term.namespace_selector is not None)


def _compiled(selector: LabelSelector | None) -> Selector:
    try:
        return selectors.compile_label_selector(selector)
    except SelectorError:  # Somebody else's mistake, which its own pod is told of.
        return selectors.NOTHING


def _whereabouts(case: Case, term: PodAffinityTerm) -> str:
    if term.namespace_selector is not None:
        return ""
    found = [
        f"{other.key} on {name}" for name, other in _placed(case) if _selects(term, case.pod, other)
    ]
    return f": {texts.listed(found, LONGEST_LIST)}" if found else ", and there are none"


def _pods(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods at all"
    said = [f"{key}={value}" for key, value in selector.match_labels.items()]
    for each in selector.match_expressions:
        values = f" [{', '.join(each.values)}]" if each.values else ""
        said.append(f"{each.key} {each.operator}{values}")
    return f"pods with {' and '.join(said)}" if said else "pods of any kind"
