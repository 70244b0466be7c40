"""The same workload under two configurations whose difference is known beforehand."""

import pytest
from tests.planning.conftest import node, pod

from moorage.errors import InputError
from moorage.planning.compare import compare, with_plugin

HEADER = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
}
PACKED = HEADER | {
    "profiles": [
        {
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ],
            "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
        }
    ]
}
BOTH = {"spread": None, "packed": PACKED}


def test_packing_leaves_nodes_less_even():
    objects = [node("a"), node("b"), *(pod(f"p{i}", 1000) for i in range(4))]
    got = compare(objects, BOTH)
    spread, packed = got.outcomes
    assert sorted(spread.placements.values()) == ["a", "a", "b", "b"]
    assert len(set(packed.placements.values())) == 1
    # By hand: half of each node, against all of one and nothing of the other.
    assert spread.imbalance["cpu"] == 0.0
    assert packed.imbalance["cpu"] == 0.5
    assert spread.utilisation["cpu"] == packed.utilisation["cpu"] == 0.5
    assert len(got.moved(packed)) == 2
    assert got.moved(spread) == {}


def test_running_pods_move_only_with_repack():
    objects = [
        node("a"),
        node("b"),
        pod("p0", 1000, nodeName="a"),
        pod("p1", 1000, nodeName="b"),
        pod("daemon", 100, owner="DaemonSet/d", nodeName="a"),
    ]
    assert compare(objects, BOTH).moved(compare(objects, BOTH).outcomes[1]) == {}
    packed = compare(objects, BOTH, repack=True).outcomes[1]
    assert packed.placements["default/p0"] == packed.placements["default/p1"]
    assert packed.placements["default/daemon"] == "a"


def test_pending_evictions_and_broken_spreads_are_counted():
    constraint = {
        "maxSkew": 1,
        "topologyKey": "topology.kubernetes.io/zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    web = [
        pod(f"w{i}", labels={"app": "web"}, topologySpreadConstraints=[constraint], nodeName="a")
        for i in range(3)
    ]
    objects = [
        node("a", zone="x"),
        node("b", 500, zone="y"),
        *web,
        pod("low", 4000, nodeName="a", priority=0),
        pod("high", 4000, priority=10),
        pod("huge", 9000),
    ]
    for outcome in compare(objects, BOTH).outcomes:
        assert (len(outcome.pending), outcome.evictions, outcome.spread_violations) == (1, 1, 1)


def test_a_plugin_is_a_configuration_too():
    assert with_plugin("x:Y")["profiles"][0]["plugins"] == {
        "multiPoint": {"enabled": [{"name": "x:Y"}]}
    }


@pytest.mark.parametrize(
    ("objects", "configs", "message"),
    [
        pytest.param([node("a")], {"one": None}, "two configurations", id="only one"),
        pytest.param([], BOTH, "the cluster is empty", id="no nodes"),
        pytest.param([node("a")], BOTH | {"x": "/nowhere.yaml"}, "nowhere", id="no such file"),
    ],
)
def test_bad_input_is_one_line(objects, configs, message):
    with pytest.raises(InputError, match=message):
        compare(objects, configs)
