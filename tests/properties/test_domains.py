"""Counters, views and eligible rows equal a count from scratch, whatever happened before."""

import pickle
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.random_cluster import NAMESPACES, TOPOLOGY_KEYS, RandomCluster

from moorage import plugin as mp
from moorage.nodes import placements

SEEDS, STEPS = st.integers(0, 2**32 - 1), st.integers(1, 60)


def random_clauses(random_cluster: RandomCluster, rng: Random) -> tuple[mp.Clause, ...]:
    scopes = (None, frozenset(), *(frozenset(rng.sample(NAMESPACES, n)) for n in (1, 1, 2)))
    return tuple(
        mp.Clause(rng.choice(scopes), random_selector(random_cluster))
        for _ in range(rng.choice((1, 1, 2)))
    )


def random_selector(random_cluster: RandomCluster) -> mp.selectors.Selector:
    try:
        return mp.selectors.compile_label_selector(random_cluster.random_selector())
    except mp.selectors.SelectorError:
        return mp.selectors.NOTHING


def random_inclusion(random_cluster: RandomCluster, rng: Random) -> mp.Inclusion:
    return mp.Inclusion.of(
        random_cluster.incoming(),
        rng.sample(TOPOLOGY_KEYS, rng.randrange(3)),
        honor_affinity=rng.choice((True, False)),
        honor_taints=rng.choice((True, False)),
    )


def counted(
    random_cluster: RandomCluster, clauses: tuple[mp.Clause, ...], *, terminating: bool
) -> list[mp.Pod]:
    """The pods that match all clauses."""
    return [
        pod
        for pod in random_cluster.pods.values()
        if (terminating or not pod.is_terminating)
        and all(
            clause.namespaces is None or pod.namespace in clause.namespaces for clause in clauses
        )
        and all(clause.selector.matches(pod.labels) for clause in clauses)
    ]


def by_value(view: mp.DomainSums) -> dict[str | None, int]:
    """The counts of a view by domain, without zeros."""
    assert view.sums[0] == 0
    found = {value: int(n) for value, n in zip(view.column.values, view.sums, strict=True) if n}
    assert view.nonzero == len(found)
    assert all(view.at(value) == n for value, n in found.items())
    return found


def check_views(
    random_cluster: RandomCluster, rng: Random, known: list[tuple[mp.Clause, ...]]
) -> None:
    """Compare a view, old or new, with a recount."""
    clauses = rng.choice((*known, random_clauses(random_cluster, rng)))
    key = rng.choice(TOPOLOGY_KEYS)
    inclusion = rng.choice((None, random_inclusion(random_cluster, rng)))
    terminating = rng.choice((True, False))
    kept = random_cluster.table.placements
    pods = counted(random_cluster, clauses, terminating=terminating)
    nodes = [random_cluster.nodes.get(pod.node_name) for pod in pods]
    view = kept.view(clauses, key, inclusion, counts_terminating=terminating)
    counting = [n for n in nodes if n and (inclusion is None or inclusion.includes(n))]
    values = Counter(node.labels.get(key) for node in counting)
    absent = values.pop(None, 0)
    assert by_value(view) == values
    if inclusion is not None:  # Otherwise pods without a node are among the absent, too.
        assert view.absent == absent
    rows = kept.per_row(clauses, counts_terminating=terminating)
    assert {row: n for row, n in enumerate(rows.counts.tolist()) if n} == Counter(
        random_cluster.table.row_of[pod.node_name] for pod in pods
    )


def check_eligibility(random_cluster: RandomCluster, inclusion: mp.Inclusion, key: str) -> None:
    kept = random_cluster.table.placements
    included = [node for node in random_cluster.nodes.values() if inclusion.includes(node)]
    mask = kept.eligibility(inclusion).mask
    assert {random_cluster.table.name(row) for row in mask.nonzero()[0]} == {
        n.name for n in included
    }
    with_key = [node.labels[key] for node in included if key in node.labels]
    nodes = kept.nodes(inclusion, key)
    assert by_value(nodes) == Counter(with_key)
    assert nodes.absent == len(included) - len(with_key)


def check_terms(random_cluster: RandomCluster) -> None:
    """The index has every term of every pod, with its rows and counts."""
    book = random_cluster.table.placements.terms
    stated: dict[tuple[object, mp.AffinityTerm], Counter[int]] = {}
    for pod in random_cluster.pods.values():
        for kind, term in mp.affinity_terms.of(pod).by_kind():
            stated.setdefault((kind, term), Counter())[
                random_cluster.table.row_of[pod.node_name]
            ] += 1
    assert {(each.kind, each.term): each.rows for each in book.all if each.rows} == stated
    asking = random_cluster.incoming()
    who = (asking.namespace, asking.labels, {"team": "one"})
    speaking = {id(each) for each in book.all if each.term.matches(*who)}
    assert {id(each) for each in book.matching(*who)} == speaking
    assert {id(each) for each in book.matching(*who, 0)} == speaking
    for each in book.all:
        view = random_cluster.table.placements.view_of_term(each)
        expected: Counter[str] = Counter()
        for row, times in each.rows.items():
            node = random_cluster.table.nodes[row]
            if node is not None and each.term.topology_key in node.labels:
                expected[node.labels[each.term.topology_key]] += times
        assert by_value(view) == expected


def check_classes(random_cluster: RandomCluster) -> None:
    def content(pod: mp.Pod) -> tuple[str, tuple[tuple[str, str], ...]]:
        return pod.namespace, tuple(sorted(pod.labels.items()))

    classes = random_cluster.table.placements.classes
    found = {
        (each.namespace, tuple(sorted(each.labels.items()))): (each.live, each.terminating)
        for each in classes.all()
    }
    assert len(found) == len(classes)
    expected: dict[object, tuple[Counter[int], Counter[int]]] = {}
    for pod in random_cluster.pods.values():
        both = expected.setdefault(content(pod), (Counter(), Counter()))
        both[pod.is_terminating][random_cluster.table.row_of[pod.node_name]] += 1
    assert found == expected


@given(SEEDS, STEPS)
def test_views_equal_a_recount(seed, steps):
    rng = Random(seed)
    random_cluster = RandomCluster(rng, broken=True)
    known = [random_clauses(random_cluster, rng) for _ in range(3)]
    asked = [(random_inclusion(random_cluster, rng), rng.choice(TOPOLOGY_KEYS)) for _ in range(3)]
    for _ in range(steps):
        random_cluster.step()
        if rng.randrange(30) == 0:
            random_cluster.cluster = pickle.loads(pickle.dumps(random_cluster.cluster))
        check_views(random_cluster, rng, known)
        check_eligibility(random_cluster, *rng.choice(asked))
    check_terms(random_cluster)
    check_classes(random_cluster)


@given(SEEDS, STEPS)
def test_dropped_views_are_rebuilt(seed, steps):
    rng = Random(seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(placements, "VIEW_BYTES", 0)
        patch.setattr(placements, "FEWEST_VIEWS", 6)
        patch.setattr(placements, "MOST_ELIGIBILITIES", 4)
        patch.setattr("moorage.nodes.counters.MOST_UNUSED", 2)
        patch.setattr("moorage.nodes.counters.MOST_PARSED", 3)
        random_cluster = RandomCluster(rng)
        known = [random_clauses(random_cluster, rng)]
        for _ in range(steps):
            random_cluster.step()
            check_views(random_cluster, rng, known)
            check_eligibility(
                random_cluster, random_inclusion(random_cluster, rng), rng.choice(TOPOLOGY_KEYS)
            )
            kept = random_cluster.table.placements
            # Old views are dropped before a new one is built: there may be one more per row.
            assert sum(len(c.views) for c in kept._counters.values()) <= 8
            assert len(kept._eligibilities) <= 4
        check_terms(random_cluster)
        check_classes(random_cluster)
