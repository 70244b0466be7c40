"""The two forms of a plugin agree: for every row, for the whole table and for slices of it.

`PLUGINS` is the list to add to: an instance of every plugin that has `filter_all` or `score_all`,
and one more for every argument that changes how it answers.
"""

import pytest
from hypothesis import assume, given
from msgspec.structs import replace

from moorage import plugin as mp
from moorage.api.meta import LabelSelectorRequirement, NodeSelector, NodeSelectorTerm
from moorage.api.pod import PreferredSchedulingTerm
from moorage.plugins.image_locality import ImageLocality
from moorage.plugins.node_affinity import NodeAffinity
from moorage.plugins.node_declared_features import NodeDeclaredFeatures
from moorage.plugins.node_name import NodeName
from moorage.plugins.node_ports import NodePorts
from moorage.plugins.node_unschedulable import NodeUnschedulable
from moorage.plugins.taint_toleration import TaintToleration
from moorage.testing import check_twins, strategies

ZONE_A = NodeSelectorTerm(
    match_expressions=(LabelSelectorRequirement(key="zone", operator="In", values=("a",)),)
)
ADDED = mp.NodeAffinity(
    required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=(ZONE_A,)),
    preferred_during_scheduling_ignored_during_execution=(
        PreferredSchedulingTerm(weight=7, preference=ZONE_A),
    ),
)

PLUGINS = [
    pytest.param(ImageLocality(), id="ImageLocality"),
    pytest.param(NodeAffinity(), id="NodeAffinity"),
    pytest.param(NodeAffinity(added_affinity=ADDED), id="NodeAffinity with terms of its own"),
    pytest.param(NodeDeclaredFeatures(), id="NodeDeclaredFeatures"),
    pytest.param(NodeName(), id="NodeName"),
    pytest.param(NodePorts(), id="NodePorts"),
    pytest.param(NodeUnschedulable(), id="NodeUnschedulable"),
    pytest.param(TaintToleration(), id="TaintToleration"),
]


@pytest.mark.parametrize("plugin", PLUGINS)
@given(pod=strategies.pods(), table=strategies.tables())
def test_twins_agree(plugin, pod, table):
    check_twins(plugin, pod, table)


@pytest.mark.parametrize("plugin", PLUGINS)
@given(pod=strategies.pods(valid=False), table=strategies.tables())
def test_twins_agree_on_pods_that_an_api_server_refuses(plugin, pod, table):
    try:
        check_twins(plugin, pod, table)
    except ValueError:
        # A plugin may give such a pod up before it looks at any node; there are no twins then.
        assert pod.spec.affinity is not None


@pytest.mark.parametrize("plugin", PLUGINS)
@given(pod=strategies.pods(), table=strategies.tables(), node=strategies.nodes())
def test_twins_agree_after_a_node_has_changed(plugin, pod, table, node):
    assume(table.node_count)
    check_twins(plugin, pod, table)  # builds the columns that the change has to reach
    name = next(name for name in table.row_of if table.node(name) is not None)
    table.set_node(replace(node, metadata=replace(node.metadata, name=name)))
    check_twins(plugin, pod, table)
