"""Placements in which a group is counted to fit, although reserve or permit would reject it."""

import pytest
from tests.core.test_pod_group_cycle import gang, member
from tests.saying import make

from moorage.api.server_requests import BindPod
from moorage.framework.points import Depends
from moorage.framework.status import SUCCESS, unschedulable
from moorage.nodes.pod_groups import GroupPlacement
from moorage.plugins.node_resources_fit import NodeResourcesFit
from moorage.testing import make_node

GATES = {"GenericWorkload": True, "TopologyAwareWorkloadScheduling": True}
NAMES = ("n2", "n1")


def generate(cluster, group):
    return [GroupPlacement(name, cluster.table.named([name])) for name in NAMES]


def keep_out(state, pod, node):
    return unschedulable("no") if node == "n1" else SUCCESS


@pytest.mark.parametrize("point", ["reserve", "permit"])
@pytest.mark.parametrize("members", [1, 2])
def test_a_placement_that_is_rejected_later_is_not_taken(machine, point, members):
    chooses = make(
        "Test",
        placement_generate=generate,
        placement_score=lambda cluster, group, placement, pods: 100 * (placement.name == "n1"),
        **{point: keep_out},
    )
    chooses.depends = Depends.NODE
    nodes = [make_node(name, allocatable={"cpu": "3", "pods": 10}) for name in NAMES]
    run = machine(chooses, NodeResourcesFit, nodes=nodes, featureGates=GATES)
    run.add(gang(), *(member(f"p{i}", requests={"cpu": "1"}) for i in range(members)))
    bound = [each.node for each in run.schedule_one() if isinstance(each, BindPod)]
    assert bound == ["n2"] * members
