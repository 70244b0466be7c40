"""Preemption for a whole pod group: units of victims. Ids are specification rows."""

import pytest
from tests.group_builders import gang, group, node, pod, pods, settings

from moorage import Simulation
from moorage.api.pod import Pod
from moorage.core.journal import GroupDecided

CONFIG = settings(WorkloadAwarePreemption=True)
LOW, MID, HIGH = 0, 50, 100


def start(*objects, nodes=1, cpu=2):
    made = [node(f"n{i}", cpu) for i in range(nodes)]
    sim = Simulation([*made, *objects], config=CONFIG)
    sim.run()
    return sim


def on(name, at, group_name="", **spec):
    """A pod that runs on a node."""
    return pod(name, group_name, nodeName=f"n{at}", **spec)


def preemptor(count=1, priority=HIGH, cpu="1", **spec):
    """A gang whose pods have its priority."""
    spec = {"priority": priority, **spec}
    return [group("g", count, priority=priority), *pods("g", count, cpu=cpu, **spec)]


def left(sim):
    """The pods that still run, without those of the gang."""
    return sorted(
        each.name
        for each in sim.cluster.all(Pod)
        if each.node_name and not each.name.startswith("g-")
    )


def bound(sim):
    return sum(bool(each.node_name) for each in sim.cluster.all(Pod) if each.name.startswith("g-"))


def message(sim):
    [condition] = sim.read("PodGroup", "default", "g")["status"]["conditions"]
    return condition.get("message", "")


def budget(app):
    selector = {"matchLabels": {"app": app}}
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": app},
        "spec": {"selector": selector, "minAvailable": 1},
        "status": {"disruptionsAllowed": 0},
    }


def labelled(manifest, app):
    manifest["metadata"]["labels"] = {"app": app}
    return manifest


def test_row_36_a_lone_pod_goes_before_a_member_of_a_group():
    victims = group("v", None, priority=LOW), on("lone", 0), on("v-0", 0, "v")
    sim = start(*victims, *preemptor())
    assert (left(sim), bound(sim)) == (["v-0"], 1)


def test_row_37_the_pods_of_a_unit_go_together():
    unit = group("v", None, disruptionMode="PodGroup"), on("v-0", 0, "v"), on("v-1", 1, "v")
    sim = start(*unit, *preemptor(cpu="4"), nodes=2, cpu=4)
    assert (left(sim), bound(sim)) == ([], 1)


def test_row_38_a_lone_pod_goes_before_a_unit():
    unit = group("v", None, disruptionMode="PodGroup"), on("v-0", 1, "v", cpu=2)
    sim = start(*unit, on("lone", 0, cpu=2), *preemptor(cpu="2"), nodes=2)
    assert (left(sim), bound(sim)) == (["v-0"], 1)


def test_row_39_what_a_budget_protects_stays():
    unit = [
        group("v", None, disruptionMode="PodGroup"),
        labelled(on("v-0", 0, "v", cpu=2), "protected"),
    ]
    lone = on("lone", 1, cpu=2)
    sim = start(budget("protected"), *unit, lone, *preemptor(cpu="2"), nodes=2)
    assert (left(sim), bound(sim)) == (["v-0"], 1)


def test_row_40_a_budget_does_not_prevent_what_is_needed():
    sim = start(budget("p"), labelled(on("lone", 0, cpu=2), "p"), *preemptor(cpu="2"))
    assert (left(sim), bound(sim)) == ([], 1)


def test_row_41_a_member_that_never_preempts():
    sim = start(on("lone", 0, cpu=2), *preemptor(preemptionPolicy="Never"))
    assert (left(sim), bound(sim)) == (["lone"], 0)
    assert "not eligible due to preemptionPolicy=Never." in message(sim)


@pytest.mark.parametrize(
    ("of_group", "of_pods", "preempts", "remaining"),
    [
        pytest.param(MID, HIGH, HIGH, [], id="42: the priority of the group decides"),
        pytest.param(MID, LOW, MID, ["v-0"], id="43: it is not lower"),
    ],
)
def test_the_priority_of_a_unit(of_group, of_pods, preempts, remaining):
    unit = [
        group("v", None, disruptionMode="PodGroup", priority=of_group),
        on("v-0", 0, "v", cpu=2, priority=of_pods),
    ]
    sim = start(*unit, *preemptor(priority=preempts))
    assert left(sim) == remaining


def test_row_44_the_priority_of_the_preemptor_is_that_of_its_group():
    members = pods("g", 1, priority=HIGH)
    sim = start(on("lone", 0, cpu=2), group("g", 1, priority=LOW), *members)
    assert (left(sim), bound(sim)) == (["lone"], 0)


def test_row_45_there_is_no_pod_to_evict():
    sim = start(*preemptor(cpu="3"))
    assert "No preemption victims found for incoming preemptor" in message(sim)


def test_no_more_pods_are_evicted_than_needed():
    low = [on(f"low-{i}", i // 4) for i in range(16)]
    sim = start(*low, *preemptor(count=6), nodes=4, cpu=4)
    assert (len(left(sim)), bound(sim)) == (10, 6)


def test_pods_that_repel_the_group_from_another_node_are_evicted():
    """A low pod wants no pod of the gang in its zone, which has two nodes."""
    apart = {"labelSelector": {"matchLabels": {"app": "gang"}}, "topologyKey": "zone"}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    hostile = on("hostile", 0, affinity={"podAntiAffinity": required})
    members = [labelled(each, "gang") for each in pods("g", 3, priority=HIGH)]
    nodes = [node("n0", 4, zone="z"), node("n1", 4, zone="z")]
    objects = [*nodes, hostile, on("low", 1), group("g", 3, priority=HIGH), *members]
    sim = Simulation(objects, config=CONFIG)
    sim.run()
    assert (left(sim), bound(sim)) == (["low"], 3)


def test_no_pod_is_evicted_for_a_gang_that_does_not_fit():
    low = [on(f"low-{i}", i // 4) for i in range(8)]
    sim = start(*low, *preemptor(count=9), nodes=2, cpu=4)
    assert (len(left(sim)), bound(sim)) == (8, 0)


def test_victims_that_take_a_while_are_waited_for():
    low = [on(f"low-{i}", i // 4, terminationGracePeriodSeconds=30) for i in range(8)]
    sim = Simulation([node("n0"), node("n1"), *low, *preemptor(count=3)], config=CONFIG)
    sim.run(until=10.0)
    assert bound(sim) == 0
    sim.run(until=100.0)
    assert (len(left(sim)), bound(sim)) == (5, 3)
    results = {fact.result for fact in sim.journal if isinstance(fact, GroupDecided)}
    assert results == {"waiting_on_preemption", "scheduled"}


def test_a_group_without_a_way_out_keeps_no_nodes():
    """While its victims leave, a more important pod takes one of the nodes for good."""
    low = [on(f"low-{i}", i, cpu=2, terminationGracePeriodSeconds=30) for i in range(2)]
    made = [node(f"n{i}", 2) for i in range(2)]
    sim = Simulation([*made, *low, *preemptor(count=2, cpu="2")], config=CONFIG)
    sim.run(until=10.0)
    sim.create([on("high", 0, cpu=2, priority=1000)])
    sim.run(until=100.0)
    assert (left(sim), bound(sim)) == (["high"], 0)
    nominator = sim.scheduler.nominator
    assert not [each for each in sim.cluster.all(Pod) if nominator.node_of(each.uid)]
    sim.create([pod("small", cpu=2)])
    sim.run(until=200.0)
    assert left(sim) == ["high", "small"]


def test_a_group_with_a_constraint_does_not_preempt():
    constraint = {"schedulingConstraints": {"topology": [{"key": "kubernetes.io/hostname"}]}}
    gang = [group("g", 1, priority=HIGH, **constraint), *pods("g", 1, priority=HIGH)]
    sim = start(on("lone", 0, cpu=2), *gang)
    assert left(sim) == ["lone"]
    assert "not supported for pod groups with scheduling constraints" in message(sim)


def test_pods_without_a_group_preempt_as_always():
    sim = start(on("lone", 0, cpu=2), pod("g-alone", priority=HIGH))
    assert (left(sim), bound(sim)) == ([], 1)


def test_the_victims_know_for_whom():
    sim = Simulation(
        [node("n0"), on("lone", 0, cpu=4, terminationGracePeriodSeconds=30), *preemptor()],
        config=CONFIG,
    )
    sim.run(until=10.0)
    conditions = sim.read("Pod", "default", "lone")["status"]["conditions"]
    [target] = [each for each in conditions if each["type"] == "DisruptionTarget"]
    text = "default-scheduler: preempting to accommodate a higher priority podgroup"
    assert target["message"] == text
    uid = sim.read("PodGroup", "default", "g")["metadata"]["uid"]
    notes = [event.note for event in sim.events if event.reason == "Preempted"]
    assert notes == [f"Preempted by podgroup {uid} on node cluster"]


def test_gangs_that_fit_are_bound_as_without_the_gate():
    sim = start(*gang("g", 2))
    assert bound(sim) == 2
