"""Pod affinity terms, parsed: which pods a term selects, and its topology key.

A list with an invalid term counts as empty, with an error in `problems`: a pending pod with such a
list is rejected, a running pod's list is ignored.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import msgspec

from moorage.api import selectors
from moorage.api.pod import Pod, PodAffinity, PodAffinityTerm
from moorage.api.selectors import Selector, SelectorError

_encode = msgspec.msgpack.Encoder().encode
_NO_LABELS: Mapping[str, str] = {}
_decode = msgspec.msgpack.Decoder(tuple[PodAffinity | None, PodAffinity | None]).decode


class TermKind(Enum):
    """The list that a term is in; the value is Kubernetes' name of the list."""

    REQUIRED_AFFINITY = "requiredAffinityTerms"
    REQUIRED_ANTI_AFFINITY = "requiredAntiAffinityTerms"
    PREFERRED_AFFINITY = "preferredAffinityTerms"
    PREFERRED_ANTI_AFFINITY = "preferredAntiAffinityTerms"


@dataclass(frozen=True, slots=True)
class AffinityTerm:
    """Pods that the selector matches, in these namespaces or in those that a selector matches."""

    selector: Selector
    topology_key: str
    namespaces: frozenset[str]
    namespace_selector: Selector
    weight: int = 0

    def matches(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str] = _NO_LABELS,
    ) -> bool:
        """Whether a term selects a pod with these labels in a namespace with those."""
        return self.selector.matches(labels) and (
            namespace in self.namespaces or self.namespace_selector.matches(namespace_labels)
        )


Terms = tuple[AffinityTerm, ...]


class PodTerms(NamedTuple):
    """The four lists of a pod, and the errors of those that do not parse."""

    required_affinity: Terms = ()
    required_anti_affinity: Terms = ()
    preferred_affinity: Terms = ()
    preferred_anti_affinity: Terms = ()
    problems: tuple[str, ...] = ()

    def by_kind(self) -> list[tuple[TermKind, AffinityTerm]]:
        """All terms, each with its kind."""
        lists = zip(TermKind, self[:4], strict=True)
        return [(kind, term) for kind, terms in lists for term in terms]


NO_TERMS = PodTerms()


def content(pod: Pod) -> bytes:
    """A pod's affinity and anti-affinity to pods, encoded as a key; empty if it has none."""
    affinity = pod.spec.affinity
    if affinity is None or (affinity.pod_affinity is None and affinity.pod_anti_affinity is None):
        return b""
    return _encode((affinity.pod_affinity, affinity.pod_anti_affinity))


def of(pod: Pod) -> PodTerms:
    """The terms of a pod."""
    encoded = content(pod)
    return parse(pod.namespace, encoded) if encoded else NO_TERMS


@lru_cache(maxsize=4096)
def parse(namespace: str, encoded: bytes) -> PodTerms:
    """The terms of a pod of this namespace, from its `content`."""
    affinity, anti_affinity = (each or PodAffinity() for each in _decode(encoded))
    parsed: list[Terms] = []
    problems: list[str] = []
    lists = (
        [(term, 0) for term in affinity.required],
        [(term, 0) for term in anti_affinity.required],
        [(each.pod_affinity_term, each.weight) for each in affinity.preferred],
        [(each.pod_affinity_term, each.weight) for each in anti_affinity.preferred],
    )
    for kind, stated in zip(TermKind, lists, strict=True):
        try:
            parsed.append(tuple(_term(namespace, term, weight) for term, weight in stated))
        except SelectorError as error:
            parsed.append(())
            problems.append(f"{kind.value}: {error}")
    return PodTerms(parsed[0], parsed[1], parsed[2], parsed[3], tuple(problems))


def _term(namespace: str, stated: PodAffinityTerm, weight: int) -> AffinityTerm:
    own = not stated.namespaces and stated.namespace_selector is None
    return AffinityTerm(
        selector=selectors.compile_label_selector(stated.label_selector),
        topology_key=stated.topology_key,
        namespaces=frozenset((namespace,) if own else stated.namespaces),
        namespace_selector=selectors.compile_label_selector(stated.namespace_selector),
        weight=weight,
    )
