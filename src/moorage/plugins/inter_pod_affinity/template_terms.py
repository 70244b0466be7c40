"""The affinity terms that matter for a template: its own, and those of pods on nodes.

The template's own terms are parsed once. The terms of other pods that match the template, and the
views that count pods for all these terms, are stored with the placements. They are updated when a
new term appears, and computed again when labels of namespaces change or views were dropped.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from moorage import plugin as mp

Kind = mp.affinity_terms.TermKind
# Their counts are added.
ViewsByKey = dict[str, list[mp.DomainView]]
Weighted = list[tuple[int, mp.DomainView]]

NAME = "InterPodAffinity"


@dataclass(slots=True, eq=False)
class FilterViews:
    """The views of the filter, by topology key: Kubernetes' three counters."""

    # The labels of the pod's namespace, and the pods that its own terms select.
    namespace_labels: Mapping[str, str]
    affinity_clauses: tuple[mp.Clause, ...]
    anti_clauses: Sequence[tuple[str, mp.Clause]]
    # Pods that match all required affinity terms; pods that match an anti-affinity term; pods that
    # have an anti-affinity term which matches this pod.
    affinity: ViewsByKey = field(default_factory=dict)
    anti: ViewsByKey = field(default_factory=dict)
    existing: ViewsByKey = field(default_factory=dict)
    views: list[mp.DomainView] = field(default_factory=list)

    def add(self, to: ViewsByKey, view: mp.DomainView) -> None:
        to.setdefault(view.column.key, []).append(view)
        self.views.append(view)


class ScoreViews:
    """The views of the score: weighted ones, and those of other pods' required terms."""

    __slots__ = ("preferred", "required", "views", "weighted_views")

    def __init__(self, preferred: Weighted, required: list[mp.DomainView]) -> None:
        self.preferred = preferred
        self.required = required
        self.weighted_views = [view for _, view in preferred]
        self.views = [*self.weighted_views, *required]


@dataclass(slots=True)
class MatchingTerms:
    """The terms of pods on nodes that match a template, and the views made from them."""

    namespaces_version: int
    namespace_labels: Mapping[str, str]
    # How many terms of pods on nodes were compared; None before the first time.
    terms_seen: int | None = None
    others: list[mp.TermCounter] = field(default_factory=list)
    filter_views: FilterViews | None = None
    score_views: ScoreViews | None = None


class TemplateTerms:
    """The own terms of a template's pods, and what they are matched by."""

    __slots__ = ("has_required", "labels", "namespace", "own", "states_terms")

    def __init__(self, pod: mp.Pod) -> None:
        self.namespace = pod.namespace
        self.labels = pod.labels
        self.own = mp.affinity_terms.of(pod)
        self.states_terms = any(self.own)
        self.has_required = bool(self.own.required_affinity or self.own.required_anti_affinity)

    @classmethod
    def of(cls, template: mp.PodTemplate) -> "TemplateTerms":
        """The terms of a template, parsed once."""
        known: TemplateTerms | None = template.compiled.get(NAME)
        if known is None:
            known = template.compiled[NAME] = cls(template.exemplar)
        return known

    def has_no_terms(self, placements: mp.Placements) -> bool:
        """Whether neither these pods nor pods on nodes have any terms."""
        return not self.states_terms and not placements.terms.all

    @property
    def problem(self) -> str:
        """The errors in the pod's terms."""
        problems = self.own.problems
        return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"

    def matching_terms(self, cluster: mp.Cluster) -> MatchingTerms:
        """The terms of pods on nodes that match this template, up to date."""
        placements, version = cluster.table.placements, cluster.version_of(mp.Namespace)
        found: MatchingTerms | None = placements.notes.get(self)
        if found is None or found.namespaces_version != version:
            found = MatchingTerms(version, labels_of(self.namespace, cluster))
            placements.note(self, found)
        terms, seen = placements.terms, found.terms_seen
        if seen != len(terms.all):
            newer = terms.matching(self.namespace, self.labels, found.namespace_labels, seen)
            found.terms_seen = len(terms.all)
            if newer:
                found.others += newer
                found.filter_views = found.score_views = None
        return found

    def filter_views(self, cluster: mp.Cluster) -> FilterViews:
        """The views that the filter needs."""
        found = self.matching_terms(cluster)
        if found.filter_views is None:
            found.filter_views = self._make_filter_views(found, cluster)
        else:
            cluster.table.placements.touch(*found.filter_views.views)
        return found.filter_views

    def score_views(self, cluster: mp.Cluster) -> ScoreViews:
        """The views that the score needs."""
        found = self.matching_terms(cluster)
        if found.score_views is None:
            found.score_views = self._make_score_views(found, cluster)
        else:
            cluster.table.placements.touch(*found.score_views.views)
        return found.score_views

    def _make_filter_views(self, found: MatchingTerms, cluster: mp.Cluster) -> FilterViews:
        own, placements = self.own, cluster.table.placements
        affinity = tuple(clause_of(term, cluster) for term in own.required_affinity)
        anti = [
            (term.topology_key, clause_of(term, cluster)) for term in own.required_anti_affinity
        ]
        views = FilterViews(found.namespace_labels, affinity, anti)
        # A pod counts only if it matches all terms, whatever their topology keys.
        for key in dict.fromkeys(term.topology_key for term in own.required_affinity):
            views.add(views.affinity, placements.view(affinity, key, counts_terminating=True))
        for key, clause in anti:
            views.add(views.anti, placements.view((clause,), key, counts_terminating=True))
        for counter in found.others:
            if counter.kind is Kind.REQUIRED_ANTI_AFFINITY:
                views.add(views.existing, placements.view_of_term(counter))
        return views

    def _make_score_views(self, found: MatchingTerms, cluster: mp.Cluster) -> ScoreViews:
        own, placements = self.own, cluster.table.placements
        preferred: Weighted = []
        for sign, terms in ((1, own.preferred_affinity), (-1, own.preferred_anti_affinity)):
            for term in terms:
                clauses = (clause_of(term, cluster),)
                view = placements.view(clauses, term.topology_key, counts_terminating=True)
                preferred.append((sign * term.weight, view))
        required = []
        for counter in found.others:
            if counter.kind is Kind.REQUIRED_AFFINITY:
                required.append(placements.view_of_term(counter))
            elif counter.kind is Kind.PREFERRED_AFFINITY:
                preferred.append((counter.term.weight, placements.view_of_term(counter)))
            elif counter.kind is Kind.PREFERRED_ANTI_AFFINITY:
                preferred.append((-counter.term.weight, placements.view_of_term(counter)))
        return ScoreViews(preferred, required)


def labels_of(namespace: str, cluster: mp.Cluster) -> Mapping[str, str]:
    """The labels of a namespace; none if it is not known."""
    found = cluster.get(mp.Namespace, namespace)
    return {} if found is None else found.labels


def clause_of(term: mp.AffinityTerm, cluster: mp.Cluster) -> mp.Clause:
    """The pods that a term of an incoming pod selects, with its namespaces by name.

    As in Kubernetes 1.36 the namespace selector is also matched against an empty set of labels. So
    one with only NotIn or DoesNotExist selects pods of all namespaces.
    """
    selector = term.namespace_selector
    if selector.matches({}):
        return mp.Clause(None, term.selector)
    if selector.matches_nothing:
        return mp.Clause(term.namespaces, term.selector)
    return mp.Clause(term.namespaces | namespaces_with(selector, cluster), term.selector)


def namespaces_with(selector: mp.selectors.Selector, cluster: mp.Cluster) -> frozenset[str]:
    """The names of all namespaces whose labels a selector matches."""
    placements, version = cluster.table.placements, cluster.version_of(mp.Namespace)
    known: tuple[int, frozenset[str]] | None = placements.notes.get(selector)
    if known is None or known[0] != version:
        found = (each.name for each in cluster.all(mp.Namespace) if selector.matches(each.labels))
        known = version, frozenset(found)
        placements.note(selector, known)
    return known[1]
