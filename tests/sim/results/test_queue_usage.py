"""Waits and shares of queues in a result."""

from tests.queue_builders import node, pods, queue, settings

from moorage import Simulation


def test_shares_waits_and_entitlement():
    queues = [queue("org"), queue("a", "org"), queue("b", "org", weight=3), queue("c")]
    made = [*pods("a", 2), *pods("b", 4, lasts=10), *pods("c", 3)]
    sim = Simulation([node("node", 8), *queues, *made], config=settings())
    sim.run(until=20)
    result = sim.result
    found = {each.name: each for each in result.queues}
    assert list(found) == ["a", "b", "c", "org"]
    assert {name: each.entitled for name, each in found.items()} == {
        "a": 0.125,
        "b": 0.375,
        "c": 0.5,
        "org": 0.5,
    }
    assert (found["a"].running, found["a"].pending, found["a"].share) == (2, 0, 0.25)
    assert (found["b"].waits.count, found["org"].waits.count) == (4, 6)
    assert found["org"].waits.max > 9
    assert found["b"].mean_share > found["b"].share == 0.125
    plain = result.to_dict()
    assert plain["queues"]["org"]["running"] == 3
    assert len(plain["samples"]["queueShare"]["a"]) == len(result.samples)


def test_a_guarantee_is_an_entitlement():
    queues = [queue("a", guaranteed={"cpu": "6"}), queue("b", weight=3)]
    sim = Simulation([node("node", 8), *queues], config=settings())
    sim.run()
    assert [each.entitled for each in sim.result.queues] == [0.75, 0.75]


def test_without_queues_nothing_is_reported():
    sim = Simulation([node("node", 8), *pods("a", 2)])
    sim.run()
    assert sim.result.queues == []
    assert "queues" not in sim.result.to_dict()


def test_an_elastic_quota_is_a_queue():
    quota = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"min": {"cpu": "2"}, "max": {"cpu": "3", "memory": "8Gi"}},
    }
    sim = Simulation([node("node", 8), quota, *pods("", 4)], config=settings())
    sim.run()
    [result] = sim.result.queues
    assert (result.name, result.running, result.pending) == ("default/all", 3, 1)
    assert (result.share, result.entitled) == (0.375, 1.0)


def test_usage_follows_a_queue_that_moves():
    sim = Simulation([node("node", 8), queue("org"), queue("a"), *pods("a", 2)], config=settings())
    sim.run()
    sim.update(queue("a", "org"))
    sim.run()
    assert {each.name: each.share for each in sim.result.queues} == {"a": 0.25, "org": 0.25}
    sim.delete("Pod", "default", "a-0")
    sim.run()
    found = {each.name: (each.share, each.running) for each in sim.result.queues}
    assert found == {"a": (0.125, 1), "org": (0.125, 1)}
