"""Workloads of a dump, and what a dump lacks: running pods stay where they are."""

import pytest

from moorage import Simulation
from moorage.testing import make_node

LABELS = {"app": "x"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
REVISION, GENERATION = "controller-revision-hash", "pod-template-generation"


def workload(kind, status=None, api_version="apps/v1", **spec):
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": "x", "namespace": "default", "uid": "u", "resourceVersion": "7"},
        "spec": {"selector": {"matchLabels": LABELS}, "template": TEMPLATE, **spec},
        "status": status or {},
    }


def pod(name, node, kind, api_version="apps/v1", **labels):
    owner = {"apiVersion": api_version, "kind": kind, "name": "x", "uid": "u", "controller": True}
    labels = {key.replace("_", "-"): value for key, value in labels.items()}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": name,
            "labels": LABELS | labels,
            "ownerReferences": [owner],
        },
        "spec": {"nodeName": node, "containers": [{"name": "c", "image": "x"}]},
        "status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]},
    }


STATEFUL = {"replicas": 2, "serviceName": "x"}
OTHERS = {"currentRevision": "x-6b5d", "updateRevision": "x-6b5d"}
JOB = {"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 600}
STARTED = {"active": 2, "startTime": "2025-10-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("owner", "names", "labels"),
    [
        pytest.param(
            workload("StatefulSet", OTHERS, **STATEFUL),
            ("x-0", "x-1"),
            {REVISION: "x-6b5d"},
            id="a StatefulSet of kube-controller-manager",
        ),
        pytest.param(
            workload("StatefulSet", **STATEFUL),
            ("x-0", "x-1"),
            {REVISION: "other"},
            id="a StatefulSet without a status",
        ),
        pytest.param(
            workload("StatefulSet", OTHERS, **STATEFUL),
            ("x-0", "x-1"),
            {},
            id="a StatefulSet whose pods lack the label",
        ),
        pytest.param(
            workload("DaemonSet"),
            ("x-aaaaa", "x-bbbbb"),
            {REVISION: "7c9f", GENERATION: "1"},
            id="a DaemonSet of kube-controller-manager",
        ),
        pytest.param(
            workload("DaemonSet"),
            ("x-aaaaa", "x-bbbbb"),
            {},
            id="a DaemonSet whose pods lack the label",
        ),
        pytest.param(
            workload("Job", STARTED, "batch/v1", **JOB),
            ("x-aaaaa", "x-bbbbb"),
            {},
            id="a Job that started before virtual time did",
        ),
    ],
)
def test_pods_of_a_dump_stay(owner, names, labels):
    kind, version = owner["kind"], owner["apiVersion"]
    pods = [pod(name, f"n-{i}", kind, version, **labels) for i, name in enumerate(names)]
    sim = Simulation([make_node("n-0"), make_node("n-1"), owner, *pods], check=True)
    sim.run(until=300)
    assert sim.placements == {f"default/{name}": f"n-{i}" for i, name in enumerate(names)}
    assert sim.result.created == len(pods)


def test_another_template_is_rolled_out_to_pods_of_a_dump():
    labels = {REVISION: "7c9f", GENERATION: "1"}
    pods = [pod("x-aaaaa", "n-0", "DaemonSet", **labels)]
    sim = Simulation([make_node("n-0"), workload("DaemonSet"), *pods], check=True)
    changed = {**TEMPLATE, "spec": {"containers": [{"name": "c", "image": "y"}]}}
    sim.at(10, lambda: sim.update(workload("DaemonSet", template=changed)))
    sim.run(until=300)
    assert "default/x-aaaaa" not in sim.placements
    assert list(sim.placements.values()) == ["n-0"]


def test_a_rollout_that_a_dump_shows_goes_on():
    pods = [
        pod("x-aaaaa", "n-0", "DaemonSet", **{REVISION: "old", GENERATION: "1"}),
        pod("x-bbbbb", "n-1", "DaemonSet", **{REVISION: "new", GENERATION: "2"}),
    ]
    sim = Simulation([make_node("n-0"), make_node("n-1"), workload("DaemonSet"), *pods])
    sim.run(until=300)
    assert sim.placements.pop("default/x-bbbbb") == "n-1"
    assert "default/x-aaaaa" not in sim.placements


def test_a_cron_job_of_a_dump_runs_at_its_next_time():
    job = {"jobTemplate": {"spec": {"template": TEMPLATE}}, "schedule": "0 * * * *"}
    status = {"lastScheduleTime": "2025-10-01T00:00:00Z"}
    owner = workload("CronJob", status, "batch/v1", **job)
    owner["spec"].pop("selector")
    owner["spec"].pop("template")
    sim = Simulation([make_node("n-0"), owner])
    sim.run(until=3599)
    assert not sim.placements
    sim.run(until=3601)
    assert len(sim.placements) == 1
