"""NodeAffinity: the nodes that a pod requires, and those that it prefers.

They are selected by `nodeSelector` and `affinity.nodeAffinity`; a profile may add terms for all its
pods (`added_affinity`). A required term that does not parse matches no node, and the other terms
still count; a preferred term that does not parse is an error of the pod.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from functools import lru_cache, reduce
from operator import and_

import numpy as np

from moorage import plugin as mp

NOT_ENFORCED = mp.unresolvable("node(s) didn't match scheduler-enforced node affinity")
NOT_MATCHED = mp.unresolvable("node(s) didn't match Pod's node affinity/selector")
STATUSES = (mp.SUCCESS, NOT_ENFORCED, NOT_MATCHED)
CONFLICT = mp.unresolvable("pod affinity terms conflict")

Selector = mp.selectors.Selector
Matcher = mp.selectors.NodeSelectorMatcher
Weighted = tuple[tuple[int, mp.selectors.NodeTerm], ...]


@dataclass(frozen=True, slots=True)
class Required:
    """What a pod requires of a node's labels and name, compiled."""

    selector: Selector
    terms: Matcher | None

    def matches(self, node: mp.Node) -> bool:
        return self.selector.matches(node.labels) and (
            self.terms is None or self.terms.matches(node.labels, node.name)
        )

    def is_unreadable(self, node: mp.Node) -> bool:
        """Whether, for a node that does not match, terms that do not parse may be to blame."""
        if self.terms is None or not self.terms.problems:
            return False
        return self.selector.matches(node.labels)


REQUIRED = mp.StateKey[Required]("NodeAffinity.required")
PREFERRED = mp.StateKey[Weighted]("NodeAffinity.preferred")


class NodeAffinity:
    name = "NodeAffinity"
    depends = mp.Depends.NODE
    reads_kinds = ()
    normalizer = mp.ByMax()

    def __init__(self, *, added_affinity: mp.NodeAffinity | None = None) -> None:
        added = added_affinity or mp.NodeAffinity()
        path = "addedAffinity.{}DuringSchedulingIgnoredDuringExecution"
        self._enforced: Matcher | None = None
        self._liked: Weighted | None = None
        if added.required is not None:
            self._enforced = mp.selectors.compile_node_selector_terms(
                added.required.node_selector_terms, path.format("required") + ".nodeSelectorTerms"
            )
        if added.preferred:
            self._liked = tuple(
                mp.selectors.compile_preferred(added.preferred, path.format("preferred"))
            )

    def reads(self, pod: mp.Pod) -> Hashable:
        return _node_selector(pod), _node_affinity(pod)

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status | mp.Narrowed:
        required = _node_affinity(pod).required
        if required is None and self._enforced is None and pod.spec.node_selector is None:
            return mp.SKIP
        state[REQUIRED] = _required(pod)
        names = named_nodes(required)
        if names is None:
            return mp.SUCCESS
        return mp.only_nodes(names) if names else CONFLICT

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        obj = node.node
        if self._enforced is not None and not self._enforced.matches(obj.labels, obj.name):
            return NOT_ENFORCED
        return mp.SUCCESS if _required_in(state, pod).matches(obj) else NOT_MATCHED

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        wanted = _meeting(_required_in(state, pod), table)
        if self._enforced is None:
            return mp.Verdicts(fits=wanted, otherwise=NOT_MATCHED)
        enforced = mp.node_terms.matching_any(self._enforced.terms, table)
        codes = np.where(enforced, np.where(wanted, 0, 2), 1)
        return mp.Verdicts(codes=codes, status_of=STATUSES.__getitem__)

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        preferred = _node_affinity(pod).preferred
        if preferred is None and self._liked is None:
            return mp.SKIP
        state[PREFERRED] = self._preferred(pod)
        return mp.SUCCESS

    def _preferred(self, pod: mp.Pod) -> Weighted:
        own = mp.selectors.compile_preferred(_node_affinity(pod).preferred or ())
        return (*(self._liked or ()), *own)

    def _preferred_in(self, state: mp.CycleState, pod: mp.Pod) -> Weighted:
        return self._preferred(pod) if PREFERRED not in state else state[PREFERRED]

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        obj = node.node
        labels, name = obj.labels, obj.name
        preferred = self._preferred_in(state, pod)
        return sum(weight for weight, term in preferred if term.matches(labels, name))

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        scores = np.zeros(len(table), dtype=np.int64)
        for weight, term in self._preferred_in(state, pod):
            scores += np.int64(weight) * mp.node_terms.matching(term, table)
        return scores

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        if rejection.reason in (*NOT_ENFORCED.reasons, *CONFLICT.reasons):
            return ""
        nodes, texts = rejection.all_nodes, []
        for key, value in (rejection.pod.spec.node_selector or {}).items():
            number = sum(node.labels.get(key) == value for node in nodes)
            texts.append(f"{key}={value}, which {_have(number, len(nodes))}")
        required = _node_affinity(rejection.pod).required
        if required is not None and required.node_selector_terms:
            matcher = mp.selectors.compile_node_selector(required)
            number = sum(matcher.matches(node.labels, node.name) for node in nodes)
            terms = " or ".join(
                mp.texts.requirements((*term.match_expressions, *term.match_fields))
                for term in required.node_selector_terms
            )
            texts.append(f"{terms}, which {_have(number, len(nodes))}")
        return f"the pod requires {'; and '.join(texts)}." if texts else ""

    def events_to_register(self) -> mp.Events:
        return {
            mp.ClusterEvent.NODE_ADD: self.now_matches,
            mp.ClusterEvent.UPDATE_NODE_LABEL: self.now_matches,
        }

    def now_matches(self, pod: mp.Pod, old: mp.Node | None, new: mp.Node) -> mp.Hint:
        if self._enforced is not None and not self._enforced.matches(new.labels, new.name):
            return mp.Hint.QUEUE_SKIP
        required = _required(pod)
        if required.matches(new):
            # The enforced terms are not held against the old node; Kubernetes does not either.
            cured = old is None or not required.matches(old)
        else:
            cured = required.is_unreadable(new)
        return mp.Hint.QUEUE if cured else mp.Hint.QUEUE_SKIP


_NO_AFFINITY = mp.NodeAffinity()


def _node_affinity(pod: mp.Pod) -> mp.NodeAffinity:
    affinity = pod.spec.affinity
    return (affinity and affinity.node_affinity) or _NO_AFFINITY


def _have(number: int, nodes: int) -> str:
    if number == 0:
        return "no node has"
    return f"{number:,} of {mp.texts.count(nodes, 'node')} {'has' if number == 1 else 'have'}"


def _node_selector(pod: mp.Pod) -> tuple[tuple[str, str], ...] | None:
    selector = pod.spec.node_selector
    return None if selector is None else tuple(sorted(selector.items()))


def _required(pod: mp.Pod) -> Required:
    return _compiled(_node_selector(pod) or (), _node_affinity(pod).required)


def _required_in(state: mp.CycleState, pod: mp.Pod) -> Required:
    """What pre_filter stored, or the same if the profile does not call it."""
    return _required(pod) if REQUIRED not in state else state[REQUIRED]


# Hints are called for the same few pods after every change of a node.
@lru_cache(maxsize=1024)
def _compiled(
    node_selector: tuple[tuple[str, str], ...], required: mp.NodeSelector | None
) -> Required:
    terms = None if required is None else mp.selectors.compile_node_selector(required)
    return Required(mp.selectors.selector_from_map(dict(node_selector)), terms)


def named_nodes(required: mp.NodeSelector | None) -> frozenset[str] | None:
    """The only nodes that can match, where every term names some; None if any node might.

    Other requirements of a term are left to the filter, and so is whether it parses at all.
    """
    if required is None or not required.node_selector_terms:
        return None
    names: frozenset[str] = frozenset()
    for term in required.node_selector_terms:
        lists = [
            frozenset(field.values)
            for field in term.match_fields
            if field.key == mp.selectors.NODE_NAME_FIELD and field.operator == mp.selectors.IN
        ]
        if not lists:
            return None
        names |= reduce(and_, lists)
    return names


def _meeting(required: Required, table: mp.Rows) -> mp.Mask:
    masks = [table.meets(requirement) for requirement in required.selector.requirements]
    if required.terms is not None:
        masks.append(mp.node_terms.matching_any(required.terms.terms, table))
    return reduce(and_, masks) if masks else np.ones(len(table), dtype=np.bool_)
