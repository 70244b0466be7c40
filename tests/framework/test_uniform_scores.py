"""A score that all rows share is a number in the totals, until one row differs."""

import numpy as np

from moorage.framework.points import Depends
from moorage.testing import make_node, make_pod

POD = make_pod("p")


class Rank:
    """The label of the node; 0 without one."""

    name = "Rank"
    depends = Depends.NODE

    def reads(self, pod):
        return None

    def score(self, state, pod, node):
        return int(node.labels.get("rank", "0"))

    def score_all(self, state, pod, table):
        found = [0 if node is None else int(node.labels.get("rank", "0")) for node in table.nodes]
        return np.array(found)


def test_one_row_differs_from_a_uniform_score(bench):
    workbench = bench([Rank])
    workbench.run(POD)
    assert workbench.run(POD).total("n2") == 0
    workbench.cluster.table.set_node(make_node("n2", labels={"rank": "7"}))
    result = workbench.run(POD)
    assert (result.total("n1"), result.total("n2")) == (0, 7)
    assert result.scores("n2") == {"Rank": 7}
