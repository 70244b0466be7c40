"""The filter: three counts by topology key and value, and the verdicts that follow.

`existing`: pods with a required anti-affinity term that matches this pod; `affinity`: pods that
match all its required affinity terms; `anti`: pods that match its own required anti-affinity. A
what-if corrects a copy of the counts; the views below do not change.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.inter_pod_affinity.template_terms import (
    FilterViews,
    TemplateTerms,
    ViewsByKey,
)

AFFINITY_NOT_MET = mp.unresolvable("node(s) didn't match pod affinity rules")
ANTI_AFFINITY_NOT_MET = mp.unschedulable("node(s) didn't match pod anti-affinity rules")
EXISTING_ANTI_AFFINITY = mp.unschedulable(
    "node(s) didn't satisfy existing pods anti-affinity rules"
)

# By code: of several reasons, the one with the greatest code is reported.
STATUSES = (mp.SUCCESS, EXISTING_ANTI_AFFINITY, ANTI_AFFINITY_NOT_MET, AFFINITY_NOT_MET)

# After so many changed domains all rows are evaluated again.
MOST_CHANGES = 32

# Codes while they are computed: an eighth of the memory traffic.
Small = NDArray[np.int8]


@dataclass(slots=True)
class TopologyCounts:
    """A count for every pair of a topology key and a label value."""

    views: ViewsByKey
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
        """Whether all counts are 0. Only for counts with one view per key."""
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

    def clone(self) -> "TopologyCounts":
        return TopologyCounts(self.views, dict(self.corrections))


@dataclass(slots=True)
class FilterToken:
    """What verdicts were computed from."""

    filter_views: FilterViews
    is_first: bool
    # In the log of each view.
    cursors: list[mp.Cursor[tuple[int, int]]]


@dataclass(slots=True)
class AffinityCounts:
    """The three counts of one pod."""

    template: TemplateTerms
    filter_views: FilterViews
    affinity: TopologyCounts
    anti: TopologyCounts
    existing: TopologyCounts

    @classmethod
    def of(cls, template: TemplateTerms, filter_views: FilterViews) -> "AffinityCounts":
        """The counts as they are now."""
        views = (filter_views.affinity, filter_views.anti, filter_views.existing)
        return cls(template, filter_views, *[TopologyCounts(each) for each in views])

    def clone(self) -> "AffinityCounts":
        """A copy to correct."""
        pairs = (self.affinity.clone(), self.anti.clone(), self.existing.clone())
        return AffinityCounts(self.template, self.filter_views, *pairs)

    def correct(self, other: mp.Pod, labels: Mapping[str, str], amount: int) -> None:
        """As if a pod came to (1), or left (-1), a node with these labels."""
        pod, filter_views = self.template, self.filter_views
        for term in mp.affinity_terms.of(other).required_anti_affinity:
            if term.matches(pod.namespace, pod.labels, filter_views.namespace_labels):
                self.existing.correct(term.topology_key, labels, amount)
        if filter_views.affinity and _all_match(
            filter_views.affinity_clauses, other.namespace, other.labels
        ):
            for key in filter_views.affinity:
                self.affinity.correct(key, labels, amount)
        for key, clause in filter_views.anti_clauses:
            if clause.matches(other.namespace, other.labels):
                self.anti.correct(key, labels, amount)

    def status(self, labels: Mapping[str, str]) -> mp.Status:
        """The verdict on a node with these labels."""
        if self.affinity.views and not self._meets_affinity(labels):
            return AFFINITY_NOT_MET
        if any(self.anti.at(key, labels.get(key)) > 0 for key in self.anti.keys):
            return ANTI_AFFINITY_NOT_MET
        if any(self.existing.at(key, labels.get(key)) > 0 for key in self.existing.keys):
            return EXISTING_ANTI_AFFINITY
        return mp.SUCCESS

    def _meets_affinity(self, labels: Mapping[str, str]) -> bool:
        keys = self.affinity.views
        if any(key not in labels for key in keys):
            return False
        return all(self.affinity.at(key, labels[key]) > 0 for key in keys) or self.is_first

    @property
    def is_first(self) -> bool:
        """Whether the pod's terms match the pod itself and no other: the first of its group."""
        pod, clauses = self.template, self.filter_views.affinity_clauses
        if not clauses or not self.affinity.is_empty:
            return False
        return _all_match(clauses, pod.namespace, pod.labels)

    def changes(self, since: FilterToken | None) -> tuple[FilterToken, mp.RowArray | None]:
        """The rows whose verdict may have changed: a count became zero or nonzero."""
        filter_views = self.filter_views
        is_first = self.is_first
        changed: dict[mp.LabelColumn, dict[int, int]] | None = {}
        if since is None or since.filter_views is not filter_views or since.is_first != is_first:
            changed = None
            cursors = [mp.Cursor(view.turned) for view in filter_views.views]
            since = FilterToken(filter_views, is_first, cursors)
        for view, cursor in zip(filter_views.views, since.cursors, strict=True):
            number = cursor.log.position - cursor.position
            if number:
                domains = cursor.changed()
                if domains is None or number > MOST_CHANGES:
                    changed = None
                elif changed is not None:
                    changed.setdefault(view.column, {}).update(domains)
                cursor.commit()
        return since, None if changed is None else mp.few_rows_in(changed)

    def verdicts(self, table: mp.NodeTable, rows: mp.Rows) -> mp.Verdicts:
        """The verdicts on many rows: computed per domain, then copied to the rows."""
        worst: Small | None = None
        is_first = self.is_first
        for key in self._topology_keys:
            spread = self._by_domain(key, table, is_first=is_first).take(rows.domains(key))
            worst = spread if worst is None else np.maximum(worst, spread)
        if worst is None:
            worst = np.zeros(len(rows), dtype=np.int8)
        return mp.Verdicts(codes=worst.astype(np.int64), status_of=STATUSES.__getitem__)

    @property
    def _topology_keys(self) -> Collection[str]:
        return dict.fromkeys((*self.affinity.keys, *self.anti.keys, *self.existing.keys))

    def _by_domain(self, key: str, table: mp.NodeTable, *, is_first: bool) -> Small:
        worst: Small = np.zeros(len(table.label(key).values), dtype=np.int8)
        for code, pairs in ((1, self.existing), (2, self.anti)):
            if key in pairs.keys:
                worst = np.maximum(worst, _times(code, pairs.by_domain(key, table) > 0))
        if key in self.affinity.views:
            if not is_first:
                none = self.affinity.by_domain(key, table) <= 0
                worst = np.maximum(worst, _times(3, none))
            worst[0] = 3  # Nodes without the label.
        return worst


class GroupVerdicts:
    """Which groups of nodes fit: those with the right pods, or none, in their domains.

    The same as long as the same groups have feasible nodes and the same domains have pods.
    """

    def __init__(self, counts: AffinityCounts) -> None:
        # Whether pods have to be in a domain, or must not be; None if it has to be a domain.
        near = None if counts.is_first else True
        wanted = ((near, counts.affinity), (False, counts.anti), (False, counts.existing))
        self._rules: list[tuple[bool | None, mp.DomainView, mp.GroupKey]] = []
        for has_pods, each in wanted:
            for view in chain.from_iterable(each.views.values()):
                column = view.column
                key = column if column.has_few_values else mp.IsCounted(view)
                self._rules.append((has_pods, view, key))
        # What nodes with equal verdicts agree in: their domain, or whether pods are in it.
        self.keys = tuple([key for _, _, key in self._rules])
        self._by_domain = [view.turned for _, view, key in self._rules if key is view.column]
        self._known: tuple[mp.Groups, int, list[int]] | None = None
        self._fits: list[bool] = []

    def of(self, groups: mp.Groups) -> list[bool]:
        """The groups that fit."""
        known = groups, groups.version, [log.position for log in self._by_domain]
        if known != self._known:
            self._fits = [True] * len(groups)
            for has_pods, view, key in self._rules:
                for at, count in enumerate(_pods_of(groups, view, key)):
                    if count < 0 if has_pods is None else (count > 0) != has_pods:
                        self._fits[at] = False
            self._known = known
        return self._fits


def _pods_of(groups: mp.Groups, view: mp.DomainView, key: mp.GroupKey) -> list[int]:
    """The pods of a view in the domain of each group, or 1 for any number; -1 without a domain."""
    if key is not view.column:
        return groups.of(key)
    count_in = view.sums.item
    return [count_in(domain) if domain else -1 for domain in groups.of(key)]


def _times(code: int, where: mp.Mask) -> Small:
    return where.view(np.int8) * np.int8(code)


def _all_match(clauses: Iterable[mp.Clause], namespace: str, labels: Mapping[str, str]) -> bool:
    return all(clause.matches(namespace, labels) for clause in clauses)


def explain(rejection: mp.Rejection) -> str:
    """The terms of the pod, or the pods whose anti-affinity keeps it away.

    Pods are listed in the namespaces that a term names. A term that selects namespaces by their
    labels is stated without its pods.
    """
    if rejection.reason in EXISTING_ANTI_AFFINITY.reasons:
        pods = [
            f"{other.key} on {node}"
            for node, other in rejection.placed()
            if (affinity := other.spec.affinity) is not None
            and affinity.pod_anti_affinity is not None
            and any(_selects(t, other, rejection.pod) for t in affinity.pod_anti_affinity.required)
        ]
        return f"kept away by {mp.texts.listed(pods, 60)}." if pods else ""
    affinity = rejection.pod.spec.affinity
    if affinity is not None and rejection.reason in AFFINITY_NOT_MET.reasons:
        return _terms(rejection, affinity.pod_affinity, "has to share")
    if affinity is not None and rejection.reason in ANTI_AFFINITY_NOT_MET.reasons:
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
