"""What commands say about the files that they read."""

import functools
import gc
import http.server
import json
import threading

import pytest

from moorage.cli import inputs

WEB = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 7
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      nodeSelector: {kubernetes.io/os: linux}
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - {topologyKey: kubernetes.io/hostname, labelSelector: {matchLabels: {app: web}}}
      containers: [{name: c, image: i, resources: {requests: {cpu: 100m}}}]
"""
NODE = """
apiVersion: v1
kind: Node
metadata: {name: plain}
status: {allocatable: {cpu: "4", memory: 8Gi}}
"""
NOTE = (
    "moorage: note: assumed for 1 Node, as a kubelet would set it: kubernetes.io/hostname, "
    "kubernetes.io/os=linux, kubernetes.io/arch=amd64, pods: 110\n"
)
POOL = """
apiVersion: moorage.dev/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 2, template: {status: {allocatable: {cpu: "4", memory: 8Gi}}}}
"""


def test_what_a_large_file_holds_is_never_collected(run, write, monkeypatch):
    """A single collection of the objects of a large dump takes 0.2 s."""
    enabled = []
    monkeypatch.setattr(inputs, "LARGE_BYTES", 0)
    monkeypatch.setattr(gc, "freeze", lambda: enabled.append(gc.isenabled()))
    assert run("simulate", "-f", write("a.yaml", NODE)).exit_code == 0
    assert enabled == [False], "frozen before the collector is enabled again"
    assert gc.isenabled()


def test_a_hand_written_node_is_completed(run, write):
    got = run("simulate", "-f", write("a.yaml", NODE, WEB), "-o", "json")
    assert got.stderr == NOTE
    assert len(json.loads(got.stdout)["pending"]) == 6


def test_capacity_of_a_hand_written_node(run, write):
    pod, nodes = write("web.yaml", WEB), write("node.yaml", NODE)
    got = run("simulate", "capacity", "-f", nodes, "--pod", pod, "-o", "json")
    assert json.loads(got.stdout)["fits"] == 1


def test_a_scenario_completes_its_nodes(run, write):
    spec = {"duration": "1m", "events": [{"at": "1s", "create": []}]}
    scenario = {"apiVersion": "moorage.dev/v1", "kind": "Scenario", "spec": spec}
    file = write("s.yaml", scenario | {"metadata": {"name": "s"}}, NODE, WEB)
    got = run("simulate", "scenario", file, "-o", "json")
    assert got.stderr == NOTE
    assert json.loads(got.stdout)["summary"]["pending"] == 6


def test_pools_have_a_platform(run, write):
    got = run("simulate", "-f", write("a.yaml", POOL, WEB), "-o", "json")
    assert got.stderr == ""
    assert len(json.loads(got.stdout)["pending"]) == 5


MISSPELT = WEB.replace("nodeSelector", "nodeselector") + "status: {}\n"
PROBLEM = (
    "document 1, Deployment default/web, spec.template.spec.nodeselector: unknown field; "
    'did you mean "nodeSelector"?'
)


@pytest.mark.parametrize(
    "command",
    [("simulate",), ("explain", "web"), ("simulate", "drain", "pool-0"), ("serve", "--port", "0")],
)
def test_misspelt_fields_are_refused(run, write, command):
    file, other = write("a.yaml", MISSPELT), write("b.yaml", POOL.replace("count", "cuont"))
    got = run(*command, "-f", file, "-f", other)
    assert got.exit_code == 2
    assert f"moorage: {file}, {PROBLEM}" in got.stderr.splitlines()
    assert f"moorage: {other}, document 1, NodePool pool, spec.cuont: unknown" in got.stderr


def test_misspelt_fields_of_a_scenario(run, write):
    spec = {"duration": "1m", "arrivals": [{"name": "a", "at": [1], "template": {"spce": {}}}]}
    scenario = {"apiVersion": "moorage.dev/v1", "kind": "Scenario", "spec": spec}
    file = write("s.yaml", scenario | {"metadata": {"name": "s"}}, POOL, MISSPELT)
    got = run("simulate", "scenario", file)
    assert got.exit_code == 2
    assert got.stderr.splitlines() == [
        f"moorage: {file}, document 1, spec.arrivals[0].template.spce: unknown field; did you mean "
        '"spec"?',
        f"moorage: {file}, document 1, spec.arrivals[0].template.spec.containers: Required value",
        f"moorage: {file}, document 3, spec.template.spec.nodeselector: unknown field; did you "
        'mean "nodeSelector"?',
    ]


def test_warn_and_ignore(run, write):
    file = write("a.yaml", MISSPELT, POOL)
    warned = run("simulate", "-f", file, "--validate", "warn")
    assert warned.stderr == f"moorage: warning: {file}, {PROBLEM}\n"
    ignored = run("simulate", "-f", file, "--validate", "ignore")
    assert (ignored.stderr, ignored.stdout) == ("", warned.stdout)


def limited(kind, api_version="v1"):
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}


def test_kinds_that_change_pods_are_named(run, write, make_pod, make_node):
    kinds = (limited("HorizontalPodAutoscaler", "autoscaling/v2"),)
    file = write("a.yaml", make_node("n"), make_pod("p"), *kinds)
    got = run("simulate", "-f", file)
    assert got.stderr.splitlines() == [
        "moorage: warning: HorizontalPodAutoscaler (1 object) is not applied: workloads keep "
        "spec.replicas, also if that is below minReplicas",
    ]
    stored = make_pod("p") | {"metadata": {"name": "p", "uid": "1"}}
    got = run("simulate", "-f", write("b.yaml", make_node("n"), stored, *kinds))
    assert got.stderr == ""


def test_limits_of_a_quota_that_are_not_applied_are_named(run, write, make_node):
    hard = {"pods": "1", "secrets": "1", "count/ingresses.networking.k8s.io": "1"}
    file = write("a.yaml", make_node("n"), limited("ResourceQuota") | {"spec": {"hard": hard}})
    assert run("simulate", "-f", file).stderr == (
        f"moorage: warning: {file}, document 2, ResourceQuota default/x: 2 limits not applied: "
        "count/ingresses.networking.k8s.io, secrets\n"
    )


def test_a_cron_job_that_never_runs_is_named(run, write, make_node):
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    spec = {"schedule": "0 0 30 2 *", "jobTemplate": {"spec": {"template": template}}}
    meta = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "never"}}
    file = write("a.yaml", make_node("n"), meta | {"spec": spec})
    got = run("simulate", "-f", file)
    assert got.exit_code == 0
    assert got.stdout.startswith("0 pods on 1 node")
    assert got.stderr == (
        f"moorage: warning: {file}, document 2, CronJob default/never, spec.schedule: "
        '"0 0 30 2 *" names no day of the calendar, so it never runs\n'
    )


def test_files_of_other_options_are_no_objects_of_a_folder(run, write, make_node, tmp_path):
    """A note, or an error, would say that what the command reads is not read."""
    write("node.yaml", make_node("one"))
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    config, prices = write("config.yaml", head), write("prices.yaml", "one: 0.5\n")
    spec = {"duration": "1m"}
    day = {"apiVersion": "moorage.dev/v1", "kind": "Scenario", "metadata": {"name": "day"}}
    scenario = write("day.yaml", day | {"spec": spec})
    options = ("-f", tmp_path, "--config", config, "--prices", prices)
    got = run("simulate", "scenario", scenario, *options)
    assert (got.exit_code, got.stderr) == (0, "")
    scenario.unlink()
    got = run("simulate", *options)
    assert (got.exit_code, got.stderr) == (0, "")
    assert "does not read" not in got.stdout
    prices.unlink()
    assert run("simulate", "compare", config, config, "-f", tmp_path).stderr == ""
    assert "does not read: 1 kubescheduler" in run("simulate", "-f", tmp_path).stdout


def test_an_unknown_runtime_class_is_named(run, write, make_pod, make_node):
    kata = {"apiVersion": "node.k8s.io/v1", "kind": "RuntimeClass", "metadata": {"name": "kata"}}
    pods = [make_pod(name, runtimeClassName=name) for name in ("kata", "gvisor")]
    file = write("a.yaml", make_node("n"), *pods, kata | {"handler": "kata"})
    assert run("simulate", "-f", file).stderr == (
        f'moorage: warning: {file}, document 3, Pod default/gvisor: no RuntimeClass "gvisor" is '
        "among the objects, so an API server would refuse the pods; no overhead and no node "
        "selector are assumed\n"
    )


def test_refused_pods_are_listed(run, write, make_node, make_pod):
    quota = limited("ResourceQuota") | {"spec": {"hard": {"pods": "1"}}}
    file = write("a.yaml", make_node("n"), make_pod("p"), make_pod("q"), quota, WEB)
    got = run("simulate", "-f", file, "--fail-on-pending")
    assert got.exit_code == 1
    assert "1 placed" in got.stdout
    assert "Pod default/q\n" in got.stdout
    assert "Deployment default/web\n" in got.stdout
    refused = json.loads(run("simulate", "-f", file, "-o", "json").stdout)["refused"]
    assert [(each["kind"], each["name"]) for each in refused] == [
        ("Pod", "q"),
        ("Deployment", "web"),
    ]
    why = "exceeded quota: x, requested: pods=1, used: pods=1, limited: pods=1"
    got = run("explain", "q", "-f", file)
    assert " ".join(got.stdout.split()) == f'default/q is not created: pods "q" is forbidden: {why}'
    assert why in run("explain", "deployment/web", "-f", file).stdout


def test_an_unknown_priority_class_is_named_with_its_file(run, write, make_pod, make_node):
    nodes = write("nodes.yaml", make_node("n"), make_pod("other"))
    pods = write("pods.yaml", make_pod("p", priorityClassName="high"), WEB)
    got = run("simulate", "-f", nodes, "-f", pods, "-o", "json")
    assert got.exit_code == 0
    assert got.stderr == (
        f'moorage: warning: {pods}, document 1, Pod default/p: no PriorityClass "high" is among '
        "the objects, so an API server would refuse the pods; priority 0 is assumed\n"
    )
    assert json.loads(got.stdout)["placements"]["default/p"] == "n"
    several = WEB.replace("      nodeSelector", "      priorityClassName: high\n      nodeSelector")
    got = run("simulate", "-f", nodes, "-f", write("web.yaml", several), "-f", pods)
    assert "Deployment default/web" in got.stderr or "and 1 more" in got.stderr
    file = write("one.yaml", several)
    got = run("simulate", "capacity", "-f", nodes, "--pod", file)
    assert f"{file}, document 1, Deployment default/web: no PriorityClass" in got.stderr


@pytest.fixture
def web(tmp_path):
    """The address of a web server for the folder of files."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=tmp_path)
    handler.func.log_message = lambda *_: None
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_url(run, write, web, make_node, make_pod):
    write("a.yaml", make_node("n"), make_pod("p"))
    assert run("simulate", "-f", f"{web}/a.yaml").stdout.startswith("1 pod on 1 node")
    got = run("simulate", "-f", f"{web}/b.yaml")
    assert got.exit_code == 2
    assert got.stderr == f"moorage: {web}/b.yaml: HTTP 404 File not found\n"


def test_simulate_takes_paths_without_f(run, cluster, make_node):
    expected = run("simulate", "-f", cluster, "--seed", "3", "-o", "json").stdout
    assert run("simulate", cluster, "--seed", "3", "-o", "json").stdout == expected
    assert run("simulate", "--seed", "3", "-o", "json", cluster).stdout == expected
    given = cluster.read_text()
    assert run("simulate", "-", "--seed=3", "-ojson", stdin=given).stdout == expected
    more = cluster.parent / "more.json"
    more.write_text(json.dumps(make_node("m")))
    assert "on 3 nodes" in run("simulate", cluster, more).stdout


def test_simulate_refuses_a_misspelt_command(run):
    got = run("simulate", "capcity")
    assert got.exit_code == 2
    assert "No such command, file or folder: 'capcity'" in got.stderr
    assert run("simulate", "nowhere.yaml").stderr == (
        "moorage: nowhere.yaml: no such file or folder\n"
    )


ROLLOUT = """
apiVersion: argoproj.io/v1alpha1
kind: Rollout
metadata: {name: web, namespace: shop}
spec:
  replicas: 5
  template: {spec: {containers: [{name: c, image: x}]}}
"""
COMMANDS = (("simulate", "-f"), ("explain", "-f"), ("simulate", "compact", "-f"))


@pytest.mark.parametrize("command", COMMANDS)
def test_workloads_of_other_controllers_are_named(run, write, cluster, command):
    path = write("r.yaml", ROLLOUT)
    got = run(*command, cluster, "-f", path, "-o", "json")
    warning = (
        "Rollout (argoproj.io/v1alpha1) is not read, so its pods are missing: shop/web (5 pods)"
    )
    assert got.stderr.count(f"moorage: warning: {warning}\n") == 1
    document = json.loads(got.stdout)
    assert document["warnings"] == [warning]
    [found] = document["unreadWorkloads"]
    assert (found["kind"], found["namespace"], found["name"]) == ("Rollout", "shop", "web")
    assert found["pods"] == 5


def test_a_workload_of_another_controller_with_its_pods(run, write, cluster, make_pod):
    owner = {"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "name": "web", "uid": "u"}
    pod = make_pod("web-1")
    pod["metadata"] |= {"namespace": "shop", "ownerReferences": [owner | {"controller": True}]}
    files = write("r.yaml", ROLLOUT), write("p.yaml", pod)
    got = run("simulate", cluster, *files)
    assert "Rollout (" not in got.stderr
    assert "1 argoproj.io/v1alpha1 Rollout" in got.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_a_scenario_is_no_object(run, cluster, write, command):
    text = "apiVersion: moorage.dev/v1\nkind: Scenario\nmetadata: {name: day}\n"
    got = run(*command, cluster, "-f", write("day.yaml", text))
    assert got.exit_code == 2
    assert got.stderr.endswith(
        "day.yaml, document 1, Scenario default/day: is no object of a cluster; run it with "
        "`moorage simulate scenario FILE`\n"
    )


EXTENDED = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
extenders: [{urlPrefix: "http://localhost:1/x", filterVerb: filter}]
"""


@pytest.mark.parametrize("command", COMMANDS)
def test_extenders_that_are_not_called(run, write, cluster, command):
    got = run(*command, cluster, "--config", write("e.yaml", EXTENDED), "-o", "json")
    warning = (
        "1 extender is not called: http://localhost:1/x; only `run` calls those of its "
        "configuration"
    )
    assert got.stderr == f"moorage: warning: {warning}\n"
    assert json.loads(got.stdout)["warnings"] == [warning]
