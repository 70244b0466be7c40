"""RowGroups: rows have the same group if, and only if, they have the same values."""

from random import Random

import pytest
from tests.random_cluster import HOSTNAME, ZONE, RandomCluster

from moorage.api.meta import LabelSelector
from moorage.api.selectors import compile_label_selector
from moorage.nodes import groups
from moorage.nodes.groups import NO_DOMAIN, Groups, IsCounted, RowGroups
from moorage.nodes.pod_classes import Clause
from moorage.nodes.table import NodeTable
from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod

EVERY_POD = (Clause(None, compile_label_selector(LabelSelector())),)


def value(key, table, row):
    """The value of a row, from its node and pods."""
    if hasattr(key, "key"):
        return key.codes.item(row)
    if hasattr(key, "counts"):
        return key.counts.item(row)
    view = key.view if isinstance(key, IsCounted) else key
    labels = table.nodes[row].labels
    if view.column.key not in labels:
        return NO_DOMAIN
    count = view.at(labels[view.column.key])
    return int(count > 0) if isinstance(key, IsCounted) else count


@pytest.mark.parametrize("few_rows", [8, 0], ids=["row by row", "all rows at once"])
@pytest.mark.parametrize("seed", range(3))
def test_groups_after_changes(seed, few_rows, monkeypatch):
    monkeypatch.setattr(groups, "FEW_ROWS", few_rows)
    monkeypatch.setattr(groups, "ROW_COST", 1 << 16)
    cluster = RandomCluster(Random(seed))
    table, placements = cluster.table, cluster.table.placements
    by_host = placements.view(EVERY_POD, HOSTNAME, counts_terminating=True)
    by_zone = placements.view(EVERY_POD, ZONE, counts_terminating=True)
    per_row = placements.per_row(EVERY_POD, counts_terminating=True)
    keys = (table.label(ZONE), per_row, by_host, IsCounted(by_zone), IsCounted(by_host))
    found = RowGroups(keys, table)
    for _ in range(150):
        cluster.step()
        before = found.group_of.copy()
        moved = found.refresh()
        if moved is not None:
            changed = (found.group_of != before).nonzero()[0].tolist()
            assert set(changed) <= set(moved)
        rows = table.active_rows.nonzero()[0].tolist()
        assert len(found.group_of) == table.capacity
        seen = {row: tuple(value(key, table, row) for key in keys) for row in rows}
        chosen = Groups(found, sorted({found.group_of.item(row) for row in rows}), [])
        of_keys = zip(*[chosen.of(key) for key in keys], strict=True)
        by_number = dict(zip(chosen.numbers, of_keys, strict=True))
        assert {row: by_number[found.group_of.item(row)] for row in rows} == seen
        assert len(set(seen.values())) == len(by_number)


def test_narrowed_groups():
    cluster = RandomCluster(Random(1))
    column = cluster.table.label(ZONE)
    found = RowGroups((column,), cluster.table)
    every = Groups(found, [*range(len(found))], [3] * len(found))
    first = every.where([number == 0 for number in every.numbers])
    assert len(first) == 1
    assert first.of(column) == every.of(column)[:1]
    assert first.sizes == [3]
    every.add(0, 4)
    again = every.where([number == 0 for number in every.numbers])
    assert again is first
    assert first.sizes == [7]


@pytest.mark.parametrize("seed", range(3))
def test_rows_move_between_groups(seed):
    """As if the row left one group and came to the other."""
    cluster = RandomCluster(Random(1))
    column, rng = cluster.table.label(ZONE), Random(seed)
    found = RowGroups((column,), cluster.table)
    numbers = [*range(len(found))]
    moved, expected = (Groups(found, [*numbers], [2] * len(numbers)) for _ in range(2))
    values = dict(zip(moved.numbers, moved.of(column), strict=True))
    for _ in range(100):
        sizes = dict(zip(moved.numbers, moved.sizes, strict=True))
        before, after = rng.choice([*sizes, -1]), rng.choice([*numbers, -1])
        version, other_version = moved.version, expected.version
        moved.move(before, after)
        if before != after:
            for number, change in ((before, -1), (after, 1)):
                if number >= 0:
                    expected.add(number, change)
        assert dict(zip(moved.numbers, moved.sizes, strict=True)) == dict(
            zip(expected.numbers, expected.sizes, strict=True)
        )
        assert (moved.version == version) == (expected.version == other_version)
        assert moved.of(column) == [values[number] for number in moved.numbers]
        assert moved.at == {number: at for at, number in enumerate(moved.numbers)}


def test_groups_without_rows_are_dropped(monkeypatch):
    monkeypatch.setattr(groups, "MOST_GROUPS", 4)
    cluster = RandomCluster(Random(1))
    table, placements = cluster.table, cluster.table.placements
    per_row = placements.per_row(EVERY_POD, counts_terminating=True)
    found, row = RowGroups((per_row,), table), int(table.active_rows.argmax())
    most = 4 + 2 * len(found)
    for count in range(100):
        per_row.counts[row] = 1000 + count
        table.changes.add(row)
        found.refresh()
        assert found.values(found.group_of.item(row)) == (1000 + count,)
        assert len(found) <= most + 4


def test_two_nodes_with_one_host_name():
    """A domain that gets a second row: pods on one of them then move both."""
    table = NodeTable(4)
    for name in "ab":
        table.set_node(make_node(name, labels={HOSTNAME: name}))
    view = table.placements.view(EVERY_POD, HOSTNAME, counts_terminating=True)
    assert table.label(HOSTNAME).shared == 0
    found = RowGroups((view,), table)
    table.set_node(make_node("b", labels={HOSTNAME: "a"}))
    assert table.label(HOSTNAME).shared == 1
    found.refresh()
    pod = make_pod("p")
    table.add_pod("a", pod, Usage.of(pod))
    found.refresh()
    assert [found.values(found.group_of.item(table.row_of[name])) for name in "ab"] == [(1,), (1,)]
    table.set_node(make_node("b", labels={HOSTNAME: "b"}))
    assert table.label(HOSTNAME).shared == 0
    found.refresh()
    assert [found.values(found.group_of.item(table.row_of[name])) for name in "ab"] == [(1,), (0,)]


def test_groups_come_and_go():
    """Values, sizes and positions stay together, whatever the order."""
    cluster = RandomCluster(Random(1))
    column = cluster.table.label(ZONE)
    found = RowGroups((column,), cluster.table)
    groups = Groups(found, [*range(len(found))], [1] * len(found))
    values = dict(zip(groups.numbers, groups.of(column), strict=True))
    rng, sizes = Random(2), dict.fromkeys(values, 1)
    for _ in range(100):
        number = rng.randrange(len(found))
        change = rng.choice([1, -1]) if sizes[number] else 1
        version, had_rows = groups.version, sizes[number] > 0
        groups.add(number, change)
        sizes[number] += change
        assert (groups.version != version) == (had_rows != (sizes[number] > 0))
        assert dict(zip(groups.numbers, groups.sizes, strict=True)) == {
            number: size for number, size in sizes.items() if size
        }
        assert groups.of(column) == [values[number] for number in groups.numbers]
        assert groups.at == {number: at for at, number in enumerate(groups.numbers)}
