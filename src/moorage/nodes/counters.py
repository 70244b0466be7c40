"""Counters: how many pods, or terms of pods, are on each row, with views that sum them up.

A SelectorCounter counts the pods that clauses mean; it is made when somebody first asks. A
TermCounter counts how often the pods on a row state one affinity term; it is there as long as any
pod states the term, because only so a newcomer can be compared with all terms there are.
"""

from moorage.nodes.affinity_terms import AffinityTerm, Kind
from moorage.nodes.domains import DomainView, RowView
from moorage.nodes.inclusion import Inclusion
from moorage.nodes.pod_classes import Clauses, PodClass

# A topology key with the rows that count, or None for the view per row.
ViewKey = tuple[str, Inclusion | None] | None
PER_ROW: ViewKey = None


class RowCounter:
    """A number per row, and views that are kept up to date with it."""

    __slots__ = ("rows", "views")

    def __init__(self) -> None:
        self.rows: dict[int, int] = {}
        self.views: dict[ViewKey, DomainView | RowView] = {}

    def add(self, row: int, amount: int) -> None:
        """Something came to a row, or left it."""
        count = self.rows.get(row, 0) + amount
        if count:
            self.rows[row] = count
        else:
            del self.rows[row]
        for view in self.views.values():
            view.add(row, amount)

    def leave(self, row: int) -> None:
        """A row's node is about to change, and with it perhaps the domains."""
        amount = self.rows.get(row)
        if amount is not None:
            for view in self.views.values():
                view.add(row, -amount)

    def enter(self, row: int) -> None:
        """A row's node has changed."""
        amount = self.rows.get(row)
        if amount is not None:
            for view in self.views.values():
                view.add(row, amount)


class SelectorCounter(RowCounter):
    """The pods that all clauses mean; those that are being deleted count only if wanted."""

    __slots__ = ("clauses", "counts_terminating")

    def __init__(self, clauses: Clauses, *, counts_terminating: bool) -> None:
        super().__init__()
        self.clauses = clauses
        self.counts_terminating = counts_terminating

    def include(self, pods: PodClass) -> None:
        """Count the pods of a class that matches, from now on and those that are there."""
        pods.counters.append(self)
        groups = (pods.live, pods.terminating) if self.counts_terminating else (pods.live,)
        for group in groups:
            for row, amount in group.items():
                self.add(row, amount)


class TermCounter(RowCounter):
    """One term, and how often pods state it."""

    __slots__ = ("kind", "term")

    def __init__(self, kind: Kind, term: AffinityTerm) -> None:
        super().__init__()
        self.kind = kind
        self.term = term
