"""Derived amounts agree with every node: the bounds on what is free, and the float lines."""

import copy
import pickle
from random import Random

import pytest

from moorage.nodes import resource_views
from moorage.nodes.usage import Usage
from moorage.testing import make_node, make_pod, make_table

WATCHED = (("pods", False), ("cpu", False), ("memory", True), ("example.com/gpu", False))


def has_room(table, amounts):
    """Checked node by node."""
    for node in filter(None, table.nodes):
        info = table.info(table.row_of[node.name])
        left = (
            info.allocatable("pods") - info.pod_count,
            info.allocatable("cpu") - info.requested("cpu"),
            info.allocatable("memory") - info.nonzero_requested("memory"),
            info.allocatable("example.com/gpu") - info.requested("example.com/gpu"),
        )
        if any(amount > rest for amount, rest in zip(amounts, left, strict=True)):
            return False
    return True


def some_node(rng, name):
    offered = {"cpu": rng.choice((2, 4)), "memory": rng.choice(("2Gi", "4Gi")), "pods": 5}
    return make_node(name, allocatable={**offered, "example.com/gpu": rng.choice((2, 8))})


@pytest.mark.parametrize("few", [resource_views.FEW_ROWS, 1], ids=["row by row", "all at once"])
@pytest.mark.parametrize("seed", range(20))
def test_the_bound_agrees_with_all_rows(seed, few, monkeypatch):
    monkeypatch.setattr(resource_views, "FEW_ROWS", few)
    rng = Random(seed)
    table = make_table([some_node(rng, f"n{i}") for i in range(6)])
    placed, said = {}, set()
    for i in range(120):
        for _ in range(rng.choice((1, 1, 3))):
            happen(rng, table, placed, f"p{i}")
        amounts = (1, *(rng.choice(some) for some in ((100, 1900), (1 << 20, 1 << 30), (0, 1))))
        answer = has_room(table, amounts)
        assert table.has_room(WATCHED, amounts) is answer
        said.add(answer)
    assert said == {True, False}


@pytest.mark.parametrize(
    "copied",
    [
        pytest.param(copy.deepcopy, id="deepcopy"),
        pytest.param(lambda table: pickle.loads(pickle.dumps(table)), id="pickle"),
    ],
)
def test_float_lines_of_a_copy_follow_the_copy(copied):
    table = make_table([make_node(f"n{i}", allocatable={"cpu": 4, "memory": 99}) for i in range(3)])
    watched = (("cpu", False), ("memory", False))
    first, second = (
        make_pod(name, uid=name, requests={"cpu": 1, "memory": 7}) for name in ("first", "second")
    )
    table.free_floats(watched)
    table.add_pod("n1", first, Usage.of(first))
    before = table.free_floats(watched).copy()  # One row was written again.
    other = copied(table)
    other.add_pod("n1", second, Usage.of(second))
    changed = other.free_floats(watched)[:, other.row_of["n1"]] - before[:, table.row_of["n1"]]
    assert changed.tolist() == [-1000, -7]
    assert (table.free_floats(watched) == before).all()


def test_the_number_of_bounds_is_limited(monkeypatch):
    monkeypatch.setattr(resource_views, "MOST_BOUNDS", 2)
    table = make_table([some_node(Random(0), "n")])
    for i in range(5):
        assert not table.has_room(((f"example.com/{i}", False),), (1,))
    assert len(table._derived._bounds) <= 2


def happen(rng, table, placed, name):
    name = f"{name}-{len(placed)}-{rng.random()}"
    match rng.choice(("place", "place", "place", "leave", "leave", "node", "no node")):
        case "place":
            gpus = {"example.com/gpu": 1} if rng.random() < 0.2 else {}
            pod = make_pod(name, uid=name, requests={"cpu": rng.choice(("100m", "1")), **gpus})
            placed[name] = node = f"n{rng.randrange(6)}"
            table.add_pod(node, pod, Usage.of(pod))
        case "leave" if placed:
            gone = rng.choice(sorted(placed))
            table.remove_pod(placed.pop(gone), gone)
        case "node":
            table.set_node(some_node(rng, f"n{rng.randrange(8)}"))
        case "no node" if table.node_count > 2:
            there = sorted(node.name for node in table.nodes if node is not None)
            table.remove_node(rng.choice(there))


def test_only_some_bounds_are_kept():
    names = [f"example.com/r{i}" for i in range(40)]
    table = make_table([make_node("n", allocatable=dict.fromkeys(names, 3))])
    for name in names:
        assert table.has_room(((name, False),), (3,))
        assert not table.has_room(((name, False),), (4,))
