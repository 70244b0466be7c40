"""Pod groups and workloads at the API."""

GROUPS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/podgroups"
WORKLOADS = "/apis/scheduling.k8s.io/v1alpha2/namespaces/default/workloads"
GANG = {"schedulingPolicy": {"gang": {"minCount": 4}}}


def created(kind, name="train", **spec):
    version = "scheduling.k8s.io/v1alpha2"
    return {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": spec}


def test_a_group_is_stored_with_its_defaults(server):
    answer = server.post(GROUPS, created("PodGroup", **GANG))
    assert answer.status == 201
    assert answer.json["spec"] == {**GANG, "disruptionMode": "Pod", "priority": 0}


def test_the_spec_is_immutable(server):
    group = server.post(GROUPS, created("PodGroup", **GANG)).json
    group["spec"] = {"schedulingPolicy": {"basic": {}}}
    answer = server.put(f"{GROUPS}/train", group)
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")


def test_a_group_of_a_workload_that_does_not_exist(server):
    where = {"workloadName": "job", "podGroupTemplateName": "workers"}
    group = created("PodGroup", **GANG, podGroupTemplateRef={"workload": where})
    answer = server.post(GROUPS, group)
    assert (answer.status, answer.json["reason"]) == (403, "Forbidden")
    workload = created("Workload", "job", podGroupTemplates=[{"name": "workers", **GANG}])
    assert server.post(WORKLOADS, workload).status == 201
    assert server.post(GROUPS, group).status == 201


def test_a_group_without_a_policy_is_refused(server):
    answer = server.post(GROUPS, created("PodGroup"))
    assert (answer.status, answer.json["reason"]) == (422, "Invalid")
    assert "spec.schedulingPolicy" in answer.json["message"]
