"""Placements: counts of the pods on nodes by labels, affinity terms and topology domains.

The table reports every pod that comes or goes and every node that changes; plugins read views. A
view is made at its first request, kept up to date, and dropped when it was not used for a long
time. So a plugin that keeps views puts them into `notes`, which are cleared when any view or term
is dropped, and requests them again when its note is gone.
"""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.nodes.counters import (
    PER_ROW,
    RowCounter,
    SelectorCounter,
    SelectorIndex,
    TermCounter,
    TermCounters,
    ViewKey,
)
from moorage.nodes.domains import DomainSums, DomainView, EligibleRows, RowView
from moorage.nodes.inclusion import Inclusion
from moorage.nodes.pod_classes import Clauses, PodClass, PodClasses
from moorage.nodes.usage import LabelKey, Usage

if TYPE_CHECKING:
    from moorage.nodes.table import NodeTable

# The memory for views, about; a view has at most an integer per row.
VIEW_BYTES = 32 << 20
FEWEST_VIEWS = 256
MOST_ELIGIBILITIES = 256
MOST_NOTES = 8192


class Placements:
    """See the module."""

    def __init__(self, table: "NodeTable") -> None:
        self.classes = PodClasses()
        self.terms = TermCounters()
        self.notes: dict[Any, Any] = {}
        # Grows when notes are dropped, and when a view becomes empty or has the first pod in it.
        self.version = 0
        self._table = table
        self._counters: dict[tuple[Clauses, bool], SelectorCounter] = {}
        self._index: SelectorIndex[SelectorCounter] = SelectorIndex()
        self._eligibilities: dict[Inclusion, EligibleRows] = {}
        self._view_count = 0
        self._clock = 0

    # Views, for plugins

    def view(
        self,
        clauses: Clauses,
        topology_key: str,
        inclusion: Inclusion | None = None,
        *,
        counts_terminating: bool,
    ) -> DomainView:
        """How many pods that all clauses select are in each domain, on included nodes."""
        self._make_room()
        eligibility = None if inclusion is None else self.eligibility(inclusion)
        counter = self._counter(clauses, counts_terminating=counts_terminating)
        return self._domain_view(counter, topology_key, eligibility)

    def per_row(self, clauses: Clauses, *, counts_terminating: bool) -> RowView:
        """How many pods that all clauses select are on each row."""
        self._make_room()
        counter = self._counter(clauses, counts_terminating=counts_terminating)
        view = counter.views.get(PER_ROW)
        if view is None:
            view = self._new_view(counter, PER_ROW, RowView(self._table.capacity))
        assert isinstance(view, RowView)
        view.used_at = self._clock
        return view

    def view_of_term(self, counter: TermCounter) -> DomainView:
        """How often a term is stated in each domain of its own topology key."""
        self._make_room()
        return self._domain_view(counter, counter.term.topology_key, None)

    def eligibility(self, inclusion: Inclusion) -> EligibleRows:
        """The rows that an inclusion includes."""
        found = self._eligibilities.get(inclusion)
        if found is None:
            if len(self._eligibilities) >= MOST_ELIGIBILITIES:
                self._drop_eligibilities()
            self._clock += 1
            found = self._eligibilities[inclusion] = EligibleRows(inclusion, self._table)
        found.used_at = self._clock
        return found

    def nodes(self, inclusion: Inclusion, topology_key: str) -> DomainSums:
        """How many included nodes each domain has."""
        return self.eligibility(inclusion).nodes(self._table.label(topology_key))

    def note(self, owner: Any, value: Any) -> None:
        """Keep a value until a view is dropped; call this before requesting the views in it."""
        if len(self.notes) >= MOST_NOTES:
            self._drop_notes()
        self.notes[owner] = value

    def _drop_notes(self) -> None:
        self.notes.clear()
        self.version += 1

    def touch(self, *used: DomainView | RowView | EligibleRows) -> None:
        """Mark kept views as used."""
        for each in used:
            each.used_at = self._clock

    def _domain_view(
        self, counter: RowCounter, topology_key: str, eligibility: EligibleRows | None
    ) -> DomainView:
        key = (topology_key, None if eligibility is None else eligibility.inclusion)
        view = counter.views.get(key)
        if view is None:
            new = DomainView(self._table.label(topology_key), eligibility, self)
            view = self._new_view(counter, key, new)
        assert isinstance(view, DomainView)
        view.used_at = self._clock
        return view

    def _new_view(
        self, counter: RowCounter, key: ViewKey, view: DomainView | RowView
    ) -> DomainView | RowView:
        self._clock += 1
        self._view_count += 1
        counter.views[key] = view
        view.fill(counter.rows)
        return view

    def _counter(self, clauses: Clauses, *, counts_terminating: bool) -> SelectorCounter:
        counter = self._counters.get((clauses, counts_terminating))
        if counter is None:
            counter = SelectorCounter(clauses, counts_terminating=counts_terminating)
            self._counters[clauses, counts_terminating] = counter
            self._list(counter)
            for pods in self.classes.matching(clauses):
                counter.include(pods)
        return counter

    def _list(self, counter: SelectorCounter) -> None:
        """List a counter under its most selective clause, for pods of new classes."""
        clause = min(counter.clauses, key=lambda each: not each.selector.requirements)
        names = clause.namespaces or ()
        self._index.add(counter, min(names) if len(names) == 1 else None, clause.selector)

    # Changes, from the table

    def add(self, row: int, pod: Pod, usage: Usage, amount: int = 1) -> None:
        """Count a pod that comes to a row (1) or leaves it (-1), with the usage that it came with.

        A leaving pod must be terminating if it was when it came.
        """
        pods = self.classes.get(usage.labels) or self._new_class(usage.labels)
        terminating = pod.metadata.deletion_timestamp is not None
        pods.add(row, amount, terminating=terminating)
        for counter in pods.counters:
            if counter.counts_terminating or not terminating:
                counter.add(row, amount)
        if amount < 0 and pods.is_empty:
            self.classes.drop(usage.labels)
        if usage.terms and self.terms.add(row, pod.namespace, usage.terms, amount):
            self._drop_notes()

    def add_many(self, rows: Sequence[int], usage: Usage, *, terminating: bool) -> None:
        """Count pods with the same usage that come to these rows."""
        pods = self.classes.get(usage.labels) or self._new_class(usage.labels)
        for row in rows:
            pods.add(row, 1, terminating=terminating)
        for counter in pods.counters:
            if counter.counts_terminating or not terminating:
                for row in rows:
                    counter.add(row, 1)
        if usage.terms:
            for row in rows:
                if self.terms.add(row, pods.namespace, usage.terms, 1):
                    self._drop_notes()

    def set_terminating(self, row: int, usage: Usage, *, terminating: bool) -> None:
        """Count a pod of a row as terminating from now on, or not any more."""
        pods = self.classes.get(usage.labels)
        assert pods is not None, "a pod on a row is counted"
        pods.move(row, terminating=terminating)
        for counter in pods.counters:
            if not counter.counts_terminating:
                counter.add(row, -1 if terminating else 1)

    def _new_class(self, labels: LabelKey) -> PodClass:
        pods = self.classes.new(labels)
        candidates = self._index.candidates(pods.namespace, pods.labels)
        pods.counters += [counter for counter in candidates if pods.matches(counter.clauses)]
        return pods

    def leave(self, row: int) -> None:
        """Subtract a row: its node is about to change in labels or taints, come or go."""
        for counter in self._affected(row):
            counter.move(row, -1)
        for eligibility in self._eligibilities.values():
            eligibility.leave(row)

    def enter(self, row: int, node: Node | None) -> None:
        """Add a row again: its node and the table's columns have changed."""
        for eligibility in self._eligibilities.values():
            eligibility.enter(row, node)
        for counter in self._affected(row):
            counter.move(row, 1)

    def _affected(self, row: int) -> Iterator[RowCounter]:
        if self._table.placed[row]:
            yield from self._counters.values()
            yield from self.terms.all

    def grow(self, capacity: int) -> None:
        """Add rows up to a capacity."""
        for eligibility in self._eligibilities.values():
            eligibility.grow(capacity)
        for counter in self._counters.values():
            for view in counter.views.values():
                view.grow(capacity)

    # Views that are not used any more

    def _most_views(self) -> int:
        return max(VIEW_BYTES // (8 * self._table.capacity), FEWEST_VIEWS)

    def _make_room(self) -> None:
        """Drop the least recently used quarter of all views if there are too many.

        Called before a new view is made, which must not be dropped.
        """
        if self._view_count < self._most_views():
            return
        counters: list[RowCounter] = [*self._counters.values(), *self.terms.all]
        views = [(view.used_at, c, key) for c in counters for key, view in c.views.items()]
        views.sort(key=lambda entry: entry[0])
        dropped = views[: len(views) // 4]
        for _, counter, key in dropped:
            del counter.views[key]
        self._view_count = len(views) - len(dropped)
        self._drop_counters()

    def _drop_counters(self) -> None:
        """Drop the counters without a view, and the notes."""
        self._drop_notes()
        self._counters = {key: c for key, c in self._counters.items() if c.views}
        self._index = SelectorIndex()
        for counter in self._counters.values():
            self._list(counter)
        for pods in self.classes.all():
            if pods.counters:
                pods.counters = [counter for counter in pods.counters if counter.views]

    def _drop_eligibilities(self) -> None:
        """Drop the least recently used half, with the views that depend on them."""
        oldest = sorted(self._eligibilities.values(), key=lambda each: each.used_at)
        dropped = dict.fromkeys(each.inclusion for each in oldest[: len(oldest) // 2])
        for inclusion in dropped:
            del self._eligibilities[inclusion]
        for counter in self._counters.values():
            for key in list(counter.views):
                if key is not None and key[1] in dropped:
                    del counter.views[key]
                    self._view_count -= 1
        self._drop_counters()
