"""What the filter knows in one cycle: three counts by topology key and value, and the verdicts.

`existing`: pods whose required anti-affinity speaks of this pod; `affinity`: pods that all its
required terms speak of; `anti`: pods that its own required anti-affinity speaks of. A what-if
corrects the counts of a copy; the views beneath stay as they are.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.inter_pod_affinity.incoming import ByKey, FilterViews, Incoming

NO_COMPANY = mp.unresolvable("node(s) didn't match pod affinity rules")
FORBIDDEN = mp.unschedulable("node(s) didn't match pod anti-affinity rules")
REPELLED = mp.unschedulable("node(s) didn't satisfy existing pods anti-affinity rules")

# By code: of several reasons, the one with the greatest code is reported.
STATUSES = (mp.SUCCESS, REPELLED, FORBIDDEN, NO_COMPANY)

# After so many changes to a count all rows are looked at.
MANY = 32

# Codes while they are worked out: an eighth of the memory to go through.
Small = NDArray[np.int8]


@dataclass(slots=True)
class Pairs:
    """A count for every pair of a topology key and a label value."""

    views: ByKey
    corrections: dict[tuple[str, str], int] = field(default_factory=dict)

    def at(self, key: str, value: str | None) -> int:
        """The count of one pair."""
        count = sum([view.at(value) for view in self.views.get(key, ())])
        return count if value is None else count + self.corrections.get((key, value), 0)

    def by_domain(self, key: str, table: mp.NodeTable) -> NDArray[np.int64]:
        """The counts of all pairs with a key, by domain; not to be written to."""
        views = self.views.get(key, ())
        if len(views) == 1 and not self.corrections:
            return views[0].sums
        column = table.label(key)
        counts = np.zeros(len(column.values), dtype=np.int64)
        for view in views:
            counts += view.sums
        for (corrected, value), amount in self.corrections.items():
            if corrected == key:
                counts[column.code_of[value]] += amount
        return counts

    @property
    def keys(self) -> Collection[str]:
        """The topology keys that may have counts."""
        if not self.corrections:
            return self.views
        return dict.fromkeys((*self.views, *(key for key, _ in self.corrections)))

    @property
    def is_empty(self) -> bool:
        """Whether all counts are 0. Only for counts that one view per key makes up."""
        pairs = sum(view.nonzero for views in self.views.values() for view in views)
        for (key, value), amount in self.corrections.items():
            before = self.at(key, value) - amount
            pairs += (before + amount != 0) - (before != 0)
        return pairs == 0

    def correct(self, key: str, labels: Mapping[str, str], amount: int) -> None:
        """Count a pod more, or less, on a node with these labels."""
        if key in labels:
            pair = key, labels[key]
            self.corrections[pair] = self.corrections.get(pair, 0) + amount

    def clone(self) -> "Pairs":
        return Pairs(self.views, dict(self.corrections))


@dataclass(frozen=True, slots=True)
class Told:
    """What verdicts were given from."""

    asked: FilterViews
    is_first: bool
    # How far each view had come.
    positions: list[int]


@dataclass(slots=True)
class Counts:
    """The three counts of one pod."""

    incoming: Incoming
    asked: FilterViews
    affinity: Pairs
    anti: Pairs
    existing: Pairs

    @classmethod
    def of(cls, incoming: Incoming, asked: FilterViews) -> "Counts":
        """The counts as they are now."""
        return cls(incoming, asked, Pairs(asked.affinity), Pairs(asked.anti), Pairs(asked.existing))

    def clone(self) -> "Counts":
        """A copy to correct."""
        pairs = (self.affinity.clone(), self.anti.clone(), self.existing.clone())
        return Counts(self.incoming, self.asked, *pairs)

    def correct(self, other: mp.Pod, labels: Mapping[str, str], amount: int) -> None:
        """As if a pod came to (1), or left (-1), a node with these labels."""
        pod, asked = self.incoming, self.asked
        for term in mp.affinity_terms.of(other).required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, asked.namespace_labels):
                self.existing.correct(term.topology_key, labels, amount)
        if asked.affinity and _all_match(asked.affinity_clauses, other.namespace, other.labels):
            for key in asked.affinity:
                self.affinity.correct(key, labels, amount)
        for key, clause in asked.anti_clauses:
            if clause.matches(other.namespace, other.labels):
                self.anti.correct(key, labels, amount)

    def status(self, labels: Mapping[str, str]) -> mp.Status:
        """The verdict on a node with these labels."""
        if self.affinity.views and not self._has_company(labels):
            return NO_COMPANY
        if any(self.anti.at(key, labels.get(key)) > 0 for key in self.anti.keys):
            return FORBIDDEN
        if any(self.existing.at(key, labels.get(key)) > 0 for key in self.existing.keys):
            return REPELLED
        return mp.SUCCESS

    def _has_company(self, labels: Mapping[str, str]) -> bool:
        keys = self.affinity.views
        if any(key not in labels for key in keys):
            return False
        return all(self.affinity.at(key, labels[key]) > 0 for key in keys) or self._is_first()

    def _is_first(self) -> bool:
        """Whether the pod looks for pods like itself and there are none: somebody has to begin."""
        pod = self.incoming
        clauses = self.asked.affinity_clauses
        return self.affinity.is_empty and _all_match(clauses, pod.namespace, pod.labels)

    def news(self, told: Told | None) -> tuple[Told, mp.RowArray | None]:
        """The rows that may have another verdict: where pods are now, or no longer are."""
        asked = self.asked
        is_first = bool(asked.affinity) and self._is_first()
        now = Told(asked, is_first, [view.turned.position for view in asked.views])
        if told is None or told.asked is not asked or told.is_first != is_first:
            return now, None
        turned: dict[mp.LabelColumn, dict[int, int]] = {}
        for view, before, position in zip(asked.views, told.positions, now.positions, strict=True):
            if before != position:
                # Not a Cursor: the position belongs to the template, whose token holds it.
                domains = None if position - before > MANY else view.turned.since(before)
                if domains is None:
                    return now, None
                turned.setdefault(view.column, {}).update(domains)
        return now, mp.few_rows_in(turned)

    def verdicts(self, table: mp.NodeTable, rows: mp.Rows) -> mp.Verdicts:
        """The verdicts on many rows: worked out per domain, then spread over the rows."""
        worst: Small | None = None
        is_first = bool(self.affinity.views) and self._is_first()
        for key in dict.fromkeys((*self.affinity.keys, *self.anti.keys, *self.existing.keys)):
            spread = self._by_domain(key, table, is_first=is_first).take(rows.domains(key))
            worst = spread if worst is None else np.maximum(worst, spread)
        if worst is None:
            worst = np.zeros(len(rows), dtype=np.int8)
        return mp.Verdicts(codes=worst.astype(np.int64), status_of=STATUSES.__getitem__)

    def _by_domain(self, key: str, table: mp.NodeTable, *, is_first: bool) -> Small:
        worst: Small = np.zeros(len(table.label(key).values), dtype=np.int8)
        for code, pairs in ((1, self.existing), (2, self.anti)):
            if key in pairs.keys:
                worst = np.maximum(worst, _times(code, pairs.by_domain(key, table) > 0))
        if key in self.affinity.views:
            if not is_first:
                alone = self.affinity.by_domain(key, table) <= 0
                worst = np.maximum(worst, _times(3, alone))
            worst[0] = 3  # Nodes without the label, whoever is first.
        return worst


def _times(code: int, where: mp.Mask) -> Small:
    return where.view(np.int8) * np.int8(code)


def _all_match(clauses: Iterable[mp.Clause], namespace: str, labels: Mapping[str, str]) -> bool:
    return all(clause.matches(namespace, labels) for clause in clauses)
