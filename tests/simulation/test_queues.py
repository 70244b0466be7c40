"""Queues in simulated clusters: limits, order by shares, borrowing and reclaim."""

import pickle
from collections import Counter

import pytest
from tests.group_builders import gang
from tests.queue_builders import node, pod, pods, queue, settings

from moorage import Simulation
from moorage.api.pod import Pod
from moorage.core.journal import Popped


def start(*objects, nodes=3, cpu=4, config=None, **options):
    made = [node(f"node-{i}", cpu) for i in range(nodes)]
    return Simulation([*made, *objects], config=config or settings(), check=True, **options)


def placed(sim):
    """The number of pods on nodes by queue."""
    on_nodes = [each for each in sim.cluster.all(Pod) if each.node_name and not each.is_terminal]
    return Counter(each.name.rpartition("-")[0] for each in on_nodes)


def message(sim, name):
    return sim.pending[f"default/{name}"]


# Limits


@pytest.mark.parametrize(
    ("limit", "count"),
    [
        pytest.param({"cpu": "5"}, 5, id="cpu"),
        pytest.param({"pods": 3}, 3, id="number of pods"),
        pytest.param({"example.com/gpu": 2}, 2, id="extended resource"),
        pytest.param({"cpu": "5", "pods": 4}, 4, id="the tightest counts"),
        pytest.param({"memory": "1Gi"}, 12, id="a resource that no pod requests"),
    ],
)
def test_no_queue_exceeds_its_maximum(limit, count):
    nodes = [node(f"node-{i}", 4, **{"example.com/gpu": "8"}) for i in range(3)]
    gpu = {"example.com/gpu": "1"}
    made = pods("a", 12, **gpu)
    sim = Simulation([*nodes, queue("a", max=limit), *made], config=settings(), check=True)
    sim.run()
    assert placed(sim) == {"a": count}


def test_the_maximum_of_an_ancestor_counts():
    tree = [queue("org", max={"cpu": "5"}), queue("a", "org"), queue("b", "org", max={"cpu": "4"})]
    sim = start(*tree, *pods("a", 2), *pods("b", 8))
    sim.run()
    assert placed(sim) == {"a": 2, "b": 3}
    assert 'queue "org" is at its maximum of cpu' in message(sim, "b-7")


def test_a_pod_follows_when_one_of_its_queue_ends():
    sim = start(queue("a", max={"cpu": "2"}), *pods("a", 6, lasts=10))
    sim.run()
    assert sim.now > 20
    assert not sim.pending


def test_a_pod_follows_when_its_queue_gets_more():
    sim = start(queue("a", max={"cpu": "2"}), *pods("a", 6))
    sim.run()
    sim.update(queue("a", max={"cpu": "5"}))
    sim.run()
    assert placed(sim) == {"a": 5}


def test_a_queue_that_does_not_exist():
    sim = start(*pods("a", 1))
    sim.run()
    assert 'queue "a" not found' in message(sim, "a-0")
    sim.create([queue("a", "org")])
    sim.run()
    assert 'queue "a": its parent "org" does not exist' in message(sim, "a-0")
    sim.create([queue("org", "a")])
    sim.run()
    assert "form a cycle" in message(sim, "a-0") or "cannot be used" in message(sim, "a-0")
    sim.update(queue("org"))
    sim.run()
    assert placed(sim) == {"a": 1}


def test_usage_is_exact_after_a_restart():
    sim = start(queue("a", max={"cpu": "3"}), *pods("a", 2))
    sim.run()
    again = Simulation([*sim.objects, *pods("a", 3, first=2)], config=settings(), check=True)
    again.run()
    assert placed(again) == {"a": 3}


def test_kueues_label_and_namespaces():
    limited = {"cpu": "1"}
    quota = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "quota", "namespace": "ml"},
        "spec": {"max": {"cpu": "2"}},
    }
    others = [pod(f"q-{i}") for i in range(3)]
    for each in others:
        each["metadata"]["namespace"] = "ml"
    mine = [pod(f"n-{i}") for i in range(3)]
    for each in mine:
        each["metadata"]["namespace"] = "team"
    spaces = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
        for name in ("ml", "team")
    ]
    kueue = pods("a", 3, label="kueue.x-k8s.io/queue-name")
    queues = [queue("a", max=limited), queue("b", max=limited, namespaces=["team"])]
    sim = start(*spaces, quota, *queues, *kueue, *others, *mine, pod("free-0"))
    sim.run()
    assert placed(sim) == {"a": 1, "q": 2, "n": 1, "free": 1}


# Order


def test_the_smallest_weighted_share_is_next():
    queues = [queue("a"), queue("b", weight=2), queue("c", weight=3)]
    made = [*pods("a", 20), *pods("b", 20), *pods("c", 20)]
    sim = start(*queues, *made, nodes=6)
    sim.run()
    assert placed(sim) == {"a": 4, "b": 8, "c": 12}


def test_the_dominant_resource_counts():
    """The example of the paper: 9 cpu and 18 Gi, tasks of <1, 4Gi> and of <3, 1Gi>."""
    nodes = [node("node", 9, memory="18Gi")]
    made = [*pods("a", 9, memory="4Gi"), *pods("b", 9, cpu=3, memory="1Gi")]
    sim = Simulation([*nodes, queue("a"), queue("b"), *made], config=settings(), check=True)
    sim.run()
    assert placed(sim) == {"a": 3, "b": 2}


def test_shares_are_compared_level_by_level():
    queues = [queue("x"), queue("y"), queue("a", "x"), queue("b", "x"), queue("c", "y")]
    made = [*pods("a", 12), *pods("b", 12), *pods("c", 12), *pods("x", 12)]
    sim = start(*queues, *made)
    sim.run()
    assert placed(sim) == {"a": 2, "b": 2, "x": 2, "c": 6}


def test_priority_decides_within_a_queue():
    made = [*pods("a", 3), *pods("a", 3, first=3, priority=5), *pods("b", 9)]
    sim = start(queue("a"), queue("b"), *made, nodes=1)
    sim.run()
    assert placed(sim) == {"a": 2, "b": 2}
    assert {name for name, where in sim.placements.items() if where and "/a-" in name} <= {
        "default/a-3",
        "default/a-4",
        "default/a-5",
    }


def test_what_is_guaranteed_comes_before_shares():
    queues = [queue("a", guaranteed={"cpu": "6"}), queue("b", weight=100)]
    sim = start(*queues, *pods("b", 12), *pods("a", 12))
    sim.run()
    assert placed(sim) == {"a": 6, "b": 6}
    assert not sim.evictions


# Borrowing and reclaim


def test_a_queue_borrows_what_others_leave_idle_and_gives_it_back():
    queues = [queue("a", guaranteed={"cpu": "6"}), queue("b", guaranteed={"cpu": "6"})]
    sim = start(*queues, *pods("b", 20))
    sim.run()
    assert placed(sim) == {"b": 12}
    sim.create(pods("a", 20))
    sim.run()
    assert placed(sim) == {"a": 6, "b": 6}
    assert len(sim.evictions) == 6


def test_reclaim_takes_the_least_important_pods_and_no_more_than_needed():
    queues = [queue("a", guaranteed={"cpu": "6"}), queue("b")]
    sim = start(*queues, *pods("b", 2, priority=9), *pods("b", 10, first=2))
    sim.run()
    sim.create([pod("a-0", "a", cpu=2)])
    sim.run()
    assert len(sim.evictions) == 2
    assert {"default/b-0", "default/b-1"} <= {
        name for name, where in sim.placements.items() if where
    }


def test_pods_of_a_queue_within_its_guarantee_are_never_reclaimed():
    queues = [queue("a", guaranteed={"cpu": "6"}), queue("b", guaranteed={"cpu": "12"})]
    sim = start(*queues, *pods("b", 12))
    sim.run()
    sim.create(pods("a", 3, priority=100))
    sim.run()
    assert placed(sim) == {"b": 12}
    assert "no other queue uses more than its guaranteed share" in message(sim, "a-0")


def test_a_queue_above_its_guarantee_may_not_reclaim():
    queues = [queue("a", guaranteed={"cpu": "1"}), queue("b")]
    sim = start(*queues, *pods("b", 12))
    sim.run()
    sim.create(pods("a", 3, priority=100))
    sim.run()
    assert placed(sim) == {"a": 1, "b": 11}
    assert "nothing may be reclaimed" in message(sim, "a-2")


def test_a_victim_of_higher_priority_does_not_come_back_first():
    queues = [queue("a", guaranteed={"cpu": "6"}), queue("b")]
    owned = {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": "b"},
        "spec": {
            "replicas": 12,
            "selector": {"matchLabels": {"app": "b"}},
            "template": {
                "metadata": {"labels": {"app": "b", "moorage.dev/queue": "b"}},
                "spec": {**pod("x")["spec"], "priority": 50},
            },
        },
    }
    sim = start(*queues, owned)
    sim.run()
    sim.create(pods("a", 6))
    sim.run(until=sim.now + 60)
    assert placed(sim)["a"] == 6
    assert len(sim.evictions) == 6


def test_within_a_queue_a_higher_priority_evicts_a_lower_one():
    sim = start(queue("a"), queue("b"), *pods("a", 3), *pods("b", 9))
    sim.run()
    sim.create([pod("a-9", "a", priority=5)])
    sim.run()
    assert placed(sim) == {"a": 3, "b": 9}
    assert sim.placements["default/a-9"]


def test_a_parent_reclaims_for_its_children():
    queues = [
        *(queue("x", guaranteed={"cpu": "6"}), queue("y", guaranteed={"cpu": "6"})),
        *(queue("a", "x"), queue("b", "y"), queue("c", "y", guaranteed={"cpu": "4"})),
    ]
    sim = start(*queues, *pods("b", 8), *pods("c", 4))
    sim.run()
    sim.create(pods("a", 8))
    sim.run()
    assert placed(sim) == {"a": 6, "b": 2, "c": 4}


def test_a_guarantee_is_reclaimed_from_siblings_when_the_parent_is_at_its_maximum():
    queues = [queue("x", max={"cpu": "6"}), queue("a", "x", guaranteed={"cpu": "4"})]
    sim = start(*queues, queue("b", "x"), queue("c"), *pods("b", 8), *pods("c", 3))
    sim.run()
    assert placed(sim) == {"b": 6, "c": 3}
    sim.create(pods("a", 8))
    sim.run()
    assert placed(sim) == {"a": 4, "b": 2, "c": 3}
    assert len(sim.evictions) == 4


@pytest.mark.parametrize("limit", [{}, {"cpu": "12"}], ids=["nodes are full", "parent is full"])
def test_as_many_pods_are_evicted_as_come_while_victims_take_their_time(limit):
    def slow(made):
        for each in made:
            each["spec"]["terminationGracePeriodSeconds"] = 30
        return made

    children = [
        queue(n, "x", guaranteed={"cpu": str(c)}) for n, c in zip("abc", (2, 2, 4), strict=True)
    ]
    sim = start(queue("x", max=limit), *children, *slow([*pods("a", 12), *pods("b", 12)]))
    sim.run(until=10)
    assert placed(sim) == {"a": 6, "b": 6}
    sim.create(slow(pods("c", 12)))
    sim.run(until=70)
    assert placed(sim)["c"] == 4
    assert len(sim.evictions) == 4


def test_disruption_budgets_are_respected_if_possible():
    queues = [queue("a", guaranteed={"cpu": "6"}), queue("b")]
    protected = pods("b", 11)
    for each in protected:
        each["metadata"]["labels"]["app"] = "b"
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"maxUnavailable": 0, "selector": {"matchLabels": {"app": "b"}}},
    }
    sim = start(*queues, budget, *protected, pod("b-11", "b", priority=7))
    sim.run()
    sim.create([pod("a-0", "a")])
    sim.run()
    assert sim.placements.get("default/b-11") is None
    assert placed(sim) == {"a": 1, "b": 11}


def test_a_gang_stays_within_the_maximum_of_its_queue():
    def of_queue(objects, name):
        for each in objects:
            if each["kind"] == "Pod":
                each["metadata"]["labels"] = {"moorage.dev/queue": name}
        return objects

    gates = settings(GenericWorkload=True, GangScheduling=True)
    members = [*of_queue(gang("big", 4), "a"), *of_queue(gang("small", 3), "a")]
    sim = start(queue("a", max={"cpu": "3"}), *members, config=gates)
    sim.run()
    assert placed(sim) == {"small": 3}


def test_a_gang_reclaims_for_all_its_pods_or_for_none():
    def of_queue(objects):
        for each in objects:
            if each["kind"] == "Pod":
                each["metadata"]["labels"] = {"moorage.dev/queue": "a"}
        return objects

    gates = settings(GenericWorkload=True, GangScheduling=True)
    sim = start(queue("a", guaranteed={"cpu": "4"}), queue("b"), *pods("b", 12), config=gates)
    sim.run()
    sim.create(of_queue(gang("large", 5)))
    sim.run()
    assert placed(sim) == {"b": 12}
    assert not sim.evictions
    sim.create(of_queue(gang("small", 4)))
    sim.run()
    assert placed(sim) == {"b": 8, "small": 4}
    assert len(sim.evictions) == 4


def test_a_pod_reclaims_when_its_queue_gets_a_guarantee():
    sim = start(queue("a"), queue("b"), *pods("b", 12))
    sim.run()
    sim.create(pods("a", 2))
    sim.run()
    assert placed(sim) == {"b": 12}
    sim.update(queue("a", guaranteed={"cpu": "2"}))
    sim.run()
    assert placed(sim) == {"a": 2, "b": 10}


def test_a_copy_goes_on_in_the_same_way():
    tree = [queue("x", weight=2), queue("a", "x"), queue("b", "x"), queue("c", max={"cpu": "3"})]
    made = [each for name in "abc" for each in pods(name, 12, lasts=7)]
    sim = start(*tree, *made)
    sim.run(until=5)
    copy = pickle.loads(pickle.dumps(sim))
    sim.run()
    copy.run()
    assert not sim.pending
    assert copy.scheduled_at == sim.scheduled_at


def test_the_end_of_one_pod_requeues_few_of_those_that_wait_for_the_maximum():
    made = [*pods("a", 300), *pods("a", 3, first=300, priority=9)]
    sim = start(queue("a", max={"pods": 4}), *made)
    sim.run(until=5)
    before = attempts(sim)
    sim.delete("Pod", "default", next(n for n, at in sim.placements.items() if at).split("/")[1])
    sim.run(until=30)
    assert placed(sim) == {"a": 4}
    assert attempts(sim) - before <= 25


def attempts(sim):
    return sum(isinstance(fact, Popped) for fact in sim.journal)
