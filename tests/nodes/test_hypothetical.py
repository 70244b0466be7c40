"""Rows as if pods had come or gone are the rows after they have."""

import random

import numpy as np
import pytest

from moorage.nodes.hypothetical import HypotheticalRows, NumberedUsages
from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod, make_table

RESOURCES = ("cpu", "memory", "example.com/gpu")
WANTED = (("0.0.0.0", "TCP", 80), ("0.0.0.0", "TCP", 81))


def random_pod(rng, name):
    requests = {r: rng.choice((0, 1, 5)) for r in RESOURCES}
    ports = rng.choice(((), (80,), (81,), (80, 82)))
    return make_pod(name, requests=requests, host_ports=ports, node=rng.choice("abc"))


def read(rows):
    """All that rows tell of their pods."""
    amounts = {f"requested {r}": rows.requested(r).tolist() for r in RESOURCES}
    amounts |= {f"nonzero {r}": rows.nonzero_requested(r).tolist() for r in RESOURCES[:2]}
    amounts["pods"] = rows.pod_count.tolist()
    for port in WANTED:
        amounts[str(port)] = rows.conflicting([port]).tolist()
    return amounts


@pytest.mark.parametrize("seed", range(20))
def test_supposed_rows_are_those_of_a_table_that_changed(seed):
    rng = random.Random(seed)
    pods = [random_pod(rng, f"p{i}") for i in range(12)]
    leaving = pods[:4]
    table = make_table([make_node(name) for name in "abc"], pods)
    rows = np.array([table.row_of[name] for name in "ca"])
    book = NumberedUsages()
    gone = [[book.number(Usage.of(p)) for p in leaving if p.node_name == n] for n in "ca"]
    width = max(1, *map(len, gone))
    numbers = np.array([each + [0] * (width - len(each)) for each in gone])
    supposed = HypotheticalRows(table, rows)
    supposed.shift(numbers, book, -1)
    kept = supposed.copy()
    supposed.shift(numbers[:, 0], book, 1)
    without, with_first = read(kept), read(supposed)
    for pod in leaving:
        table.remove_pod(pod.node_name, pod.uid)
    assert without == read(table.slice(rows))
    for name in "ca":
        for pod in [p for p in leaving if p.node_name == name][:1]:
            table.add_pod(name, pod, Usage.of(pod))
    assert with_first == read(table.slice(rows))


def test_a_book_grows():
    book = NumberedUsages()
    usages = [Usage.of(make_pod(requests={"cpu": i + 1})) for i in range(50)]
    numbers = np.array([book.number(usage) for usage in usages])
    assert numbers.tolist() == list(range(1, 51))
    assert book.columns["cpu"][numbers].tolist() == [1000 * (i + 1) for i in range(50)]
    assert book.number(usages[7]) == 8
    assert not book.has_ports
