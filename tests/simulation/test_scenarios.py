"""Scenarios of a cluster in virtual time."""

import pickle

import pytest

from moorage.api.meta import ObjectMeta
from moorage.api.policy import PriorityClass
from moorage.cluster.status_errors import AlreadyExistsError, NotFoundError
from moorage.core.journal import Decided, Expired, Forgotten
from moorage.errors import ConfigError, InputError
from moorage.sim.faults import Faults
from moorage.sim.run import Simulation
from moorage.testing.builders import make_node, make_pod

# Preemption adds its own text to a rejection message; these scenarios test the other texts.
PLAIN = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"plugins": {"postFilter": {"disabled": [{"name": "*"}]}}}],
}


def node(name="n1", *, cpu="2", **fields):
    return make_node(name, allocatable={"cpu": cpu, "memory": "8Gi", "pods": "10"}, **fields)


def pod(name="web", *, cpu="1", **fields):
    return make_pod(name, requests={"cpu": cpu}, **fields)


def simulate(*objects, **options) -> Simulation:
    sim = Simulation(objects, PLAIN, check=True, **options)
    sim.run()
    return sim


# Placements


def test_ordinary_dicts_in_placements_out():
    room = {"allocatable": {"cpu": "1", "pods": "9"}}
    containers = [{"name": "c", "resources": {"limits": {"cpu": "1"}}}]
    objects = [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": room}]
    spec = {"containers": containers}
    objects += [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        for name in ("web-0", "web-1")
    ]
    sim = Simulation(objects, config=PLAIN, seed=0)
    sim.run()
    assert sim.placements == {"default/web-0": "n1", "default/web-1": None}
    assert sim.pending == {"default/web-1": "0/1 nodes are available: 1 Insufficient cpu."}


def test_pods_are_scheduled_in_order_of_arrival():
    sim = simulate(node(cpu="2"), *[pod(name) for name in ("c", "a", "b")])
    assert [key for key, where in sim.placements.items() if where] == ["default/c", "default/a"]


def test_pods_of_higher_priority_are_scheduled_first():
    classes = PriorityClass(metadata=ObjectMeta(name="high"), value=100)
    late = pod("late", priority_class_name="high")
    sim = simulate(node(cpu="1"), classes, pod("early"), late)
    assert sim.placements == {"default/early": None, "default/late": "n1"}


def test_pods_that_are_bound_at_the_start_use_capacity_and_are_listed():
    sim = simulate(node(cpu="2"), pod("old", node="n1"), pod("a"), pod("b"))
    assert sim.placements == {"default/old": "n1", "default/a": "n1", "default/b": None}


def test_a_running_pod_of_the_same_template_does_not_affect_the_choice():
    # Pods of one template share cached results; the node of one of them is no part of these.
    sim = simulate(node("full", cpu="1"), node("free"), pod("a", node="full"), pod("b"))
    assert sim.placements["default/b"] == "free"


# Pending pods


@pytest.mark.parametrize(
    ("objects", "message"),
    [
        pytest.param([], "no nodes available to schedule pods", id="no nodes"),
        pytest.param(
            [node(cpu="500m"), node("n2", unschedulable=True)],
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.",
            id="no room, and cordoned",
        ),
    ],
)
def test_pending(objects, message):
    assert simulate(*objects, pod()).pending == {"default/web": message}


def test_a_gated_pod_says_which_gates():
    sim = simulate(node(), pod(gates=["b", "a"]))
    assert sim.pending == {"default/web": "waiting for scheduling gates: [b a]"}


def test_a_pod_of_another_scheduler_is_ignored():
    sim = simulate(node(), pod(scheduler_name="other"))
    assert sim.placements == {"default/web": None}
    assert sim.pending == {"default/web": 'no profile for scheduler "other"'}


def test_pending_before_the_first_attempt():
    assert Simulation([node(), pod()]).pending == {"default/web": "not tried yet"}


def test_operators_can_read_it():
    sim = simulate(node(cpu="1"), pod("a"), pod("b"))
    assert [(event.reason, event.note) for event in sim.events] == [
        ("Scheduled", "Successfully assigned default/a to n1"),
        ("FailedScheduling", "0/1 nodes are available: 1 Insufficient cpu."),
    ]


# Requeueing


def test_a_deleted_pod_makes_room_once_it_has_ended():
    sim = simulate(node(cpu="1"), pod("a", termination_grace_period_seconds=8), pod("b"))
    sim.delete("Pod", "default", "a")
    sim.run(until=8)
    assert sim.placements == {"default/a": "n1", "default/b": None}
    sim.run()
    assert sim.placements == {"default/b": "n1"}
    assert sim.now == 10  # a was deleted at 1 and ended at 9; b took a second to start.


def test_a_new_node_gets_the_pods_that_wait():
    sim = simulate(node(cpu="1"), pod("a"), pod("b"))
    sim.create([node("n2")])
    sim.run()
    assert sim.placements["default/b"] == "n2"
    assert sim.pending == {}


def test_the_first_node_gets_the_pods_that_found_no_node():
    sim = simulate(pod())
    sim.create([node()])
    sim.run()
    assert sim.placements == {"default/web": "n1"}


def test_a_node_with_more_capacity_or_without_a_cordon_gets_waiting_pods():
    sim = simulate(node(cpu="500m"), node("n2", unschedulable=True), pod("a", cpu="2"))
    sim.update(node("n2", unschedulable=False))
    sim.run()
    assert sim.placements == {"default/a": "n2"}


def test_gates_removed():
    sim = simulate(node(), pod(gates=["a", "b"]))
    sim.update(pod(gates=["b"]))
    sim.run()
    assert sim.pending == {"default/web": "waiting for scheduling gates: [b]"}
    sim.update(pod())
    sim.run()
    assert sim.placements == {"default/web": "n1"}


def test_a_pod_that_ends_makes_room():
    first = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "job", "annotations": {"moorage.dev/run-seconds": "60"}},
        "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
    }
    sim = simulate(node(cpu="1"), first, pod("next"))
    assert sim.placements == {"default/job": "n1", "default/next": "n1"}
    assert sim.now == 62  # The job starts at 1 and ends at 61, when the next one gets its room.


def test_a_recreated_pod_of_the_same_name_is_another_pod():
    sim = simulate(node(), pod())
    sim.delete("Pod", "default", "web")
    sim.run()
    sim.create([pod(cpu="3")])
    sim.run()
    assert sim.pending == {"default/web": "0/1 nodes are available: 1 Insufficient cpu."}


def test_the_pods_of_a_removed_node_are_deleted_later():
    sim = simulate(node(), pod())
    sim.delete("Node", "", "n1")
    sim.run()
    assert sim.placements == {}


def test_a_pod_of_higher_priority_preempts_one_of_lower_priority():
    important = PriorityClass(metadata=ObjectMeta(name="high"), value=100)
    sim = Simulation([node(cpu="1"), important, pod("low", termination_grace_period_seconds=5)])
    sim.run()
    sim.create([pod("high", priority_class_name="high")])
    sim.run(until=3)
    assert sim.placements == {"default/low": "n1", "default/high": None}
    assert sim.read("Pod", "", "high")["status"]["nominatedNodeName"] == "n1"
    sim.run()
    assert sim.placements == {"default/high": "n1"}
    assert sim.now == 7  # low was evicted at 1 and ended at 6; high took a second to start.


# FaultPlan


def test_a_failed_bind_is_tried_again():
    sim = simulate(node(), pod(), faults=Faults(bind_fails=1, until_seconds=5))
    assert sim.placements == {"default/web": "n1"}
    forgotten = [fact for fact in sim.journal if isinstance(fact, Forgotten)]
    assert len(forgotten) > 1
    assert sim.now > 5


@pytest.mark.parametrize("seed", range(6))
def test_an_unknown_bind_is_looked_up(seed):
    sim = simulate(node(cpu="1"), pod(), seed=seed, faults=Faults(bind_unknown=1, until_seconds=5))
    assert sim.placements == {"default/web": "n1"}
    assert not any(isinstance(fact, Expired) for fact in sim.journal)


def test_a_restart_half_way_loses_nothing():
    pods = [pod(f"p{i}", cpu="100m") for i in range(20)]
    faults = Faults(cycle_seconds=1, restarts=3, until_seconds=4)
    sim = simulate(node("n1"), node("n2"), *pods, faults=faults)
    assert all(sim.placements.values())
    decided = sum(isinstance(fact, Decided) for fact in sim.journal)
    assert decided < 20  # The last scheduler did not start over.


def test_two_leaders_bind_every_pod_once():
    pods = [pod(f"p{i}", cpu="100m") for i in range(20)]
    faults = Faults(
        cycle_seconds=0.5, answer_seconds=2, restarts=2, overlap_seconds=30, until_seconds=9
    )
    sim = simulate(node("n1"), node("n2"), *pods, faults=faults)
    assert all(sim.placements.values())


def test_a_list_recovers_from_a_lost_watch():
    faults = Faults(watch_lost=0.5, relist_seconds=3, until_seconds=20)
    sim = Simulation([node(cpu="1"), pod("a")], PLAIN, faults=faults, check=True)
    sim.run()
    sim.create([node("n2"), pod("b"), pod("c")])
    sim.run()
    assert all(sim.placements.values())


# The Simulation object


def test_a_copy_continues_like_the_original():
    sim = simulate(node(), pod("a"), pod("b"), pod("c"))
    copy = pickle.loads(pickle.dumps(sim))
    for each in (sim, copy):
        each.create([node("n2"), node("n3")])
        each.run()
    assert copy.placements == sim.placements
    assert list(copy.journal.lines()) == list(sim.journal.lines())


def test_progress():
    seen: list[tuple[int, int]] = []
    pods = [pod(f"p{i}", cpu="1m") for i in range(9)]
    simulate(node(), *pods, on_progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (9, 9)


def test_read_gives_what_update_takes():
    sim = simulate(node(), pod())
    found = sim.read("Pod", "default", "web")
    found["metadata"]["labels"] = {"app": "web"}
    sim.update(found)
    assert sim.read("Pod", "", "web")["metadata"]["labels"] == {"app": "web"}


@pytest.mark.parametrize(
    ("act", "error", "text"),
    [
        pytest.param(
            lambda s: s.delete("Pod", "", "x"), NotFoundError, 'pods "x" not found', id="gone"
        ),
        pytest.param(
            lambda s: s.update(pod("x")), NotFoundError, 'pods "x" not found', id="not there"
        ),
        pytest.param(lambda s: s.create([pod()]), AlreadyExistsError, "already exists", id="there"),
        pytest.param(lambda s: s.delete("Car", "", "x"), InputError, 'kind "Car"', id="no kind"),
    ],
)
def test_invalid_calls_are_errors(act, error, text):
    with pytest.raises(error, match=text):
        act(simulate(node(), pod()))


def test_an_invalid_configuration_is_an_error():
    with pytest.raises(ConfigError, match="percentageOfNodesToScore"):
        Simulation([], PLAIN | {"percentageOfNodesToScore": 140})


# Workloads


def deployment(image):
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container]}}
    selector = {"matchLabels": {"app": "web"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web"},
        "spec": {"replicas": 4, "selector": selector, "template": template},
    }


def images(sim):
    pods = (sim.read("Pod", "default", key.partition("/")[2]) for key in sim.placements)
    return [pod["spec"]["containers"][0]["image"] for pod in pods]


def test_a_changed_deployment_is_rolled_out_within_its_limits():
    sim = simulate(node(cpu="4"), deployment("app:1"))
    sim.apply(deployment("app:2"))
    sim.run(until=sim.now + 0.5)
    assert sorted(images(sim)) == ["app:1"] * 4 + ["app:2"] * 2  # One more, one fewer.
    sim.run()
    assert images(sim) == ["app:2"] * 4
    status = sim.read("Deployment", "default", "web")["status"]
    assert (status["updatedReplicas"], status["availableReplicas"]) == (4, 4)


def test_a_no_execute_taint_evicts_pods_when_their_toleration_ends():
    def tolerant(name, seconds):
        toleration = {"key": "t", "operator": "Exists", "effect": "NoExecute"}
        spec = {"containers": [{"name": "c", "image": "app"}]}
        spec["tolerations"] = [{**toleration, "tolerationSeconds": seconds}]
        return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}

    sim = simulate(node(), tolerant("short", 10), tolerant("long", 100))
    tainted = sim.read("Node", "", "n1")
    tainted["spec"] = {"taints": [{"key": "t", "effect": "NoExecute"}]}
    sim.update(tainted)
    sim.run(until=60)
    assert list(sim.placements) == ["default/long"]
    sim.run(until=150)
    assert sim.placements == {}


def test_a_cron_job_runs_at_its_times():
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "app"}]}}
    spec = {"schedule": "*/10 * * * *", "jobTemplate": {"spec": {"template": template}}}
    job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": spec}
    sim = simulate(node(), job)
    assert sim.now == 601  # The first run is waited for.
    sim.run(until=1900)
    assert len(sim.placements) == 3
