"""A cordoned node has the taint of the node controller."""

from moorage.api.node import Taint
from moorage.controllers.cordon import UNSCHEDULABLE, cordoned, uncordoned
from moorage.testing import make_node

GPU = Taint(key="gpu", effect="NoSchedule")


def test_cordon_and_uncordon():
    node = make_node("n", taints=(GPU,))
    once = cordoned(node)
    assert (once.spec.unschedulable, once.spec.taints) == (True, (GPU, UNSCHEDULABLE))
    assert cordoned(once) == once
    assert uncordoned(once) == node
