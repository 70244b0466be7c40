"""Workloads make their pods: as many as asked, where asked, in the order asked."""

import pytest

from moorage.serve.verbs.delete import DeleteOptions


def template(labels, image="web:1", **spec):
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": "100m"}}}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def workload(app="web", **fields):
    labels = {"app": app}
    made = {"selector": {"matchLabels": labels}, "template": template(labels)}
    return {"spec": {**made, **fields}}


def images(pods):
    return sorted({pod["spec"]["containers"][0]["image"] for pod in pods})


# ReplicaSet --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController", "Deployment"])
def test_as_many_pods_as_asked(world, kind):
    world.nodes(3)
    fields = workload(replicas=3)
    if kind == "ReplicationController":
        fields["spec"]["selector"] = {"app": "web"}
    world.create(kind, "web", **fields)
    world.run(5)
    assert len(world.running(app="web")) == 3
    world.change(kind, "web", replicas=5)
    world.run(5)
    assert len(world.running(app="web")) == 5
    world.change(kind, "web", replicas=1)
    world.run(5)
    assert len(world.pods(app="web")) == 1
    status = world.get(kind, "web")["status"]
    assert (status["replicas"], status["readyReplicas"], status["availableReplicas"]) == (1, 1, 1)


def test_a_deleted_pod_is_replaced(world):
    world.nodes(1)
    world.create("ReplicaSet", "web", **workload(replicas=2))
    world.run(5)
    first = world.pods(app="web")[0]["metadata"]["name"]
    world.delete("Pod", first)
    world.run(5)
    assert len(world.running(app="web")) == 2
    assert not world.exists("Pod", first)


def test_pods_without_a_node_are_given_up_first(world):
    world.nodes(1)
    fields = workload(replicas=3)
    fields["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    world.create("ReplicaSet", "web", **fields)  # The usual node has 8 cores: two fit.
    world.run(5)
    running = {pod["metadata"]["name"] for pod in world.running(app="web")}
    world.change("ReplicaSet", "web", replicas=2)
    world.run(5)
    assert {pod["metadata"]["name"] for pod in world.pods(app="web")} == running


def test_a_matching_pod_without_owner_is_adopted_and_one_that_no_longer_matches_is_let_go(world):
    world.nodes(1)
    world.create("Pod", "alone", metadata={"labels": {"app": "web"}}, spec=template({})["spec"])
    world.create("ReplicaSet", "web", **workload(replicas=2))
    world.run(5)
    assert len(world.pods(app="web")) == 2
    adopted = world.get("Pod", "alone")
    assert adopted["metadata"]["ownerReferences"][0]["name"] == "web"
    meta = {**adopted["metadata"], "labels": {"app": "other"}}
    world.api.update(world.api.resource_of(adopted), {**adopted, "metadata": meta})
    world.run(5)
    assert "ownerReferences" not in world.get("Pod", "alone")["metadata"]
    assert len(world.pods(app="web")) == 2


def test_a_refused_pod_is_told_about_and_tried_again(world):
    world.nodes(1)
    fields = workload(replicas=1)
    fields["spec"]["template"]["spec"]["priorityClassName"] = "gold"
    world.create("ReplicaSet", "web", **fields)
    world.run(3)
    notes = [each["message"] for each in world.all("Event") if each["reason"] == "FailedCreate"]
    assert "no PriorityClass with name gold was found" in notes[0]
    world.create("PriorityClass", "gold", value=5)
    world.run(60)
    assert len(world.running(app="web")) == 1


# Deployment --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "most", "fewest"),
    [
        pytest.param({}, 5, 3, id="a quarter each way"),
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, 4, 3, id="no more pods than asked"),
        pytest.param({"maxSurge": 2, "maxUnavailable": 0}, 6, 4, id="never fewer than asked"),
        pytest.param({"maxSurge": "100%", "maxUnavailable": 0}, 8, 4, id="all at once"),
    ],
)
def test_a_rolling_update_stays_within_its_limits(world, strategy, most, fewest):
    world.nodes(3)
    rolling = {"type": "RollingUpdate", "rollingUpdate": strategy}
    world.create("Deployment", "web", **workload(replicas=4, strategy=rolling))
    world.run(5)
    world.change("Deployment", "web", template=template({"app": "web"}, "web:2"))
    for _ in range(80):
        world.run(0.25)
        alive = [p for p in world.pods(app="web") if "deletionTimestamp" not in p["metadata"]]
        assert len(alive) <= most
        assert len(world.running(app="web")) >= fewest
    assert images(world.pods(app="web")) == ["web:2"]
    status = world.get("Deployment", "web")["status"]
    assert status["updatedReplicas"] == status["availableReplicas"] == 4
    assert "unavailableReplicas" not in status


def test_recreate_ends_all_old_pods_before_the_first_new_one(world):
    world.nodes(3)
    world.create("Deployment", "web", **workload(replicas=3, strategy={"type": "Recreate"}))
    world.run(5)
    world.change("Deployment", "web", template=template({"app": "web"}, "web:2"))
    for _ in range(40):
        world.run(0.25)
        assert len(images(world.pods(app="web"))) <= 1
    assert images(world.running(app="web")) == ["web:2"]
    assert len(world.running(app="web")) == 3


def test_going_back_finds_the_old_set_again_under_a_new_revision(world):
    world.nodes(3)
    world.create("Deployment", "web", **workload(replicas=2))
    world.run(5)
    world.change("Deployment", "web", template=template({"app": "web"}, "web:2"))
    world.run(10)
    world.change("Deployment", "web", template=template({"app": "web"}, "web:1"))
    world.run(10)
    revision = "deployment.kubernetes.io/revision"
    assert len(world.all("ReplicaSet")) == 2
    assert images(world.running(app="web")) == ["web:1"]
    assert world.get("Deployment", "web")["metadata"]["annotations"][revision] == "3"


def test_empty_fields_that_a_client_adds_or_drops_make_no_new_template(world):
    world.nodes(1)
    bare = template({"app": "web"})
    del bare["spec"]["containers"][0]["resources"]
    world.create("Deployment", "web", **workload(replicas=1, template=bare))
    world.run(5)
    full = template({"app": "web"})
    full["spec"]["containers"][0]["resources"] = {}
    world.change("Deployment", "web", template=full)
    world.run(5)
    assert len(world.all("ReplicaSet")) == 1


@pytest.mark.parametrize(
    ("container", "pod", "sets"),
    [
        pytest.param({"stdin": False, "tty": False}, {}, 1, id="false as protobuf says it"),
        pytest.param({"env": [{"name": "A"}]}, {"hostNetwork": False}, 1, id="no value"),
        pytest.param({"env": [{"name": "A", "value": "1"}]}, {}, 2, id="another value"),
        pytest.param({}, {"enableServiceLinks": False}, 2, id="false that differs from nothing"),
        pytest.param({}, {"terminationGracePeriodSeconds": 0}, 2, id="0 that differs from nothing"),
        pytest.param({}, {"nodeSelector": {"name": ""}}, 2, id="a label called as a field"),
    ],
)
def test_zeros_that_mean_nothing_make_no_new_template(world, container, pod, sets):
    world.nodes(1)
    first = template({"app": "web"})
    first["spec"]["containers"][0]["env"] = [{"name": "A", "value": ""}]
    world.create("Deployment", "web", **workload(replicas=1, template=first))
    world.run(5)
    second = template({"app": "web"}, **pod)
    second["spec"]["containers"][0] |= {"env": [{"name": "A", "value": ""}], **container}
    world.change("Deployment", "web", template=second)
    world.run(5)
    assert len(world.all("ReplicaSet")) == sets


def test_scaled_in_the_middle_of_a_rollout_both_sets_grow_by_their_share(world):
    world.nodes(3)
    rolling = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    world.create("Deployment", "web", **workload(replicas=10, strategy=rolling))
    world.run(5)
    stuck = template({"app": "web"}, "web:2", nodeSelector={"no": "where"})
    world.change("Deployment", "web", template=stuck)
    world.run(5)
    assert sorted(each["spec"]["replicas"] for each in world.all("ReplicaSet")) == [5, 8]
    world.change("Deployment", "web", replicas=15)
    world.run(5)
    # As in Kubernetes' own documentation of proportional scaling.
    assert sorted(each["spec"]["replicas"] for each in world.all("ReplicaSet")) == [7, 11]


def test_a_rollout_that_gets_nowhere_fails_after_its_deadline_and_recovers(world):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=2, progressDeadlineSeconds=30))
    world.run(5)
    stuck = template({"app": "web"}, "web:2", nodeSelector={"no": "where"})
    world.change("Deployment", "web", template=stuck)

    def progress():
        conditions = world.get("Deployment", "web")["status"]["conditions"]
        return next(
            (each["status"], each["reason"]) for each in conditions if each["type"] == "Progressing"
        )

    world.run(25)
    assert progress() == ("True", "ReplicaSetUpdated")
    world.run(10)
    assert progress() == ("False", "ProgressDeadlineExceeded")
    world.change("Deployment", "web", template=template({"app": "web"}, "web:3"))
    world.run(20)
    assert progress() == ("True", "NewReplicaSetAvailable")


def test_old_sets_beyond_the_history_limit_are_deleted(world):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=1, revisionHistoryLimit=1))
    for number in range(2, 5):
        world.run(10)
        world.change("Deployment", "web", template=template({"app": "web"}, f"web:{number}"))
    world.run(10)
    assert len(world.all("ReplicaSet")) == 2


def test_a_paused_deployment_keeps_its_template_and_can_be_scaled(world):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=1))
    world.run(5)
    world.change(
        "Deployment", "web", paused=True, replicas=2, template=template({"app": "web"}, "web:2")
    )
    world.run(5)
    assert images(world.running(app="web")) == ["web:1"]
    assert len(world.running(app="web")) == 2


# StatefulSet -------------------------------------------------------------------------------------


CLAIM = {
    "metadata": {"name": "data"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}


def names(pods):
    return sorted(pod["metadata"]["name"] for pod in pods)


def test_a_stateful_set_begins_one_after_the_other_with_claims_that_outlive_it(world):
    world.nodes(3)
    world.create(
        "StorageClass",
        "fast",
        provisioner="moorage.dev/disk",
        metadata={"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
    )
    fields = workload("db", replicas=3, serviceName="db", volumeClaimTemplates=[CLAIM])
    world.create("StatefulSet", "db", **fields)
    seen = []
    for _ in range(60):
        world.run(0.25)
        if names(world.pods(app="db")) not in seen:
            seen.append(names(world.pods(app="db")))
    assert seen[-3:] == [["db-0"], ["db-0", "db-1"], ["db-0", "db-1", "db-2"]]
    assert len(world.running(app="db")) == 3
    world.change("StatefulSet", "db", replicas=1)
    world.run(10)
    assert names(world.pods(app="db")) == ["db-0"]
    claims = world.all("PersistentVolumeClaim")
    assert names(claims) == ["data-db-0", "data-db-1", "data-db-2"]
    assert {claim["status"]["phase"] for claim in claims} == {"Bound"}


def test_a_stateful_set_replaces_its_pods_from_the_top_down_to_the_partition(world):
    world.nodes(3)
    world.create("StatefulSet", "db", **workload("db", replicas=3, serviceName="db"))
    world.run(10)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    new = template({"app": "db"}, "web:2")
    world.change("StatefulSet", "db", template=new, updateStrategy=strategy)
    world.run(20)
    got = {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in world.pods(app="db")}
    assert got == {"db-0": "web:1", "db-1": "web:2", "db-2": "web:2"}


def test_a_parallel_stateful_set_begins_all_at_once(world):
    world.nodes(3)
    fields = workload("db", replicas=3, serviceName="db", podManagementPolicy="Parallel")
    world.create("StatefulSet", "db", **fields)
    assert names(world.pods(app="db")) == ["db-0", "db-1", "db-2"]


# DaemonSet ---------------------------------------------------------------------------------------


def hosts(pods):
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


def test_a_daemon_set_has_a_pod_on_every_node_that_it_fits(world):
    world.nodes(3)
    world.create("DaemonSet", "agent", **workload("agent"))
    world.run(5)
    assert hosts(world.running(app="agent")) == ["n0", "n1", "n2"]
    world.create("Node", "n3")
    world.create("Node", "tainted", spec={"taints": [{"key": "gpu", "effect": "NoSchedule"}]})
    world.change("Node", "n0", unschedulable=True)
    world.run(5)
    assert hosts(world.running(app="agent")) == ["n0", "n1", "n2", "n3"]
    assert world.get("DaemonSet", "agent")["status"]["desiredNumberScheduled"] == 4


def test_a_daemons_pod_is_pinned_by_node_affinity_and_tolerates_sick_nodes(world):
    world.nodes(1)
    world.create("DaemonSet", "agent", **workload("agent"))
    (pod,) = world.pods(app="agent")
    terms = pod["spec"]["affinity"]["nodeAffinity"]
    field = {"key": "metadata.name", "operator": "In", "values": ["n0"]}
    required = terms["requiredDuringSchedulingIgnoredDuringExecution"]
    assert required == {"nodeSelectorTerms": [{"matchFields": [field]}]}
    keys = {(each["key"], each["effect"]) for each in pod["spec"]["tolerations"]}
    assert ("node.kubernetes.io/unreachable", "NoExecute") in keys
    assert all("tolerationSeconds" not in each for each in pod["spec"]["tolerations"])


def test_a_daemon_set_replaces_its_pods_one_by_one(world):
    world.nodes(3)
    world.create("DaemonSet", "agent", **workload("agent"))
    world.run(5)
    world.change("DaemonSet", "agent", template=template({"app": "agent"}, "web:2"))
    for _ in range(60):
        world.run(0.25)
        assert len(world.running(app="agent")) >= 2
    assert images(world.running(app="agent")) == ["web:2"]
    assert hosts(world.running(app="agent")) == ["n0", "n1", "n2"]


# Job ---------------------------------------------------------------------------------------------


def job(run_seconds="1", annotations=None, **fields):
    made = template({}, restartPolicy="Never")
    made["metadata"]["annotations"] = {
        "moorage.dev/run-seconds": run_seconds,
        **(annotations or {}),
    }
    return {"spec": {"template": made, **fields}}


def outcome(world, name):
    status = world.get("Job", name)["status"]
    types = [each["type"] for each in status.get("conditions", ()) if each["status"] == "True"]
    return types, status.get("succeeded", 0), status.get("failed", 0)


def test_a_job_runs_until_enough_have_succeeded_and_never_too_many_at_once(world):
    world.nodes(2)
    world.create("Job", "sums", **job(completions=5, parallelism=2))
    for _ in range(80):
        world.run(0.25)
        assert len([p for p in world.pods() if p["status"]["phase"] != "Succeeded"]) <= 2
    assert outcome(world, "sums") == (["Complete"], 5, 0)
    assert len(world.pods()) == 5


def test_a_finished_pod_counts_even_if_somebody_deletes_it_at_once(world):
    world.nodes(2)
    world.create("Job", "sums", **job(completions=2))
    while not world.pods() or world.pods()[0]["status"]["phase"] != "Succeeded":
        world.run(0.25)
    world.delete("Pod", world.pods()[0]["metadata"]["name"])
    world.run(10)
    assert outcome(world, "sums") == (["Complete"], 2, 0)


def test_a_job_gives_up_when_too_many_have_failed(world):
    world.nodes(2)
    failing = job(annotations={"moorage.dev/exit-code": "1"}, backoffLimit=2)
    world.create("Job", "sums", **failing)
    world.run(20)
    assert outcome(world, "sums")[2] == 2  # The third waits twice as long as the second.
    world.run(60)
    assert outcome(world, "sums") == (["Failed"], 0, 3)
    assert world.get("Job", "sums")["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"


def test_an_indexed_job_has_one_success_per_index(world):
    world.nodes(2)
    world.create("Job", "sums", **job(completions=4, parallelism=2, completionMode="Indexed"))
    world.run(20)
    assert world.get("Job", "sums")["status"]["completedIndexes"] == "0-3"


def test_a_job_ends_at_its_deadline_and_is_deleted_after_its_time_to_live(world):
    world.nodes(1)
    limits = {"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 10}
    world.create("Job", "sums", **job(run_seconds="100", **limits))
    world.run(6)
    assert outcome(world, "sums")[0] == ["Failed"]
    world.run(20)
    assert not world.exists("Job", "sums")
    assert world.pods() == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_the_running_pods_of_a_deleted_job_go_too(world, propagation):
    world.nodes(1)
    world.create("Job", "sums", **job(run_seconds="100"))
    world.run(2)
    world.delete("Job", "sums", DeleteOptions(propagation_policy=propagation))
    world.run(5)
    assert not world.exists("Job", "sums")
    assert world.pods() == []


def test_a_suspended_job_has_no_pods(world):
    world.nodes(1)
    world.create("Job", "sums", **job(suspend=True))
    world.run(5)
    assert world.pods() == []
    world.change("Job", "sums", suspend=False)
    world.run(10)
    assert outcome(world, "sums") == (["Complete"], 1, 0)


# Ownership ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("propagation", "sets", "pods"),
    [
        pytest.param("Background", 0, 0, id="background: all go"),
        pytest.param("Foreground", 0, 0, id="foreground: all go"),
        pytest.param("Orphan", 1, 2, id="orphan: the dependents stay"),
        pytest.param(None, 0, 0, id="nothing said: all go"),
    ],
)
def test_how_a_deployments_end_reaches_its_pods(world, propagation, sets, pods):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=2))
    world.run(5)
    world.delete("Deployment", "web", DeleteOptions(propagation_policy=propagation))
    if propagation == "Foreground":
        assert world.exists("Deployment", "web")
    world.run(5)
    assert not world.exists("Deployment", "web")
    assert (len(world.all("ReplicaSet")), len(world.pods(app="web"))) == (sets, pods)


def test_an_object_whose_owner_never_was_is_collected(world):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ghost", "uid": "no-such"}
    world.create("ConfigMap", "left-over", metadata={"ownerReferences": [owner]})
    assert not world.exists("ConfigMap", "left-over")


def test_a_namespace_takes_everything_along(world):
    world.nodes(1)
    world.create("Namespace", "shop")
    world.create("Deployment", "web", "shop", **workload(replicas=2))
    world.create("ConfigMap", "settings", "shop")
    world.run(5)
    assert len(world.running(app="web")) == 2
    world.delete("Namespace", "shop")
    assert world.exists("Namespace", "shop")  # Its pods still have their grace.
    world.run(5)
    assert not world.exists("Namespace", "shop")
    assert world.pods(app="web") == []
    assert not world.exists("ConfigMap", "settings", "shop")


def test_controllers_that_start_anew_find_everything_as_it_should_be(world):
    world.nodes(3)
    world.create("Deployment", "web", **workload(replicas=3))
    world.create("Job", "sums", **job(completions=2))
    world.run(20)
    before = world.store.version
    world.begin()
    assert world.store.version == before
