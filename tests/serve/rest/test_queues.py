"""Queues at the API."""

QUEUES = "/apis/scheduling.moorage.dev/v1alpha1/queues"


def created(**spec):
    version = "scheduling.moorage.dev/v1alpha1"
    return {"apiVersion": version, "kind": "Queue", "metadata": {"name": "team"}, "spec": spec}


def test_a_queue_is_stored_with_its_weight(server):
    answer = server.post(QUEUES, created(guaranteed={"cpu": "4"}))
    assert answer.status == 201
    assert answer.json["spec"] == {"guaranteed": {"cpu": "4"}, "weight": 1}


def test_a_queue_that_guarantees_more_than_its_maximum_is_refused(server):
    answer = server.post(QUEUES, created(guaranteed={"cpu": "4"}, max={"cpu": "2"}))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert "spec.guaranteed[cpu]" in answer.json["message"]
