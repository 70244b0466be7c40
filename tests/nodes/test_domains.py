"""Placements and what they are made of; that they equal a recount is a property."""

import pickle

import pytest
from msgspec.structs import replace
from tests.affinity_builders import make_affinity, make_term

from moorage.api import selectors
from moorage.api.node import Taint
from moorage.api.pod import Toleration
from moorage.nodes import affinity_terms, counters, placements
from moorage.nodes.changes import Cursor
from moorage.nodes.counters import SelectorIndex
from moorage.nodes.domains import rows_in
from moorage.nodes.inclusion import Inclusion
from moorage.nodes.pod_classes import Clause
from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod, make_table

FOO = (Clause(None, selectors.parse_label_selector("foo")),)
NODES = [
    make_node("a", labels={"zone": "z1"}),
    make_node("b", labels={"zone": "z1"}),
    make_node("c", labels={"zone": "z2"}),
    make_node("bare"),
]


def pod(name, node, *, labels=("foo",), **more):
    return make_pod(name, labels=dict.fromkeys(labels, "x"), node=node, **more)


def add(table, *pods):
    for each in pods:
        table.add_pod(each.node_name, each, Usage.of(each))


def sums(view):
    return {v: int(n) for v, n in zip(view.column.values, view.sums, strict=True) if v is not None}


@pytest.fixture
def table():
    return make_table(NODES, [pod("p1", "a"), pod("p2", "b"), pod("p3", "bare"), pod("p4", "gone")])


@pytest.fixture
def view(table):
    return table.placements.view(FOO, "zone", counts_terminating=True)


def test_a_view_begins_with_what_is_there(view):
    assert sums(view) == {"z1": 2, "z2": 0}
    assert view.nonzero == 1


def test_a_view_tells_where_it_changed(table, view):
    moved, turned = view.moved.position, view.turned.position
    add(table, pod("p5", "c"), pod("p6", "c"), pod("p7", "a"), pod("p8", "bare"))
    z1, z2 = (view.column.code_of[zone] for zone in ("z1", "z2"))
    a, c = (table.row_of[name] for name in ("a", "c"))
    assert Cursor(view.moved, moved).changed() == [(z2, c), (z2, c), (z1, a)]
    assert Cursor(view.turned, turned).changed() == [(z2, c)]


@pytest.mark.parametrize(
    ("zones", "names"),
    [
        pytest.param([], [], id="no domain"),
        pytest.param(["z2"], ["c"], id="a domain of one node"),
        pytest.param(["z1"], ["a", "b"], id="a domain of several"),
        pytest.param(["z1", "z2"], ["a", "b", "c"], id="several domains"),
    ],
)
def test_rows_in_domains(table, zones, names):
    column, somewhere = table.label("zone"), table.row_of["c"]
    found = rows_in({column: {column.code_of[zone]: somewhere for zone in zones}} if zones else {})
    assert sorted(table.name(row) for row in found) == names


def test_a_row_that_left_its_domain_is_not_taken_for_it(table):
    column, row = table.label("zone"), table.row_of["c"]
    code = column.code_of["z2"]
    table.set_node(make_node("c", labels={"zone": "z1"}))
    table.set_node(make_node("bare", labels={"zone": "z2"}))
    assert rows_in({column: {code: row}}).tolist() == [table.row_of["bare"]]


def test_a_view_follows_pods(table, view):
    add(table, pod("p5", "c"), pod("p6", "c", labels=["bar"]))
    table.remove_pod("a", "default/p1")
    assert sums(view) == {"z1": 1, "z2": 1}
    table.remove_pod("c", "default/p5")
    assert sums(view) == {"z1": 1, "z2": 0}


def test_a_view_follows_labels_of_pods(table, view):
    other = pod("p1", "a", labels=["bar"])
    table.replace_pod("a", other, Usage.of(other))
    assert sums(view) == {"z1": 1, "z2": 0}


def test_pods_that_are_being_deleted_count_where_wanted(table, view):
    live = table.placements.view(FOO, "zone", counts_terminating=False)
    before = pod("p1", "a")
    after = replace(
        before, metadata=replace(before.metadata, deletion_timestamp="2030-01-01T00:00:00Z")
    )
    table.replace_pod("a", after, Usage.of(after))
    assert (sums(view)["z1"], sums(live)["z1"]) == (2, 1)
    table.remove_pod("a", before.uid)
    assert (sums(view)["z1"], sums(live)["z1"]) == (1, 1)


def test_a_pod_of_which_only_the_deletion_changes_is_counted_once(table, view):
    live = table.placements.view(FOO, "zone", counts_terminating=False)
    first = pod("p1", "a")
    row, usage = table.row_of["a"], table.placed[table.row_of["a"]][first.uid].usage
    classes = table.placements.classes
    for at, counted in (("2030-01-01T00:00:00Z", 1), ("2030-01-01T00:00:30Z", 1), (None, 2)):
        meta = replace(first.metadata, deletion_timestamp=at)
        table.replace_pod("a", replace(first, metadata=meta), usage, alike=True)
        assert (sums(view)["z1"], sums(live)["z1"]) == (2, counted)
        pods = classes.get(usage.labels)
        assert (row in pods.terminating, row in pods.live) == (at is not None, at is None)


def test_a_view_follows_nodes(table, view):
    table.set_node(make_node("b", labels={"zone": "z2"}))
    assert sums(view) == {"z1": 1, "z2": 1}
    table.remove_node("a")
    assert sums(view) == {"z1": 0, "z2": 1}
    table.set_node(make_node("gone", labels={"zone": "z1"}))
    table.set_node(make_node("bare", labels={"zone": "brand-new"}))
    assert sums(view) == {"z1": 1, "z2": 1, "brand-new": 1}


def test_a_view_knows_domains_that_came_without_pods(table, view):
    table.set_node(make_node("d", labels={"zone": "z3"}))
    assert sums(view) == {"z1": 2, "z2": 0, "z3": 0}
    assert (view.at("z3"), view.at("unheard"), view.at(None)) == (0, 0, 0)


def test_the_same_view_is_handed_out_again(table, view):
    assert table.placements.view(FOO, "zone", counts_terminating=True) is view


def test_views_survive_growth_and_pickling(table, view):
    rows = table.placements.per_row(FOO, counts_terminating=True)
    table.reserve(2 * table.capacity)
    for i in range(100):
        table.set_node(make_node(f"n{i}", labels={"zone": f"z{i}"}))
    add(table, pod("p9", "n99"))
    copy = pickle.loads(pickle.dumps(table))
    for each in (table, copy):
        again = each.placements.view(FOO, "zone", counts_terminating=True)
        assert (again.at("z99"), again.at("z1"), again.nonzero) == (1, 2, 2)
    assert rows.counts[table.row_of["n99"]] == 1
    assert len(rows.counts) == table.capacity
    add(copy, pod("p10", "n99"))
    again = copy.placements.view(FOO, "zone", counts_terminating=True)
    assert (again.at("z99"), view.at("z99")) == (2, 1)


def test_rows_are_counted_whatever_their_node_says(table):
    rows = table.placements.per_row(FOO, counts_terminating=True)
    counts = {name: int(rows.counts[table.row_of[name]]) for name in ("a", "c", "bare", "gone")}
    assert counts == {"a": 1, "c": 0, "bare": 1, "gone": 1}


def test_all_clauses_have_to_mean_a_pod(table):
    both = (*FOO, Clause(frozenset(("other",)), selectors.EVERYTHING))
    view = table.placements.view(both, "zone", counts_terminating=True)
    add(table, pod("p5", "c", namespace="other"))
    assert sums(view) == {"z1": 0, "z2": 1}


# Which nodes count

TAINTED = make_node("a", labels={"zone": "z1"}, taints=[Taint(key="t", effect="NoSchedule")])
DRAINED = make_node("b", labels={"zone": "z1"}, taints=[Taint(key="u", effect="NoExecute")])
DISLIKED = make_node("c", labels={"zone": "z2"}, taints=[Taint(effect="PreferNoSchedule")])


@pytest.mark.parametrize(
    ("inclusion", "zones"),
    [
        pytest.param(Inclusion(), {"z1": 2, "z2": 1}, id="all nodes"),
        pytest.param(Inclusion(keys=("zone", "rack")), {"z1": 0, "z2": 0}, id="with all keys"),
        pytest.param(
            Inclusion(node_selector=(("zone", "z2"),)), {"z1": 0, "z2": 1}, id="that are selected"
        ),
        pytest.param(Inclusion(tolerations=()), {"z1": 0, "z2": 1}, id="without a taint"),
        pytest.param(
            Inclusion(tolerations=(Toleration(key="t", operator="Exists"),)),
            {"z1": 1, "z2": 1},
            id="with a tolerated one",
        ),
    ],
)
def test_nodes_that_count(table, inclusion, zones):
    for node in (TAINTED, DRAINED, DISLIKED):
        table.set_node(node)
    nodes = table.placements.nodes(inclusion, "zone")
    assert sums(nodes) == zones
    assert nodes.nonzero == sum(count > 0 for count in zones.values())


def test_a_node_that_comes_to_count(table):
    inclusion = Inclusion(tolerations=())
    table.set_node(TAINTED)
    view = table.placements.view(FOO, "zone", inclusion, counts_terminating=True)
    nodes = table.placements.nodes(inclusion, "zone")
    assert (sums(view)["z1"], sums(nodes)["z1"]) == (1, 1)
    assert view.absent == 1  # The pod on the node without a zone, not that on no node at all.
    table.set_node(NODES[0])
    assert (sums(view)["z1"], sums(nodes)["z1"]) == (2, 2)
    table.remove_node("b")
    assert (sums(view)["z1"], sums(nodes)["z1"]) == (1, 1)


# Terms of pods


def stating(name, node, **wishes):
    return make_pod(name, node=node, affinity=make_affinity(**wishes))


def test_terms_are_counted_where_they_are_stated(table):
    add(
        table,
        stating("q1", "a", away=["foo@zone", "foo@zone"]),
        stating("q2", "c", near=["foo@zone"]),
    )
    book = table.placements.terms
    anti, near = book.matching("default", {"foo": "x"}, {})
    assert [anti.kind.name, near.kind.name] == ["REQUIRED_ANTI_AFFINITY", "REQUIRED_AFFINITY"]
    view = table.placements.view_of_term(anti)
    assert sums(view) == {"z1": 2, "z2": 0}
    table.remove_pod("a", "default/q1")
    assert sums(view) == {"z1": 0, "z2": 0}


@pytest.mark.parametrize(
    ("term", "namespace", "team", "speaks"),
    [
        pytest.param("foo@zone", "default", "", True, id="its own namespace"),
        pytest.param("foo@zone", "other", "", False, id="another one"),
        pytest.param("bar@zone", "default", "", False, id="another label"),
        pytest.param("!bar@zone", "default", "", True, id="a label that is missing"),
        pytest.param("foo in (x,y)@zone", "default", "", True, id="one of several values"),
        pytest.param("@zone", "default", "", True, id="an empty selector"),
        pytest.param("zone", "default", "", False, id="no selector"),
        pytest.param(
            make_term("foo@zone", namespaces=["other"]), "other", "", True, id="a named namespace"
        ),
        pytest.param(
            make_term("foo@zone", namespace_selector="team=a"), "other", "a", True, id="by labels"
        ),
        pytest.param(
            make_term("foo@zone", namespace_selector="team=a"), "default", "b", False,
            id="by other labels",
        ),
    ],
)  # fmt: skip
def test_terms_that_speak_of_a_pod(table, term, namespace, team, speaks):
    add(table, stating("q1", "a", away=[term]))
    book = table.placements.terms
    who = (namespace, {"foo": "x"}, {"team": team})
    assert bool(book.matching(*who)) is bool(book.matching(*who, 0)) is speaks


def test_terms_that_were_added_last(table):
    book = table.placements.terms
    add(table, stating("q1", "a", away=["foo@zone"]))
    start = len(book.all)
    add(table, stating("q2", "c", near=["foo@zone"]))
    found = book.matching("default", {"foo": "x"}, {}, start)
    assert [each.kind.name for each in found] == ["REQUIRED_AFFINITY"]


def test_required_terms_have_no_weight():
    stated = stating("q", "a", near=["foo@zone"], away=["foo@zone"])
    terms = affinity_terms.of(stated)
    assert [term.weight for _, term in terms.by_kind()] == [0, 0]


def test_unused_terms_are_dropped(table, monkeypatch):
    monkeypatch.setattr(counters, "MOST_UNUSED", 3)
    kept = table.placements
    add(table, stating("q", "a", away=["foo@zone"]))
    for i in range(10):
        kept.note("asker", "something")
        add(table, stating(f"q{i}", "a", away=[f"job=j{i}@zone"]))
        table.remove_pod("a", f"default/q{i}")
        assert bool(kept.notes) is (i not in (3, 7))
    assert len(kept.terms.all) == 3
    assert len(kept.terms.matching("default", {"foo": "x"}, {})) == 1


def test_terms_that_are_stated_stay(table, monkeypatch):
    monkeypatch.setattr(counters, "MOST_UNUSED", 3)
    table.placements.note("asker", "something")
    add(table, *(stating(f"q{i}", "a", away=[f"job=j{i}@zone"]) for i in range(10)))
    table.remove_pod("a", "default/q0")
    assert table.placements.notes
    assert len(table.placements.terms.all) == 10


def test_classes_are_forgotten_with_their_last_pod(table):
    classes = table.placements.classes
    before = len(classes)
    wanted = (Clause(None, selectors.parse_label_selector("job=x")),)
    assert classes.matching(wanted) == []
    for node in ("a", "b"):
        add(table, pod(node, node, labels=["job"]))
    assert [each.live for each in classes.matching(wanted)] == [
        {table.row_of["a"]: 1, table.row_of["b"]: 1}
    ]
    for node in ("a", "b"):
        table.remove_pod(node, f"default/{node}")
    assert len(classes) == before
    assert classes.matching(wanted) == list(classes._candidates(wanted)) == []


def test_what_a_pod_says_is_parsed_once():
    one, other = (stating(name, "a", away=["foo@zone"]) for name in "xy")
    assert affinity_terms.of(one) is affinity_terms.of(other)
    assert affinity_terms.of(make_pod()) is affinity_terms.NO_TERMS


# Unused views


def test_unused_views_are_dropped(table, monkeypatch):
    monkeypatch.setattr(placements, "VIEW_BYTES", 0)
    monkeypatch.setattr(placements, "FEWEST_VIEWS", 8)
    kept = table.placements
    kept.note("asker", "something")
    for i in range(40):
        kept.view(FOO, "zone", counts_terminating=True)
        others = (Clause(frozenset(("default", f"n{i}")), FOO[0].selector),)
        kept.view(others, "zone", counts_terminating=True)
    assert kept.notes == {}
    # The view that stayed in use also counts pods of a new template.
    add(table, pod("p5", "c", labels=["foo", "new"]))
    assert sums(kept.view(FOO, "zone", counts_terminating=True)) == {"z1": 2, "z2": 1}
    counters = {id(counter) for each in kept.classes.all() for counter in each.counters}
    assert len(counters) <= 8


def test_an_index_finds_all_that_may_match():
    index = SelectorIndex()
    for text in ("a=1", "a in (1,2)", "a", "b=1", "!a", "", "a!=2"):
        index.add(text, None, selectors.parse_label_selector(text))
        index.add(f"{text} elsewhere", "elsewhere", selectors.parse_label_selector(text))
    found = index.candidates("here", {"a": "1", "c": "1"})
    assert sorted(found) == ["", "!a", "a", "a in (1,2)", "a!=2", "a=1"]
    assert len(index.candidates("elsewhere", {"a": "1"})) == 12
