"""`moorage explain`."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest
import yaml

from moorage import explain


def test_a_pod_that_fits(run, cluster):
    got = run("explain", "fits", "-f", cluster)
    assert got.exit_code == 0
    assert got.stdout.startswith(
        "default/fits would run on large: it is the only one of 2 nodes that fits.\n"
    )
    assert "Insufficient cpu  NodeResourcesFit\n   small\n" in got.stdout
    assert got.stdout.endswith(
        "\n1 object of a kind that scheduling does not read: 1 v1 ConfigMap\n"
    )


def test_a_pod_that_stays_pending(run, cluster):
    got = run("explain", "default/huge", "-f", cluster)
    assert got.exit_code == 0
    assert got.stdout.startswith(
        "default/huge stays pending: 0/2 nodes are available: 2 Insufficient cpu."
    )
    assert (
        "-  Insufficient cpu: the pod requests 64; of the 2 nodes with this reason, large has the "
        "most free:\n   8. None of them is large enough when empty; the largest has 8.\n"
        in got.stdout
    )


def test_a_gated_pod(run, cluster):
    got = run("explain", "gated", "-f", cluster)
    assert got.exit_code == 0
    assert got.stdout.startswith(
        "default/gated is gated by SchedulingGates: waiting for scheduling gates: "
        "[example.com/wait]."
    )


def test_a_pod_that_has_ended(run, write, make_node, make_pod):
    done = {**make_pod("p", nodeName="n"), "status": {"phase": "Succeeded"}}
    got = run("explain", "p", "-f", write("a.yaml", make_node("n"), done))
    assert got.stdout.startswith("default/p has ended (Succeeded) on n. Scheduled again, it would")


def test_a_pod_that_is_being_deleted(run, write, make_node, make_pod):
    going = make_pod("p")
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    got = run("explain", "p", "-f", write("a.yaml", make_node("n"), going))
    assert "is being deleted, so it is not scheduled. Otherwise it would run on n" in got.stdout


@pytest.mark.parametrize("asked", ["web", "default/web-1z"])
def test_a_name_that_is_nearly_right(run, write, make_node, make_pod, asked):
    got = run("explain", asked, "-f", write("a.yaml", make_node("n"), make_pod("web-1x")))
    assert got.exit_code == 2
    assert got.stderr == (
        f"moorage: no pod '{asked}' among the 1 given; did you mean default/web-1x?\n"
    )


def test_a_pod_of_another_scheduler(run, write, make_node, make_pod):
    path = write("c.yaml", make_node("n"), make_pod("p", schedulerName="mine"))
    got = run("explain", "p", "-f", path)
    assert got.exit_code == 0
    assert got.stdout.startswith('default/p stays pending: no profile for scheduler "mine"\n')
    assert "the profiles here are: default-scheduler" in got.stdout


def test_a_pod_that_runs_already(run, cluster):
    got = run("explain", "runs", "-f", cluster)
    assert got.exit_code == 0
    first = " ".join(got.stdout.split("\n\n")[0].split())
    assert first.startswith("default/runs runs on small. Scheduled again, it would go to large: ")
    assert first.endswith("28 points ahead of small, most of all in NodeResourcesFit.")


@pytest.mark.parametrize("pod", ["fits", "huge", "gated", "runs"])
@pytest.mark.parametrize("form", ["json", "yaml"])
def test_for_programs(run, cluster, pod, form):
    got = run("explain", pod, "-f", cluster, "-o", form)
    assert got.exit_code == 0
    objects = list(yaml.safe_load_all(cluster.read_text()))
    read = {"json": json.loads, "yaml": yaml.safe_load}[form]
    assert read(got.stdout) == explain(objects, pod).to_dict()


def test_scores_best_first_and_only_some_without_all(run, write, make_node, make_pod):
    nodes = [make_node(f"node-{i:02}", str(2 + i)) for i in range(15)]
    path = write("c.yaml", *nodes, make_pod("p"))
    some, everything = (run("explain", "p", "-f", path, *more).stdout for more in ([], ["-a"]))
    assert "* node-14 " in some
    assert some.index("node-14") < some.index("node-13")
    assert "and 5 more; -a shows all\n" in some
    assert "node-00" not in some
    assert "node-00" in everything
    assert "-a shows all" not in everything


def test_plugins_without_room_are_named(run, write, monkeypatch, make_node, make_pod):
    monkeypatch.setenv("COLUMNS", "36")
    path = write("c.yaml", make_node("small", "2"), make_node("large", "8"), make_pod("p"))
    got = run("explain", "p", "-f", path).stdout
    assert "no room for\nNodeResourcesBalancedAllocation\n" in got
    assert max(map(len, got.splitlines())) <= 36


def test_standard_input_and_a_file(run, write, make_node, make_pod):
    path = write("nodes.yaml", make_node("n"))
    got = run("explain", "p", "-f", path, "-f", "-", stdin=json.dumps(make_pod("p")))
    assert got.exit_code == 0
    assert got.stdout.startswith("default/p would run on n: it is the only node.\n")


def test_a_folder(run, cluster, make_node):
    (cluster.parent / "more.json").write_text(json.dumps(make_node("larger", "16")))
    got = run("explain", "fits", "-f", cluster.parent, "-o", "json")
    assert json.loads(got.stdout)["feasible"] == ["large", "larger"]


def test_names_with_brackets_are_no_markup(run, write, make_node, make_pod):
    gates = [{"name": "bold"}, {"name": "red"}]
    path = write("c.yaml", make_node("n"), make_pod("p", schedulingGates=gates))
    assert "[bold red]" in run("explain", "p", "-f", path).stdout


def test_colour_and_width_are_the_terminal_s(cluster):
    plain, coloured = (on_a_terminal(cluster, NO_COLOR=no_color) for no_color in ("1", None))
    assert "\x1b[1;32m" in coloured
    assert "\x1b[1;32m" not in plain
    assert max(map(len, plain_lines(plain))) <= 60


@pytest.mark.parametrize("term", ["dumb", None])
def test_a_terminal_that_cannot_draw_gets_what_a_file_gets(run, monkeypatch, cluster, term):
    monkeypatch.setenv("COLUMNS", "60")
    shown = on_a_terminal(cluster, TERM=term).replace("\r\n", "\n")
    assert shown == run("explain", "fits", "-f", cluster).stdout


def on_a_terminal(cluster, **variables):
    ours, theirs = pty.openpty()
    moorage = [sys.executable, "-c", "from moorage.cli.main import main; main()"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "60", "NO_COLOR": None, **variables}
    with subprocess.Popen(
        [*moorage, "explain", "fits", "-f", str(cluster)],
        stdout=theirs,
        env={name: value for name, value in environment.items() if value is not None},
    ):
        os.close(theirs)
        text = b""
        try:
            while more := os.read(ours, 4096):
                text += more
        except OSError:  # How Linux says that the other end is closed.
            pass
    os.close(ours)
    return text.decode()


def plain_lines(text):
    return re.sub(r"\x1b\[[0-9;]*m", "", text).splitlines()


SPEC = "spec: {containers: [{name: c, image: i}]}"


@pytest.mark.parametrize(
    ("pod", "content", "message"),
    [
        pytest.param("p", "a: [", "moorage: {path}, line ", id="half a file"),
        pytest.param("p", "", "moorage: {path}: holds no objects", id="an empty file"),
        pytest.param(
            "p",
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: q}}, {SPEC}}}",
            "moorage: no pod 'p' among the 1 given; name it as namespace/name",
            id="an unknown pod",
        ),
        pytest.param(
            "p",
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: a}}, {SPEC}}}\n---\n"
            f"{{apiVersion: v1, kind: Pod, metadata: {{name: p, namespace: b}}, {SPEC}}}",
            "moorage: pod 'p' is not unique: say which of a/p, b/p",
            id="two pods of that name",
        ),
        pytest.param(
            "p",
            "{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {a: 1}}}",
            "moorage: {path}, document 1, Pod default/p, metadata.labels.a: must be text, is 1; "
            "put it in quotes",
            id="an object of the wrong shape",
        ),
    ],
)
def test_bad_objects(run, write, pod, content, message):
    path = write("c.yaml", content)
    got = run("explain", pod, "-f", path)
    assert got.exit_code == 2
    assert got.stdout == ""
    assert got.stderr.startswith(message.format(path=path))
    assert got.stderr.count("\n") == 1


EXCLUSIVE = """
apiVersion: moorage.dev/v1
kind: NodePool
metadata: {name: node}
spec: {count: 2, template: {status: {allocatable: {cpu: "4"}}}}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      affinity:
        podAntiAffinity:
          requiredDuringSchedulingIgnoredDuringExecution:
            - topologyKey: kubernetes.io/hostname
              labelSelector: {matchLabels: {app: web}}
      containers: [{name: c, image: x}]
"""


def test_pods_that_exclude_one_another(run, write):
    path = write("c.yaml", EXCLUSIVE)
    text = " ".join(run("explain", "-f", path).stdout.split())
    assert text.startswith(
        "3 pods without a node: each alone, 3 would fit a node now and 0 would not; all together, "
        "2 get a node."
    )
    assert "1 pod without a node if all are scheduled 1 default/web-" in text
    plain = json.loads(run("explain", "-f", path, "-o", "json").stdout)
    assert plain["alone"] == {"fit": 3, "pending": 0}
    assert plain["together"]["fit"] == 2
    [(pod, message)] = plain["together"]["pending"].items()
    assert "2 node(s) didn't match pod anti-affinity rules" in message
    simulated = run("simulate", path, "--explain", pod, "-o", "json").stdout
    assert json.loads(simulated)["pending"].keys() == {pod}


def test_a_pod_after_the_simulation(run, write):
    path = write("c.yaml", EXCLUSIVE)
    result = json.loads(run("simulate", path, "-o", "json").stdout)
    [pod] = result["pending"]
    text = run("simulate", path, "--explain", pod).stdout
    assert f"{pod} stays pending: 0/2 nodes" in text
    assert "the pod must not share kubernetes.io/hostname" in text
    plain = json.loads(run("simulate", path, "--explain", pod, "-o", "json").stdout)
    assert plain.pop("explanations")[pod]["unschedulablePlugins"] == ["InterPodAffinity"]
    assert plain == result


def test_a_missing_node(run, write, make_pod):
    path = write("c.yaml", make_pod("p", nodeName="gone"))
    assert json.loads(run("explain", "p", "-f", path, "-o", "json").stdout)["missingNode"] == "gone"


def test_no_nodes(run, write, make_pod):
    got = run("explain", "p", "-f", write("c.yaml", make_pod("p")))
    assert got.exit_code == 0
    assert got.stdout.startswith("default/p stays pending: no nodes available to schedule pods\n")
    assert "There is no node among the objects that were given.\n" in got.stdout


def test_all_pending_pods_by_reason(run, cluster):
    got = run("explain", "-f", cluster)
    assert got.exit_code == 0
    assert got.stdout.startswith(
        "3 pods without a node: each alone, 1 would fit a node now and 2 would not.\n"
    )
    assert "1  default/huge\n   0/2 nodes are available: 2 Insufficient cpu.\n" in got.stdout
    assert "1  default/gated\n   waiting for scheduling gates: [example.com/wait]" in got.stdout
    assert "1  default/fits\n   each would fit a node now" in got.stdout
    plain = json.loads(run("explain", "-f", cluster, "-o", "json").stdout)
    assert [each["pods"] for each in plain["groups"]][2] == ["default/fits"]
    assert plain["groups"][0]["first"]["message"] == "0/2 nodes are available: 2 Insufficient cpu."


def test_nothing_is_pending(run, write, make_node, make_pod):
    path = write("c.yaml", make_node("n"), make_pod("p", nodeName="n"), make_pod("q", nodeName="n"))
    assert run("explain", "-f", path).stdout == "No pod is pending; 2 pods have a node.\n"


def test_a_pod_or_a_selector(run, cluster):
    got = run("explain", "huge", "-l", "a=b", "-f", cluster)
    assert got.exit_code == 2
    assert "Name a POD or a selector (-l), not both." in got.stderr


def test_a_recorded_condition_of_another_reason_is_shown(run, write, make_node, make_pod):
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    pod = make_pod("p") | {"status": {"conditions": [condition | {"message": "0/9 nodes"}]}}
    got = run("explain", "p", "-f", write("c.yaml", make_node("n"), pod)).stdout
    assert "Recorded by the cluster's scheduler\ncondition  Unschedulable: 0/9 nodes\n" in got
    assert "Configuration assumed here: kube-scheduler's defaults" in got
    assert "The recorded reason differs from the explanation" in got
