"""Unions of sets of rows, against sorted lists."""

from random import Random

import numpy as np
import pytest

from moorage.framework.views import row_sets
from moorage.framework.views.row_sets import MergedRows, RowBlocks, RowUnion, row_set


@pytest.mark.parametrize(
    "shares", [(1, 1, 1), (5, 1), (1, 0), (1, 8, 1)], ids=["alike", "two", "all in one", "uneven"]
)
@pytest.mark.parametrize("most_listed", [1 << 14, 20, 0], ids=["lists", "some", "blocks"])
@pytest.mark.parametrize("separate", [False, True], ids=["interleaved", "one after the other"])
def test_union(monkeypatch, shares, most_listed, separate):
    monkeypatch.setattr(row_sets, "MOST_LISTED", most_listed)
    monkeypatch.setattr(RowBlocks, "BLOCK", 16)
    rng = Random(str(shares))
    for capacity in (1, 2, 50, 400):
        rows = sorted(rng.sample(range(capacity), rng.randrange(1, capacity + 1)))
        owners = rng.choices(range(len(shares)), shares, k=len(rows))
        owners = sorted(owners) if separate else owners
        parts = [[r for r, o in zip(rows, owners, strict=True) if o == i] for i in set(owners)]
        sets = [row_set(np.array(part, dtype=np.intp), capacity) for part in parts]
        union = RowUnion(sets, capacity)
        assert len(union) == len(rows)
        assert [union[index] for index in range(len(rows))] == rows


@pytest.mark.parametrize("most_listed", [1 << 14, 0], ids=["lists", "blocks"])
def test_changes(monkeypatch, most_listed):
    monkeypatch.setattr(row_sets, "MOST_LISTED", most_listed)
    rows = row_set(np.array([3, 5, 9]), 10)
    row_sets.add(rows, 4)
    row_sets.remove(rows, 9)
    assert [rows[index] for index in range(len(rows))] == [3, 4, 5]


ALL, SOME = (1, 2, 3), (1, 2)


def read(merged, keys, sets):
    """The rows of sets, and whether they were merged before."""
    found = merged.read(keys)
    if found is not None:
        return found, True
    each = [sets[key] for key in keys]
    return merged.merge(keys, each, 100) or RowUnion(each, 100), False


@pytest.mark.parametrize("most_listed", [1 << 14, 20], ids=["list", "blocks"])
def test_merged_rows_after_moves(monkeypatch, most_listed):
    monkeypatch.setattr(row_sets, "MOST_LISTED", most_listed)
    monkeypatch.setattr(RowBlocks, "BLOCK", 16)
    rng, merged, hits = Random(1), MergedRows(), 0
    sets = {key: [row for row in range(100) if row % 4 == key] for key in range(4)}
    for _ in range(300):
        before, after = rng.sample(range(4), 2)
        if sets[before]:
            row = rng.choice(sets[before])
            row_sets.remove(sets[before], row)
            row_sets.add(sets[after], row)
            merged.move(row, before, after)
        keys = rng.choice((ALL, ALL, SOME))
        rows, hit = read(merged, keys, sets)
        hits += hit
        expected = sorted(row for key in keys for row in sets[key])
        assert [rows[index] for index in range(len(rows))] == expected
    assert hits > 100


def test_sets_that_are_read_most_often_stay_merged(monkeypatch):
    monkeypatch.setattr(row_sets, "MERGED_ROWS", 10)
    merged, sets = MergedRows(), {key: [*range(key, 100, 4)] for key in range(4)}
    assert [read(merged, SOME, sets)[1] for _ in range(2)] == [False, True]
    in_turn = [read(merged, keys, sets)[1] for keys in (ALL, ALL, ALL, SOME) * 20]
    assert in_turn[:4] == [False, False, False, True]
    assert in_turn[-8:] == [True, True, True, False] * 2
