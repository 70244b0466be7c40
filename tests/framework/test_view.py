"""View: rows that changed are recomputed, others are not, and an exception starts over."""

import pytest

from moorage.framework.views import view as views
from moorage.framework.views.view import View
from moorage.nodes.changes import ChangeLog, Cursor
from moorage.testing import make_node, make_table

STATE = POD = None


class Doubled(View):
    """Twice the value of every row of a list; remembers what was computed."""

    def __init__(self, table, log, source):
        super().__init__(table, logs=[log])
        self.source = source
        self.values = []
        self.computed = []

    def compute_row(self, row):
        self.computed.append(row)
        if self.source[row] is None:
            raise ValueError(f"row {row}")
        before, self.values[row] = self.values[row], 2 * self.source[row]
        return self.values[row] != before

    def compute_all(self):
        self.computed.append("all")
        self.values = [2 * value for value in self.source]


class Total(View):
    """The sum of two views, row by row."""

    def __init__(self, table, inputs):
        super().__init__(table, inputs)
        self.inputs = inputs
        self.computed = []

    def compute_row(self, row):
        self.computed.append(row)
        return True

    def compute_all(self):
        self.computed.append("all")


class ByNode(Doubled):
    is_by_node = True


@pytest.fixture
def table():
    return make_table([make_node("n1")])


@pytest.fixture
def source():
    return [1, 2, 3, 4]


@pytest.fixture
def log():
    return ChangeLog()


@pytest.fixture
def doubled(table, log, source):
    view = Doubled(table, log, source)
    view.refresh(STATE, POD)
    view.computed.clear()
    return view


def published(view, cursor):
    rows = cursor.changed()
    cursor.commit()
    return rows


def test_everything_is_computed_first(table, log, source):
    view = Doubled(table, log, source)
    view.refresh(STATE, POD)
    assert (view.computed, view.values) == (["all"], [2, 4, 6, 8])


def test_changed_rows_are_recomputed_once_each(doubled, log, source):
    source[1], source[3] = 7, 9
    for row in (1, 3, 1):
        log.add(row)
    doubled.refresh(STATE, POD)
    assert (doubled.computed, doubled.values) == ([1, 3], [2, 14, 6, 18])
    doubled.refresh(STATE, POD)
    assert doubled.computed == [1, 3]


def test_rows_whose_value_changed_are_published(doubled, log, source):
    cursor = Cursor(doubled.log)
    assert published(doubled, cursor) is None
    source[2] = 5
    log.add(1)
    log.add(2)
    doubled.refresh(STATE, POD)
    assert published(doubled, cursor) == [2]


def test_many_rows_are_recomputed_together(doubled, log, source, monkeypatch):
    monkeypatch.setattr(views, "FEW_ROWS", 2)
    cursor = Cursor(doubled.log)
    published(doubled, cursor)
    for row in range(3):
        log.add(row)
    doubled.refresh(STATE, POD)
    assert doubled.computed == ["all"]
    assert published(doubled, cursor) is None


def test_after_an_exception_everything_is_recomputed(doubled, log, source):
    source[2], source[1] = None, 6
    log.add(2)
    with pytest.raises(ValueError, match="row 2"):
        doubled.refresh(STATE, POD)
    source[2] = 8
    doubled.refresh(STATE, POD)
    assert (doubled.computed, doubled.values) == ([2, "all"], [2, 12, 16, 8])


def test_a_view_reads_the_logs_of_its_inputs(table, log, source):
    first, second = Doubled(table, log, source), Doubled(table, ChangeLog(), source)
    total = Total(table, [first, second])
    total.refresh(STATE, POD)
    source[3] = 0
    log.add(3)
    log.add(0)
    total.refresh(STATE, POD)
    assert (first.computed, second.computed, total.computed) == (["all", 3, 0], ["all"], ["all", 3])


def test_inputs_that_change_with_nodes_are_refreshed_after_such_a_change(table, log, source):
    by_node = ByNode(table, log, source)
    total = Total(table, [by_node])
    total.refresh(STATE, POD)
    source[0] = 9
    log.add(0)
    total.refresh(STATE, POD)
    assert by_node.computed == ["all"]
    table.node_changes.add(0)
    total.refresh(STATE, POD)
    assert by_node.computed == ["all", 0]
