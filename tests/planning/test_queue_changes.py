"""What a change of a queue does."""

import pytest
from tests.queue_builders import node, pod, pods, queue, settings

from moorage.errors import InputError
from moorage.planning.what_if import what_if


def on(pods, name="node"):
    return [{**each, "spec": {**each["spec"], "nodeName": name}} for each in pods]


def owned(pods):
    """As if a Job had created them: they are created again."""
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}
    return [{**each, "metadata": {**each["metadata"], "ownerReferences": [owner]}} for each in pods]


def ask(*objects, changes, cpu=8):
    given = [("queue", text) for text in changes]
    return what_if([node("node", cpu), *objects], given, settings())


def effects(answer):
    return {
        each.name: (
            (each.before.running, each.after.running),
            (each.before.pending, each.after.pending),
            each.reclaimed,
        )
        for each in answer.queues
    }


def test_pods_are_admitted_by_a_higher_maximum():
    answer = ask(queue("a", max={"cpu": "2"}), *pods("a", 6), changes=["a:max.cpu=5"])
    assert effects(answer) == {"a": ((2, 5), (4, 1), 0)}
    assert (len(answer.placed), answer.is_clean) == (3, True)
    assert (answer.queues[0].before.share, answer.queues[0].after.share) == (0.25, 0.625)


def test_no_pod_is_evicted_by_a_lower_maximum():
    answer = ask(queue("a", max={"cpu": "6"}), *pods("a", 8), changes=["a:max.cpu=2"])
    assert effects(answer) == {"a": ((6, 6), (2, 2), 0)}


def test_a_limit_is_removed():
    answer = ask(queue("a", max={"cpu": "2"}), *pods("a", 6), changes=["a:max.cpu="])
    assert effects(answer) == {"a": ((2, 6), (4, 0), 0)}


def test_pods_are_reclaimed_for_a_guarantee():
    queues = [queue("a"), queue("b")]
    running = on(owned(pods("a", 8)))
    answer = ask(*queues, *running, *pods("b", 6), changes=["b:guaranteed.cpu=3"])
    assert effects(answer) == {"a": ((8, 5), (0, 3), 3), "b": ((0, 3), (6, 3), 0)}
    assert len(answer.pending) == 3
    assert not answer.is_clean


def test_parents_count_for_their_children():
    queues = [queue("org", max={"cpu": "4"}), queue("a", "org"), queue("b", "org")]
    answer = ask(*queues, *pods("a", 4), *pods("b", 4), changes=["org:max.cpu=6"])
    found = effects(answer)
    assert found["org"] == ((4, 6), (4, 2), 0)
    assert found["a"][0][1] + found["b"][0][1] == 6


def test_an_elastic_quota():
    quota = {
        "apiVersion": "scheduling.x-k8s.io/v1alpha1",
        "kind": "ElasticQuota",
        "metadata": {"name": "q", "namespace": "default"},
        "spec": {"max": {"cpu": "2", "memory": "8Gi"}},
    }
    answer = ask(quota, *[pod(f"p-{i}") for i in range(5)], changes=["default/q:max.cpu=4"])
    assert effects(answer) == {"default/q": ((2, 4), (3, 1), 0)}


def test_several_changes_of_a_queue():
    answer = ask(
        queue("a", max={"cpu": "2"}),
        *pods("a", 6),
        changes=["a:max.cpu=3", "a:max.pods=1,weight=2"],
    )
    assert effects(answer) == {"a": ((2, 2), (4, 4), 0)}


def test_waits_without_and_with_the_change():
    """Eight pods of 100 seconds, two or four at a time."""
    work = pods("a", 8, lasts=100)
    answer = ask(queue("a", max={"cpu": "2"}), *work, changes=["a:max.cpu=4"])
    [effect] = answer.queues
    before, after = effect.before.waits, effect.after.waits
    assert (before.count, after.count) == (8, 8)
    assert 300 <= before.max < 310
    assert 100 <= after.max < 105
    plain = answer.to_dict()["queues"]["a"]
    assert plain["before"]["timeToSchedule"]["max"] == before.max


def test_without_pods_that_end_there_are_no_waits():
    answer = ask(queue("a", max={"cpu": "2"}), *pods("a", 6), changes=["a:max.cpu=5"])
    assert "timeToSchedule" not in answer.to_dict()["queues"]["a"]["after"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x:weight=2", "there is no queue 'x'"),
        ("a", "must be QUEUE:FIELD=VALUE"),
        ("a:min.cpu=2", "must be one of guaranteed.RESOURCE, max.RESOURCE, weight, parent"),
        ("a:max.cpu=many", "max.cpu=many is not an amount"),
        ("a:weight=0", "must be greater than or equal to 1"),
        ("a:guaranteed.cpu=9", r"must be less than or equal to spec.max \(2\)"),
    ],
)
def test_changes_that_are_refused(text, message):
    with pytest.raises(InputError, match=message):
        ask(queue("a", max={"cpu": "2"}), changes=[text])


def test_fair_share_is_needed():
    with pytest.raises(InputError, match="needs the plugin FairShare"):
        what_if([node("node"), queue("a")], [("queue", "a:weight=2")])
