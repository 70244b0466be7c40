"""The log of changed rows: what it remembers, and what it says about what it forgot."""

import pytest

from moorage.nodes import changes
from moorage.nodes.changes import ChangeLog, Cursor


@pytest.mark.parametrize(
    ("position", "rows"),
    [
        pytest.param(0, [3, 1, 3], id="from the beginning, oldest first, with repetitions"),
        pytest.param(2, [3], id="the last one"),
        pytest.param(3, [], id="nothing since the end"),
    ],
)
def test_rows_behind_a_position(position, rows):
    log = ChangeLog()
    for row in (3, 1, 3):
        log.add(row)
    assert Cursor(log, position).changed() == rows


def test_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(changes, "LONGEST", 4)
    log = ChangeLog()
    for row in range(6):
        log.add(row)
    assert log.position == 6
    assert Cursor(log, 1).changed() is None
    assert Cursor(log, 2).changed() == [2, 3, 4, 5]
    assert Cursor(log, 5).changed() == [5]
    assert Cursor(log, 6).changed() == []


def test_positions_go_on_through_many_forgettings(monkeypatch):
    monkeypatch.setattr(changes, "LONGEST", 8)
    log = ChangeLog()
    for row in range(1000):
        before = log.position
        log.add(row)
        assert Cursor(log, before).changed() == [row]
    assert Cursor(log, log.position).changed() == []
    assert Cursor(log, 0).changed() is None


def test_forgetting_everything_is_a_change_itself():
    log = ChangeLog()
    log.add(3)
    before = log.position
    log.forget()
    assert log.position != before
    assert Cursor(log, before).changed() is None
    assert Cursor(log, log.position).changed() == []
