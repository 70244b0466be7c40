"""Amounts per row, in arrays and in lists."""

import numpy as np
import pytest

from moorage.nodes.resources import ResourceColumns, add_to_row, exact_sum

LIMIT = 1 << 63


@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        pytest.param([5, 2], 7, id="a sum"),
        pytest.param([LIMIT - 1, 1], -LIMIT, id="more than 64 bits hold"),
    ],
)
def test_both_forms_agree(amounts, total):
    columns = ResourceColumns(2)
    for amount in amounts:
        add_to_row(1, columns.changes([("cpu", amount)]))
    assert (int(columns["cpu"][1]), columns.values["cpu"][1]) == (total, total)


@pytest.mark.parametrize(
    ("amounts", "total"),
    [
        pytest.param([], 0, id="nothing"),
        pytest.param([5, -2], 3, id="a sum"),
        pytest.param([2**62, 2**62, 2**62 + 1], 3 * 2**62 + 1, id="more than 64 bits hold"),
    ],
)
def test_exact_sum(amounts, total):
    assert exact_sum(np.array(amounts, dtype=np.int64)) == total
