"""InterPodAffinity and PodTopologySpread: both forms agree with counting from scratch.

The naive evaluators below walk over all pods for every question, as the specification puts it.
They share nothing with the plugins but the parsing of label selectors and the tolerations.
"""

import math
from collections import Counter
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.random_cluster import BROKEN, HOSTNAME, ZONE, RandomCluster

from moorage import plugin as mp
from moorage.nodes.usage import Usage
from moorage.plugins.inter_pod_affinity import InterPodAffinity
from moorage.plugins.pod_topology_spread import PodTopologySpread

SEEDS, STEPS = st.integers(0, 2**32 - 1), st.integers(1, 40)

NO_AFFINITY = "node(s) didn't match pod affinity rules"
OWN_ANTI = "node(s) didn't match pod anti-affinity rules"
EXISTING_ANTI = "node(s) didn't satisfy existing pods anti-affinity rules"
SKEWED = "node(s) didn't match pod topology spread constraints"
MISSING = f"{SKEWED} (missing required label)"


def selects(selector, labels):
    return mp.selectors.compile_label_selector(selector).matches(labels)


def placed(random_cluster, pods):
    """The pods that are on a node, each with it; those whose node is gone are not seen."""
    return [
        (pod, random_cluster.nodes[pod.node_name])
        for pod in pods
        if pod.node_name in random_cluster.nodes
    ]


# InterPodAffinity, naively


def stated(pod, kind, which):
    affinity = pod.spec.affinity
    found = affinity and getattr(affinity, kind)
    terms = getattr(found, which) if found else ()
    # A list with a fault in it counts as empty.
    plain = [term.pod_affinity_term if which == "preferred" else term for term in terms]
    broken = any(BROKEN in (term.label_selector, term.namespace_selector) for term in plain)
    return () if broken else terms


def speaks_of(owner, term, pod, namespace_labels, *, names=()):
    namespaces = set(term.namespaces) | set(names)
    if not term.namespaces and term.namespace_selector is None:
        namespaces = {owner.namespace}
    by_labels = selects(term.namespace_selector, namespace_labels)
    return (pod.namespace in namespaces or by_labels) and selects(term.label_selector, pod.labels)


class NaiveAffinity:
    """What InterPodAffinity has to say of a pod."""

    def __init__(self, random_cluster, pod, pods, *, hard_weight=1, ignores_others=False):
        self.random_cluster, self.pod, self.placed = (
            random_cluster,
            pod,
            placed(random_cluster, pods),
        )
        self.hard_weight, self.ignores_others = hard_weight, ignores_others
        found = random_cluster.namespaces.get(pod.namespace)
        self.namespace_labels = found.labels if found else {}
        self.affinity = stated(pod, "pod_affinity", "required")
        self.anti = stated(pod, "pod_anti_affinity", "required")
        self.count()

    def own(self, term, other):
        """Whether a term of the incoming pod speaks of another pod."""
        names = []
        if term.namespace_selector is not None and term.namespace_selector != mp.LabelSelector():
            spaces = self.random_cluster.namespaces.values()
            names = [each.name for each in spaces if selects(term.namespace_selector, each.labels)]
        return speaks_of(self.pod, term, other, {}, names=names)

    def theirs(self, owner, term):
        return speaks_of(owner, term, self.pod, self.namespace_labels)

    def count(self):
        self.existing_anti, self.with_company, self.own_anti = Counter(), Counter(), Counter()
        for other, node in self.placed:
            for term in stated(other, "pod_anti_affinity", "required"):
                if self.theirs(other, term):
                    bump(self.existing_anti, term, node, 1)
            if self.affinity and all(self.own(term, other) for term in self.affinity):
                for term in self.affinity:
                    bump(self.with_company, term, node, 1)
            for term in self.anti:
                if self.own(term, other):
                    bump(self.own_anti, term, node, 1)

    @property
    def skips_filter(self):
        return not self.existing_anti and not self.affinity and not self.anti

    def filter(self, node):
        labels = node.labels
        if any(term.topology_key not in labels for term in self.affinity):
            return NO_AFFINITY
        if not all(self.with_company[at(term, node)] > 0 for term in self.affinity):
            first = not self.with_company and all(self.own(t, self.pod) for t in self.affinity)
            if not first:
                return NO_AFFINITY
        for term in self.anti:
            if term.topology_key in labels and self.own_anti[at(term, node)] > 0:
                return OWN_ANTI
        if any(self.existing_anti[key, value] > 0 for key, value in labels.items()):
            return EXISTING_ANTI
        return ""

    def points(self):
        """The scores by pair, or None for "skipped"."""
        liked = stated(self.pod, "pod_affinity", "preferred")
        disliked = stated(self.pod, "pod_anti_affinity", "preferred")
        if self.ignores_others and not liked and not disliked:
            return None
        points = Counter()
        for other, node in self.placed:
            for sign, terms in ((1, liked), (-1, disliked)):
                for each in terms:
                    if self.own(each.pod_affinity_term, other):
                        bump(points, each.pod_affinity_term, node, sign * each.weight)
            if self.hard_weight:
                for term in stated(other, "pod_affinity", "required"):
                    if self.theirs(other, term):
                        bump(points, term, node, self.hard_weight)
            for sign, kind in ((1, "pod_affinity"), (-1, "pod_anti_affinity")):
                for each in stated(other, kind, "preferred"):
                    if self.theirs(other, each.pod_affinity_term):
                        bump(points, each.pod_affinity_term, node, sign * each.weight)
        return points or None

    def score(self, points, node):
        return sum(points.get(pair, 0) for pair in node.labels.items())

    def normalized(self, raw):
        least, most = min(raw), max(raw)
        if least == most:
            return [0] * len(raw)
        return [math.trunc(100.0 * (float(s - least) / float(most - least))) for s in raw]


def bump(counts, term, node, amount):
    if term.topology_key in node.labels:
        counts[at(term, node)] += amount


def at(term, node):
    return term.topology_key, node.labels[term.topology_key]


# PodTopologySpread, naively


class NaiveSpread:
    """What PodTopologySpread has to say of a pod."""

    def __init__(self, random_cluster, pod, pods, defaults=None):
        self.random_cluster, self.pod, self.placed = (
            random_cluster,
            pod,
            placed(random_cluster, pods),
        )
        self.system = defaults is None
        self.defaults = defaults
        self.hard = self.constraints("DoNotSchedule")
        self.soft = self.constraints("ScheduleAnyway")
        self.domains = [Counter() for _ in self.hard]
        self.eligible = [set() for _ in self.hard]
        for i, (constraint, selector) in enumerate(self.hard):
            for node in random_cluster.nodes.values():
                if self.has_all(node, self.hard) and self.includes(constraint, node):
                    value = node.labels[constraint.topology_key]
                    self.eligible[i].add(value)
                    self.domains[i][value] += self.on_node(node, selector)

    def constraints(self, action):
        own = self.pod.spec.topology_spread_constraints
        if own:
            return [(c, self.own_selector(c)) for c in own if c.when_unsatisfiable == action]
        selector = self.default_selector()
        stated = self.defaults
        if self.system:
            stated = [
                mp.TopologySpreadConstraint(
                    topology_key=key, max_skew=skew, when_unsatisfiable="ScheduleAnyway"
                )
                for key, skew in ((HOSTNAME, 3), (ZONE, 5))
            ]
        chosen = [(c, selector) for c in stated if c.when_unsatisfiable == action]
        return [] if selector.is_empty else chosen

    def own_selector(self, constraint):
        selector = mp.selectors.compile_label_selector(constraint.label_selector)
        labels = self.pod.labels
        return selector.also(
            mp.selectors.equals(k, labels[k]) for k in constraint.match_label_keys if k in labels
        )

    def default_selector(self):
        labels, cluster = {}, self.random_cluster.cluster
        for service in cluster.all(mp.Service):
            chosen = service.spec.selector
            if service.namespace != self.pod.namespace or chosen is None:
                continue
            if all(self.pod.labels.get(k) == v for k, v in chosen.items()):
                labels |= chosen
        requirements = ()
        owner = self.pod.controller
        kind = owner and {
            "v1/ReplicationController": mp.ReplicationController,
            "apps/v1/ReplicaSet": mp.ReplicaSet,
            "apps/v1/StatefulSet": mp.StatefulSet,
        }.get(f"{owner.api_version}/{owner.kind}")
        found = kind and cluster.get(kind, f"{self.pod.namespace}/{owner.name}")
        if found and kind is mp.ReplicationController:
            labels |= found.spec.selector or {}
        elif found and found.spec.selector not in (None, BROKEN):
            requirements = mp.selectors.compile_label_selector(found.spec.selector).requirements
        equal = tuple(mp.selectors.equals(k, v) for k, v in labels.items())
        return mp.selectors.Selector((*equal, *requirements))

    def has_all(self, node, group):
        return all(constraint.topology_key in node.labels for constraint, _ in group)

    def includes(self, constraint, node):
        spec = self.pod.spec
        if constraint.node_affinity_policy in (None, "Honor"):
            if any(node.labels.get(k) != v for k, v in (spec.node_selector or {}).items()):
                return False
            affinity = spec.affinity and spec.affinity.node_affinity
            if affinity and affinity.required is not None:
                terms = affinity.required.node_selector_terms
                if not any(node_term_matches(term, node) for term in terms):
                    return False
        if constraint.node_taints_policy == "Honor":
            return all(
                taint.effect == "PreferNoSchedule"
                or any(mp.selectors.tolerates(each, taint) for each in spec.tolerations)
                for taint in node.spec.taints
            )
        return True

    def on_node(self, node, selector):
        if selector.is_empty:
            return 0
        return sum(
            where is node
            and other.namespace == self.pod.namespace
            and not other.is_terminating
            and selector.matches(other.labels)
            for other, where in self.placed
        )

    def change(self, other, node, amount):
        """AddPod and RemovePod, which neither look for terminating pods nor empty selectors."""
        if other.namespace != self.pod.namespace or not self.has_all(node, self.hard):
            return
        for i, (constraint, selector) in enumerate(self.hard):
            if selector.matches(other.labels) and self.includes(constraint, node):
                self.domains[i][node.labels[constraint.topology_key]] += amount

    def filter(self, node):
        for i, (constraint, selector) in enumerate(self.hard):
            if constraint.topology_key not in node.labels:
                return MISSING
            eligible = self.eligible[i]
            least = min((self.domains[i][value] for value in eligible), default=2**31 - 1)
            if len(eligible) < (constraint.min_domains or 1):
                least = 0
            here = self.domains[i][node.labels[constraint.topology_key]]
            if here + selector.matches(self.pod.labels) - least > constraint.max_skew:
                return SKEWED
        return ""

    def score_all(self, feasible):
        """Raw and normalised scores of the feasible nodes."""
        require_all = bool(self.pod.spec.topology_spread_constraints) or not self.system
        counting = [n for n in feasible if not require_all or self.has_all(n, self.soft)]
        raw = {}
        for node in counting:
            points = 0.0
            for constraint, selector in self.soft:
                key = constraint.topology_key
                values = {each.labels.get(key, "") for each in counting}
                size = len(counting) if key == HOSTNAME else len(values)
                if key in node.labels:
                    count = self.score_count(node, constraint, selector, require_all=require_all)
                    points += float(count) * math.log(size + 2) + float(constraint.max_skew - 1)
            raw[node.name] = math.floor(points) + (points - math.floor(points) >= 0.5)
        most, least = max(raw.values(), default=0), min(raw.values(), default=0)
        scores = {
            name: 100 if most == 0 else 100 * (most + least - s) // most for name, s in raw.items()
        }
        return [(raw.get(node.name, -1), scores.get(node.name, 0)) for node in feasible]

    def score_count(self, node, constraint, selector, *, require_all):
        key = constraint.topology_key
        if key == HOSTNAME:
            return self.on_node(node, selector)
        return sum(
            self.on_node(each, selector)
            for each in self.random_cluster.nodes.values()
            if each.labels.get(key, "") == node.labels[key]
            and (not require_all or self.has_all(each, self.soft))
            and self.includes(constraint, each)
        )


def node_term_matches(term, node):
    requirements = [(each, node.labels.get(each.key)) for each in term.match_expressions]
    requirements += [(each, node.name) for each in term.match_fields]
    answers = {"Exists": lambda r, v: v is not None, "DoesNotExist": lambda r, v: v is None}
    answers["In"] = lambda r, v: v in r.values
    answers["NotIn"] = lambda r, v: v not in r.values
    return bool(requirements) and all(answers[r.operator](r, v) for r, v in requirements)


# The comparison


def reason(status):
    return status.message


def check_filter(plugin, random_cluster, pod, state, naive):
    """Both forms of the filter say what the naive one says, node by node."""
    rows = [random_cluster.table.row_of[name] for name in random_cluster.nodes]
    verdicts = plugin.filter_all(state, pod, random_cluster.table)
    some = random_cluster.table.slice(verdicts.codes.argsort()[: len(rows)])
    sliced = plugin.filter_all(state, pod, some)
    assert sliced.codes.tolist() == verdicts.codes[some.rows].tolist()
    for name, row in zip(random_cluster.nodes, rows, strict=True):
        one = plugin.filter(state, pod, random_cluster.table.info(row))
        code = int(verdicts.codes[row])
        together = verdicts.status_of(code) if code else mp.SUCCESS
        assert one == together
        assert reason(one) == naive.filter(random_cluster.nodes[name])


def what_if(random_cluster, rng, state):
    """A copy of state and node, with pods to be added to it or taken away."""
    row = random_cluster.table.row_of[rng.choice(list(random_cluster.nodes))]
    node = random_cluster.table.info(row).copy()
    there = list(node.placed().values())
    gone = rng.sample(there, rng.randrange(len(there) + 1))
    coming = [random_cluster.random_pod(node=node.name) for _ in range(rng.randrange(3))]
    return state.clone(), node, gone, [mp.Placed(pod, Usage.of(pod)) for pod in coming]


def check_affinity(random_cluster, rng, pod, pods):
    plugin = InterPodAffinity(
        hard_pod_affinity_weight=(hard_weight := rng.choice((0, 1, 7))),
        ignore_preferred_terms_of_existing_pods=(ignores := rng.choice((False, False, True))),
    )
    naive = NaiveAffinity(
        random_cluster, pod, pods, hard_weight=hard_weight, ignores_others=ignores
    )
    state = random_cluster.state(pod)
    assert plugin.pre_filter(state, pod).is_skip == naive.skips_filter
    if not naive.skips_filter:
        check_filter(plugin, random_cluster, pod, state, naive)
        copy, node, gone, coming = what_if(random_cluster, rng, state)
        for each in gone:
            plugin.remove_pod(copy, pod, each, node)
        for each in coming:
            plugin.add_pod(copy, pod, each, node)
        left = [each for each in pods if each.uid not in {p.pod.uid for p in gone}]
        after = [*left, *(each.pod for each in coming)]
        check_filter(plugin, random_cluster, pod, copy, NaiveAffinity(random_cluster, pod, after))
        check_filter(plugin, random_cluster, pod, state, naive)
    check_affinity_scores(plugin, random_cluster, rng, pod, state, naive)


def check_affinity_scores(plugin, random_cluster, rng, pod, state, naive):
    points = naive.points()
    feasible, nodes = some_nodes(random_cluster, rng)
    assert plugin.pre_score(state, pod, feasible).is_skip == (points is None)
    if points is not None:
        raw = [naive.score(points, node) for node in nodes]
        check_scores(plugin, random_cluster, pod, state, nodes, raw, naive.normalized(raw))


def check_spread(random_cluster, rng, pod, pods):
    defaults = rng.choice((None, None, [], [random_cluster.random_constraint() for _ in range(3)]))
    if defaults:
        defaults = [mp.TopologySpreadConstraint(**as_default(each)) for each in defaults]
    settings = {} if defaults is None else {"defaulting_type": "List"}
    plugin = PodTopologySpread(default_constraints=defaults or (), **settings)
    naive = NaiveSpread(random_cluster, pod, pods, defaults)
    state = random_cluster.state(pod)
    assert plugin.pre_filter(state, pod).is_skip == (not naive.hard)
    if naive.hard:
        check_filter(plugin, random_cluster, pod, state, naive)
        copy, node, gone, coming = what_if(random_cluster, rng, state)
        after = NaiveSpread(random_cluster, pod, pods, defaults)
        for each in gone:
            plugin.remove_pod(copy, pod, each, node)
            after.change(each.pod, node.node, -1)
        for each in coming:
            plugin.add_pod(copy, pod, each, node)
            after.change(each.pod, node.node, 1)
        check_filter(plugin, random_cluster, pod, copy, after)
        check_filter(plugin, random_cluster, pod, state, naive)
    feasible, nodes = some_nodes(random_cluster, rng)
    assert plugin.pre_score(state, pod, feasible).is_skip == (not naive.soft)
    if naive.soft:
        raw, scores = zip(*naive.score_all(nodes), strict=True)
        check_scores(plugin, random_cluster, pod, state, nodes, list(raw), list(scores))


def as_default(constraint):
    fields = ("topology_key", "when_unsatisfiable", "max_skew", "min_domains")
    policies = ("node_affinity_policy", "node_taints_policy")
    return {name: getattr(constraint, name) for name in (*fields, *policies)}


def some_nodes(random_cluster, rng):
    nodes = rng.sample(
        list(random_cluster.nodes.values()), rng.randrange(1, len(random_cluster.nodes) + 1)
    )
    feasible = random_cluster.table.active_rows.copy()
    feasible[:] = False
    feasible[[random_cluster.table.row_of[node.name] for node in nodes]] = True
    return feasible, nodes


def check_scores(plugin, random_cluster, pod, state, nodes, raw, normalized):
    """Both forms of the score, and the normalizer in both of its ways."""
    rows = [random_cluster.table.row_of[node.name] for node in nodes]
    together = plugin.score_all(state, pod, random_cluster.table)[rows]
    assert together.tolist() == raw
    assert [plugin.score(state, pod, random_cluster.table.info(row)) for row in rows] == raw
    sliced = random_cluster.table.slice(np.array(rows, dtype=np.intp))
    assert plugin.score_all(state, pod, sliced).tolist() == raw
    summary = plugin.normalizer.summarize(together)
    assert plugin.normalizer.apply(together, summary).tolist() == normalized
    assert [plugin.normalizer.apply(each, summary) for each in raw] == normalized


@given(SEEDS, STEPS)
def test_affinity_equals_counting_by_hand(seed, steps):
    run(seed, steps, check_affinity)


@given(SEEDS, STEPS)
def test_spread_equals_counting_by_hand(seed, steps):
    run(seed, steps, check_spread)


@given(SEEDS, STEPS)
def test_views_that_are_dropped_do_not_matter(seed, steps):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("moorage.nodes.placements.VIEW_BYTES", 0)
        patch.setattr("moorage.nodes.placements.FEWEST_VIEWS", 4)
        patch.setattr("moorage.nodes.placements.MOST_ELIGIBILITIES", 3)
        patch.setattr("moorage.nodes.placements.MOST_NOTES", 3)
        patch.setattr("moorage.nodes.counters.MOST_UNUSED", 1)
        run(seed, steps, check_affinity)
        run(seed, steps, check_spread)


def run(seed, steps, check):
    rng = Random(seed)
    random_cluster = RandomCluster(rng)
    # The same few pods come back, so that what is kept with their templates has to keep up.
    waiting = [random_cluster.incoming() for _ in range(3)]
    for _ in range(steps):
        random_cluster.step()
        if random_cluster.nodes:
            check(
                random_cluster,
                rng,
                rng.choice((*waiting, random_cluster.incoming())),
                list(random_cluster.pods.values()),
            )


@given(SEEDS)
@settings(max_examples=settings.default.max_examples // 4)
def test_terms_that_do_not_parse_are_no_terms(seed):
    rng = Random(seed)
    random_cluster = RandomCluster(rng, broken=True)
    for _ in range(40):
        random_cluster.step()
    pod = random_cluster.incoming()
    if random_cluster.nodes:
        state = random_cluster.state(pod)
        found = InterPodAffinity().pre_filter(state, pod)
        if found.code is mp.Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
            assert "Invalid value" in found.message
        else:
            check_affinity(random_cluster, rng, pod, list(random_cluster.pods.values()))
