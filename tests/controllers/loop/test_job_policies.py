"""Policies of Jobs: suspension, replacement, failures and successes of pods and indexes."""

import pytest

from moorage.controllers import job_policies

from .test_workloads import job

EXIT = "moorage.dev/exit-code"


def conditions(world, name="work"):
    """The conditions of the Job that are true, with their reasons."""
    found = world.get("Job", name)["status"].get("conditions", ())
    return [(each["type"], each["reason"]) for each in found if each["status"] == "True"]


def fail(world, index=None):
    """Let the running pods, or the one of an index, fail with exit code 3."""
    for pod in world.running():
        if index in (None, job_policies.completion_index(pod)):
            world.annotate("Pod", pod["metadata"]["name"], **{EXIT: "3"})


def test_suspended_and_resumed(world):
    world.nodes(1)
    world.create("Job", "work", **job("100", parallelism=2, completions=2))
    world.run(2)
    assert world.get("Job", "work")["status"]["active"] == 2
    world.change("Job", "work", suspend=True)
    assert conditions(world) == [("Suspended", "JobSuspended")]
    assert "startTime" not in world.get("Job", "work")["status"]
    world.run(5)
    assert world.pods() == []
    world.change("Job", "work", suspend=False)
    world.run(2)
    status = world.get("Job", "work")["status"]
    assert [each["reason"] for each in status["conditions"]] == ["JobResumed"]
    assert (status["active"], status.get("failed", 0)) == (2, 0)


def test_defaults_and_status_of_a_new_job(world):
    patterns = [{"type": "DisruptionTarget"}]
    policy = {"rules": [{"action": "Ignore", "onPodConditions": patterns}]}
    made = world.create(
        "Job", "work", **indexed(suspend=True, backoffLimitPerIndex=1, podFailurePolicy=policy)
    )
    assert made["spec"]["backoffLimit"] == 2**31 - 1
    (found,) = made["spec"]["podFailurePolicy"]["rules"]
    assert found["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    status = world.get("Job", "work")["status"]
    assert (status["uncountedTerminatedPods"], status["terminating"]) == ({}, 0)
    world.change("Job", "work", suspend=False)
    (reference,) = {
        tuple(each["valueFrom"]["fieldRef"].items())
        for pod in world.pods()
        for each in pod["spec"]["containers"][0]["env"]
    }
    assert dict(reference)["apiVersion"] == "v1"


def test_a_job_of_another_controller_is_left_alone(world):
    world.nodes(1)
    world.create("Job", "work", **job(managedBy="example.com/other"))
    world.run(5)
    assert world.pods() == []
    assert world.get("Job", "work")["status"] == {}


def test_scaling_down_counts_no_failure(world):
    world.nodes(1)
    world.create("Job", "work", **job("100", parallelism=3, completions=3))
    world.run(2)
    world.change("Job", "work", parallelism=1)
    world.run(5)
    status = world.get("Job", "work")["status"]
    assert (status["active"], status["terminating"], status.get("failed", 0)) == (1, 0, 0)


@pytest.mark.parametrize(
    ("policy", "pods"),
    [
        pytest.param("TerminatingOrFailed", 2, id="at once"),
        pytest.param("Failed", 1, id="when the old one has ended"),
    ],
)
def test_replacement_of_a_deleted_pod(world, policy, pods):
    world.nodes(1)
    fields = job("100", {"moorage.dev/stop-seconds": "8"}, podReplacementPolicy=policy)
    world.create("Job", "work", **fields)
    world.run(2)
    (pod,) = world.pods()
    world.delete("Pod", pod["metadata"]["name"])
    world.run(4)
    assert len(world.pods()) == pods
    assert world.get("Job", "work")["status"]["terminating"] == 1
    world.run(30)
    assert len(world.running()) == 1
    assert world.get("Job", "work")["status"]["failed"] == 1


def rule(action, **on_exit):
    return {"rules": [{"action": action, "onExitCodes": {"operator": "In", **on_exit}}]}


@pytest.mark.parametrize(
    ("policy", "ended", "failed"),
    [
        pytest.param(
            rule("FailJob", values=[3]), ["FailureTarget", "Failed"], 1, id="fail the job"
        ),
        pytest.param(rule("Ignore", values=[3]), [], 0, id="ignore"),
        pytest.param(rule("Count", values=[3]), [], 1, id="count"),
        pytest.param(rule("FailJob", values=[4]), [], 1, id="another code"),
        pytest.param(rule("FailJob", values=[3], containerName="x"), [], 1, id="another container"),
    ],
)
def test_pod_failure_policy(world, policy, ended, failed):
    world.nodes(1)
    world.create("Job", "work", **job("3", podFailurePolicy=policy))
    world.run(2)
    fail(world)
    world.run(2)
    assert [each for each, _ in conditions(world)] == ended
    assert world.get("Job", "work")["status"].get("failed", 0) == failed
    if ended:
        message = world.get("Job", "work")["status"]["conditions"][-1]["message"]
        assert message.endswith("failed with exit code 3 matching FailJob rule at index 0")


def test_pod_failure_policy_by_condition():
    pod = {
        "metadata": {"name": "a", "namespace": "b"},
        "status": {"conditions": [{"type": "DisruptionTarget", "status": "True"}]},
    }
    rules = [{"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}]
    made = {"metadata": {}, "spec": {"podFailurePolicy": {"rules": rules}}}
    assert job_policies.failure_action(made, pod).action == "Ignore"


def indexed(run_seconds="3", **fields):
    return job(run_seconds, completionMode="Indexed", parallelism=3, completions=3, **fields)


def test_back_off_per_index(world):
    world.nodes(1)
    world.create("Job", "work", **indexed(backoffLimitPerIndex=1))
    for _ in range(2):
        world.run(1.5)
        fail(world, 1)
        world.run(12)
    world.run(10)
    status = world.get("Job", "work")["status"]
    assert (status["completedIndexes"], status["failedIndexes"]) == ("0,2", "1")
    assert (status["succeeded"], status["failed"]) == (2, 2)
    assert conditions(world)[-1] == ("Failed", "FailedIndexes")


def test_too_many_failed_indexes(world):
    world.nodes(1)
    world.create("Job", "work", **indexed(backoffLimitPerIndex=0, maxFailedIndexes=0))
    world.run(2)
    fail(world, 1)
    world.run(5)
    assert conditions(world)[-1] == ("Failed", "MaxFailedIndexesExceeded")


@pytest.mark.parametrize(
    "rules",
    [
        pytest.param([{"succeededIndexes": "1"}], id="the leader"),
        pytest.param([{"succeededCount": 1}], id="one of all"),
        pytest.param([{"succeededIndexes": "0-1", "succeededCount": 1}], id="one of two"),
    ],
)
def test_success_policy(world, rules):
    world.nodes(1)
    world.create("Job", "work", **indexed("100", successPolicy={"rules": rules}))
    world.run(2)
    for pod in world.running():
        if job_policies.completion_index(pod) == 1:
            world.annotate("Pod", pod["metadata"]["name"], **{"moorage.dev/run-seconds": "1"})
    world.run(5)
    assert conditions(world)[-1] == ("Complete", "SuccessPolicy")
    status = world.get("Job", "work")["status"]
    assert (status["completedIndexes"], status.get("active", 0)) == ("1", 0)
    assert "failed" not in status  # The pods that are stopped have not failed.
    assert all(each["lastProbeTime"] for each in status["conditions"])


def test_a_failed_job_counts_pods_that_still_end_as_failed(world):
    world.nodes(1)
    fields = job("100", {"moorage.dev/stop-seconds": "8"}, parallelism=2, completions=2)
    fields["spec"]["podFailurePolicy"] = rule("FailJob", values=[3])
    world.create("Job", "work", **fields)
    world.run(2)
    first = world.running()[0]["metadata"]["name"]
    world.annotate("Pod", first, **{EXIT: "3", "moorage.dev/run-seconds": "1"})
    world.run(2)
    assert conditions(world) == [("FailureTarget", "PodFailurePolicy")]
    status = world.get("Job", "work")["status"]
    assert (status["failed"], status["terminating"]) == (2, 1)
    world.run(10)
    assert conditions(world)[-1] == ("Failed", "PodFailurePolicy")
    assert world.get("Job", "work")["status"]["failed"] == 2


@pytest.mark.parametrize(
    ("text", "numbers"), [("", set()), ("1", {1}), ("1,3-5", {1, 3, 4, 5}), ("0-2", {0, 1, 2})]
)
def test_indexes_as_text(text, numbers):
    assert job_policies.parse_indexes(text) == numbers
    assert job_policies.format_indexes(numbers) == text
