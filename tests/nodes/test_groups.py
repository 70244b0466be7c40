"""RowGroups: rows have the same group if, and only if, they have the same values."""

from random import Random

import pytest
from tests.random_cluster import HOSTNAME, ZONE, RandomCluster

from moorage.api.meta import LabelSelector
from moorage.api.selectors import compile_label_selector
from moorage.nodes import groups
from moorage.nodes.groups import NO_DOMAIN, Groups, IsCounted, RowGroups
from moorage.nodes.pod_classes import Clause

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
