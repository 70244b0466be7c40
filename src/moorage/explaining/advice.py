"""What could help: for each reason that nodes gave, the figures behind it in one plain line.

Every line states what is so, from the pod and from the nodes that gave the reason. What would
follow from a change is left to the reader: a node that says no for one reason may have another
one after that. Reasons that are not known here, a user's plugin's perhaps, get no line.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from moorage.api import requests, selectors, texts
from moorage.api.node import Taint
from moorage.api.pod import NodeSelectorTerm, Pod
from moorage.explaining import neighbours, storage
from moorage.explaining.case import Case
from moorage.framework.cluster import Cluster
from moorage.framework.status import Status
from moorage.nodes import ports
from moorage.nodes.info import NodeInfo

INSUFFICIENT = "Insufficient "
NARROWED_BY_NODE_AFFINITY = (
    "node(s) didn't satisfy plugin NodeAffinity",
    "node(s) didn't satisfy plugin(s) [NodeAffinity]",
)
LONGEST_LIST = 60
HARD = ("NoSchedule", "NoExecute")


def of(pod: Pod, cluster: Cluster, rejected: Mapping[str, Status]) -> list[str]:
    """A line per reason that something can be said about; what most nodes say comes first."""
    table = cluster.table
    everywhere = [node for node in table.nodes if node is not None]
    if not everywhere:
        return ["There is no node among the objects that were given."]
    given: dict[str, list[NodeInfo]] = {}
    for name, status in rejected.items():
        for reason in dict.fromkeys(status.reasons):
            given.setdefault(reason, []).append(table.info(table.row_of[name]))
    often_first = sorted(given.items(), key=lambda item: (-len(item[1]), item[0]))
    cases = [Case(reason, pod, nodes, everywhere, cluster) for reason, nodes in often_first]
    lines = [(case.reason, _line(case)) for case in cases]
    return [f"{reason}: {line}" for reason, line in lines if line]


def of_gates(pod: Pod) -> list[str]:
    """What a gated pod waits for."""
    gates = [gate.name for gate in pod.spec.scheduling_gates]
    if not gates:
        return []
    which = "gate is" if len(gates) == 1 else "gates are"
    return [f"No node is looked for until its scheduling {which} removed: {', '.join(gates)}."]


def _line(case: Case) -> str:
    if case.reason.startswith(INSUFFICIENT):
        return _shortage(case)
    if case.reason in NARROWED_BY_NODE_AFFINITY:
        return _node_affinity(case)
    line = _LINES.get(case.reason)
    return line(case) if line is not None else neighbours.line(case) or storage.line(case)


# One function per reason ------------------------------------------------------------------------


def _shortage(case: Case) -> str:
    resource = case.reason.removeprefix(INSUFFICIENT)
    asked = requests.filter_request(case.pod).get(resource, 0)
    best = max(case.nodes, key=lambda node: _free(node, resource))
    ask, free = texts.two_amounts(asked, max(_free(best, resource), 0), resource)
    largest = max(node.allocatable(resource) for node in case.nodes)
    line = f"the pod asks for {ask}; "
    if largest <= 0:
        return f"{line}{_these(case)} {_verb(case, 'offers', 'offer')} none."
    where = f"free on {best.name}"
    line += f"{free} is {where}." if len(case.nodes) == 1 else f"at most {free} is {where}."
    enough = [node.name for node in case.nodes if node.allocatable(resource) >= asked]
    if enough:
        return f"{line} Large enough, were {_it(enough)} less full: {_names(enough)}."
    _, most = texts.two_amounts(asked, largest, resource)
    even = f"it has only {most}" if len(case.nodes) == 1 else f"none of these has more than {most}"
    return f"{line} Even empty, {even}."


def _free(node: NodeInfo, resource: str) -> int:
    return node.allocatable(resource) - node.requested(resource)


def _too_many_pods(case: Case) -> str:
    most = max(node.allocatable("pods") for node in case.nodes)
    limit = texts.count(most, "pod")
    return f"{_these(case)} {_verb(case, 'takes', 'take')} {limit} at most, and no more fit."


def _taints(case: Case) -> str:
    tolerations = case.pod.spec.tolerations
    counts = Counter(
        _taint(taint)
        for node in case.nodes
        for taint in node.taints
        if taint.effect in HARD and not selectors.tolerates_any(tolerations, taint)
    )
    return f"the pod has no toleration for {_counted(counts)}."


def _taint(taint: Taint) -> str:
    value = f"={taint.value}" if taint.value else ""
    return f"{taint.key}{value}:{taint.effect}"


def _cordoned(case: Case) -> str:
    names = [node.name for node in case.nodes]
    return f"cordoned, until somebody runs `kubectl uncordon`: {_names(names)}."


def _node_affinity(case: Case) -> str:
    wanted = [*_selected(case), *_terms(case)]
    return f"the pod requires {'; and '.join(wanted)}." if wanted else ""


def _selected(case: Case) -> Iterable[str]:
    for key, value in (case.pod.spec.node_selector or {}).items():
        have = sum(node.labels.get(key) == value for node in case.everywhere)
        yield f"{key}={value}, which {_have(have, case)}"


def _terms(case: Case) -> Iterable[str]:
    affinity = case.pod.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    required = node_affinity.required if node_affinity is not None else None
    if required is None or not required.node_selector_terms:
        return
    matcher = selectors.compile_node_selector(required)
    have = sum(matcher.matches(node.labels, node.name) for node in case.everywhere)
    terms = " or ".join(_term(term) for term in required.node_selector_terms)
    yield f"{terms}, which {_have(have, case)}"


def _term(term: NodeSelectorTerm) -> str:
    expressions = (*term.match_expressions, *term.match_fields)
    return " and ".join(
        f"{each.key} {each.operator} [{', '.join(each.values)}]"
        if each.values
        else f"{each.key} {each.operator}"
        for each in expressions
    )


def _host_ports(case: Case) -> str:
    wanted = requests.host_ports(case.pod)
    asked = ", ".join(f"{port}/{protocol}" for _, protocol, port in wanted)
    holders = [
        f"{placed.pod.key} on {node.name}"
        for node in case.nodes
        for placed in node.placed().values()
        if ports.conflict(wanted, set(placed.usage.ports))
    ]
    return f"the pod wants {asked}, held by {_names(holders)}."


_LINES: dict[str, Callable[[Case], str]] = {
    "Too many pods": _too_many_pods,
    "node(s) had untolerated taint(s)": _taints,
    "node(s) were unschedulable": _cordoned,
    "node(s) didn't match Pod's node affinity/selector": _node_affinity,
    "node(s) didn't have free ports for the requested pod ports": _host_ports,
}


# Turns of phrase --------------------------------------------------------------------------------


def _these(case: Case) -> str:
    only = len(case.nodes) == 1
    return case.nodes[0].name if only else f"these {texts.count(len(case.nodes), 'node')}"


def _verb(case: Case, one: str, many: str) -> str:
    return one if len(case.nodes) == 1 else many


def _it(names: list[str]) -> str:
    return "it" if len(names) == 1 else "they"


def _have(number: int, case: Case) -> str:
    if number == 0:
        return "no node has"
    verb = "has" if number == 1 else "have"
    return f"{number:,} of {texts.count(len(case.everywhere), 'node')} {verb}"


def _names(names: list[str]) -> str:
    return texts.listed(names, LONGEST_LIST)


def _counted(counts: Counter[str]) -> str:
    often_first = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    counted = [f"{text} ({texts.count(number, 'node')})" for text, number in often_first]
    return texts.listed(counted, 2 * LONGEST_LIST)
