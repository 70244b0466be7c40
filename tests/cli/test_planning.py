"""`moorage simulate QUESTION`: tables, documents, and one line for bad input."""

import json

import pytest

from moorage.cli.simulate import SUBCOMMANDS

REPLICA_SET = [
    {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1", "controller": True}
]


@pytest.fixture
def files(write, make_node, make_pod):
    """A cluster, a pod to ask about, a node template, and a configuration."""
    runs = make_pod("runs", "3", nodeName="a")
    runs["metadata"]["ownerReferences"] = REPLICA_SET
    return {
        "cluster": write("cluster.yaml", make_node("a"), make_node("b"), runs),
        "empty": write("empty.yaml", make_pod("p")),
        "more": write("more.yaml", *(make_pod(f"m{i}", "4") for i in range(3))),
        "pod": write("pod.yaml", make_pod("web", "2")),
        "huge": write("huge.yaml", make_pod("huge", "64")),
        "two": write("two.yaml", make_pod("one"), make_pod("two")),
        "template": write("template.yaml", make_node("new")),
        "broken": write("broken.yaml", "kind: [Pod"),
        "config": write(
            "config.yaml",
            {
                "apiVersion": "kubescheduler.config.k8s.io/v1",
                "kind": "KubeSchedulerConfiguration",
            },
        ),
    }


@pytest.fixture
def ask(run, files):
    """Runs a command; words that name a file stand for its path."""

    def ask_question(*arguments):
        return run("simulate", *(files.get(each, each) for each in arguments))

    return ask_question


@pytest.mark.parametrize(
    ("arguments", "code", "line"),
    [
        pytest.param(
            ("capacity", "-f", "cluster", "--pod", "pod"),
            0,
            "2 more of default/web fit. Runs out first: Insufficient cpu (on 1 node).",
            id="capacity",
        ),
        pytest.param(
            ("capacity", "-f", "cluster", "--pod", "pod", "--at-least", "9"),
            1,
            "2 more of default/web fit.",
            id="capacity: too few",
        ),
        pytest.param(
            ("capacity", "-f", "cluster", "--pod", "pod", "--most", "1"),
            0,
            "At least 1 more of default/web fits; the counting stopped there.",
            id="capacity: not all are counted",
        ),
        pytest.param(
            ("capacity", "-f", "cluster", "--pod", "huge"),
            1,
            "No more of default/huge fits: 0/2 nodes are available: 2 Insufficient cpu.",
            id="capacity: never",
        ),
        pytest.param(
            ("drain", "a", "-f", "cluster"), 0, "Draining a, in 1 round: 1 moved.", id="drain"
        ),
        pytest.param(
            ("drain", "a", "b", "-f", "cluster", "--fail-on-pending"),
            1,
            "Draining a, b, in 1 round: 0 moved, 1 pending.",
            id="drain: nowhere to go",
        ),
        pytest.param(
            ("what-if", "-f", "cluster", "--remove", "a", "--add", "b:1"),
            0,
            "With these changes: 1 more node, 1 node removed, 1 moved.",
            id="what-if",
        ),
        pytest.param(
            ("what-if", "-f", "cluster", "--add", "a:2"),
            0,
            "With these changes: 2 more nodes, no other difference.",
            id="what-if: only nodes",
        ),
        pytest.param(
            ("what-if", "-f", "cluster", "--remove", "a", "--remove", "b", "--fail-on-pending"),
            1,
            "With these changes: 2 nodes removed, 1 pending.",
            id="what-if: no node left",
        ),
        pytest.param(
            ("add-nodes", "-f", "cluster", "-f", "more", "--template", "template"),
            0,
            "2 pods had no node; 2 more nodes are enough.",
            id="add-nodes",
        ),
        pytest.param(
            ("add-nodes", "-f", "cluster", "-f", "huge", "--template", "template"),
            1,
            "1 pod had no node, and it fits on no template.",
            id="add-nodes: never",
        ),
        pytest.param(
            ("add-nodes", "-f", "cluster", "--template", "template"),
            0,
            "All pods fit: no new node is needed.",
            id="add-nodes: none",
        ),
        pytest.param(
            ("compact", "-f", "cluster", "--seeds", "2", "--workers", "1"),
            0,
            "1 pod on 2 nodes would fit on 1 (50%).",
            id="compact",
        ),
        pytest.param(
            ("compare", "default", "config", "-f", "cluster", "--workers", "1"),
            0,
            "1 pod with 2 configurations:",
            id="compare",
        ),
        pytest.param(
            ("compare", "config", "-f", "cluster", "--workers", "1"),
            0,
            "1 pod with 2 configurations:",
            id="compare: one with the defaults",
        ),
        pytest.param(
            ("-f", "cluster", "--sweep", "seed=0..1", "--workers", "1"), 0, "2 runs.", id="sweep"
        ),
    ],
)
def test_for_people_and_programs(ask, arguments, code, line):
    got = ask(*arguments)
    assert got.stdout.startswith(line)
    assert (got.exit_code, got.stderr) == (code, "")
    document = ask(*arguments, "-o", "json")
    assert document.exit_code == code
    assert isinstance(json.loads(document.stdout), dict)


def test_a_claim_template_in_the_file_of_the_pod_comes_along(run, write, make_pod):
    devices = [{"driver": "gpu.example.com", "class": "gpu", "count": 3}]
    node = {"status": {"allocatable": {"cpu": "64", "memory": "64Gi"}}}
    pool = {"apiVersion": "moorage.dev/v1", "kind": "NodePool", "metadata": {"name": "n"}}
    pool["spec"] = {"count": 1, "template": node, "devices": devices}
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    template = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
    template |= {"metadata": {"name": "t"}, "spec": {"spec": {"devices": {"requests": requests}}}}
    pod = make_pod("web", resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "t"}])
    cluster, question = write("gpus.yaml", pool), write("question.yaml", template, pod)
    got = run("simulate", "capacity", "-f", cluster, "--pod", question)
    assert "3 more of default/web fit." in got.stdout


def test_record_and_replay(ask, tmp_path):
    kept = tmp_path / "run.jsonl.gz"
    assert ask("-f", "cluster", "-f", "more", "--record", kept).exit_code == 0
    same = ask("replay", kept)
    assert (same.exit_code, same.stdout[-31:]) == (0, "ted: identical, byte for byte.\n"[-31:])
    other = ask("replay", kept, "--config", "config")
    assert other.stdout.startswith("0 pods of 4 are on another node with this configuration.")
    assert json.loads(ask("replay", kept, "-o", "json").stdout)["same"] is True


def test_a_recording_leaves_pipes_and_links_what_they_are(ask, tmp_path, pipe):
    assert ask("-f", "cluster", "--record", pipe).exit_code == 0
    assert pipe.is_fifo()  # A device would be gone likewise.
    kept, link = tmp_path / "kept.jsonl", tmp_path / "link.jsonl"
    link.symlink_to(kept)
    assert ask("-f", "cluster", "--record", link).exit_code == 0
    assert link.is_symlink()
    assert kept.read_text().startswith('{"recording":1')


def test_a_replay_that_comes_out_otherwise(ask, tmp_path):
    kept = tmp_path / "run.jsonl"
    ask("-f", "cluster", "-f", "pod", "--record", kept)
    kept.write_text(kept.read_text().replace('"BindPod","pod":{', '"BindPod","pod": {'))
    got = ask("replay", kept)
    assert got.exit_code == 1
    assert "differs" in got.stdout


def test_a_sweep_says_how_to_read_its_figures(ask):
    same = ask("-f", "cluster", "--sweep", "seed=0..1", "--workers", "1").stdout
    assert same.endswith("averages over 2 seeds; all seeds gave the same\n")


def test_sweeps_go_on_where_they_were(ask, tmp_path):
    folder = tmp_path / "results"
    command = ("-f", "cluster", "--workers", "1", "--results", folder)
    assert ask(*command, "--sweep", "seed=0..1").stdout.startswith("2 runs.")
    again = ask(*command, "--sweep", "seed=0..2")
    assert again.stdout.startswith("3 runs, 2 of them finished before.")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("capacity", "-f", "empty", "--pod", "pod"), "the cluster is empty", id="empty"
        ),
        pytest.param(("capacity", "-f", "cluster", "--pod", "template"), "none", id="no pod"),
        pytest.param(
            ("capacity", "-f", "broken", "--pod", "pod"), "is not YAML", id="malformed cluster"
        ),
        pytest.param(
            ("capacity", "-f", "cluster", "--pod", "pod", "--pool-label", "x"),
            'no node has the label "x"',
            id="a label that no node has",
        ),
        pytest.param(("drain", "x", "-f", "cluster"), 'no node "x" among the 2', id="no such node"),
        pytest.param(
            ("drain", "-l", "x=y", "-f", "cluster"), "matches none of 2 nodes", id="no match"
        ),
        pytest.param(("drain", "-f", "cluster"), "no node is named", id="nothing to drain"),
        pytest.param(
            ("add-nodes", "-f", "cluster", "--template", "pod"), "no template", id="no template"
        ),
        pytest.param(("compact", "-f", "empty"), "the cluster is empty", id="nothing to compact"),
        pytest.param(("compare", "nowhere", "-f", "cluster"), "nowhere", id="no configuration"),
        pytest.param(
            ("compare", "default", "-f", "cluster"),
            "default cannot be compared with itself",
            id="only one",
        ),
        pytest.param(
            ("compare", "default", "default", "-f", "cluster"),
            "default cannot be compared with itself",
            id="with itself",
        ),
        pytest.param(("replay", "cluster"), "is not a recording", id="not a recording"),
        pytest.param(("-f", "cluster", "--sweep", "x=1"), '"x" is not known', id="bad sweep"),
        pytest.param(
            ("-f", "cluster", "--sweep", "seed=1", "--on", "moon"), "--on moon", id="no such place"
        ),
        pytest.param(
            ("-f", "cluster", "--sweep", "seed=1", "--on", "dask"),
            "the scheduler is missing",
            id="dask without an address",
        ),
    ],
)
def test_bad_input_is_one_line(ask, arguments, message):
    got = ask(*arguments)
    assert got.exit_code == 2
    assert message in got.stderr
    assert got.stderr.count("\n") == 1
    assert got.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(
            ("-f", "cluster", "drain", "a"),
            "-f must follow the command: moorage simulate drain -f",
            id="before",
        ),
        pytest.param((), "Missing option '-f'", id="nothing"),
        pytest.param(("dance",), "No such command, file or folder: 'dance'", id="unknown question"),
        pytest.param(
            ("-f", "cluster", "--results", "x"), "--results requires --sweep", id="no sweep"
        ),
        pytest.param(
            ("-f", "cluster", "--sweep", "seed=1", "--record", "x"), "not for a sweep", id="both"
        ),
    ],
)
def test_usage(ask, arguments, message):
    got = ask(*arguments)
    assert (got.exit_code, message in got.stderr) == (2, True)


@pytest.mark.parametrize("question", SUBCOMMANDS)
def test_help(run, question):
    got = run("simulate", question, "--help")
    assert got.exit_code == 0
    assert f"simulate {question}" in got.stdout


def test_capacity_without_some_nodes(run, write, make_node, make_pod):
    pool = {"count": 2, "template": {"status": {"allocatable": {"cpu": "2", "memory": "8Gi"}}}}
    pool = {"apiVersion": "moorage.dev/v1", "kind": "NodePool", "spec": pool}
    nodes = write("nodes.yaml", make_node("a"), make_node("b"), pool | {"metadata": {"name": "p"}})
    question = ("simulate", "capacity", "-f", nodes, "--pod", write("pod.yaml", make_pod("x")))
    assert json.loads(run(*question, "-o", "json").stdout)["fits"] == 4 + 4 + 2 + 2
    got = run(*question, "--exclude-nodes", "a,p-1", "-o", "json")
    assert json.loads(got.stdout)["fits"] == 4 + 2
    got = run(*question, "--exclude-nodes", "a,c")
    assert got.stderr == 'moorage: --exclude-nodes: there is no node "c"\n'


def test_capacity_in_gangs(run, write, make_node, make_pod):
    nodes = write("nodes.yaml", make_node("a"), make_node("b"))
    question = ("simulate", "capacity", "-f", nodes, "--pod", write("pod.yaml", make_pod("x")))
    got = run(*question, "--gang", "3")
    assert got.stdout.startswith("2 gangs of 3 pods like default/x fit. The next one needs 3 pods")
    assert json.loads(run(*question, "--gang", "3", "-o", "json").stdout)["fits"] == 2
    got = run(*question, "--gang", "9")
    assert (got.exit_code, got.stdout[:27]) == (1, "No gangs of 9 pods like def")
    two = write("two.yaml", make_pod("x"), make_pod("y"))
    got = run(*question[:-1], two, "--gang", "2")
    assert (got.exit_code, "--gang counts gangs of one pod" in got.stderr) == (2, True)


def test_capacity_of_several_pods(run, write, make_node, make_pod):
    nodes = write("nodes.yaml", make_node("a"), make_node("b"))
    pods = write("pods.yaml", make_pod("x"), make_pod("y"))
    question = ("simulate", "capacity", "-f", nodes, "--pod", pods)
    got = run(*question)
    assert got.stdout.startswith("4 sets fit (1 default/x, 1 default/y). Runs out first: ")
    assert (
        json.loads(run(*question, "--pod", pods, "-o", "json").stdout).items()
        >= {
            "set": {"default/x": 2, "default/y": 2},
            "fits": 2,
        }.items()
    )
    assert run(*question, "--at-least", "5").exit_code == 1


def test_a_pod_file_without_pods(run, write, make_node):
    nodes = write("nodes.yaml", make_node("a"))
    got = run("simulate", "capacity", "-f", nodes, "--pod", nodes)
    assert (got.exit_code, got.stderr) == (
        2,
        f"moorage: {nodes}: a Pod or a workload is expected, there is none\n",
    )


@pytest.fixture
def priced(write, make_node, make_pod):
    """A full cluster with five pending pods, two templates, and their prices."""
    nodes = [make_node(name) for name in ("a", "b")]
    for each in nodes:
        each["metadata"]["labels"]["price"] = "0.25"
    pending = [make_pod(f"p{i}", cpu="3") for i in range(5)]
    templates = [make_node("one", cpu="3"), make_node("three", cpu="9")]
    return (
        *("-f", write("cluster.yaml", *nodes, *pending)),
        *("--template", write("templates.yaml", *templates)),
        *("--prices", write("prices.yaml", {"one": 0.1, "three": "0.25"})),
    )


def test_the_cheapest_mix(run, priced):
    got = run("simulate", "add-nodes", *priced)
    assert got.stdout.startswith("3 pods had no node; 1 more node for 0.25 per hour is enough.")
    assert "no other mix of these templates costs less" in got.stdout
    document = json.loads(run("simulate", "add-nodes", *priced, "-o", "json").stdout)
    assert document["nodes"] == {"one": 0, "three": 1}
    assert document["cost"]["perHour"] == document["cost"]["lowerBound"] == 0.25


def test_the_cost_of_a_simulation(run, priced, tmp_path):
    question = ("simulate", *priced[:2], "--price-label", "price")
    report = tmp_path / "report.html"
    got = run(*question, "--report", report)
    assert "The nodes cost 0.50 per hour: (no pool) 0.50 (2 nodes)." in got.stdout
    assert "cost of the nodes per hour" in report.read_text()
    assert json.loads(run(*question, "-o", "json").stdout)["cost"]["perHour"] == 0.5


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(("--prices", "nowhere"), "nowhere: no such file", id="no file"),
        pytest.param(("--price-label", "x"), "no node has a price", id="no label"),
        pytest.param(("--price-label", "x", "--sweep", "seed=1"), "not for a sweep", id="sweep"),
    ],
)
def test_bad_prices(run, priced, arguments, message):
    got = run("simulate", *priced[:2], *arguments)
    assert (got.exit_code, message in got.stderr) == (2, True)


def test_tries_without_prices(run, priced):
    got = run("simulate", "add-nodes", *priced[:4], "--tries", "3")
    assert (got.exit_code, "--tries requires --prices" in got.stderr) == (2, True)


def service(name, kind="Deployment", **spec):
    template = {"metadata": {"labels": {"app": name}}, "spec": {"containers": [SMALL]}}
    meta = {"name": name, "namespace": "shop"}
    spec |= {"selector": {"matchLabels": {"app": name}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": meta, "spec": spec}


SMALL = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "100m"}}}


@pytest.mark.parametrize("columns", ["100", "60"])
def test_capacity_of_many_pods_shows_whole_names(run, write, cluster, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    names = [f"service-number-{i}" for i in range(6)]
    files = [part for name in names for part in ("--pod", write(f"{name}.yaml", service(name)))]
    got = run("simulate", "capacity", "-f", cluster, *files)
    table = got.stdout.rpartition("\n\npod ")[2]
    assert "…" not in got.stdout
    for name in names:
        assert f"Deployment shop/{name} " in table


@pytest.mark.parametrize(
    ("workload", "problem"),
    [
        pytest.param(service("x", "DaemonSet"), "DaemonSet shop/x: has one pod", id="a DaemonSet"),
        pytest.param(service("x", replicas=0), "Deployment shop/x: has 0 replicas", id="no pod"),
    ],
)
def test_capacity_of_a_workload_without_a_pod(run, write, cluster, workload, problem):
    path = write("x.yaml", workload)
    got = run("simulate", "capacity", "-f", cluster, "--pod", path)
    assert (got.exit_code, got.stdout) == (2, "")
    assert got.stderr.startswith(f"moorage: {path}, document 1, {problem}")
