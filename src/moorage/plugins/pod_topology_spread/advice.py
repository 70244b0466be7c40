"""Which nodes lack a topology label, and how many matching pods each domain has.

Only constraints that the pod itself states are described; those of a profile are not.
"""

from collections import Counter

from moorage import plugin as mp
from moorage.plugins.pod_topology_spread import constraints
from moorage.plugins.pod_topology_spread.constraints import HARD, Constraint, Stated
from moorage.plugins.pod_topology_spread.filtering import MISSING_LABEL


def explain(rejection: mp.Rejection) -> str:
    """The details of the hard constraints."""
    stated = [
        each
        for each in rejection.pod.spec.topology_spread_constraints
        if each.when_unsatisfiable == HARD
    ]
    if rejection.reason in MISSING_LABEL.reasons:
        texts = [_missing(rejection, key) for key in dict.fromkeys(s.topology_key for s in stated)]
        found = [text for text in texts if text]
        return f"{'; '.join(found)}." if found else ""
    parsed = constraints.parse(rejection.pod, stated, HARD)
    return " ".join(_counts(rejection, *pair) for pair in zip(stated, parsed, strict=True))


def _missing(rejection: mp.Rejection, key: str) -> str:
    without = [node.name for node in rejection.nodes if key not in node.labels]
    if not without:
        return ""
    exists = any(key in node.labels for node in rejection.all_nodes)
    where = f"not on {mp.texts.listed(without, 60)}" if exists else "no node has it"
    return f"the pod is spread over the label {key}: {where}"


def _counts(rejection: mp.Rejection, stated: Stated, constraint: Constraint) -> str:
    key = stated.topology_key
    domains = {n.name: n.labels[key] for n in rejection.all_nodes if key in n.labels}
    counts = Counter(dict.fromkeys(domains.values(), 0))
    for node, pod in rejection.placed():
        matches = pod.namespace == constraint.namespace and constraint.selector.matches(pod.labels)
        if node in domains and matches:
            counts[domains[node]] += 1
    fewest_first = sorted(counts.items(), key=lambda item: (item[1], item[0]))
    there = [f"{number:,} in {domain}" for domain, number in fewest_first]
    return (
        f"between values of {key} the number of {mp.texts.pods_with(stated.label_selector)} may "
        f"differ by {stated.max_skew}; there are {mp.texts.listed(there, 60)}."
    )
