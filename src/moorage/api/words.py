"""Fields that know a few words only, looked at in objects that never met an API server.

A scheduler takes a word that it does not know for none at all: `operator: exists` tolerates
nothing, `whenUnsatisfiable: DoNotschedule` spreads nothing. The answer would be wrong, and
nobody would notice.
"""

from collections.abc import Iterable, Iterator

from moorage.api import workloads
from moorage.api.bounds import PREFERRED, REQUIRED
from moorage.api.meta import KubeObject, LabelSelector
from moorage.api.node import Node, Taint
from moorage.api.node_pool import NodePool
from moorage.api.pod import Affinity, NodeSelectorTerm, Pod, PodSpec, Toleration
from moorage.api.policy import PodDisruptionBudget
from moorage.api.storage import StorageClass

EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
TOLERATING = ("Equal", "Exists", "Lt", "Gt")
SELECTING = ("In", "NotIn", "Exists", "DoesNotExist")
PREEMPTING = ("Never", "PreemptLowerPriority")

_USUAL_POLICIES = (None, "", *PREEMPTING)
_USUAL_TOLERATIONS = {(word, effect) for word in ("", *TOLERATING) for effect in ("", *EFFECTS)}

Word = tuple[str, str | None, tuple[str, ...]]
"""A field's path, what it says, and what it may say."""


def bad_word(obj: KubeObject) -> tuple[str, str] | None:
    """The path of the first word that does not exist, and those that do."""
    for path, said, known in _words(obj):
        if said and said not in known:
            return path, f'must be {", ".join(known[:-1])} or {known[-1]}, is "{said[:60]}"'
    return _bad_share(obj) if isinstance(obj, PodDisruptionBudget) else None


def _words(obj: KubeObject) -> Iterable[Word]:
    match obj:
        case Pod():
            return _of_pod(obj.spec, "spec")
        case Node():
            return _of_taints(obj.spec.taints, "spec.taints")
        case NodePool():
            return _of_taints(obj.spec.template.spec.taints, "spec.template.spec.taints")
        case StorageClass():
            known = ("Immediate", "WaitForFirstConsumer")
            return [("volumeBindingMode", obj.volume_binding_mode, known)]
    place, template = workloads.pod_template(obj) or ("", None)
    return () if template is None else _of_pod(template.spec, f"{place}.spec")


def _of_taints(taints: tuple[Taint, ...], path: str) -> Iterator[Word]:
    for i, taint in enumerate(taints):
        yield f"{path}[{i}].effect", taint.effect, EFFECTS


def _of_pod(spec: PodSpec, path: str) -> Iterable[Word]:
    # Dumps have many pods, and few of them say more than an API server adds to each.
    if (
        spec.topology_spread_constraints
        or spec.affinity is not None
        or spec.preemption_policy not in _USUAL_POLICIES
    ):
        return _of_demanding_pod(spec, path)
    return _of_tolerations(spec.tolerations, path) if spec.tolerations else ()


def _of_demanding_pod(spec: PodSpec, path: str) -> Iterator[Word]:
    yield from _of_tolerations(spec.tolerations, path)
    for i, each in enumerate(spec.topology_spread_constraints):
        place, policies = f"{path}.topologySpreadConstraints[{i}]", ("Honor", "Ignore")
        known = ("DoNotSchedule", "ScheduleAnyway")
        yield f"{place}.whenUnsatisfiable", each.when_unsatisfiable, known
        yield f"{place}.nodeAffinityPolicy", each.node_affinity_policy, policies
        yield f"{place}.nodeTaintsPolicy", each.node_taints_policy, policies
        yield from _of_selector(each.label_selector, f"{place}.labelSelector")
    if spec.affinity is not None:
        yield from _of_affinity(spec.affinity, f"{path}.affinity")
    if spec.preemption_policy:
        yield f"{path}.preemptionPolicy", spec.preemption_policy, PREEMPTING


def _of_tolerations(tolerations: tuple[Toleration, ...], path: str) -> Iterator[Word]:
    for i, each in enumerate(tolerations):
        if (each.operator, each.effect) not in _USUAL_TOLERATIONS:
            yield f"{path}.tolerations[{i}].operator", each.operator, TOLERATING
            yield f"{path}.tolerations[{i}].effect", each.effect, EFFECTS


def _of_affinity(affinity: Affinity, path: str) -> Iterator[Word]:
    if (nodes := affinity.node_affinity) is not None:
        place = f"{path}.nodeAffinity"
        terms = nodes.required.node_selector_terms if nodes.required is not None else ()
        for i, term in enumerate(terms):
            yield from _of_term(term, f"{place}.{REQUIRED}.nodeSelectorTerms[{i}]")
        for i, liked in enumerate(nodes.preferred or ()):
            yield from _of_term(liked.preference, f"{place}.{PREFERRED}[{i}].preference")
    for field, pods in (
        ("podAffinity", affinity.pod_affinity),
        ("podAntiAffinity", affinity.pod_anti_affinity),
    ):
        for i, near in enumerate(pods.required if pods is not None else ()):
            place = f"{path}.{field}.{REQUIRED}[{i}].labelSelector"
            yield from _of_selector(near.label_selector, place)
        for i, weighted in enumerate(pods.preferred if pods is not None else ()):
            place = f"{path}.{field}.{PREFERRED}[{i}].podAffinityTerm.labelSelector"
            yield from _of_selector(weighted.pod_affinity_term.label_selector, place)


def _of_term(term: NodeSelectorTerm, path: str) -> Iterator[Word]:
    for i, each in enumerate(term.match_expressions):
        yield f"{path}.matchExpressions[{i}].operator", each.operator, (*SELECTING, "Gt", "Lt")


def _of_selector(selector: LabelSelector | None, path: str) -> Iterator[Word]:
    for i, each in enumerate(selector.match_expressions if selector is not None else ()):
        yield f"{path}.matchExpressions[{i}].operator", each.operator, SELECTING


def _bad_share(budget: PodDisruptionBudget) -> tuple[str, str] | None:
    spec = budget.spec
    for field, share in (
        ("minAvailable", spec.min_available),
        ("maxUnavailable", spec.max_unavailable),
    ):
        if isinstance(share, str) and not share.removesuffix("%").isdecimal():
            return f"spec.{field}", f'must be a whole number or a percentage, is "{share[:60]}"'
    return None
