"""The commands for a live cluster, as a user types them."""

import json
import os
import subprocess

import pytest
import yaml
from world import BIN, until


def moorage(*arguments, env=None):
    return subprocess.run(
        [BIN / "moorage", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=env,
    )


@pytest.fixture
def cluster(world):
    world.create_node("small", cpu="1")
    world.create_node("large", cpu="8")
    world.create_pod("fits", cpu="4")
    world.create_pod("too-large", cpu="16")
    return world


def test_explain_reads_a_live_cluster_without_changing_it(cluster):
    before = cluster.pods(), cluster.nodes()
    kubeconfig = cluster.kubeconfig()
    result = moorage("explain", "fits", "--kubeconfig", kubeconfig, "-o", "json")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["picked"] == "large"
    result = moorage("explain", "too-large", env={**os.environ, "KUBECONFIG": str(kubeconfig)})
    assert "default/too-large stays pending: 0/2 nodes are available" in result.stdout
    home = cluster.folder / "home"
    (home / ".kube").mkdir(parents=True)
    (home / ".kube/config").write_bytes(kubeconfig.read_bytes())
    environment = {key: value for key, value in os.environ.items() if key != "KUBECONFIG"}
    result = moorage("explain", "too-large", env=environment | {"HOME": str(home)})
    assert "default/too-large stays pending: 0/2 nodes are available" in result.stdout
    assert (cluster.pods(), cluster.nodes()) == before
    assert cluster.events() == []


PACKING = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [
        {
            "schedulerName": "default-scheduler",
            "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
            "pluginConfig": [
                {
                    "name": "NodeResourcesFit",
                    "args": {
                        "scoringStrategy": {
                            "type": "MostAllocated",
                            "resources": [{"name": "cpu", "weight": 1}],
                        }
                    },
                }
            ],
        }
    ],
}


def create_scheduler(cluster, configuration, **labels):
    """A pod of a scheduler, with what its port answers; None if it needs authorization."""
    pods = "/api/v1/namespaces/kube-system/pods"
    if configuration is not None:
        path = f"{pods}/https:scheduler:10259/proxy/configz"
        cluster.inject_faults(answers={path: {"componentconfig": configuration}})
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "scheduler", "labels": labels},
        "spec": {"nodeName": "large", "containers": [{"name": "main", "image": "scheduler"}]},
    }
    cluster.call("POST", pods, pod)


@pytest.mark.parametrize(
    ("label", "configuration", "scheduler_name", "expected", "picked"),
    [
        pytest.param(
            {"component": "kube-scheduler"},
            PACKING,
            "default-scheduler",
            "/configz of pod kube-system/scheduler",
            "small",
            id="kube-scheduler",
        ),
        pytest.param(
            {"app.kubernetes.io/name": "moorage"},
            PACKING,
            "default-scheduler",
            "/configz of pod kube-system/scheduler",
            "small",
            id="moorage run",
        ),
        pytest.param(
            {"component": "kube-scheduler"},
            PACKING,
            "another",
            "kube-scheduler's defaults (--config names another)",
            None,
            id="pod of another scheduler",
        ),
        pytest.param(
            {"component": "kube-scheduler"},
            None,
            "default-scheduler",
            "kube-scheduler's defaults (--config names another)",
            "large",
            id="not allowed",
        ),
    ],
)
def test_the_configuration_of_the_scheduler_is_read(
    cluster, label, configuration, scheduler_name, expected, picked
):
    create_scheduler(cluster, configuration, **label)
    cluster.create_pod("p", cpu="500m", schedulerName=scheduler_name)
    result = moorage("explain", "p", "--kubeconfig", cluster.kubeconfig(), "-o", "json")
    assert result.returncode == 0, result.stderr
    found = json.loads(result.stdout)
    assert found["configuration"] == expected
    assert found.get("picked") == picked


def test_code_that_a_pod_names_is_not_run(cluster, tmp_path):
    code = tmp_path / "evil.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Evil:\n    name = 'Evil'\n")
    plugins = {"multiPoint": {"enabled": [{"name": f"{code}:Evil"}]}}
    profile = {"schedulerName": "default-scheduler", "plugins": plugins}
    create_scheduler(cluster, PACKING | {"profiles": [profile]}, component="kube-scheduler")
    result = moorage("explain", "fits", "--kubeconfig", cluster.kubeconfig(), "-o", "json")
    assert json.loads(result.stdout)["picked"] == "large"
    assert "names Python code" in result.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["dump.json", "dump.yaml"])
def test_snapshot_is_read_back(cluster, tmp_path, name):
    file = tmp_path / name
    result = moorage("snapshot", "--kubeconfig", cluster.kubeconfig(), "-o", file)
    assert (result.returncode, result.stdout) == (0, ""), result.stderr
    assert " objects" in result.stderr
    text = file.read_text()
    items = (yaml.safe_load(text) if name.endswith("yaml") else json.loads(text))["items"]
    kinds = [each["kind"] for each in items]
    assert (kinds.count("Node"), kinds.count("Pod")) == (2, 2)
    simulated = json.loads(moorage("simulate", "-f", file, "-o", "json").stdout)
    assert simulated["placements"] == {"default/fits": "large", "default/too-large": None}
    explained = json.loads(moorage("explain", "fits", "-f", file, "-o", "json").stdout)
    assert explained["picked"] == "large"


def test_events_and_conditions_are_kube_schedulers(cluster):
    scheduler = cluster.run()
    until(lambda: len(cluster.events()) == 2 and cluster.reasons()["too-large"])
    events = {each["reason"]: each for each in cluster.events()}
    assert events["Scheduled"]["note"] == "Successfully assigned default/fits to large"
    assert events["FailedScheduling"]["note"].startswith("0/2 nodes are available")
    (condition,) = cluster.pods()["too-large"]["status"]["conditions"]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "False")
    assert condition["reason"] == "Unschedulable"
    assert scheduler.stop() == 0


def test_preemption(cluster):
    urgent = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    cluster.call("POST", "/apis/scheduling.k8s.io/v1/priorityclasses", urgent)
    for i in range(2):
        cluster.create_pod(f"low-{i}", cpu="3900m")
    scheduler = cluster.run()
    until(lambda: len(cluster.bound()) == 2)
    cluster.create_pod("high", cpu="7", priority=1000, priorityClassName="urgent")
    until(lambda: cluster.bound().get("high") == "large")
    cluster.check_room()
    # Events are written after bindings.
    until(lambda: {"Preempted", "Scheduled"} <= {each["reason"] for each in cluster.events()})
    assert scheduler.stop() == 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["run"], "no kubeconfig found", id="no cluster"),
        pytest.param(["run", "--kubeconfig", "gone"], "gone: no such file", id="no file"),
        pytest.param(["snapshot", "--kubeconfig", "gone"], "gone: no such file", id="snapshot"),
        pytest.param(["explain", "p"], "Name the input", id="explain without input"),
        pytest.param(
            ["explain", "p", "-f", "a", "--kubeconfig", "b"], "not both", id="explain of two inputs"
        ),
        pytest.param(
            ["run", "--leader-elect-lease-duration=5s"],
            "leaderElection.leaseDuration: Invalid value",
            id="a lease shorter than its deadline",
        ),
        pytest.param(
            ["run", "--leader-elect-retry-period=soon"],
            'time: invalid duration "soon"',
            id="no duration",
        ),
        pytest.param(["run", "-v=loud"], "'loud' is not a whole number", id="no level"),
    ],
)
def test_error_messages(arguments, message, tmp_path):
    result = moorage(*arguments, env={**os.environ, "HOME": str(tmp_path), "KUBECONFIG": ""})
    assert result.returncode == 2
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_no_connection(world):
    kubeconfig = world.kubeconfig()
    world.close()
    result = moorage("snapshot", "--kubeconfig", kubeconfig)
    assert result.returncode == 2
    assert "Cannot connect to host" in result.stderr
