"""Incoming: what pods of one template have to do with others, both ways.

Their own terms, and the terms of pods on nodes that speak of them, as views of the placements.
The parsed terms are kept with the template. What was found out about others is a note with the
placements, and looked up anew only as far as something came up since: a term that nobody stated
before, a namespace with other labels, views that were dropped.
"""

from collections.abc import Mapping, Sequence

from moorage import plugin as mp

Kind = mp.affinity_terms.TermKind
# Views by topology key; their numbers add up.
ByKey = Mapping[str, Sequence[mp.DomainView]]
Clauses = tuple[mp.Clause, ...]
Weighted = list[tuple[int, mp.DomainView]]

NAME = "InterPodAffinity"


class FilterViews:
    """What the filter counts, by topology key: the three counters of the specification."""

    __slots__ = (
        "affinity",
        "affinity_clauses",
        "anti",
        "anti_clauses",
        "existing",
        "namespace_labels",
        "views",
    )

    def __init__(
        self,
        namespace_labels: Mapping[str, str],
        affinity_clauses: Clauses,
        anti_clauses: Sequence[tuple[str, mp.Clause]],
    ) -> None:
        # The labels of the pod's namespace, and what its own terms mean.
        self.namespace_labels = namespace_labels
        self.affinity_clauses = affinity_clauses
        self.anti_clauses = anti_clauses
        # Pods that all required terms speak of, that own terms forbid, whose terms forbid company.
        self.affinity: dict[str, list[mp.DomainView]] = {}
        self.anti: dict[str, list[mp.DomainView]] = {}
        self.existing: dict[str, list[mp.DomainView]] = {}
        self.views: list[mp.DomainView] = []

    def add(self, to: dict[str, list[mp.DomainView]], view: mp.DomainView) -> None:
        to.setdefault(view.column.key, []).append(view)
        self.views.append(view)


class ScoreViews:
    """What the score counts: weights with views, and others' required terms apart."""

    __slots__ = ("liked", "preferred", "required", "views")

    def __init__(self, preferred: Weighted, required: list[mp.DomainView]) -> None:
        self.preferred = preferred
        self.required = required
        self.liked = [view for _, view in preferred]
        self.views = [*self.liked, *required]


class Surroundings:
    """What was found out about others, and what it was found out from."""

    __slots__ = (
        "filter_views",
        "namespace_labels",
        "namespaces_version",
        "others",
        "score_views",
        "terms_seen",
    )

    def __init__(self, incoming: "Incoming", cluster: mp.Cluster) -> None:
        terms = cluster.table.placements.terms
        self.namespaces_version = cluster.version_of(mp.Namespace)
        self.namespace_labels = labels_of(incoming.namespace, cluster)
        self.terms_seen = len(terms.all)
        self.others = terms.matching(incoming.namespace, incoming.labels, self.namespace_labels)
        self.filter_views: FilterViews | None = None
        self.score_views: ScoreViews | None = None

    def catch_up(self, incoming: "Incoming", placements: mp.Placements) -> None:
        """Look at the terms that were stated for the first time since."""
        terms = placements.terms
        who = (incoming.namespace, incoming.labels, self.namespace_labels)
        newer = terms.matching_from(self.terms_seen, *who)
        self.terms_seen = len(terms.all)
        if newer:
            self.others += newer
            self.filter_views = self.score_views = None


class Incoming:
    """See the module."""

    __slots__ = ("has_required", "labels", "namespace", "own", "states_terms")

    def __init__(self, pod: mp.Pod) -> None:
        self.namespace = pod.namespace
        self.labels = pod.labels
        self.own = mp.affinity_terms.of(pod)
        self.states_terms = any(self.own)
        self.has_required = bool(self.own.required_affinity or self.own.required_anti_affinity)

    @classmethod
    def of(cls, template: mp.PodTemplate) -> "Incoming":
        """What is known of a template."""
        known: Incoming | None = template.compiled.get(NAME)
        if known is None:
            known = template.compiled[NAME] = cls(template.exemplar)
        return known

    def is_alone(self, placements: mp.Placements) -> bool:
        """Whether nobody states any terms, neither these pods nor others."""
        return not self.states_terms and not placements.terms.all

    @property
    def problem(self) -> str:
        """What is wrong with the pod's terms, if anything is."""
        problems = self.own.problems
        return problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"

    def surroundings(self, cluster: mp.Cluster) -> Surroundings:
        """Which terms of pods on nodes speak of this one, up to date."""
        placements = cluster.table.placements
        found: Surroundings | None = placements.notes.get(self)
        if found is None or found.namespaces_version != cluster.version_of(mp.Namespace):
            found = Surroundings(self, cluster)
            placements.note(self, found)
        elif found.terms_seen != len(placements.terms.all):
            found.catch_up(self, placements)
        return found

    def filter_views(self, cluster: mp.Cluster) -> FilterViews:
        """The views that the filter needs."""
        found = self.surroundings(cluster)
        if found.filter_views is None:
            found.filter_views = self._ask_for_filter(found, cluster)
        else:
            cluster.table.placements.touch(*found.filter_views.views)
        return found.filter_views

    def score_views(self, cluster: mp.Cluster) -> ScoreViews:
        """The views that the score needs."""
        found = self.surroundings(cluster)
        if found.score_views is None:
            found.score_views = self._ask_for_score(found, cluster)
        else:
            cluster.table.placements.touch(*found.score_views.views)
        return found.score_views

    def _ask_for_filter(self, found: Surroundings, cluster: mp.Cluster) -> FilterViews:
        own, placements = self.own, cluster.table.placements
        affinity = tuple(clause_of(term, cluster) for term in own.required_affinity)
        anti = [
            (term.topology_key, clause_of(term, cluster)) for term in own.required_anti_affinity
        ]
        asked = FilterViews(found.namespace_labels, affinity, anti)
        # A pod counts as company only if all terms speak of it, wherever each of them looks.
        for key in dict.fromkeys(term.topology_key for term in own.required_affinity):
            asked.add(asked.affinity, placements.view(affinity, key, counts_terminating=True))
        for key, clause in anti:
            asked.add(asked.anti, placements.view((clause,), key, counts_terminating=True))
        for counter in found.others:
            if counter.kind is Kind.REQUIRED_ANTI_AFFINITY:
                asked.add(asked.existing, placements.view_of_term(counter))
        return asked

    def _ask_for_score(self, found: Surroundings, cluster: mp.Cluster) -> ScoreViews:
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
    """The labels of a namespace; of one that nobody told of, none."""
    found = cluster.get(mp.Namespace, namespace)
    return {} if found is None else found.labels


def clause_of(term: mp.AffinityTerm, cluster: mp.Cluster) -> mp.Clause:
    """Which pods a term of an incoming pod means, with its namespaces by name.

    As in Kubernetes 1.36 the namespace selector is not done with once it has been spelled out: it
    is asked again about a namespace without labels. So one that only rules out (NotIn,
    DoesNotExist) lets the term mean pods of all namespaces.
    """
    wanted = term.namespace_selector
    if wanted.matches({}):
        return mp.Clause(None, term.selector)
    if wanted.matches_nothing:
        return mp.Clause(term.namespaces, term.selector)
    return mp.Clause(term.namespaces | namespaces_with(wanted, cluster), term.selector)


def namespaces_with(wanted: mp.selectors.Selector, cluster: mp.Cluster) -> frozenset[str]:
    """The names of all namespaces whose labels a selector matches."""
    placements, version = cluster.table.placements, cluster.version_of(mp.Namespace)
    known: tuple[int, frozenset[str]] | None = placements.notes.get(wanted)
    if known is None or known[0] != version:
        found = (each.name for each in cluster.all(mp.Namespace) if wanted.matches(each.labels))
        known = version, frozenset(found)
        placements.note(wanted, known)
    return known[1]
