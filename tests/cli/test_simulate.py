"""`moorage simulate`."""

import json

import pytest
import yaml

GOOD_PLUGIN = """
from moorage import plugin as mp

class Picky:
    name = "Picky"

    def filter(self, state, pod, node):
        return mp.SUCCESS if node.name == "small" else mp.unresolvable("node(s) not to my taste")
"""

RAISING_PLUGIN = """
from moorage import plugin as mp

class Moody:
    name = "Moody"

    def filter(self, state, pod, node):
        if pod.labels.get("mood") == "bad":
            raise RuntimeError("not today")
        return mp.SUCCESS
"""


def test_for_people(run, cluster):
    got = run("simulate", "-f", cluster)
    assert got.exit_code == 0
    assert got.stdout.startswith(
        "4 pods on 2 nodes after 1 s: 1 placed, 1 already running, 2 pending (1 of them gated).\n"
    )
    rows = [line.split() for line in got.stdout.splitlines()]
    assert ["small", "1/10", "███░░░", "50%", "1/2", "░░░░░░", "0%", "0/8Gi"] in rows
    assert ["large", "1/10", "+1", "██░░░░", "38%", "3/8", "░░░░░░", "0%", "0/8Gi"] in rows
    assert "\n1 pod placed\nlarge  default/fits\n" in got.stdout
    assert (
        "\n2 pods stay pending\n"
        "1  default/huge\n"
        "   0/2 nodes are available: 2 Insufficient cpu. preemption: 0/2 nodes are available: "
        "2 Preemption is\n"
        "   not helpful for scheduling.\n"
        "1  default/gated\n"
        "   waiting for scheduling gates: [example.com/wait]\n" in got.stdout
    )


def test_preempted_pods(run, write, make_node, make_pod):
    pods = [
        make_pod("low", "3", nodeName="n", priority=0),
        make_pod("high", "3", priority=10),
    ]
    path = write("c.yaml", make_node("n"), *pods)
    told = run("simulate", "-f", path).stdout
    assert "\n1 pod preempted\ndefault/low  for default/high on n, after 0 s\n" in told
    got = json.loads(run("simulate", "-f", path, "-o", "json").stdout)
    assert got["evictions"] == [
        {"pod": "default/low", "by": "default/high", "node": "n", "at": 0.0}
    ]
    assert got["summary"]["evicted"] == 1


PLAIN_SUMMARY = {
    "pods": 4,
    "nodes": 2,
    "placed": 1,
    "running": 1,
    "ended": 0,
    "evicted": 0,
    "pending": 2,
    "gated": 1,
    "seconds": 1.0,
}


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_for_programs(run, cluster, form):
    got = run("simulate", "-f", cluster, "-o", form)
    assert got.exit_code == 0
    document = {"json": json.loads, "yaml": yaml.safe_load}[form](got.stdout)
    # Fields that a scenario has as well are tested there.
    shared = {"pendingReasons", "disruptions", "causes", "spreadViolations", "samples"}
    assert shared <= document.keys()
    summary = {name: document["summary"][name] for name in PLAIN_SUMMARY}
    assert {key: document[key] for key in document.keys() - shared} | {"summary": summary} == {
        "placements": {
            "default/runs": "small",
            "default/fits": "large",
            "default/huge": None,
            "default/gated": None,
        },
        "devices": {},
        "pending": {
            "default/huge": "0/2 nodes are available: 2 Insufficient cpu. "
            "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            "default/gated": "waiting for scheduling gates: [example.com/wait]",
        },
        "heldBack": {},
        "refused": [],
        "evictions": [],
        "nodes": {
            "small": {
                "pods": 1,
                "requested": {"cpu": "1", "memory": "0", "pods": "1"},
                "allocatable": {"cpu": "2", "memory": "8Gi", "pods": "10"},
                "share": 0.5,
                "offered": {"cpu": 2000, "memory": 8 << 30, "pods": 10},
            },
            "large": {
                "pods": 1,
                "requested": {"cpu": "3", "memory": "0", "pods": "1"},
                "allocatable": {"cpu": "8", "memory": "8Gi", "pods": "10"},
                "share": 0.375,
                "offered": {"cpu": 8000, "memory": 8 << 30, "pods": 10},
            },
        },
        "summary": PLAIN_SUMMARY,
    }


@pytest.mark.parametrize(
    ("pods", "code"),
    [
        pytest.param(["fits"], 0, id="every pod has a node"),
        pytest.param(["fits", "huge"], 1, id="a pod fits nowhere"),
        pytest.param(["fits", "gated"], 1, id="gated pods count"),
    ],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_fail_on_pending(run, write, make_node, make_pod, pods, code, form):
    made = {
        "fits": make_pod("fits"),
        "huge": make_pod("huge", "64"),
        "gated": make_pod("gated", schedulingGates=[{"name": "g"}]),
    }
    path = write("c.yaml", make_node("n"), *(made[name] for name in pods))
    assert run("simulate", "-f", path, "-o", form, "--fail-on-pending").exit_code == code
    assert run("simulate", "-f", path, "-o", form).exit_code == 0


def test_a_stateful_set_that_waits_for_its_first_pod(run, write, make_node, make_pod):
    template = {"metadata": {"labels": {"app": "db"}}, "spec": make_pod("x", "64")["spec"]}
    spec = {"replicas": 3, "selector": {"matchLabels": {"app": "db"}}, "template": template}
    database = {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": "db"}}
    path = write("c.yaml", make_node("n"), database | {"spec": spec})
    said = "StatefulSet default/db waits for db-0 to run before it creates 2 more pods."
    assert said in run("simulate", "-f", path).stdout
    found = json.loads(run("simulate", "-f", path, "-o", "json").stdout)
    assert found["heldBack"] == {"default/db": {"waitsFor": "db-0", "pods": 2}}
    assert list(found["pending"]) == ["default/db-0"]


def test_one_seed_one_outcome(run, write, make_node, make_pod):
    nodes = [make_node(f"n{i}") for i in range(8)]
    path = write("c.yaml", *nodes, *(make_pod(f"p{i}") for i in range(8)))

    def outcome(seed):
        return run("simulate", "-f", path, "--seed", seed, "-o", "json").stdout

    assert outcome(7) == outcome(7)
    assert len({outcome(seed) for seed in range(5)}) > 1


@pytest.mark.parametrize("moment", ["nan", "inf", "-1"])
def test_until_no_moment(run, moment):
    got = run("simulate", "-f", "-", "--until", moment, stdin="")
    assert got.exit_code == 2
    assert "Invalid value for '--until'" in got.stderr


def test_until(run, write, make_node, make_pod):
    short = make_pod("short", "3")
    short["metadata"]["annotations"] = {"moorage.dev/run-seconds": "60"}
    path = write("c.yaml", make_node("n"), short, make_pod("next", "3"))

    def summary(*more):
        return json.loads(run("simulate", "-f", path, "-o", "json", *more).stdout)["summary"]

    assert summary("--until", "30") | {"pending": 1, "ended": 0} == summary("--until", "30")
    assert summary("--until", "30")["seconds"] == 30
    assert summary() | {"pending": 0, "ended": 1} == summary()


def test_many_nodes_are_cut_short_without_all(run, write, make_node, make_pod):
    path = write("c.yaml", *(make_node(f"n{i:03}") for i in range(60)), make_pod("p"))
    assert "and 40 more nodes; -a shows all\n" in run("simulate", "-f", path).stdout
    everything = run("simulate", "-f", path, "-a").stdout
    assert all(f"n{i:03}" in everything for i in range(60))


@pytest.mark.parametrize(
    ("columns", "row"),
    [
        pytest.param("100", ["large", "1/10", "+1", "██░░░░", "38%", "3/8"], id="all of it"),
        pytest.param("50", ["large", "1/10", "+1", "38%", "3/8"], id="without bars"),
        pytest.param("34", ["large", "1/10", "+1", "38%", "0%"], id="only shares"),
    ],
)
def test_the_table_fits_the_terminal(run, cluster, monkeypatch, columns, row):
    monkeypatch.setenv("COLUMNS", columns)
    got = run("simulate", "-f", cluster).stdout
    assert row in [line.split()[: len(row)] for line in got.splitlines()]
    assert max(map(len, got.splitlines())) <= int(columns)


def test_extended_resources_have_a_column(run, write, make_node, make_pod):
    node = make_node("n")
    node["status"]["allocatable"]["example.com/gpu"] = "4"
    got = run("simulate", "-f", write("c.yaml", node, make_node("m"), make_pod("p"))).stdout
    head = next(line for line in got.splitlines() if line.startswith("node"))
    assert head.split() == ["node", "pods", "new", "cpu", "memory", "gpu"]
    assert "0% 0/4\n" in got


def test_nothing_at_all(run, write):
    path = write("c.yaml", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}})
    got = run("simulate", "-f", path)
    assert got.exit_code == 0
    assert got.stdout == "0 pods on 0 nodes after 0 s: 0 placed.\n"


# Plugins beside the configuration


def test_a_plugin_changes_the_outcome(run, write, configure, make_node, make_pod):
    write("picky.py", GOOD_PLUGIN)
    path = write("c.yaml", make_node("small", "2"), make_node("large", "8"), make_pod("p"))
    without = run("simulate", "-f", path, "-o", "json")
    assert json.loads(without.stdout)["placements"] == {"default/p": "large"}
    with_it = run("simulate", "-f", path, "-o", "json", "--config", configure("picky.py:Picky"))
    assert json.loads(with_it.stdout)["placements"] == {"default/p": "small"}


def test_a_plugin_that_raises_costs_its_own_pod(run, write, configure, make_node, make_pod):
    write("moody.py", RAISING_PLUGIN)
    pods = [make_pod("good"), make_pod("bad", labels={"mood": "bad"}), make_pod("other")]
    path = write("c.yaml", make_node("n"), *pods)
    got = run("simulate", "-f", path, "-o", "json", "--config", configure("moody.py:Moody"))
    assert got.exit_code == 0
    outcome = json.loads(got.stdout)
    assert outcome["placements"] == {"default/good": "n", "default/bad": None, "default/other": "n"}
    assert outcome["pending"] == {
        "default/bad": 'running "Moody" filter plugin: not today (moody.py:9)'
    }


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("gone.py:Gone", None, "gone.py: no such file", id="no file"),
        pytest.param("b1.py:Bad", "class Bad(", 'plugin "b1.py:Bad": ', id="not Python"),
        pytest.param(
            "b2.py:Bad", "a = 1", 'plugin "b2.py:Bad": b2.py has no class Bad', id="no such class"
        ),
        pytest.param(
            "b3.py:Bad",
            "class Bad:\n    def score(self, state, pod, node): ...",
            'initializing plugin "b3.py:Bad": it needs a class attribute `name`',
            id="no name",
        ),
        pytest.param(
            "b4.py:Bad",
            "class Bad:\n    name = 'Bad'\n    def filter(self, pod): ...",
            'initializing plugin "b4.py:Bad": filter has to take 3 argument(s) besides self',
            id="a wrong signature",
        ),
    ],
)
def test_bad_plugins(run, write, cluster, configure, name, text, message):
    if text is not None:
        write(name.partition(":")[0], text)
    got = run("simulate", "-f", cluster, "--config", configure(name))
    assert got.exit_code == 2
    assert got.stdout == ""
    assert got.stderr.count("\n") == 1
    assert got.stderr.startswith("moorage: ")
    assert message in got.stderr


def test_a_bad_configuration_is_a_line_per_fault(run, write, cluster):
    path = write(
        "config.yaml",
        {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "parallelism": 0,
            "percentageOfNodesToScore": 101,
        },
    )
    got = run("simulate", "-f", cluster, "--config", path)
    assert got.exit_code == 2
    lines = got.stderr.splitlines()
    assert [line.partition(": Invalid")[0] for line in lines] == [
        f"moorage: {path}: parallelism",
        f"moorage: {path}: percentageOfNodesToScore",
    ]


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        pytest.param(
            "soon",
            'moorage: Pod default/p, metadata.annotations["moorage.dev/run-seconds"]: '
            'must be seconds, is "soon"\n',
            id="an annotation that is no number",
        ),
    ],
)
def test_bad_objects(run, write, make_pod, annotation, message):
    made = make_pod("p")
    made["metadata"]["annotations"] = {"moorage.dev/run-seconds": annotation}
    got = run("simulate", "-f", write("c.yaml", made))
    assert (got.exit_code, got.stdout, got.stderr) == (2, "", message)


def test_where_the_time_went(run, cluster):
    got = run("simulate", "-f", cluster, "--profile")
    assert got.exit_code == 0
    assert got.stdout.startswith(run("simulate", "-f", cluster).stdout)
    rows = [line.split() for line in got.stdout.partition("\nWhere ")[2].splitlines()]
    assert rows[1] == ["plugin", "what", "calls", "ms", "us/call", "share"]
    assert ["-", "which", "nodes", "fit"] in [row[:4] for row in rows]
    profile = json.loads(run("simulate", "-f", cluster, "--profile", "-o", "json").stdout)[
        "profile"
    ]
    parts = {(part["plugin"], part["what"]): part for part in profile["parts"]}
    assert parts["NodeResourcesFit", "filter_all"]["calls"] > 0
    assert sum(part["seconds"] for part in parts.values()) == pytest.approx(
        profile["seconds"], abs=1e-4
    )


def test_a_profile_is_of_one_run(run, cluster):
    got = run("simulate", "-f", cluster, "--profile", "--sweep", "seed=1,2")
    assert got.exit_code == 2
    assert "--profile is for one run, not for a sweep" in got.stderr
