"""Unions of sets of rows, against sorted lists."""

from random import Random

import numpy as np
import pytest

from moorage.framework.views import row_sets
from moorage.framework.views.row_sets import RowBlocks, RowUnion, row_set


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
