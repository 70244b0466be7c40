"""What pods want of each other in one line each.

    make_affinity(near=["app=db@zone"], dislikes=[(10, "app=batch@kubernetes.io/hostname")])
    make_constraint("app=web@zone", max_skew=2)

A term is written `selector@topology-key`, with the selector as kubectl takes it. Nothing before
the @ selects every pod; a bare key, without the @, has no selector at all and so selects none.
"""

from collections.abc import Iterable
from typing import Any

from moorage.api import selectors
from moorage.api.meta import LabelSelector, LabelSelectorRequirement
from moorage.api.pod import (
    Affinity,
    PodAffinity,
    PodAffinityTerm,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

Term = str | PodAffinityTerm


def make_selector(text: str | None) -> LabelSelector | None:
    """A label selector as kubectl takes it; an empty one selects everything, None nothing."""
    if text is None:
        return None
    requirements = selectors.parse_label_selector(text).requirements
    return LabelSelector(
        match_expressions=tuple(
            LabelSelectorRequirement(key=each.key, operator=each.operator, values=each.values)
            for each in requirements
        )
    )


def make_term(
    text: str, *, namespaces: Iterable[str] = (), namespace_selector: str | None = None
) -> PodAffinityTerm:
    """A pod affinity term; see the module."""
    selector, at, key = text.rpartition("@")
    return PodAffinityTerm(
        label_selector=make_selector(selector if at else None),
        topology_key=key,
        namespaces=tuple(namespaces),
        namespace_selector=make_selector(namespace_selector),
    )


def make_affinity(
    *,
    near: Iterable[Term] = (),
    away: Iterable[Term] = (),
    likes: Iterable[tuple[int, Term]] = (),
    dislikes: Iterable[tuple[int, Term]] = (),
) -> Affinity:
    """Required affinity and anti-affinity, then preferred ones with their weights."""
    return Affinity(
        pod_affinity=_pod_affinity(near, likes), pod_anti_affinity=_pod_affinity(away, dislikes)
    )


def make_constraint(text: str, **fields: Any) -> TopologySpreadConstraint:
    """A hard topology spread constraint with a skew of 1, but for the fields that are given."""
    selector, at, key = text.rpartition("@")
    stated = {"max_skew": 1, "when_unsatisfiable": "DoNotSchedule", **fields}
    return TopologySpreadConstraint(
        label_selector=make_selector(selector if at else None), topology_key=key, **stated
    )


def _pod_affinity(
    required: Iterable[Term], preferred: Iterable[tuple[int, Term]]
) -> PodAffinity | None:
    needed = tuple(_term(each) for each in required)
    wished = tuple(
        WeightedPodAffinityTerm(weight=weight, pod_affinity_term=_term(each))
        for weight, each in preferred
    )
    if not needed and not wished:
        return None
    return PodAffinity(
        required_during_scheduling_ignored_during_execution=needed,
        preferred_during_scheduling_ignored_during_execution=wished,
    )


def _term(given: Term) -> PodAffinityTerm:
    return make_term(given) if isinstance(given, str) else given
