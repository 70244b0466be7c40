"""Counters: how many pods, or affinity terms of pods, are on each row, with views that sum them up.

A SelectorCounter counts the pods that clauses select; it is made at the first request for it. A
TermCounter counts how often the pods on a row state one affinity term; it exists as long as any pod
states the term, because a new pod has to be compared with all terms there are.
"""

from collections.abc import Mapping
from typing import Generic, TypeVar

from moorage.api import selectors
from moorage.api.selectors import Selector
from moorage.nodes import affinity_terms
from moorage.nodes.affinity_terms import AffinityTerm, TermKind
from moorage.nodes.domains import DomainView, RowView
from moorage.nodes.inclusion import Inclusion
from moorage.nodes.pod_classes import Clauses, PodClass

T = TypeVar("T")

# A topology key with the rows that count, or None for the view per row.
ViewKey = tuple[str, Inclusion | None] | None
PER_ROW: ViewKey = None

# How many unused terms, and how many pods' parsed terms, are kept.
MOST_UNUSED = 1024
MOST_PARSED = 16_384

# A label key with its value, a key with any value, or no required label.
Slot = tuple[str, str | None] | None
NO_LABEL: Slot = None


class RowCounter:
    """A number per row, and views that are kept up to date with it."""

    __slots__ = ("rows", "views")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.views: dict[ViewKey, DomainView | RowView] = {}

    def add(self, row: int, amount: int) -> None:
        """Add to a row's number."""
        count = self.rows.get(row, 0) + amount
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        for view in self.views.values():
            view.add(row, amount)

    def move(self, row: int, sign: int) -> None:
        """Subtract a row from its domains (-1) before its node changes, add it (1) afterwards."""
        amount = self.rows.get(row)
        if amount is not None:
            for view in self.views.values():
                view.add(row, sign * amount)


class SelectorCounter(RowCounter):
    """The pods that all clauses select; terminating pods count only if `counts_terminating`."""

    __slots__ = ("clauses", "counts_terminating")

    def __init__(self, clauses: Clauses, *, counts_terminating: bool) -> None:
        super().__init__()
        self.clauses = clauses
        self.counts_terminating = counts_terminating

    def include(self, pods: PodClass) -> None:
        """Count the pods of a matching class: those that are there, and later ones."""
        pods.counters.append(self)
        groups = (pods.live, pods.terminating) if self.counts_terminating else (pods.live,)
        for group in groups:
            for row, amount in group.items():
                self.add(row, amount)


class TermCounter(RowCounter):
    """One affinity term, and how often pods state it."""

    __slots__ = ("kind", "term")

    def __init__(self, kind: TermKind, term: AffinityTerm) -> None:
        super().__init__()
        self.kind = kind
        self.term = term


class SelectorIndex(Generic[T]):
    """Objects with a pod selector, found by a pod's labels without matching each selector.

    An object is listed under one label that its selector requires. Only selectors that require no
    label (empty ones, and those that only exclude) are candidates for every pod; they are few.
    """

    def __init__(self) -> None:
        self._listed: dict[str | None, dict[Slot, list[T]]] = {}

    def add(self, item: T, namespace: str | None, selector: Selector) -> None:
        """List an object that selects pods of one namespace, or (None) perhaps of several."""
        listed = self._listed.setdefault(namespace, {})
        for slot in _slots(selector):
            listed.setdefault(slot, []).append(item)

    def candidates(self, namespace: str, labels: Mapping[str, str]) -> list[T]:
        """The objects that may select a pod; each selector still has to be matched."""
        found: list[T] = []
        for scope in (namespace, None):
            listed = self._listed.get(scope)
            if listed is not None:
                found += listed.get(NO_LABEL, ())
                for key, value in labels.items():
                    found += listed.get((key, value), ())
                    found += listed.get((key, None), ())
        return found


def _slots(selector: Selector) -> list[Slot]:
    """Where to list a selector: a pod that it matches has exactly one of these."""
    required = None
    for requirement in selector.requirements:
        if requirement.operator == selectors.IN:
            return [(requirement.key, value) for value in requirement.values]
        if requirement.operator == selectors.EXISTS:
            required = requirement.key
    return [NO_LABEL if required is None else (required, None)]


class TermCounters:
    """The affinity terms that pods on nodes state, each with how often and where.

    Most pods state the same terms as the others of their workload, so terms are few even where
    pods are many. Unused terms are kept for a while, then dropped together. In between `all` only
    gets longer.
    """

    def __init__(self) -> None:
        self.all: list[TermCounter] = []
        self._unused = 0
        self._counters: dict[tuple[TermKind, AffinityTerm], TermCounter] = {}
        self._index: SelectorIndex[TermCounter] = SelectorIndex()
        # The counters of all terms of a pod, by its namespace and its `affinity_terms.content`.
        self._parsed: dict[tuple[str, bytes], tuple[TermCounter, ...]] = {}

    def add(self, row: int, namespace: str, content: bytes, amount: int) -> bool:
        """Count the terms of a pod that comes to a row (1), or leaves it (-1).

        Returns whether terms were dropped: readers that keep counters have to look them up again.
        """
        counters = self._parsed.get((namespace, content)) or self._parse(namespace, content)
        for counter in counters:
            was_used = bool(counter.rows)
            counter.add(row, amount)
            if was_used != bool(counter.rows):
                self._unused += 1 if was_used else -1
        if self._unused <= MOST_UNUSED or self._unused <= len(self.all) // 2:
            return False
        self._purge()
        return True

    def matching(
        self,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str],
        start: int | None = None,
    ) -> list[TermCounter]:
        """The terms that match a pod, of those in `all[start:]` only if there is a start."""
        indexed = start is None
        candidates = self._index.candidates(namespace, labels) if indexed else self.all[start:]
        return [c for c in candidates if c.term.matches(namespace, labels, namespace_labels)]

    def _parse(self, namespace: str, content: bytes) -> tuple[TermCounter, ...]:
        if len(self._parsed) >= MOST_PARSED:
            self._parsed.clear()
        terms = affinity_terms.parse(namespace, content).by_kind()
        counters = tuple(self._counter(kind, term) for kind, term in terms)
        self._parsed[namespace, content] = counters
        return counters

    def _counter(self, kind: TermKind, term: AffinityTerm) -> TermCounter:
        counter = self._counters.get((kind, term))
        if counter is None:
            counter = self._counters[kind, term] = TermCounter(kind, term)
            self._unused += 1
            self._list(counter)
        return counter

    def _list(self, counter: TermCounter) -> None:
        term = counter.term
        only_one = len(term.namespaces) == 1 and term.namespace_selector.matches_nothing
        self.all.append(counter)
        self._index.add(counter, min(term.namespaces) if only_one else None, term.selector)

    def _purge(self) -> None:
        used = [counter for counter in self.all if counter.rows]
        self.all = []
        self._unused = 0
        self._index = SelectorIndex()
        self._parsed.clear()
        self._counters = {(counter.kind, counter.term): counter for counter in used}
        for counter in used:
            self._list(counter)
