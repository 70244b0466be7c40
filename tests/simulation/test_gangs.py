"""Gangs in a simulated cluster: together or not at all, and what happens when things change."""

import pickle

import pytest
from tests.group_builders import gang, group, node, pod, pods, settings

from moorage import Simulation
from moorage.api.pod import Pod
from moorage.core.journal import GroupDecided, Popped
from moorage.core.scheduler import Scheduler


def start(*objects, nodes=2, config=None, **options):
    made = [node(f"node-{i}") for i in range(nodes)]
    return Simulation([*made, *objects], config=config or settings(), **options)


def placed(sim, prefix=""):
    return {
        each.name: each.node_name
        for each in sim.cluster.all(Pod)
        if each.node_name and each.name.startswith(prefix)
    }


def attempts(sim):
    return [fact for fact in sim.journal if isinstance(fact, GroupDecided)]


def scheduled(sim, name):
    conditions = sim.read("PodGroup", "default", name).get("status", {}).get("conditions", [])
    return [each["status"] for each in conditions]


def test_a_gang_that_fits_is_bound():
    sim = start(*gang("g", 8))
    sim.run()
    assert len(placed(sim)) == 8
    assert scheduled(sim, "g") == ["True"]


def test_a_gang_that_does_not_fit_is_not_bound_at_all():
    sim = start(*gang("g", 9))
    sim.run()
    assert placed(sim) == {}
    assert scheduled(sim, "g") == ["False"]
    assert not sim.evictions


def test_row_46_members_above_the_quorum_follow_when_there_is_room():
    sim = start(*gang("g", 9, min_count=8))
    sim.run()
    assert len(placed(sim)) == 8
    sim.create([node("late")])
    sim.run()
    assert len(placed(sim)) == 9


def test_row_47_of_two_gangs_one_wins_and_the_other_follows():
    sim = start(*gang("a", 6), *gang("b", 6))
    sim.run()
    assert sorted(len(placed(sim, name)) for name in "ab") == [0, 6]
    loser = "b" if placed(sim, "a") else "a"
    for name in placed(sim):
        sim.delete("Pod", "default", name)
    sim.run()
    assert len(placed(sim, loser)) == 6


def test_pods_wait_for_their_group_and_for_the_quorum():
    sim = start(*pods("g", 3))
    sim.run()
    assert placed(sim) == {}
    sim.create([group("g", 4)])
    sim.run()
    assert placed(sim) == {}
    assert attempts(sim) == []
    sim.create([pod("g-3", "g")])
    sim.run()
    assert len(placed(sim)) == 4


def test_a_basic_group_has_no_quorum():
    sim = start(group("g"), *pods("g", 9))
    sim.run()
    assert len(placed(sim)) == 8


def test_a_member_that_is_scheduling_gated_counts_for_the_quorum_but_is_not_tried():
    gated = pod("g-2", "g", schedulingGates=[{"name": "later"}])
    sim = start(group("g", 2), *pods("g", 1), gated)
    sim.run()
    assert placed(sim) == {}
    late = sim.read("Pod", "default", "g-2")
    del late["spec"]["schedulingGates"]
    sim.update(late)
    sim.run()
    assert len(placed(sim)) == 2


def test_a_member_that_is_deleted_while_the_gang_waits():
    sim = start(*gang("g", 9))
    sim.run()
    sim.delete("Pod", "default", "g-8")
    sim.create([node("late")])
    sim.run()
    assert placed(sim) == {}, "eight of nine"
    sim.create([pod("g-9", "g")])
    sim.run()
    assert len(placed(sim)) == 9


def test_without_the_gates_members_are_plain_pods():
    sim = start(*gang("g", 9), config={**settings(), "featureGates": {}})
    sim.run()
    assert len(placed(sim)) == 8
    assert scheduled(sim, "g") == []


def test_a_gang_that_does_not_fit_is_tried_once_until_something_changes():
    sim = start(*gang("g", 9))
    sim.run(until=250.0)
    assert len(attempts(sim)) == 1
    assert len([fact for fact in sim.journal if isinstance(fact, Popped)]) == 9
    sim.create([node("small", cpu="100m")])  # It helps no member.
    sim.run(until=260.0)
    assert len(attempts(sim)) == 1


def test_a_gang_torn_by_a_crash_is_completed():
    """Some members are bound, then the scheduler starts again: those count."""
    torn = [each["spec"].update(nodeName="node-0") or each for each in pods("g", 2)]
    rest = [pod(f"g-{i}", "g") for i in range(2, 8)]
    sim = start(group("g", 8), *torn, *rest)
    sim.run()
    assert len(placed(sim)) == 8


def test_a_torn_gang_comes_before_all_others():
    """There is room for six pods; the other gang is first in the queue."""
    torn = [pod(f"g-{i}", "g", nodeName=f"node-{i}") for i in range(2)]
    rest = [pod(f"g-{i}", "g") for i in range(2, 8)]
    sim = start(*gang("other", 6), group("g", 8), *torn, *rest)
    sim.run()
    assert (len(placed(sim, "g")), placed(sim, "other")) == (8, {})


# Torn gangs that do not fit


def job(name, count, **meta):
    """A gang of a Job, which creates evicted pods again."""
    template = {"spec": pod("", name)["spec"] | {"restartPolicy": "Never"}}
    spec = {"parallelism": count, "completions": count, "template": template}
    made = {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": spec}
    gang = group(name, count)
    return [{**gang, "metadata": {**gang["metadata"], **meta}}, made]


def torn_pair(**meta):
    """Two gangs of six hold half of the eight CPUs each, as two schedulers would leave them."""
    half = [pod(f"{name}-{i}", name, nodeName=f"node-{i % 2}") for name in "ab" for i in range(4)]
    rest = [pod(f"{name}-{i}", name) for name in "ab" for i in range(4, 6)]
    groups = [group(name, 6) for name in "ab"]
    for each in groups:
        each["metadata"].update(meta)
    return [*groups, *half, *rest]


def test_a_torn_gang_that_does_not_fit_is_released_after_five_minutes():
    there = [pod(f"there-{i}", nodeName="node-1", priority=9) for i in range(4)]
    torn = [pod(f"g-{i}", "g", nodeName="node-0") for i in range(3)]
    rest = [pod(f"g-{i}", "g") for i in range(3, 6)]
    sim = start(group("g", 6), *there, *torn, *rest)
    sim.run(until=299.0)
    assert len(placed(sim, "g")) == 3
    sim.run(until=310.0)
    assert placed(sim, "g") == {}
    assert [each.by for each in sim.evictions] == ["default/g"] * 3
    events = [each.note for each in sim.events if each.reason == "GangReleased"]
    assert events == ["Released by its gang default/g, which cannot be completed"] * 3


def test_of_two_torn_gangs_one_is_released_and_the_other_completed():
    sim = start(*torn_pair())
    sim.run()
    assert sorted(len(placed(sim, name)) for name in "ab") == [0, 6]
    assert len(sim.evictions) == 4


@pytest.mark.parametrize(
    ("text", "until", "released"),
    [
        pytest.param("20", 30.0, True, id="sooner"),
        pytest.param("0", 4000.0, False, id="never"),
        pytest.param("soon", 310.0, True, id="not a number: the default"),
    ],
)
def test_the_time_until_a_torn_gang_is_released(text, until, released):
    sim = start(*torn_pair(annotations={"moorage.dev/release-after-seconds": text}))
    sim.run(until=until)
    assert bool(sim.evictions) == released


def test_a_gang_is_not_released_without_the_gate():
    config = settings(GangScheduling=False)
    sim = start(*torn_pair(), config=config)
    sim.run(until=1000.0)
    assert not sim.evictions


def test_members_above_the_quorum_that_do_not_fit_release_nothing():
    sim = start(*gang("g", 9, min_count=8))
    sim.run(until=1000.0)
    assert len(placed(sim)) == 8


def test_a_gang_whose_rack_lost_a_node_moves_to_another_rack():
    made = job("g", 6)
    made[0]["spec"] |= ONE_RACK
    blocker = [pod(f"b-{i}", nodeName=f"r2-{i}", cpu="3") for i in range(2)]
    sim = in_one_rack(*made, *blocker, nodes=racks(r1=2, r2=2))
    sim.run(until=10.0)
    assert in_racks(sim) == {"r1"}
    sim.delete("Node", "", "r1-0")
    for name, at in placed(sim, "g").items():
        if at == "r1-0":  # The garbage collector of pods deletes them.
            sim.delete("Pod", "default", name)
    for each in blocker:
        sim.delete("Pod", "default", each["metadata"]["name"])
    sim.run(until=200.0)
    assert in_racks(sim) == {"r1"}, "the others are there"
    sim.run(until=400.0)
    assert (len(placed(sim, "g")), in_racks(sim)) == (6, {"r2"})


@pytest.mark.parametrize("priority", [None, 100])
def test_pods_are_evicted_only_if_the_gang_fits_then(priority):
    """Of 8 CPUs, 6 are taken by pods of priority 0, 2 by pods that cannot be evicted."""
    low = [pod(f"low-{i}", nodeName=f"node-{i % 2}") for i in range(6)]
    high = [pod(f"high-{i}", priority=1000, nodeName=f"node-{i}") for i in range(2)]
    count = 7 if priority is None else 6
    sim = start(*low, *high, *gang("g", count, priority=100))
    sim.run()
    if count == 7:
        assert (placed(sim, "g"), len(placed(sim, "low"))) == ({}, 6)
    else:
        assert (len(placed(sim, "g")), len(placed(sim, "low"))) == (6, 0)


def test_a_preempting_gang_waits_for_its_victims_and_is_bound_together():
    low = [pod(f"low-{i}", nodeName=f"node-{i % 2}") for i in range(6)]
    for each in low:
        each["spec"]["terminationGracePeriodSeconds"] = 30
    sim = start(*low, *gang("g", 5, priority=100))
    sim.run(until=10.0)
    assert placed(sim, "g") == {}
    sim.run(until=60.0)
    assert len(placed(sim, "g")) == 5
    assert len(placed(sim, "low")) == 3, "no more are evicted than needed"


def test_the_scheduler_pickles_with_groups():
    sim = start(*gang("g", 9))
    sim.run()
    assert isinstance(pickle.loads(pickle.dumps(sim.scheduler)), Scheduler)


# Topology

RACK = "example.com/rack"
ONE_RACK = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
TOPOLOGY = settings(TopologyAwareWorkloadScheduling=True)


def racks(**counts):
    """Nodes of 4 CPUs in racks."""
    return [node(f"{name}-{i}", **{RACK: name}) for name, n in counts.items() for i in range(n)]


def in_racks(sim, prefix="g"):
    return {at.partition("-")[0] for at in placed(sim, prefix).values()}


def in_one_rack(*objects, nodes):
    return Simulation([*nodes, *objects], config=TOPOLOGY)


def test_all_members_are_in_one_rack():
    sim = in_one_rack(group("g", 6, **ONE_RACK), *pods("g", 6), nodes=racks(r1=2, r2=1, r3=1))
    sim.run()
    assert (len(placed(sim)), in_racks(sim)) == (6, {"r1"})


def test_no_rack_is_large_enough_until_a_node_is_added():
    sim = in_one_rack(group("g", 6, **ONE_RACK), *pods("g", 6), nodes=racks(r1=1, r2=1))
    sim.run()
    assert placed(sim) == {}
    [condition] = sim.read("PodGroup", "default", "g")["status"]["conditions"]
    status = "first placement status: pod group is unschedulable"
    assert condition["message"] == f"0/2 placements are available, {status}", "32"
    sim.create(racks(r2=2)[1:])
    sim.run()
    assert (len(placed(sim)), in_racks(sim)) == (6, {"r2"})


def test_no_node_has_the_label():
    sim = in_one_rack(group("g", 2, **ONE_RACK), *pods("g", 2), nodes=[node("n0")])
    sim.run()
    [condition] = sim.read("PodGroup", "default", "g")["status"]["conditions"]
    assert condition["message"] == "no feasible placements found"
    sim.create(racks(r1=1))
    sim.run()
    assert in_racks(sim) == {"r1"}


def test_a_member_that_comes_later_joins_the_others():
    sim = in_one_rack(group("g", 2, **ONE_RACK), *pods("g", 2), nodes=racks(r1=1, r2=1, r3=1))
    sim.run()
    [rack] = in_racks(sim)
    sim.create([pod("g-7", "g"), pod("g-8", "g"), pod("g-9", "g")])
    sim.run()
    assert len(placed(sim)) == 4, "the rack has room for four"
    assert in_racks(sim) == {rack}


def test_the_fuller_rack_is_preferred():
    """Both take all members; the one with less room left wins."""
    there = pod("there", nodeName="r2-0", cpu=2)
    sim = in_one_rack(group("g", 2, **ONE_RACK), *pods("g", 2), there, nodes=racks(r1=1, r2=1))
    sim.run()
    assert in_racks(sim) == {"r2"}


def test_the_rack_that_takes_more_members_is_preferred():
    sim = in_one_rack(group("g", 2, **ONE_RACK), *pods("g", 8), nodes=racks(r1=1, r2=2))
    sim.run()
    assert (len(placed(sim)), in_racks(sim)) == (8, {"r2"})


def test_a_constrained_group_does_not_preempt():
    low = [pod(f"low-{i}", nodeName="r1-0") for i in range(4)]
    gang = [group("g", 2, **ONE_RACK), *pods("g", 2, priority=100)]
    sim = in_one_rack(*low, *gang, nodes=racks(r1=1))
    sim.run()
    assert (placed(sim, "g"), len(placed(sim, "low"))) == ({}, 4)
    [condition] = sim.read("Pod", "default", "g-1")["status"]["conditions"]
    limit = "preemption: not eligible due to placement-based pod group scheduling limitation"
    assert limit in condition["message"]


def test_without_a_constraint_the_gate_changes_nothing_but_the_message():
    sim = in_one_rack(*gang("g", 9), nodes=racks(r1=1, r2=1))
    sim.run()
    [condition] = sim.read("PodGroup", "default", "g")["status"]["conditions"]
    assert condition["message"].startswith("0/1 placements are available")
    sim.create(racks(r3=1))
    sim.run()
    assert len(placed(sim)) == 9
