"""WhatIf: filter results with pods added to or removed from a node."""

import pytest

from moorage.errors import PluginError, PluginFailure
from moorage.framework import what_if as what_if_module
from moorage.framework.points import Depends
from moorage.framework.state import StateKey
from moorage.framework.status import SKIP, SUCCESS, error, unschedulable
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.what_if import KnownStatuses, WhatIf
from moorage.nodes.nominated import NominatedPods
from moorage.nodes.template import Templates
from moorage.nodes.usage import Placed, Usage
from moorage.testing import make_node, make_pod, make_state

POD = make_pod("p")
PODS = StateKey[list]("TwoPods.names")
FULL = unschedulable("full")


class TwoPods:
    """At most two pods on a node, counted in its own state."""

    name = "TwoPods"

    def pre_filter(self, state, pod):
        state[PODS] = []
        return SUCCESS

    def add_pod(self, state, pod, other, node):
        state[PODS].append(other.pod.name)

    def remove_pod(self, state, pod, other, node):
        state[PODS].remove(other.pod.name)

    def filter(self, state, pod, node):
        assert len(state[PODS]) <= node.pod_count
        return FULL if node.pod_count > 1 else SUCCESS


def placed(name):
    pod = make_pod(name, node="n1")
    return Placed(pod, Usage.of(pod))


def what_if_on_n1(workbench, skipped=()):
    state = make_state(POD, workbench.cluster)
    state[PODS] = []
    pre = PreFiltered(skipped=set(skipped))
    nominated = NominatedPods(
        workbench.cluster.table, workbench.cluster.nomination_changes, Templates()
    )
    question = WhatIf(workbench.profile, state, POD, pre, None, nominated, None)
    return question.node(workbench.cluster.table.row_of["n1"]), state


def test_added_and_removed_pods_do_not_change_the_table(bench):
    workbench = bench([TwoPods], nodes=[make_node("n1")], pods=[placed("there").pod])
    what_if, state = what_if_on_n1(workbench)
    assert what_if.status() is SUCCESS
    what_if.add(placed("more"))
    assert what_if.status() == FULL.by("TwoPods")
    what_if.remove(placed("more"))
    assert what_if.node.pod_count == 1
    assert state[PODS] == []
    assert workbench.cluster.table.info(0).pod_count == 1


def test_a_plugin_that_skipped_pre_filter_is_not_called(bench):
    what_if, _ = what_if_on_n1(bench([TwoPods]), skipped=["TwoPods"])
    for name in ("a", "b", "c"):
        what_if.add(placed(name))
    assert what_if.status() is SUCCESS


@pytest.mark.parametrize(
    ("method", "text"),
    [
        pytest.param("add", 'running AddPod on PreFilter plugin "Failing": oh', id="added"),
        pytest.param("remove", 'running RemovePod on PreFilter plugin "Failing": oh', id="removed"),
    ],
)
def test_an_error_in_add_pod_or_remove_pod_names_the_plugin(bench, method, text):
    class Failing(TwoPods):
        name = "Failing"

        def add_pod(self, state, pod, other, node):
            raise PluginFailure("oh")

        remove_pod = add_pod

    workbench = bench([Failing], pods=[placed("there").pod])
    what_if, _ = what_if_on_n1(workbench)
    with pytest.raises(PluginError, match=text):
        getattr(what_if, method)(placed("there" if method == "remove" else "more"))


@pytest.mark.parametrize(
    ("result", "status"),
    [
        pytest.param(PluginFailure("oh"), 'running "Odd" filter plugin: oh', id="raises"),
        pytest.param(
            None,
            'running "Odd" filter plugin: filter returned None, which is not a Status '
            "(test_what_if.py:118)",
            id="returns None",
        ),
        pytest.param(
            SKIP, 'running "Odd" filter plugin: returned Skip', id="a code that is not allowed here"
        ),
    ],
)
def test_an_error_in_a_filter_names_the_plugin(bench, result, status):
    class Odd:
        name = "Odd"

        def filter(self, state, pod, node):
            if isinstance(result, Exception):
                raise result
            return result

    what_if, _ = what_if_on_n1(bench([Odd]))
    assert what_if.status() == error(status, "Odd")


# Statuses that are known from equal rows


class CpuLimit:
    """At most two CPUs requested on a node."""

    name = "CpuLimit"
    depends = Depends.RESOURCES

    def __init__(self):
        self.asked = []

    def filter(self, state, pod, node):
        self.asked.append(node.name)
        return SUCCESS if node.requested("cpu") <= 2000 else FULL


def one_cpu(name, node=""):
    pod = make_pod(name, node=node, requests={"cpu": "1"})
    return pod, Usage.of(pod)


@pytest.fixture
def question(bench):
    """Ask about n1 and n2, which are equal, and n3, which has another pod."""
    others = [make_pod(f"p{i}", node=f"n{i}", requests={"cpu": f"{i // 3 + 1}"}) for i in (1, 2, 3)]
    workbench = bench([CpuLimit], pods=others)
    results = workbench.run(POD)
    [(_, method)] = results.profile.what_if_plan(results.pre.skipped).filters
    method.plugin.asked.clear()
    changes = workbench.cluster.nomination_changes
    nominated = NominatedPods(workbench.cluster.table, changes, Templates())
    asked = results.profile, results.state, POD, results.pre, results.filtered, nominated, None

    def ask(name):
        return WhatIf(*asked).node(workbench.cluster.table.row_of[name])

    return ask, method.plugin.asked


def test_a_filter_that_reads_resources_runs_once_for_equal_nodes(question):
    ask, asked = question
    usage = one_cpu("more")[1]
    for name in ("n1", "n2", "n3"):
        node = ask(name)
        for i in range(2):
            assert node.status() is SUCCESS or name == "n3"
            node.add(Placed(make_pod(f"more{i}"), usage))
        assert node.status() == FULL.by("CpuLimit")
        assert node.node.requested("cpu") == (4000 if name == "n3" else 3000)
    assert asked == ["n1"] * 3 + ["n3"] * 3


def test_a_pod_that_comes_and_goes_leaves_the_same_resources(question):
    ask, asked = question
    node = ask("n1")
    statuses = []
    for _ in range(3):
        pod, usage = one_cpu("more")
        statuses.append(node.status())
        node.add(Placed(pod, usage))
        node.remove(Placed(pod, usage))
    assert (statuses, asked) == ([SUCCESS] * 3, ["n1"])


def test_errors_are_not_kept():
    known = KnownStatuses()
    known.put(1, 0, error("oh", "P"))
    known.put(2, 0, FULL)
    assert (known.get(1, 0), known.get(2, 0)) == (None, FULL)


def test_known_statuses_are_bounded(monkeypatch):
    monkeypatch.setattr(what_if_module, "MOST_KNOWN", 10)
    known, numbers = KnownStatuses(), set()
    for number in range(50):
        numbers.add(known.shifted(number, [Placed(*one_cpu("p"))], 1))
        known.put(1, number, FULL)
    assert len(numbers) == 50  # No number stands for other resources later.
    assert len(known._numbers) <= 11
    assert len(known._statuses) <= 10
