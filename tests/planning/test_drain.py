"""Drains made by hand, small enough to know what has to come out."""

import pytest
from tests.planning.conftest import budget, node, pod

from moorage.errors import InputError
from moorage.planning.drain import drain

WEB = {"app": "web"}
REPLICA_SET = "ReplicaSet/web"


def web(name, at="", cpu=1000, **spec):
    spec = spec | ({"nodeName": at} if at else {})
    return pod(name, cpu, labels=WEB, owner=REPLICA_SET, **spec)


def moves(got):
    return {move.pod.removeprefix("default/"): move.to or None for move in got.moves}


def names(stays):
    return [stay.pod.removeprefix("default/") for stay in stays]


def test_pods_move_to_where_there_is_room():
    objects = [node("a"), node("b", 1000), node("c", 1000), web("w0", "a"), web("w1", "a")]
    got = drain(objects, ["a"])
    assert sorted(moves(got).values()) == ["b", "c"]
    assert got.is_clean


def test_what_does_not_fit_elsewhere_stays_pending():
    got = drain([node("a"), node("b", 1000), web("w0", "a"), web("w1", "a")], ["a"])
    assert moves(got) == {"w0": "b", "w1": None}
    (left,) = got.pending
    assert "1 Insufficient cpu" in left.message
    assert "1 node(s) were unschedulable" in left.message
    assert not got.is_clean


@pytest.mark.parametrize(
    ("limits", "moved", "held_up"),
    [
        pytest.param({"minAvailable": 3}, [], ["w0", "w1"], id="none may be missing"),
        pytest.param({"maxUnavailable": 0}, [], ["w0", "w1"], id="none may be gone"),
        pytest.param({"minAvailable": "100%"}, [], ["w0", "w1"], id="all of them, in percent"),
        pytest.param({"maxUnavailable": 1}, ["w0", "w1"], [], id="one after the other"),
        pytest.param({"minAvailable": "34%"}, ["w0", "w1"], [], id="two of three, rounded up"),
        pytest.param({}, [], ["w0", "w1"], id="without a limit it allows nothing"),
    ],
)
def test_budgets(limits, moved, held_up):
    objects = [node("a"), node("b"), web("w0", "a"), web("w1", "a"), web("w2", "b")]
    got = drain([*objects, budget("pdb", WEB, **limits)], ["a"])
    assert [pod for pod, to in moves(got).items() if to == "b"] == moved
    assert names(got.blocked) == held_up
    assert {name for stay in got.blocked for name in stay.budgets} <= {"default/pdb"}


def test_a_budget_lets_the_next_go_when_the_first_is_back():
    objects = [node("a"), node("b"), *(web(f"w{i}", "a") for i in range(3))]
    got = drain([*objects, budget("pdb", WEB, maxUnavailable=1)], ["a"])
    assert (got.rounds, moves(got)) == (3, {"w0": "b", "w1": "b", "w2": "b"})


def test_a_budget_holds_the_rest_when_the_first_finds_no_node():
    objects = [node("a"), node("b", 1000), *(web(f"w{i}", "a") for i in range(3))]
    got = drain([*objects, budget("pdb", WEB, maxUnavailable=1)], ["a"])
    assert moves(got) == {"w0": "b", "w1": None}
    (held_up,) = got.blocked
    assert held_up.reason == ("budget default/pdb is spent: maxUnavailable 1, 2 of 3 pods healthy")


@pytest.mark.parametrize(
    ("status", "goes"),
    [
        pytest.param({"phase": "Running"}, False, id="runs: the budget holds it"),
        pytest.param({"phase": "Pending"}, True, id="has not begun yet: budgets are ignored"),
    ],
)
def test_a_pod_that_has_not_begun_may_go(status, goes):
    objects = [node("a"), node("b"), web("w0", "a") | {"status": status}]
    got = drain([*objects, budget("pdb", WEB, minAvailable=1)], ["a"])
    assert moves(got) == ({"w0": "b"} if goes else {})


def test_an_unready_pod_costs_a_budget_nothing():
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    objects = [node("a"), node("b"), web("w0", "a") | {"status": unready}, web("w1", "b")]
    got = drain([*objects, budget("pdb", WEB, minAvailable=1)], ["a"])
    assert moves(got) == {"w0": "b"}


@pytest.mark.parametrize(("policy", "goes"), [("AlwaysAllow", True), ("IfHealthyBudget", False)])
def test_an_unready_pod_of_a_budget_that_does_not_hold(policy, goes):
    unready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "False"}]}
    objects = [node("a"), node("b"), web("w0", "a") | {"status": unready}]
    limits = {"minAvailable": 1, "unhealthyPodEvictionPolicy": policy}
    got = drain([*objects, budget("pdb", WEB, **limits)], ["a"])
    assert moves(got) == ({"w0": "b"} if goes else {})


def test_two_budgets_for_one_pod_are_refused_by_the_eviction_api():
    objects = [node("a"), node("b"), web("w0", "a")]
    both = [budget("one", WEB, minAvailable=0), budget("two", WEB, minAvailable=0)]
    got = drain([*objects, *both], ["a"])
    assert names(got.blocked) == ["w0"]
    assert got.blocked[0].budgets == ("default/one", "default/two")


def test_pods_of_the_node_stay_and_pods_without_owner_are_lost():
    objects = [
        node("a"),
        node("b"),
        pod("daemon", owner="DaemonSet/d", nodeName="a"),
        pod("mirror", annotations={"kubernetes.io/config.mirror": "x"}, nodeName="a"),
        pod("alone", 100, nodeName="a"),
        web("w0", "a"),
    ]
    got = drain(objects, ["a"])
    assert names(got.stays) == ["daemon", "mirror"]
    assert names(got.lost) == ["alone"]
    assert "--force" in got.lost[0].reason
    assert moves(got) == {"w0": "b"}


@pytest.mark.parametrize("spare", [1000, 0], ids=["room elsewhere", "no room"])
def test_a_pending_pod_is_placed_elsewhere(spare):
    """It has no controller, but the input has it without a node, so it is not lost."""
    got = drain([node("a", 9000), node("b", spare), pod("bare", 1000)], ["a"])
    [move] = got.moves
    assert (move.pod, move.source, move.to) == ("default/bare", "a", "b" if spare else "")
    assert (got.lost, got.is_clean) == ((), bool(spare))


def test_preempted_pods_are_recreated():
    objects = [
        node("a"),
        node("b", 1000),
        web("high", "a", priority=100),
        pod("low", 1000, owner="ReplicaSet/batch", nodeName="b", priority=1),
    ]
    got = drain(objects, ["a"])
    assert moves(got) == {"high": "b"}
    assert [(each.pod, each.by) for each in got.evictions] == [("default/low", "default/high")]
    assert list(got.displaced) == ["default/low"]
    assert not got.is_clean


def test_all_nodes_are_cordoned_before_the_first_pod_goes():
    objects = [node("a", zone="z"), node("b", zone="z"), node("c"), web("w0", "a"), web("w1", "b")]
    got = drain(objects, selector="topology.kubernetes.io/zone=z")
    assert got.nodes == ("a", "b")
    assert moves(got) == {"w0": "c", "w1": "c"}


def test_workloads_without_nodes_are_placed_first():
    objects = [node("a"), node("b", unschedulable=True), web("w0")]
    assert drain(objects, ["a"]).pending[0].source == "a"


@pytest.mark.parametrize(
    ("chosen", "selector", "expected_error"),
    [
        pytest.param(["x"], "", 'no node "x" among the 1 given', id="unknown node"),
        pytest.param([], "disk=ssd", "matches none of 1 node", id="selector matches nothing"),
        pytest.param([], "disk==", "selector", id="no selector at all"),
        pytest.param([], "", "no node is named", id="nothing said"),
        pytest.param(["a"], "disk=ssd", "not both", id="both said"),
    ],
)
def test_bad_input_is_one_line(chosen, selector, expected_error):
    with pytest.raises(InputError, match=expected_error):
        drain([node("a")], chosen, selector)


def test_a_cordoned_node_has_the_taint_of_the_node_controller(make_node, make_pod):
    nodes = [make_node(f"n{i}") for i in range(3)]

    def moved(policy):
        spread = {
            "maxSkew": 1,
            "topologyKey": "kubernetes.io/hostname",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
            "nodeTaintsPolicy": policy,
        }
        pods = [
            make_pod(
                f"web-{i}",
                labels={"app": "web"},
                owner="ReplicaSet/web",
                nodeName=f"n{i}",
                topologySpreadConstraints=[spread],
            )
            for i in range(3)
        ]
        return [move.to != "" for move in drain([*nodes, *pods], ["n0"]).moves]

    assert moved("Ignore") == [False]
    assert moved("Honor") == [True]
