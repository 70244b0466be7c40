"""Images: which nodes hold them, and which node's report sets their size."""

import numpy as np
import pytest

from moorage.api.node import ContainerImage, Node, NodeStatus
from moorage.testing import make_node, make_table


def holding(name, size):
    return make_node(name, images={"app:1": size})


@pytest.mark.parametrize(
    ("steps", "size", "holders"),
    [
        pytest.param([("n1", 10), ("n2", 20)], 10, 2, id="the first report sets the size"),
        pytest.param([("n1", 10), ("n1", 20)], 20, 1, id="the only holder may change the size"),
        pytest.param(
            [("n1", 10), ("n2", 20), ("n1", 30)],
            10,
            2,
            id="no change while another node holds it too",
        ),
        pytest.param(
            [("n1", 10), ("n2", 20), ("n1", None)],
            10,
            1,
            id="the size stays when the first holder drops the image",
        ),
        pytest.param([("n1", 10), ("n1", None), ("n2", 20)], 20, 1, id="until no node has it"),
        pytest.param([("n1", 10), ("n1", None)], 0, 0, id="no node has it"),
    ],
)
def test_size_and_holders(steps, size, holders):
    table = make_table([])
    for name, reported in steps:
        table.set_node(make_node(name) if reported is None else holding(name, reported))
    held, found, count = table.holding("app:1")
    assert (found, count, int(held.sum())) == (size, holders, holders)


def test_removing_a_node_removes_its_images():
    table = make_table([holding("n1", 10), holding("n2", 20)])
    table.remove_node("n1")
    held, size, count = table.holding("app:1")
    assert np.flatnonzero(held).tolist() == [table.row_of["n2"]]
    assert (size, count) == (10, 1)


def test_an_image_goes_by_all_its_names():
    image = ContainerImage(names=("app:1", "app@sha256:aa"), size_bytes=10)
    node = make_node("n1")
    status = NodeStatus(allocatable=node.status.allocatable, images=(image,))
    table = make_table([Node(metadata=node.metadata, status=status)])
    assert table.holding("app@sha256:aa")[1:] == (10, 1)


def test_what_one_node_says_about_an_image():
    table = make_table([holding("n1", 10), make_node("n2")])
    first, second = (table.info(table.row_of[name]) for name in ("n1", "n2"))
    assert first.image("app:1").size == 10
    assert second.image("app:1") is None
    assert first.image("unheard:1") is None
