"""Which pods the affinity terms behind a rejection select, and where these pods are.

Pods are listed wherever they are, in the namespaces that a term names. A term that selects
namespaces by their labels is stated without its pods.
"""

from moorage import plugin as mp
from moorage.plugins.inter_pod_affinity.filtering import FORBIDDEN, NO_COMPANY, REPELLED


def explain(rejection: mp.Rejection) -> str:
    """The terms of the pod, or the pods whose anti-affinity keeps it away."""
    if rejection.reason in REPELLED.reasons:
        pods = [
            f"{other.key} on {node}"
            for node, other in rejection.placed()
            if (affinity := other.spec.affinity) is not None
            and affinity.pod_anti_affinity is not None
            and any(_selects(t, other, rejection.pod) for t in affinity.pod_anti_affinity.required)
        ]
        return f"kept away by {mp.texts.listed(pods, 60)}." if pods else ""
    affinity = rejection.pod.spec.affinity
    if affinity is not None and rejection.reason in NO_COMPANY.reasons:
        return _terms(rejection, affinity.pod_affinity, "has to share")
    if affinity is not None and rejection.reason in FORBIDDEN.reasons:
        return _terms(rejection, affinity.pod_anti_affinity, "must not share")
    return ""


def _terms(rejection: mp.Rejection, terms: mp.PodAffinity | None, verb: str) -> str:
    return " ".join(
        f"the pod {verb} {term.topology_key} with {mp.texts.pods_with(term.label_selector)}"
        f"{_selected(rejection, term)}."
        for term in (terms.required if terms is not None else ())
    )


def _selected(rejection: mp.Rejection, term: mp.PodAffinityTerm) -> str:
    if term.namespace_selector is not None:
        return ""
    pods = [
        f"{other.key} on {node}"
        for node, other in rejection.placed()
        if _selects(term, rejection.pod, other)
    ]
    return f": {mp.texts.listed(pods, 60)}" if pods else ", and there are none"


def _selects(term: mp.PodAffinityTerm, owner: mp.Pod, other: mp.Pod) -> bool:
    is_near = other.namespace in (term.namespaces or (owner.namespace,))
    try:
        selector = mp.selectors.compile_label_selector(term.label_selector)
    except mp.selectors.SelectorError:  # An error of that term's owner.
        return False
    return selector.matches(other.labels) and (is_near or term.namespace_selector is not None)
