"""Which pool a node belongs to."""

import pytest

from moorage.errors import InputError
from moorage.planning.pools import Pools
from moorage.testing import make_node


@pytest.mark.parametrize(
    ("labels", "pool"),
    [
        pytest.param({"moorage.dev/pool": "p", "karpenter.sh/nodepool": "k"}, "p", id="ours"),
        pytest.param({"cloud.google.com/gke-nodepool": "g"}, "g", id="a platform's"),
        pytest.param({"node.kubernetes.io/instance-type": "m5"}, "m5", id="the instance type"),
        pytest.param({"x": "y"}, "4 cpu, 32Gi memory", id="the size"),
    ],
)
def test_by_the_first_label_that_tells(labels, pool):
    assert Pools([make_node("n", labels=labels)]).of("n") == pool


def test_nodes_without_the_label_are_together():
    nodes = [make_node("a", labels={"team": "x"}), make_node("b"), make_node("c")]
    assert Pools(nodes, "team").members() == {"x": ["a"], "(no pool)": ["b", "c"]}


def test_extended_resources_tell_sizes_apart():
    gpu = make_node("n", allocatable={"cpu": "4", "memory": "8Gi", "example.com/gpu": "2"})
    assert Pools([gpu]).of("n") == "4 cpu, 8Gi memory, 2 example.com/gpu"


def test_a_label_that_nobody_has():
    with pytest.raises(InputError, match='no node has the label "team"'):
        Pools([make_node("n")], "team")
