"""TermBook: the affinity terms that pods on nodes state, each with how often and where.

Most pods state what others of their workload state, so terms are few even where pods are many.
Terms that nobody states any more are kept for a while, then thrown out together. In between `all`
only gets longer.
"""

from collections.abc import Mapping

from moorage.nodes import affinity_terms
from moorage.nodes.affinity_terms import AffinityTerm, Kind
from moorage.nodes.counters import TermCounter
from moorage.nodes.selector_index import SelectorIndex

MOST_UNSTATED = 1024
MOST_REMEMBERED = 16_384


class TermBook:
    """See the module."""

    def __init__(self) -> None:
        self.all: list[TermCounter] = []
        # Grows whenever a pod that states terms comes or goes.
        self.version = 0
        self._unstated = 0
        self._counters: dict[tuple[Kind, AffinityTerm], TermCounter] = {}
        self._index: SelectorIndex[TermCounter] = SelectorIndex()
        # The counters of all terms of a pod, by its namespace and what it says.
        self._stated: dict[tuple[str, bytes], tuple[TermCounter, ...]] = {}

    def add(self, row: int, namespace: str, said: bytes, amount: int) -> bool:
        """A pod that states terms comes to a row (1), or leaves it (-1).

        Says whether terms were thrown out, so that whoever remembers terms has to look anew.
        """
        self.version += 1
        for counter in self._counters_of(namespace, said):
            before = not counter.rows
            counter.add(row, amount)
            self._unstated += (not counter.rows) - before
        if self._unstated <= max(MOST_UNSTATED, len(self.all) // 2):
            return False
        self._purge()
        return True

    def matching(
        self, namespace: str, labels: Mapping[str, str], namespace_labels: Mapping[str, str]
    ) -> list[TermCounter]:
        """The terms that speak of a pod."""
        candidates = self._index.candidates(namespace, labels)
        return [c for c in candidates if c.term.matches(namespace, labels, namespace_labels)]

    def matching_from(
        self,
        start: int,
        namespace: str,
        labels: Mapping[str, str],
        namespace_labels: Mapping[str, str],
    ) -> list[TermCounter]:
        """The same among the terms that came to `all` at this place or later."""
        newer = self.all[start:]
        return [c for c in newer if c.term.matches(namespace, labels, namespace_labels)]

    def _counters_of(self, namespace: str, said: bytes) -> tuple[TermCounter, ...]:
        counters = self._stated.get((namespace, said))
        if counters is None:
            if len(self._stated) >= MOST_REMEMBERED:
                self._stated.clear()
            stated = affinity_terms.parse(namespace, said).by_kind()
            counters = tuple(self._counter(kind, term) for kind, term in stated)
            self._stated[namespace, said] = counters
        return counters

    def _counter(self, kind: Kind, term: AffinityTerm) -> TermCounter:
        counter = self._counters.get((kind, term))
        if counter is None:
            counter = self._counters[kind, term] = TermCounter(kind, term)
            self._unstated += 1
            self._list(counter)
        return counter

    def _list(self, counter: TermCounter) -> None:
        term = counter.term
        only_one = len(term.namespaces) == 1 and term.namespace_selector.matches_nothing
        self.all.append(counter)
        self._index.add(counter, min(term.namespaces) if only_one else None, term.selector)

    def _purge(self) -> None:
        stated = [counter for counter in self.all if counter.rows]
        self.all = []
        self._unstated = 0
        self._index = SelectorIndex()
        self._stated.clear()
        self._counters = {(counter.kind, counter.term): counter for counter in stated}
        for counter in stated:
            self._list(counter)
