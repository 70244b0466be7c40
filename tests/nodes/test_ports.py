"""Host ports: a set per node, and which ports conflict."""

import numpy as np
import pytest

from moorage.nodes import ports
from moorage.nodes.ports import HostPorts
from moorage.testing import make_node, make_pod, make_table

ANY, LOCAL, OTHER = "0.0.0.0", "127.0.0.1", "10.0.0.1"


@pytest.mark.parametrize(
    ("used", "wanted", "conflicts"),
    [
        pytest.param((ANY, "TCP", 80), (ANY, "TCP", 80), True, id="the same"),
        pytest.param((LOCAL, "TCP", 80), (ANY, "TCP", 80), True, id="any address wants it all"),
        pytest.param((ANY, "TCP", 80), (LOCAL, "TCP", 80), True, id="any address has it all"),
        pytest.param((LOCAL, "TCP", 80), (OTHER, "TCP", 80), False, id="other addresses"),
        pytest.param((LOCAL, "TCP", 80), (LOCAL, "TCP", 80), True, id="one address twice"),
        pytest.param((ANY, "UDP", 80), (ANY, "TCP", 80), False, id="other protocols"),
        pytest.param((ANY, "TCP", 81), (ANY, "TCP", 80), False, id="other ports"),
    ],
)
def test_conflicts(used, wanted, conflicts):
    held = HostPorts()
    held.add(7, [used])
    rows = {row for rows in held.holders(wanted) for row in rows}
    assert rows == ({7} if conflicts else set())
    assert ports.conflict([wanted], [used]) is conflicts
    held.remove(7, [used])
    assert not any(held.holders(wanted))


def test_a_port_held_twice_is_free_when_one_holder_leaves():
    # A set, not a count: so it is in Kubernetes.
    web = [make_pod(name, node="n", host_ports=[80]) for name in ("a", "b")]
    table = make_table([make_node("n")], web)
    table.remove_pod("n", web[0].uid)
    row = table.row_of["n"]
    assert table.info(row).used_ports == set()
    assert not table.conflicting([(ANY, "TCP", 80)])[row]


def test_the_table_says_which_nodes_conflict():
    pods = [make_pod("a", node="n1", host_ports=[80]), make_pod("b", node="n2", host_ports=[81])]
    table = make_table([make_node("n1"), make_node("n2")], pods)
    rows = table.row_of
    both = [(ANY, "TCP", 80), (ANY, "TCP", 81)]
    assert np.flatnonzero(table.conflicting(both)).tolist() == [rows["n1"], rows["n2"]]
    assert np.flatnonzero(table.conflicting(both[:1])).tolist() == [rows["n1"]]
    assert not table.conflicting([]).any()


def test_a_reused_row_holds_no_old_ports():
    table = make_table([make_node("old")], [make_pod("a", node="old", host_ports=[80])])
    row = table.row_of["old"]
    table.remove_node("old")
    table.remove_pod("old", make_pod("a").uid)
    table.set_node(make_node("new"))
    assert table.row_of["new"] == row
    assert table.info(row).used_ports == set()
