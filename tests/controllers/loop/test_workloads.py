"""Workload controllers: number, nodes and order of their pods, rollouts, deletion."""

import pytest

from moorage.cluster.verbs.delete import DeleteOptions

from .conftest import resource


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
def test_replica_set_creates_its_replicas(world, kind):
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


def test_deleted_pod_is_replaced(world):
    world.nodes(1)
    world.create("ReplicaSet", "web", **workload(replicas=2))
    world.run(5)
    first = world.pods(app="web")[0]["metadata"]["name"]
    world.delete("Pod", first)
    world.run(5)
    assert len(world.running(app="web")) == 2
    assert not world.exists("Pod", first)


def test_unassigned_pods_are_deleted_first(world):
    world.nodes(1)
    fields = workload(replicas=3)
    fields["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "3"
    world.create("ReplicaSet", "web", **fields)  # The usual node has 8 cores: two fit.
    world.run(5)
    running = {pod["metadata"]["name"] for pod in world.running(app="web")}
    world.change("ReplicaSet", "web", replicas=2)
    world.run(5)
    assert {pod["metadata"]["name"] for pod in world.pods(app="web")} == running


def test_matching_orphans_are_adopted_and_others_released(world):
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


def test_failed_pod_creation_emits_an_event_and_is_retried(world):
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
        pytest.param({"maxSurge": 0, "maxUnavailable": 1}, 4, 3, id="no surge"),
        pytest.param({"maxSurge": 2, "maxUnavailable": 0}, 6, 4, id="no unavailable pods"),
        pytest.param({"maxSurge": "100%", "maxUnavailable": 0}, 8, 4, id="all at once"),
    ],
)
def test_rolling_update_stays_within_its_limits(world, strategy, most, fewest):
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


def test_recreate_ends_all_old_pods_before_new_ones_start(world):
    world.nodes(3)
    world.create("Deployment", "web", **workload(replicas=3, strategy={"type": "Recreate"}))
    world.run(5)
    world.change("Deployment", "web", template=template({"app": "web"}, "web:2"))
    for _ in range(40):
        world.run(0.25)
        assert len(images(world.pods(app="web"))) <= 1
    assert images(world.running(app="web")) == ["web:2"]
    assert len(world.running(app="web")) == 3


def test_rollback_reuses_the_old_set_with_a_new_revision(world):
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


def test_empty_fields_do_not_change_the_template_hash(world):
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
        pytest.param({"stdin": False, "tty": False}, {}, 1, id="false as protobuf encodes it"),
        pytest.param({"env": [{"name": "A"}]}, {"hostNetwork": False}, 1, id="no value"),
        pytest.param({"env": [{"name": "A", "value": "1"}]}, {}, 2, id="another value"),
        pytest.param({}, {"enableServiceLinks": False}, 2, id="false that differs from nothing"),
        pytest.param({}, {"terminationGracePeriodSeconds": 0}, 2, id="0 that differs from nothing"),
        pytest.param({}, {"nodeSelector": {"name": ""}}, 2, id="a label called as a field"),
    ],
)
def test_zero_values_do_not_change_the_template_hash(world, container, pod, sets):
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


def test_scaling_during_a_rollout_is_proportional(world):
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


def test_rollout_without_progress_fails_after_its_deadline_and_recovers(world):
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


def progress(world):
    status = world.get("Deployment", "web")["status"]
    found = next(each for each in status["conditions"] if each["type"] == "Progressing")
    return found["status"], found["reason"]


def test_conditions_of_a_paused_deployment(world):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=1))
    world.run(5)
    assert progress(world) == ("True", "NewReplicaSetAvailable")
    world.change("Deployment", "web", paused=True)
    assert progress(world) == ("Unknown", "DeploymentPaused")
    world.change("Deployment", "web", template=template({"app": "web"}, image="web:2"))
    world.run(5)
    assert progress(world) == ("Unknown", "DeploymentPaused")
    world.change("Deployment", "web", paused=False)
    world.run(5)
    assert progress(world) == ("True", "NewReplicaSetAvailable")


def test_a_complete_rollout_stays_complete_when_it_is_scaled(world):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=1))
    world.run(5)
    world.change("Deployment", "web", replicas=3)  # The new pods do not run yet.
    assert world.get("Deployment", "web")["status"]["replicas"] == 3
    assert progress(world) == ("True", "NewReplicaSetAvailable")


def test_terminating_replicas_are_counted(world):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=2))
    world.run(5)
    world.change("Deployment", "web", replicas=0)
    status = world.get("Deployment", "web")["status"]
    assert (status.get("replicas"), status["terminatingReplicas"]) == (None, 2)
    world.run(5)
    assert world.get("Deployment", "web")["status"]["terminatingReplicas"] == 0
    status = world.all("ReplicaSet")[0]["status"]
    assert status.keys() == {"replicas", "terminatingReplicas", "observedGeneration"}


def test_paused_deployment_can_be_scaled(world):
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


def test_stateful_set_creates_pods_in_order_and_keeps_claims(world):
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


def test_stateful_set_replaces_pods_from_the_highest_down_to_the_partition(world):
    world.nodes(3)
    world.create("StatefulSet", "db", **workload("db", replicas=3, serviceName="db"))
    world.run(10)
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    new = template({"app": "db"}, "web:2")
    world.change("StatefulSet", "db", template=new, updateStrategy=strategy)
    world.run(20)
    got = {p["metadata"]["name"]: p["spec"]["containers"][0]["image"] for p in world.pods(app="db")}
    assert got == {"db-0": "web:1", "db-1": "web:2", "db-2": "web:2"}


def test_parallel_stateful_set_creates_all_pods_at_once(world):
    world.nodes(3)
    fields = workload("db", replicas=3, serviceName="db", podManagementPolicy="Parallel")
    world.create("StatefulSet", "db", **fields)
    assert names(world.pods(app="db")) == ["db-0", "db-1", "db-2"]


# DaemonSet ---------------------------------------------------------------------------------------


def hosts(pods):
    return sorted(pod["spec"].get("nodeName", "") for pod in pods)


def test_daemon_set_has_a_pod_on_every_eligible_node(world):
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


def test_daemon_set_pod_has_node_affinity_and_tolerates_condition_taints(world):
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


def test_daemon_set_replaces_its_pods_one_by_one(world):
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
    ends = ("Complete", "Failed")
    types = [each["type"] for each in status.get("conditions", ()) if each["type"] in ends]
    return types, status.get("succeeded", 0), status.get("failed", 0)


def test_job_completes_within_its_parallelism(world):
    world.nodes(2)
    world.create("Job", "sums", **job(completions=5, parallelism=2))
    for _ in range(80):
        world.run(0.25)
        assert len([p for p in world.pods() if p["status"]["phase"] != "Succeeded"]) <= 2
    assert outcome(world, "sums") == (["Complete"], 5, 0)
    assert len(world.pods()) == 5


def test_finished_pod_counts_even_if_deleted_at_once(world):
    world.nodes(2)
    world.create("Job", "sums", **job(completions=2))
    while not world.pods() or world.pods()[0]["status"]["phase"] != "Succeeded":
        world.run(0.25)
    world.delete("Pod", world.pods()[0]["metadata"]["name"])
    world.run(10)
    assert outcome(world, "sums") == (["Complete"], 2, 0)


def test_job_fails_after_its_backoff_limit(world):
    world.nodes(2)
    failing = job(annotations={"moorage.dev/exit-code": "1"}, backoffLimit=2)
    world.create("Job", "sums", **failing)
    world.run(20)
    assert outcome(world, "sums")[2] == 2  # The third waits twice as long as the second.
    world.run(60)
    assert outcome(world, "sums") == (["Failed"], 0, 3)
    assert world.get("Job", "sums")["status"]["conditions"][-1]["reason"] == "BackoffLimitExceeded"


def test_indexed_job_has_one_success_per_index(world):
    world.nodes(2)
    world.create("Job", "sums", **job(completions=4, parallelism=2, completionMode="Indexed"))
    world.run(20)
    assert world.get("Job", "sums")["status"]["completedIndexes"] == "0-3"


def test_job_ends_at_its_deadline_and_is_deleted_after_its_ttl(world):
    world.nodes(1)
    limits = {"activeDeadlineSeconds": 5, "ttlSecondsAfterFinished": 10}
    world.create("Job", "sums", **job(run_seconds="100", **limits))
    world.run(6)
    assert outcome(world, "sums")[0] == ["Failed"]
    world.run(20)
    assert not world.exists("Job", "sums")
    assert world.pods() == []


@pytest.mark.parametrize("propagation", ["Background", "Foreground"])
def test_pods_of_a_deleted_job_are_deleted(world, propagation):
    world.nodes(1)
    world.create("Job", "sums", **job(run_seconds="100"))
    world.run(2)
    world.delete("Job", "sums", DeleteOptions(propagation_policy=propagation))
    world.run(5)
    assert not world.exists("Job", "sums")
    assert world.pods() == []


def test_suspended_job_has_no_pods(world):
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
def test_deployment_deletion_with_each_propagation_policy(world, propagation, sets, pods):
    world.nodes(1)
    world.create("Deployment", "web", **workload(replicas=2))
    world.run(5)
    world.delete("Deployment", "web", DeleteOptions(propagation_policy=propagation))
    if propagation == "Foreground":
        assert world.exists("Deployment", "web")
    world.run(5)
    assert not world.exists("Deployment", "web")
    assert (len(world.all("ReplicaSet")), len(world.pods(app="web"))) == (sets, pods)


def test_object_with_an_unknown_owner_is_collected(world):
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "ghost", "uid": "no-such"}
    world.create("ConfigMap", "left-over", metadata={"ownerReferences": [owner]})
    assert not world.exists("ConfigMap", "left-over")


@pytest.mark.parametrize(
    ("changes", "is_kept"),
    [
        pytest.param({}, True, id="the owner"),
        pytest.param({"kind": "Secret"}, False, id="another kind"),
        pytest.param({"apiVersion": "example.com/v1"}, False, id="another group"),
        pytest.param({"name": "other"}, False, id="another name"),
    ],
)
def test_an_owner_has_the_kind_and_name_of_the_reference(world, changes, is_kept):
    uid = world.create("ConfigMap", "owner")["metadata"]["uid"]
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": uid} | changes
    world.create("ConfigMap", "dependent", metadata={"ownerReferences": [reference]})
    world.settle()
    assert world.exists("ConfigMap", "dependent") == is_kept


def test_namespace_deletion_deletes_its_content(world):
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


def test_restarted_controllers_change_nothing(world):
    world.nodes(3)
    world.create("Deployment", "web", **workload(replicas=3))
    world.create("Job", "sums", **job(completions=2))
    world.run(20)
    before = world.store.version
    world.begin()
    assert world.store.version == before


def test_namespace_deletion_deletes_pods_first_and_says_what_is_left(world):
    world.nodes(1)
    world.create("Namespace", "team")
    held = {"finalizers": ["example.com/wait"]}
    world.create("Pod", "a", "team", metadata=held, spec=template({})["spec"])
    world.create("ConfigMap", "settings", "team")
    world.run(2)
    world.api.delete(resource("Namespace"), "", "team")
    world.run(10)
    assert world.exists("ConfigMap", "settings", "team")
    status = world.get("Namespace", "team")["status"]
    assert {each["status"] for each in status["conditions"]} == {"False"}
    pod = world.get("Pod", "a", "team")
    world.api.replace(resource("Pod"), {**pod, "metadata": {**pod["metadata"], "finalizers": []}})
    world.run(5)
    assert not world.exists("Namespace", "team")


def test_namespace_deletion_counts_what_is_left_after_its_pods(world):
    world.create("Namespace", "team")
    held = {"finalizers": ["example.com/wait"]}
    world.create("ConfigMap", "settings", "team", metadata=held)
    world.api.delete(resource("Namespace"), "", "team")
    world.run(10)
    namespace = world.get("Namespace", "team")
    assert "deletionGracePeriodSeconds" not in namespace["metadata"]
    messages = {each["type"]: each["message"] for each in namespace["status"]["conditions"]}
    assert "configmaps. has 1 resource instances" in messages["NamespaceContentRemaining"]
    assert "example.com/wait in 1" in messages["NamespaceFinalizersRemaining"]


def test_namespace_with_another_finalizer_says_that_its_content_is_gone(world):
    world.create("Namespace", "team", metadata={"finalizers": ["example.com/wait"]})
    world.api.delete(resource("Namespace"), "", "team")
    world.run(10)
    namespace = world.get("Namespace", "team")
    assert namespace["spec"] == {}
    reasons = {each["type"]: each["reason"] for each in namespace["status"]["conditions"]}
    assert reasons["NamespaceContentRemaining"] == "ContentRemoved"
    kept = {k: v for k, v in namespace["metadata"].items() if k != "finalizers"}
    last = world.api.update(resource("Namespace"), {**namespace, "metadata": kept})
    assert "finalizers" not in last["metadata"]
    assert not world.exists("Namespace", "team")


def test_a_circle_of_owners_is_deleted_in_the_foreground(world):
    made = [world.create("ConfigMap", name) for name in "abc"]
    for obj, owner in zip(made, [made[2], made[0], made[1]], strict=True):
        meta = owner["metadata"]
        reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": meta["name"]}
        reference |= {"uid": meta["uid"], "blockOwnerDeletion": True, "controller": True}
        new = {**obj["metadata"], "ownerReferences": [reference]}
        world.api.replace(resource("ConfigMap"), {**obj, "metadata": new})
    world.settle()
    world.delete("ConfigMap", "a", DeleteOptions(propagation_policy="Foreground"))
    world.run(5)
    assert [world.exists("ConfigMap", name) for name in "abc"] == [False] * 3


def test_a_dependent_with_another_owner_does_not_block_deletion_in_the_foreground(world):
    owners = [world.create("ConfigMap", name)["metadata"] for name in ("going", "staying")]
    references = [
        {"apiVersion": "v1", "kind": "ConfigMap", "name": each["name"], "uid": each["uid"]}
        for each in owners
    ]
    references[0]["blockOwnerDeletion"] = True
    world.create("ConfigMap", "dependent", metadata={"ownerReferences": references})
    world.delete("ConfigMap", "going", DeleteOptions(propagation_policy="Foreground"))
    world.run(5)
    assert not world.exists("ConfigMap", "going")
    assert world.get("ConfigMap", "dependent")["metadata"]["ownerReferences"] == references[1:]
