"""Label values and taint sets as codes, with one check per distinct value."""

import pickle

import numpy as np
import pytest

from moorage.api.node import Taint
from moorage.api.selectors import Requirement
from moorage.testing import make_node, make_table

RANKS = {"one": "1", "five": "5", "seven": "07", "word": "high", "empty": "", "none": None}


@pytest.fixture
def table():
    return make_table([make_node(name, labels={"rank": rank}) for name, rank in RANKS.items()])


@pytest.mark.parametrize(
    ("operator", "values", "met"),
    [
        pytest.param("In", ("1", "5", "unheard"), ["one", "five"], id="In"),
        pytest.param("In", ("",), ["empty"], id="In: an empty value is a value"),
        pytest.param("In", (), [], id="In nothing"),
        pytest.param(
            "NotIn", ("1", "5"), ["seven", "word", "empty", "none"], id="NotIn: absent counts"
        ),
        pytest.param("Exists", (), ["one", "five", "seven", "word", "empty"], id="Exists"),
        pytest.param("DoesNotExist", (), ["none"], id="DoesNotExist"),
        pytest.param("Gt", ("4",), ["five", "seven"], id="Gt: only numbers compare"),
        pytest.param("Lt", ("5",), ["one"], id="Lt: absent is not less"),
        pytest.param("Like", ("1",), [], id="an unknown operator"),
    ],
)
def test_requirements(table, operator, values, met):
    requirement = Requirement("rank", operator, values)
    mask = table.meets(requirement)
    assert [name for name, row in table.row_of.items() if mask[row]] == met
    for name, row in table.row_of.items():
        labels = {} if RANKS[name] is None else {"rank": RANKS[name]}
        assert mask[row] == requirement.matches(labels), name
        assert table.slice(np.array([row])).meets(requirement).tolist() == [mask[row]]


def test_a_key_that_no_node_has(table):
    assert not table.meets(Requirement("unheard", "Exists")).any()
    assert table.meets(Requirement("unheard", "NotIn", ("a",))).all()


def test_a_label_column_follows_the_nodes(table):
    big = Requirement("rank", "In", ("5",))
    row = table.row_of["one"]
    assert not table.meets(big)[row]
    table.set_node(make_node("one", labels={"rank": "5"}))
    assert table.meets(big)[row]
    table.remove_node("one")
    assert not table.meets(big)[row]
    assert table.meets(Requirement("rank", "DoesNotExist"))[row]


def test_a_value_that_appears_later_is_looked_up(table):
    new = Requirement("rank", "In", ("brand-new",))
    assert not table.meets(new).any()
    table.set_node(make_node("new", labels={"rank": "brand-new"}))
    assert np.flatnonzero(table.meets(new)).tolist() == [table.row_of["new"]]


def test_equal_taint_sets_share_one_entry():
    gpu, spot = Taint(key="gpu", effect="NoSchedule"), Taint(key="spot", effect="NoExecute")
    table = make_table(
        [
            make_node("bare"),
            make_node("a", taints=[gpu]),
            make_node("b", taints=[gpu]),
            make_node("c", taints=[gpu, spot]),
        ]
    )
    assert table.taint_sets == [(), (gpu,), (gpu, spot)]
    sizes = np.array([len(taints) for taints in table.taint_sets])
    assert [int(table.per_taint_set(sizes)[table.row_of[name]]) for name in "abc"] == [1, 1, 2]
    table.set_node(make_node("c"))
    assert table.per_taint_set(sizes)[table.row_of["c"]] == 0


def test_label_columns_survive_pickling(table):
    big = Requirement("rank", "In", ("5",))
    table.meets(big)
    again = pickle.loads(pickle.dumps(table))
    again.set_node(make_node("one", labels={"rank": "5"}))
    assert again.meets(big)[again.row_of["one"]]
    assert not table.meets(big)[table.row_of["one"]]
