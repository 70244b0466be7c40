"""Changes of a cluster small enough to know what has to come out."""

import pytest
from tests.planning.conftest import budget, node, pod

from moorage.errors import InputError
from moorage.planning.drain import drain
from moorage.planning.prices import PriceList
from moorage.planning.what_if import NO_CONTROLLER, what_if

WEB = {"app": "web"}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SSD = {"preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}}
BALANCE = ("weight", "NodeResourcesFit:100")
TAINT = {"key": "team", "value": "x", "effect": "NoSchedule"}


def web(name, at="", cpu=1000):
    spec = {"nodeName": at} if at else {}
    return pod(name, cpu, labels=WEB, owner="ReplicaSet/web", **spec)


def plain(got):
    """The differences, with bare names and without reasons."""
    return {
        "placed": {key.removeprefix("default/"): to for key, to in got.placed.items()},
        "moved": {key.removeprefix("default/"): to for key, (_, to) in got.moved.items()},
        "pending": [key.removeprefix("default/") for key in got.pending],
        "lost": {key.removeprefix("default/"): why for key, why in got.lost.items()},
    }


def expected(placed=(), moved=(), pending=(), lost=()):
    return {
        "placed": dict(placed),
        "moved": dict(moved),
        "pending": list(pending),
        "lost": dict(lost),
    }


# One CPU is free on b; `big` fits nowhere, `alone` has no controller.
CLUSTER = [
    node("a"),
    node("b", 2000),
    node("c", taints=[TAINT]),
    web("w0", "a"),
    web("w1", "a"),
    web("w2", "b"),
    pod("alone", 1000, nodeName="a"),
    pod("agent", 0, owner="DaemonSet/agent", nodeName="a"),
    pod("big", 3500),
]


@pytest.mark.parametrize(
    ("changes", "differences"),
    [
        pytest.param(
            [("remove", "a")],
            expected(moved={"w0": "b"}, pending=["w1"], lost={"alone": NO_CONTROLLER}),
            id="remove a node",
        ),
        pytest.param([("cordon", "a")], expected(), id="cordon a node that gets no pod"),
        pytest.param([("add", "a:1")], expected(placed={"big": "a-new-0"}), id="add a node"),
        pytest.param(
            [("add", "a:1"), ("cordon", "a"), ("remove", "b")],
            expected(moved={"w2": "a-new-0"}),
            id="several changes",
        ),
        pytest.param(
            [("tolerate", "default/big:team=x:NoSchedule")],
            expected(placed={"big": "c"}),
            id="a toleration",
        ),
        pytest.param([("tolerate", "default/big:other")], expected(), id="of another taint"),
        pytest.param(
            [("requests", "default/big:cpu=500m")],
            expected(placed={"big": "b"}),
            id="fewer requests",
        ),
        pytest.param(
            [("requests", "default/w2:cpu=3")],
            expected(pending=["w1", "w2"]),
            id="requests of all pods of a controller",
        ),
    ],
)
def test_differences(changes, differences):
    got = what_if(CLUSTER, changes)
    assert plain(got) == differences
    assert got.is_clean is not bool(differences["pending"] or differences["lost"])


def test_the_weight_of_a_plugin():
    objects = [
        node("full", labels={"disk": "ssd"}),
        node("empty"),
        pod("big", 3000, nodeName="full"),
        pod("new", 500, affinity={"nodeAffinity": {PREFERRED: [{"weight": 1, **SSD}]}}),
    ]
    for change, expected_node in ((("weight", "NodeAffinity:100"), "full"), (BALANCE, "empty")):
        got = what_if(objects, [change])
        assert got.packing.placed["default/new"] == expected_node
    with pytest.raises(InputError, match="no profile has a plugin of this name"):
        what_if(objects, [("weight", "Nothing:1")])


def test_more_pods():
    got = what_if(CLUSTER, [("pods", "default/w0:3")])
    assert sorted(got.placed.values()) == ["a", "b"]
    assert list(got.pending) == ["default/w0-copy-2"]


def test_nodes_of_a_pool():
    pool = {
        "apiVersion": "moorage.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "pool"},
        "spec": {"count": 1, "template": {"status": {"allocatable": {"cpu": "4", "pods": "9"}}}},
    }
    objects = [pool, *(pod(f"p{i}", 4000) for i in range(3))]
    got = what_if(objects, [("add", "pool:2")])
    assert len(got.placed) == 2
    assert (got.pending_before, got.pending_after) == (2, 0)


def test_a_drain_as_the_drain_command_answers_it():
    objects = [*CLUSTER, budget("pdb", WEB, maxUnavailable=0)]
    for given in (CLUSTER, objects):
        got, answer = what_if(given, [("drain", "a")]), drain(given, ["a"])
        assert {key: to for key, (_, to) in got.moved.items()} == {
            move.pod: move.to for move in answer.moves if move.to
        }
        assert list(got.pending) == [move.pod for move in answer.pending]
        assert list(got.blocked) == [each.pod for each in answer.blocked]
        assert list(got.lost) == [each.pod for each in answer.lost]


@pytest.mark.parametrize(
    ("kind", "text", "message"),
    [
        ("remove", "x", "there is no node 'x'"),
        ("pods", "default/x:1", "there is no pod 'default/x'"),
        ("add", "a", "must be NAME:COUNT"),
        ("add", "a:0", "with a count of 1 to 10000"),
        ("requests", "default/big:cpu=lots", "cpu=lots is not an amount"),
        ("requests", "default/big", "must be POD:RESOURCE=AMOUNT"),
        ("tolerate", "default/big", "must be POD:KEY"),
        ("sell", "a", "change 'sell': must be one of weight, queue, add"),
    ],
)
def test_bad_changes(kind, text, message):
    with pytest.raises(InputError, match=message):
        what_if(CLUSTER, [(kind, text)])
    with pytest.raises(InputError, match="no change is given"):
        what_if(CLUSTER, [])


@pytest.mark.parametrize(
    ("changes", "before", "after"),
    [
        pytest.param([("remove", "a")], 3, 1, id="a node less"),
        pytest.param([("remove", "a"), ("remove", "b")], 3, 0, id="no node with a price left"),
        pytest.param([("add", "b:2")], 3, 5, id="new nodes"),
    ],
)
def test_the_cost_per_hour(changes, before, after):
    cost = what_if(CLUSTER, changes, prices=PriceList.of({"a": 2, "b": 1})).cost
    assert (cost.before.per_hour, cost.after.per_hour) == (before, after)
    assert cost.difference == after - before
    assert "c" in cost.after.unpriced


def test_prices_of_no_node():
    with pytest.raises(InputError, match="no node has a price"):
        what_if(CLUSTER, [("remove", "a")], prices=PriceList.of({"x": 1}))


@pytest.mark.parametrize("kind", ["drain", "cordon", "remove"])
def test_a_pending_pod_without_a_controller_is_not_lost(kind):
    objects = [node("a", 4000), node("b", 3000), pod("bare", 1000, nodeSelector={"x": "y"})]
    for each in objects[:2]:
        each["metadata"]["labels"]["x"] = "y"
    start = drain(objects, ["a"])
    assert not start.lost
    before = next(iter(what_if(objects, [("cordon", "b")]).nodes_before.values()))
    got = what_if(objects, [(kind, before)])
    assert (got.lost, got.is_clean, list(got.moved)) == ({}, True, ["default/bare"])


def test_added_nodes_are_a_difference():
    daemon = {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "d", "namespace": "default"},
        "spec": {
            "selector": {"matchLabels": WEB},
            "template": {"metadata": {"labels": WEB}, "spec": pod("x", 100)["spec"]},
        },
    }
    got = what_if([node("a"), daemon], [("add", "a:2"), ("remove", "a")])
    plain = got.to_dict()
    assert len(plain["nodesAdded"]) == 2
    assert (plain["nodesRemoved"], plain["daemonsAdded"]) == (["a"], 2)
