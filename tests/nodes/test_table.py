"""The node table: rows, ghosts, growth, the log of changes, and slices."""

import numpy as np
import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition
from moorage.api.node import Taint
from moorage.api.selectors import Requirement
from moorage.core.cache import Cache
from moorage.nodes import table as tables
from moorage.nodes.changes import Cursor
from moorage.nodes.columns import Column
from moorage.nodes.table import NodeTable
from moorage.nodes.template import Templates
from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod, make_table

LENGTH = Column("length", np.int64, read=lambda node: len(node.name), default=-1)
SSD = Requirement("disk", "In", ("ssd",))


def book(table, pod):
    table.add_pod(pod.node_name, pod, Usage.of(pod))
    return pod


def worker(name, node="n", **options):
    return make_pod(name, node=node, requests={"cpu": "1"}, **options)


# Rows


def test_rows_are_claimed_freed_and_reused():
    table = make_table([make_node("a"), make_node("b")])
    row = table.row_of["a"]
    table.remove_node("a")
    assert "a" not in table.row_of
    assert not table.active[row]
    table.set_node(make_node("c"))
    assert table.row_of["c"] == row
    assert (table.node_count, table.size, table.name(row)) == (2, 2, "c")


def test_growth_beyond_the_capacity_keeps_every_column():
    table = NodeTable(capacity=2)
    table[LENGTH]
    table.meets(SSD)
    for i in range(2):
        table.set_node(node := make_node(f"n{i}", labels={"disk": "ssd"}, taints=[Taint(key="t")]))
        book(table, worker(f"p{i}", node.name, host_ports=[80]))
    for i in range(2, 200):
        table.set_node(make_node(f"name{i}", images={"app:1": 1}))
    assert table.capacity >= 200
    rows = [table.row_of[f"n{i}"] for i in range(2)]
    assert table[LENGTH][rows].tolist() == [2, 2]
    assert np.flatnonzero(table.meets(SSD)).tolist() == rows
    assert table.per_taint_set(np.arange(2))[rows].tolist() == [1, 1]
    assert table.requested("cpu")[rows].tolist() == [1000, 1000]
    assert table.nonzero_requested("memory")[rows].tolist() == [200 << 20] * 2
    assert int(table.allocatable("cpu").sum()) == 200 * 4000
    assert table.pod_count[rows].tolist() == [1, 1]
    assert np.flatnonzero(table.conflicting([("0.0.0.0", "TCP", 80)])).tolist() == rows
    assert table.holding("app:1")[2] == 198
    assert int(table.active.sum()) == 200
    assert len(table.zone_order.rows()) == 200
    lengths = {len(column) for column in (table[LENGTH], table.active, table.requested("unheard"))}
    assert lengths == {table.capacity}


def test_room_can_be_made_at_once():
    table = make_table([make_node("a")])
    table.reserve(1000)
    assert table.capacity == 1000
    for i in range(999):
        table.set_node(make_node(f"n{i}"))
    assert table.capacity == 1000
    table.reserve(10)
    assert table.capacity == 1000


# Ghosts


def test_33_a_node_removed_before_its_pods_leaves_a_ghost():
    table = make_table([make_node("n")], [worker("p")])
    row = table.row_of["n"]
    table.remove_node("n")
    assert table.row_of["n"] == row
    assert (table.node_count, table.node("n")) == (0, None)
    assert not table.active[row]
    assert (int(table.allocatable("cpu")[row]), int(table.requested("cpu")[row])) == (0, 1000)
    table.remove_pod("n", worker("p").uid)
    assert "n" not in table.row_of


def test_a_pod_may_come_before_its_node():
    table = NodeTable()
    book(table, worker("p"))
    row = table.row_of["n"]
    assert not table.active[row]
    assert table.zone_order.rows().tolist() == []
    table.set_node(make_node("n"))
    assert table.row_of["n"] == row
    assert table.active[row]
    assert int(table.requested("cpu")[row]) == 1000
    assert [pod.name for pod in table.info(row).pods] == ["p"]


def test_a_node_that_is_back_finds_its_pods():
    table = make_table([make_node("n", labels={"disk": "ssd"})], [worker("p")])
    row = table.row_of["n"]
    assert table.meets(SSD)[row]
    table.remove_node("n")
    assert not table.meets(SSD)[row]
    table.set_node(make_node("n", labels={"disk": "hdd"}))
    assert table.row_of["n"] == row
    assert not table.meets(SSD)[row]
    assert table.info(row).pod_count == 1


def test_a_pod_replaced_on_a_ghost_stays_there():
    table = make_table([make_node("n")], [worker("p")])
    table.remove_node("n")
    bigger = make_pod("p", node="n", requests={"cpu": "2"})
    table.replace_pod("n", bigger, Usage.of(bigger))
    assert int(table.requested("cpu")[table.row_of["n"]]) == 2000


def test_a_pod_cannot_be_added_twice_to_a_node():
    table = make_table([make_node("n")], [worker("p")])
    with pytest.raises(AssertionError, match="default/p is added twice to n"):
        book(table, worker("p"))


def test_a_node_cannot_be_removed_twice():
    table = make_table([make_node("n")], [worker("p")])
    table.remove_node("n")
    with pytest.raises(AssertionError, match="node n is removed twice"):
        table.remove_node("n")


# The log of changes


def logged(table, action):
    """Rows that an action puts into the logs of all changes and of node changes."""
    changes, nodes = table.changes.position, table.node_changes.position
    action()
    rows, node_rows = Cursor(table.changes, changes), Cursor(table.node_changes, nodes)
    return rows.changed(), node_rows.changed()


def with_status(node, **fields):
    return replace(node, status=replace(node.status, **fields))


def with_meta(obj, **fields):
    return replace(obj, metadata=replace(obj.metadata, **fields))


NODE = make_node("n")


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        pytest.param(NODE, False, id="the same again"),
        pytest.param(with_meta(NODE, resource_version="7"), False, id="a heartbeat"),
        pytest.param(with_meta(NODE, annotations={"a": "b"}), True, id="annotations"),
        pytest.param(make_node("n", labels={"a": "b"}), True, id="labels"),
        pytest.param(make_node("n", unschedulable=True), True, id="cordoned"),
        pytest.param(make_node("n", allocatable={"cpu": "8"}), True, id="allocatable"),
        pytest.param(make_node("n", images={"a:1": 1}), True, id="images"),
        pytest.param(make_node("n", features=["X"]), True, id="features"),
        pytest.param(
            with_status(NODE, conditions=(Condition(type="Ready", status="False"),)),
            True,
            id="a condition",
        ),
    ],
)
def test_updates_in_the_log(new, changed):
    table = make_table([NODE])
    rows = [table.row_of["n"]] if changed else []
    assert logged(table, lambda: table.set_node(new)) == (rows, rows)
    assert table.node("n") is new


def test_nodes_coming_and_going_are_changes_of_nodes():
    table = NodeTable()
    assert logged(table, lambda: table.set_node(NODE)) == ([0], [0])
    assert logged(table, lambda: table.remove_node("n")) == ([0], [0])


def test_pods_are_no_changes_of_nodes():
    table = make_table([NODE])
    assert logged(table, lambda: book(table, worker("p"))) == ([0], [])
    assert logged(table, lambda: table.remove_pod("n", worker("p").uid)) == ([0], [])


POD = worker("p")


@pytest.mark.parametrize(
    ("new", "changed"),
    [
        pytest.param(POD, False, id="the same again"),
        pytest.param(with_meta(POD, resource_version="7"), False, id="another version"),
        pytest.param(
            with_status(POD, conditions=(Condition(type="PodScheduled", status="True"),)),
            False,
            id="the binding is confirmed",
        ),
        pytest.param(with_meta(POD, labels={"a": "b"}), True, id="labels"),
        pytest.param(with_meta(POD, annotations={"a": "b"}), True, id="annotations"),
        pytest.param(make_pod("p", node="n", requests={"cpu": "2"}), True, id="requests"),
        pytest.param(worker("p", priority=7), True, id="anything else in the spec"),
        pytest.param(with_meta(POD, deletion_timestamp="2026-01-01T00:00:00Z"), True, id="deleted"),
        pytest.param(with_status(POD, phase="Running"), True, id="the phase"),
    ],
)
def test_replaced_pods_in_the_log(new, changed):
    """A plugin that depends on usage may read any of these off the pods of a node."""
    table = make_table([NODE])
    cache = Cache(table, Templates())
    cache.add(POD)
    rows, nodes = logged(table, lambda: cache.update(new))
    assert (set(rows), nodes) == ({0} if changed else set(), [])
    assert table.info(0).pods == [new]


# Many rows at once


def test_a_slice_returns_the_same_values_as_the_table():
    table = make_table(
        [
            make_node("a", labels={"disk": "ssd"}, images={"app:1": 5}),
            make_node("b", taints=[Taint(key="gpu")], allocatable={"cpu": "2", "pods": "3"}),
            make_node("gone"),
            make_node("c", labels={"disk": "hdd"}),
        ],
        [worker("p", "b", host_ports=[80]), worker("q", "gone"), worker("r", "c")],
    )
    table.remove_node("gone")
    sets = np.arange(len(table.taint_sets))
    questions = {
        "own column": lambda rows: rows[LENGTH],
        "active": lambda rows: rows.active,
        "pod count": lambda rows: rows.pod_count,
        "allocatable": lambda rows: rows.allocatable("cpu"),
        "requested": lambda rows: rows.requested("cpu"),
        "non-zero requested": lambda rows: rows.nonzero_requested("memory"),
        "unheard resource": lambda rows: rows.requested("example.com/none"),
        "labels": lambda rows: rows.meets(SSD),
        "names": lambda rows: rows.named(["a", "c", "gone", "unheard"]),
        "no names": lambda rows: rows.named([]),
        "taints": lambda rows: rows.per_taint_set(sets),
        "ports": lambda rows: rows.conflicting([("0.0.0.0", "TCP", 80)]),
        "image": lambda rows: rows.holding("app:1")[0],
        "no image": lambda rows: rows.holding("unheard:1")[0],
    }
    for rows in ([0], [2, 0], [1, 3], [3, 2, 1, 0, 5], []):
        index = np.array(rows, dtype=np.intp)
        part = table.slice(index)
        assert len(part) == len(rows)
        assert (part.size, part.taint_sets) == (3, table.taint_sets)
        for question, ask in questions.items():
            assert ask(part).tolist() == ask(table)[index].tolist(), question


def test_columns_of_unknown_resources_are_read_only():
    table = make_table([NODE])
    with pytest.raises(ValueError, match="read-only"):
        table.requested("example.com/none")[0] = 1


def test_the_first_capacity_is_modest():
    assert NodeTable().capacity == tables.SMALLEST


def test_pods_that_come_and_leave_are_logged_with_their_sign():
    table = make_table([make_node("a")])
    log = table.pod_changes()
    pod = make_pod("p", uid="p", node="a")
    table.add_pod("a", pod, Usage.of(pod))
    table.remove_pod("a", "p")
    assert [(placed.pod.name, sign) for placed, sign in log.entries] == [("p", 1), ("p", -1)]
