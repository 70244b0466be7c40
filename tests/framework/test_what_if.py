"""Would the pod fit if others were there, or gone?"""

import pytest

from moorage.errors import PluginError, PluginFailure
from moorage.framework.state import StateKey
from moorage.framework.status import SKIP, SUCCESS, error, unschedulable
from moorage.framework.template import Templates
from moorage.framework.views.nominated import NominatedPods
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.what_if import WhatIf
from moorage.nodes.usage import Placed, Usage
from moorage.testing import make_node, make_pod, make_state

POD = make_pod("p")
CROWD = StateKey[list]("Crowd.names")
FULL = unschedulable("full")


class Crowd:
    """At most two pods on a node, counted in its own state."""

    name = "Crowd"

    def pre_filter(self, state, pod):
        state[CROWD] = []
        return SUCCESS

    def add_pod(self, state, pod, other, node):
        state[CROWD].append(other.pod.name)

    def remove_pod(self, state, pod, other, node):
        state[CROWD].remove(other.pod.name)

    def filter(self, state, pod, node):
        assert len(state[CROWD]) <= node.pod_count
        return FULL if node.pod_count > 1 else SUCCESS


def placed(name):
    pod = make_pod(name, node="n1")
    return Placed(pod, Usage.of(pod))


def question(workbench, skipped=()):
    state = make_state(POD, workbench.cluster)
    state[CROWD] = []
    pre = PreFiltered(skipped=set(skipped))
    nominated = NominatedPods(workbench.cluster, Templates())
    what_if = WhatIf(workbench.profile, state, POD, pre, None, nominated, None)
    return what_if.node(workbench.cluster.table.row_of["n1"]), state


def test_pods_come_and_go_and_nobody_notices(bench):
    workbench = bench([Crowd], nodes=[make_node("n1")], pods=[placed("there").pod])
    asked, state = question(workbench)
    assert asked.status() is SUCCESS
    asked.add(placed("more"))
    assert asked.status() == FULL.by("Crowd")
    asked.remove(placed("more"))
    assert asked.node.pod_count == 1
    assert state[CROWD] == []
    assert workbench.cluster.table.info(0).pod_count == 1


def test_who_skipped_is_not_asked(bench):
    asked, _ = question(bench([Crowd]), skipped=["Crowd"])
    for name in ("a", "b", "c"):
        asked.add(placed(name))
    assert asked.status() is SUCCESS


@pytest.mark.parametrize(
    ("method", "text"),
    [
        pytest.param("add", 'running AddPod on PreFilter plugin "Shaky": oh', id="added"),
        pytest.param("remove", 'running RemovePod on PreFilter plugin "Shaky": oh', id="removed"),
    ],
)
def test_trouble_while_pods_come_and_go(bench, method, text):
    class Shaky(Crowd):
        name = "Shaky"

        def add_pod(self, state, pod, other, node):
            raise PluginFailure("oh")

        remove_pod = add_pod

    workbench = bench([Shaky], pods=[placed("there").pod])
    asked, _ = question(workbench)
    with pytest.raises(PluginError, match=text):
        getattr(asked, method)(placed("there" if method == "remove" else "more"))


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        pytest.param(PluginFailure("oh"), 'running "Odd" filter plugin: oh', id="raises"),
        pytest.param(
            None,
            'running "Odd" filter plugin: filter returned None, which is not a Status',
            id="says nothing",
        ),
        pytest.param(SKIP, 'running "Odd" filter plugin: returned Skip', id="a code out of place"),
    ],
)
def test_trouble_in_a_filter(bench, answer, status):
    class Odd:
        name = "Odd"

        def filter(self, state, pod, node):
            if isinstance(answer, Exception):
                raise answer
            return answer

    asked, _ = question(bench([Odd]))
    assert asked.status() == error(status, "Odd")
