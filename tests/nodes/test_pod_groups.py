"""Which members of a group have a node, and which groups have both kinds of members."""

import pytest

from moorage.api.pod import PodSchedulingGroup
from moorage.nodes.pod_groups import PodGroupMembers
from moorage.testing import make_pod

GROUP = PodSchedulingGroup(pod_group_name="gang")
A, B = (make_pod(name, uid=name, scheduling_group=GROUP) for name in "ab")


@pytest.mark.parametrize(
    ("happen", "divided"),
    [
        pytest.param([], False, id="none has a node"),
        pytest.param([("place", A)], True, id="one of two has a node"),
        pytest.param([("place", A), ("place", B)], False, id="both have a node"),
        pytest.param([("place", A), ("release", A)], False, id="none after all"),
        pytest.param([("place", A), ("remove", B)], False, id="the other one is gone"),
    ],
)
def test_divided_groups(happen, divided):
    members = PodGroupMembers()
    members.add(A)
    members.add(B)
    for verb, pod in happen:
        getattr(members, verb)(pod)
    assert list(members.divided) == (["default/gang"] if divided else [])
