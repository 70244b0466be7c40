"""Columns that plugins declare: read once per change of a node, and by the plugin only."""

import pickle

import numpy as np
import pytest

from moorage.nodes.columns import Column
from moorage.nodes.table import NodeTable
from moorage.testing import make_node, make_table


def read_rank(node):
    return int(node.labels["rank"])


def read_tiers(node):
    return tuple(sorted(node.labels))


RANK = Column("rank", np.int64, read_rank, default=-1)
TIERS = Column("tiers", object, read_tiers, default=())


def ranked(name, rank):
    return make_node(name, labels={"rank": rank})


def test_a_column_is_built_on_first_use_with_a_default_for_rows_without_a_node():
    table = make_table([ranked("a", 1), ranked("b", 2)])
    assert table[RANK].tolist()[:3] == [1, 2, -1]


@pytest.mark.parametrize(
    ("change", "rank"),
    [
        pytest.param(lambda table: table.set_node(ranked("a", 7)), 7, id="the node changed"),
        pytest.param(lambda table: table.remove_node("a"), -1, id="the node is gone"),
        pytest.param(lambda table: table.set_node(ranked("b", 7)), 1, id="another node changed"),
    ],
)
def test_read_again_when_its_node_changes(change, rank):
    table = make_table([ranked("a", 1), ranked("b", 2)])
    row = table.row_of["a"]
    assert table[RANK][row] == 1
    change(table)
    assert table[RANK][row] == rank


def test_a_heartbeat_does_not_read_again():
    asked = []
    counted = Column("counted", np.int64, lambda node: asked.append(node.name) or 0)
    table = make_table([make_node("a")])
    table[counted]
    table.set_node(make_node("a"))
    assert asked == ["a"]


def test_one_nodes_value_is_a_plain_python_value():
    table = make_table([ranked("a", 1)])
    assert type(table.info(table.row_of["a"])[RANK]) is int


def test_a_column_of_objects():
    table = make_table([ranked("a", 1)])
    assert table.info(table.row_of["a"])[TIERS] == ("rank",)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_rows_that_are_read_together_hold_what_they_hold_one_by_one(count):
    nodes = [ranked(f"n{i}", i) for i in range(count)]
    table, other = make_table(nodes), make_table([])
    assert other[TIERS].tolist() == [()] * other.capacity
    for node in nodes:
        other.set_node(node)
    for table_row, other_row in ((table.row_of[n.name], other.row_of[n.name]) for n in nodes):
        assert table[TIERS][table_row] == other[TIERS][other_row] == ("rank",)


def test_a_value_that_the_column_cannot_hold_fails_only_its_row():
    table = make_table([ranked("good", 1), ranked("large", 1 << 70)])
    good, large = (table.info(table.row_of[name]) for name in ("good", "large"))
    assert good[RANK] == 1
    with pytest.raises(Exception, match="column rank: node large"):
        large[RANK]


def test_a_node_that_cannot_be_read_fails_only_reads_of_its_row():
    table = make_table([ranked("good", 1), ranked("bad", "high")])
    with pytest.raises(Exception, match="column rank: node bad: invalid literal"):
        table[RANK]
    good, bad = (table.info(table.row_of[name]) for name in ("good", "bad"))
    assert good[RANK] == 1
    with pytest.raises(Exception, match="column rank: node bad: invalid literal"):
        bad[RANK]
    rows = np.array([good.row])
    assert table.slice(rows)[RANK].tolist() == [1]


def test_a_node_becomes_unreadable_and_readable_again():
    table = make_table([ranked("a", 1)])
    row = table.row_of["a"]
    assert table[RANK][row] == 1
    table.set_node(ranked("a", "high"))
    with pytest.raises(Exception, match="column rank: node a"):
        table[RANK]
    table.set_node(ranked("a", 3))
    assert table[RANK][row] == 3
    table.set_node(ranked("a", "high"))
    table.remove_node("a")
    assert table[RANK][row] == -1


def test_columns_survive_pickling():
    table = make_table([ranked("a", 1)])
    assert table[RANK][0] == 1
    again: NodeTable = pickle.loads(pickle.dumps(table))
    again.set_node(ranked("a", 5))
    assert again[RANK][0] == 5
