"""BestRows: the rows with the highest total, in each of its forms, after any changes."""

from random import Random

import numpy as np
import pytest

from moorage.framework.views import row_sets
from moorage.framework.views.parts import Parts
from moorage.framework.views.row_sets import BestRows, RowBlocks
from moorage.framework.views.totals import Scored


@pytest.mark.parametrize("most_listed", [0, 5, 1 << 14])
@pytest.mark.parametrize("seed", range(20))
def test_changes_leave_the_best_rows_that_a_search_finds(monkeypatch, most_listed, seed):
    monkeypatch.setattr(row_sets, "MOST_LISTED", most_listed)
    monkeypatch.setattr(RowBlocks, "BLOCK", 4)
    rng = Random(seed)
    totals = np.array([rng.randrange(-1, 3) for _ in range(rng.randrange(1, 60))], dtype=np.int32)
    scored = Scored(totals, Parts([], {}), BestRows())
    for _ in range(200):
        expected = (totals == totals.max()).nonzero()[0].tolist()
        best = scored.best()
        assert len(best) == len(expected)
        assert [int(best[index]) for index in range(len(best))] == expected
        row, total = rng.randrange(len(totals)), rng.randrange(-1, 4)
        before = totals.item(row)
        if total != before:
            totals[row] = total
            scored.best_rows.change(row, before, total)
