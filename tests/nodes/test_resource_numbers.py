"""The resources of rows as numbers."""

from random import Random

import pytest

from moorage.nodes.table import NodeTable
from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod

SMALL, LARGE = ({"cpu": cpu, "memory": "8Gi", "pods": "10"} for cpu in ("2", "4"))
ONE, TWO = (Usage.of(make_pod(requests={"cpu": cpu})) for cpu in ("100m", "200m"))


def make_table(*allocatable):
    table = NodeTable()
    for i, amounts in enumerate(allocatable):
        table.set_node(make_node(f"n{i}", allocatable=amounts))
    return table


def numbers(table):
    return [table.resource_numbers.of(row) for row in range(table.node_count)]


def test_rows_with_equal_resources_have_equal_numbers():
    table = make_table(SMALL, SMALL, LARGE)
    first, second, third = numbers(table)
    assert first == second != third
    table.add_pod("n0", make_pod("a"), ONE)
    assert table.resource_numbers.of(0) != second
    table.add_pod("n1", make_pod("b"), ONE)
    assert table.resource_numbers.of(0) == table.resource_numbers.of(1)


def test_a_row_without_a_reader_is_numbered_later():
    table = make_table(SMALL, SMALL)
    for name in ("n0", "n1"):
        for i, usage in enumerate((ONE, TWO)):
            table.add_pod(name, make_pod(f"{name}-{i}"), usage)
    assert len(set(numbers(table))) == 1


def test_numbers_after_a_restart_are_new():
    table = make_table(SMALL, LARGE)
    before = numbers(table)
    table.restart_readers()
    assert not {*before} & {*numbers(table)}


def test_more_rows_leave_numbers_as_they_are():
    table = make_table(SMALL, LARGE)
    before = numbers(table)
    table.reserve(4 * table.capacity)
    assert numbers(table) == before


@pytest.mark.parametrize("seed", range(20))
def test_equal_numbers_mean_equal_resources(seed):
    random = Random(seed)
    table = make_table(*[random.choice((SMALL, LARGE)) for _ in range(6)])
    by_number, placed = {}, []
    for i in range(200):
        if placed and random.random() < 0.4:
            name, pod = placed.pop(random.randrange(len(placed)))
            table.remove_pod(name, pod.uid)
        elif random.random() < 0.05:
            row = random.randrange(6)
            table.set_node(make_node(f"n{row}", allocatable=random.choice((SMALL, LARGE))))
        else:
            name, pod = f"n{random.randrange(6)}", make_pod(f"p{i}")
            table.add_pod(name, pod, random.choice((ONE, TWO)))
            placed.append((name, pod))
        for row in range(6) if random.random() < 0.5 else ():
            info = table.info(row)
            has = (*info.amounts("cpu"), info.nonzero_requested("memory"), info.pod_count)
            assert by_number.setdefault(table.resource_numbers.of(row), has) == has
    assert len(by_number) < 200
