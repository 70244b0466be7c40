"""Scenarios as they play: what was planned happens, at its time, the same for the same seed."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from moorage.api.devices import ResourceClaim
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup
from moorage.cluster.status_errors import TooManyRequestsError
from moorage.errors import InputError
from moorage.scenarios import reading
from moorage.scenarios.play import Play
from moorage.sim.run import Simulation

EXAMPLES = Path(__file__).parents[2] / "examples" / "scenarios"


def arrivals(name="a", cpu="1", pod=None, **more):
    spec = {
        "containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}]
    } | (pod or {})
    return {"name": name, "template": {"spec": spec}, **more}


def pool(count=4, cpu="4", name="n"):
    spec = {"count": count, "template": {"status": {"allocatable": {"cpu": cpu}}}}
    kind = {"apiVersion": "moorage.dev/v1", "kind": "NodePool"}
    return kind | {"metadata": {"name": name}, "spec": spec}


DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "replicas": 4,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [{"name": "c", "image": "c", "resources": {"requests": {"cpu": "1"}}}]
            },
        },
    },
}


def play(*objects, seed=None, duration="2h", config=None, **spec):
    document = {"apiVersion": "moorage.dev/v1", "kind": "Scenario", "metadata": {"name": "s"}}
    document["spec"] = {"duration": duration, **spec}
    plan = reading.plan(document, list(objects) or [pool()])
    return Play(plan, config=config, seed=seed).run()


@pytest.mark.parametrize(
    ("rate", "low", "high"),
    [
        pytest.param({"perHour": 60, "distribution": "constant"}, 120, 120, id="evenly"),
        pytest.param({"perHour": 60}, 80, 160, id="by chance"),
    ],
)
def test_arrivals_at_a_rate(rate, low, high):
    sim = play(arrivals=[arrivals(rate=rate, lifetime={"fixed": "1m"})])
    assert low <= sim.result.created <= high


def test_lifetimes_count_from_the_start_of_a_pod():
    sim = play(arrivals=[arrivals(at=["10m"], count=2, lifetime={"fixed": "30m"})])
    course = {each.at: each.running for each in sim.result.samples}
    assert course[600] == 2
    assert course[2400] == 2  # One second to start, then half an hour.
    assert course[2425] == 0
    assert sim.placements == {}


def test_what_is_not_given_a_lifetime_stays():
    assert len(play(arrivals=[arrivals(at=["10m"], count=3)]).placements) == 3


def test_scaling():
    events = [
        {"at": "30m", "scale": {"name": "web", "replicas": 9}},
        {"at": "1h", "scale": {"name": "web", "replicas": 2}},
    ]
    samples = play(pool(), DEPLOYMENT, events=events).result.samples
    running = {each.at: each.running for each in samples}
    assert (running[1500], running[2000], running[7200]) == (4, 9, 2)


def test_a_drained_node_is_empty_until_it_is_back():
    events = [{"at": "30m", "drain": {"nodes": ["n-0"], "for": "30m"}}]
    sim = play(pool(2), DEPLOYMENT, events=events)
    packing = {each.at: each.packing.tolist() for each in sim.result.samples}
    assert packing[1775][0] > 0
    assert packing[2000][0] == 0
    assert {each.cause for each in sim.result.disruptions} == {"drain"}
    assert len(sim.placements) == 4
    assert not any(node.spec.unschedulable for node in sim.cluster.all(Node))


def test_a_drain_minds_disruption_budgets():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": {"app": "web"}}},
    }
    events = [{"at": "10m", "drain": {"nodes": ["n-0"]}}]
    # The other node takes two more; then the replacements wait, and the rest may not leave.
    sim = play(pool(2, "4"), DEPLOYMENT, budget, events=events)
    times = [each.at for each in sim.result.disruptions]
    assert len(times) == len(set(times)) > 1, "one at a time"
    blocked = play(pool(1, "4"), DEPLOYMENT, budget, events=events)
    assert len(blocked.result.disruptions) == 1


def test_a_drain_waits_for_the_disruption_controller_and_marks_the_pods():
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"minAvailable": "50%", "selector": {"matchLabels": {"app": "web"}}},
    }
    sim = Simulation([pool(1), DEPLOYMENT, budget])
    sim.run(until=60)
    status = sim.read("PodDisruptionBudget", "default", "web")["status"]
    assert (status["disruptionsAllowed"], status["expectedPods"]) == (2, 4)
    first, second, third, _ = sim.placements
    sim.evict(*first.split("/"))
    sim.evict(*second.split("/"))
    (condition,) = (
        each
        for each in sim.read("Pod", *first.split("/"))["status"]["conditions"]
        if each["type"] == "DisruptionTarget"
    )
    assert condition["reason"] == "EvictionByEvictionAPI"
    with pytest.raises(TooManyRequestsError, match="disruption budget"):
        sim.evict(*third.split("/"))


def test_a_node_that_fails_takes_its_pods_along_and_comes_back():
    events = [{"at": "30m", "fail": {"nodes": ["n-0"], "for": "20m"}}]
    sim = play(pool(2), DEPLOYMENT, events=events)
    nodes = {each.at: each.nodes for each in sim.result.samples}
    assert (nodes[1775], nodes[2000], nodes[7200]) == (2, 1, 2)
    assert {(each.cause, each.by) for each in sim.result.disruptions} == {("node failure", "n-0")}
    assert len(sim.placements) == 4
    assert None not in sim.placements.values()


def test_lost_pods_of_a_stream_come_again():
    events = [{"at": "30m", "fail": {"nodes": ["n-0"]}}]
    stream = [arrivals(at=["1m"], count=3, lifetime={"fixed": "1h"})]
    sim = play(pool(1), arrivals=stream, events=events)
    assert len(sim.pending) == 3
    gone = play(pool(1), arrivals=[stream[0] | {"replace": False}], events=events)
    assert gone.placements == {}


def test_nodes_are_added_to_a_pool():
    events = [{"at": "30m", "addNodes": {"pool": "n", "count": 2}}]
    sim = play(pool(1, "1"), arrivals=[arrivals(at=["1m"], count=3)], events=events)
    assert sorted(sim.placements.values()) == ["n-0", "n-1", "n-2"]


def test_a_burst_of_priority_evicts():
    low = arrivals("low", at=["1m"], count=4)
    high = arrivals("high", at=["1h"], count=2, pod={"priority": 10})
    result = play(pool(1), arrivals=[low, high]).result
    assert [each.cause for each in result.disruptions] == ["preemption"] * 2
    assert result.pending_count == 2


def test_objects_are_created_and_deleted():
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x", "namespace": "default"}}
    events = [
        {"at": "1m", "create": [pod | {"spec": {"containers": [{"name": "c"}]}}]},
        {"at": "1h", "delete": {"kind": "Pod", "name": "x"}},
    ]
    sim = play(events=events)
    assert sim.result.created == 1
    assert sim.placements == {}


@pytest.mark.parametrize(
    ("objects", "spec", "message"),
    [
        pytest.param(
            [DEPLOYMENT], {}, "s: the cluster has no nodes; add Node or NodePool", id="no nodes"
        ),
        pytest.param(
            [pool()],
            {"events": [{"at": "1h", "drain": {"nodes": ["n-0", "n-77"]}}]},
            'spec.events[0].drain.nodes[1]: there is no node "n-77"',
            id="an unknown node",
        ),
        pytest.param(
            [pool()],
            {"events": [{"at": "1h", "fail": {"selector": "zone=x"}}]},
            "spec.events[0].fail: no node matches after 3600 s",
            id="a selector that matches none",
        ),
        pytest.param(
            [pool()],
            {"events": [{"at": "1h", "scale": {"name": "api", "replicas": 2}}]},
            "spec.events[0].scale: no Deployment default/api to scale; there is no workload",
            id="an unknown workload",
        ),
        pytest.param(
            [pool()],
            {"arrivals": [arrivals(at=[0], pod={"priorityClassName": "gold"})]},
            "no PriorityClass with name gold",
            id="an unknown priority class",
        ),
    ],
)
def test_errors_of_a_plan_are_one_line(objects, spec, message):
    with pytest.raises(InputError) as raised:
        play(*objects, **spec)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_pod_that_never_fits_waits_with_its_reason():
    sim = play(arrivals=[arrivals(cpu="64", at=["1m"])])
    [group] = sim.result.pending
    assert group.reason.startswith("0/4 nodes are available: 4 Insufficient cpu.")


def test_pods_beyond_a_quota_are_created_when_others_end():
    kind = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    quota = kind | {"spec": {"hard": {"pods": "2"}}}
    stream = arrivals(at=["0m"], count=5, lifetime={"fixed": "30m"})
    sim = play(pool(), quota, duration="50m", arrivals=[stream])
    assert (sim.result.created, sim.result.running) == (4, 2)
    [refusal] = sim.refusals
    assert refusal[:4] == ("stream", "default", "a", 1)
    assert "exceeded quota: q" in refusal.reason
    sim = play(pool(), quota, duration="100m", arrivals=[stream])
    assert (sim.result.created, sim.refusals) == (5, [])


def test_one_seed_one_result_under_any_hash_seed():
    file = EXAMPLES / "hour.yaml"
    main = "from moorage.cli.main import main; main()"
    command = [sys.executable, "-c", main, "simulate", "scenario", file, "-o", "json"]

    def told(hash_seed, *more):
        with_seed = os.environ | {"PYTHONHASHSEED": hash_seed}
        got = subprocess.run([*command, *more], env=with_seed, capture_output=True, check=True)
        return got.stdout

    first = told("1")
    assert json.loads(first)["summary"]["disrupted"]
    assert first == told("2")
    assert first != told("1", "--seed", "8")


def test_the_day_of_the_docs():
    result = Play(reading.load(EXAMPLES / "day.yaml")).run().result
    assert {each.cause for each in result.disruptions} == {"preemption", "drain", "node failure"}
    assert result.pending_count == 0


def test_streams_do_not_disturb_each_other():
    one = arrivals("one", rate={"perHour": 30})
    alone, beside = play(arrivals=[one]), play(arrivals=[arrivals("two", rate={"perHour": 9}), one])

    def times(sim):
        return [p.metadata.creation_timestamp for p in sim.cluster.all(Pod) if "one" in p.name]

    assert times(alone) == times(beside)


# Devices

GPUS = "devices/gpu.example.com"
ONE_GPU = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaimTemplate",
    "metadata": {"name": "one-gpu", "namespace": "default"},
    "spec": {
        "spec": {
            "devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]},
        }
    },
}
CLAIMS = {"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "one-gpu"}]}


def gpu_pool(count=2, gpus=2):
    made = pool(count, "64")
    devices = [{"driver": "gpu.example.com", "class": "gpu", "count": gpus}]
    return made | {"spec": made["spec"] | {"devices": devices}}


def test_devices_are_used_and_given_back():
    jobs = arrivals(pod=CLAIMS, at=["10m"], count=6, lifetime={"fixed": "30m"})
    sim = play(gpu_pool(), ONE_GPU, arrivals=[jobs])
    used = {each.at: each.requested[GPUS] for each in sim.result.samples}
    assert used[1200] == 4  # Two jobs wait for a device,
    assert used[3000] == 2  # get one after half an hour,
    assert used[7200] == 0  # and give it back.
    assert sim.result.utilisation()[GPUS].peak == 1.0
    assert list(sim.cluster.all(ResourceClaim)) == []


def test_devices_of_a_node_that_fails_come_back_with_it():
    events = [{"at": "10m", "fail": {"nodes": ["n-0"], "for": "20m"}}]
    sim = play(gpu_pool(), ONE_GPU, events=events)
    offered = {each.at: each.offered[GPUS] for each in sim.result.samples}
    assert (offered[500], offered[1200], offered[7200]) == (4, 2, 4)


def test_devices_of_added_nodes():
    new = {"pool": "late", "count": 1, "template": pool()["spec"]["template"]}
    new["devices"] = gpu_pool()["spec"]["devices"]
    jobs = arrivals(pod=CLAIMS, at=["10m"], count=2)
    sim = play(pool(), ONE_GPU, arrivals=[jobs], events=[{"at": "1h", "addNodes": new}])
    assert set(sim.placements.values()) == {"late-0"}


def running(simulation):
    return sorted(pod.name for pod in simulation.cluster.all(Pod) if pod.node_name)


def test_gangs_arrive_and_end_together():
    """Each takes ten of sixteen CPUs, and runs for 40 minutes: one waits for the other."""
    stream = arrivals(at=["10m", "20m"], count=10, gang=True, lifetime={"fixed": "40m"})
    gates = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    gates["featureGates"] = {"GenericWorkload": True, "GangScheduling": True}
    early = play(arrivals=[stream], duration="30m", config=gates)
    assert len(running(early)) == 10
    assert {group.name for group in early.cluster.all(PodGroup)} == {"a-0", "a-1"}
    later = play(arrivals=[stream], duration="55m", config=gates)
    assert len(running(later)) == 10, "the second follows the first"
    assert [group.name for group in later.cluster.all(PodGroup)] == ["a-1"]
    without = play(arrivals=[stream], duration="30m")
    assert len(running(without)) == 16


def test_a_job_that_is_not_complete_holds_its_nodes():
    """Without gangs, six of ten pods start and wait for the others for ever."""
    stream = arrivals(at=["10m", "20m"], count=10, gang=True, lifetime={"fixed": "40m"})
    blocker = arrivals(name="b", at=["0m"], count=10)
    later = play(arrivals=[stream, blocker], duration="3h")
    assert len(running(later)) == 16
    assert later.result.ended == 0
