"""`moorage simulate scenario` and `simulate trace`."""

import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = """
apiVersion: moorage.dev/v1
kind: Scenario
metadata: {name: small}
spec:
  duration: 1h
  arrivals:
    - name: job
      rate: {perHour: 30}
      lifetime: {fixed: 10m}
      template: {spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}}
    - name: never
      at: [10m]
      template: {spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "99"}}}]}}
"""
POOL = """
apiVersion: moorage.dev/v1
kind: NodePool
metadata: {name: pool}
spec: {count: 3, template: {status: {allocatable: {cpu: "4", memory: 8Gi}}}}
"""


@pytest.fixture
def small(write):
    return write("small.yaml", SMALL, POOL)


def test_for_people(run, small):
    got = run("simulate", "scenario", small)
    assert got.exit_code == 0
    assert got.stdout.startswith("small, seed 0: ")
    assert "Time to schedule" in got.stdout
    assert "1 pod stays pending" in got.stdout
    assert "0/3 nodes are available: 3 Insufficient cpu." in got.stdout
    assert all(len(line) <= 100 for line in got.stdout.splitlines())


@pytest.mark.parametrize("columns", ["60", "80", "140"])
def test_tables_fit(run, small, monkeypatch, columns):
    monkeypatch.setenv("COLUMNS", columns)
    got = run("simulate", "scenario", small)
    assert all(len(line) <= int(columns) for line in got.stdout.splitlines())


@pytest.mark.parametrize("start", ["0s", "2m"])
def test_mean_and_peak_of_short_pods(run, write, start):
    arrivals = {
        "name": "short",
        "start": start,
        "rate": {"perHour": 12, "distribution": "constant"},
        "lifetime": {"fixed": "10s"},
        "template": {
            "spec": {
                "containers": [
                    {"name": "c", "image": "c", "resources": {"requests": {"cpu": "12"}}}
                ]
            }
        },
    }
    spec = {"duration": "24h", "arrivals": [arrivals]}
    scenario = {"apiVersion": "moorage.dev/v1", "kind": "Scenario", "spec": spec}
    pool = POOL.replace('"4"', '"12"').replace("count: 3", "count: 1")
    file = write("short.yaml", scenario | {"metadata": {"name": "short"}}, pool)
    got = json.loads(run("simulate", "scenario", file, "-o", "json").stdout)
    # A pod occupies the node for 11 s, of which it needs one to start, every 5 minutes.
    cpu = got["summary"]["utilisation"]["cpu"]
    assert cpu["mean"] == pytest.approx(11 / 300, abs=0.0005)
    assert cpu["peak"] == 1
    assert "3.7%" in run("simulate", "scenario", file).stdout


def test_for_programs(run, small):
    def told(*more):
        return run("simulate", "scenario", small, "-o", "json", *more).stdout

    got = json.loads(told())
    assert (got["name"], got["seed"], got["summary"]["pending"]) == ("small", 0, 1)
    lengths = {len(values) for values in got["samples"].values() if isinstance(values, list)}
    assert len(lengths) == 1
    assert told() == told()
    assert told("--seed", "4") != told()


def test_the_same_fields_as_simulate(run, small, write):
    scenario = json.loads(run("simulate", "scenario", small, "-o", "json").stdout)
    plain = json.loads(run("simulate", "-f", write("pool.yaml", POOL), "-o", "json").stdout)
    assert scenario.keys() - plain.keys() == {"name", "seed"}
    assert scenario["summary"].keys() == plain["summary"].keys()
    assert scenario["nodes"]["pool-0"].keys() == plain["nodes"]["pool-0"].keys()
    assert scenario["pending"].keys() == {
        each for each, node in scenario["placements"].items() if not node
    }
    [group] = scenario["pendingReasons"]
    assert group["pods"] == list(scenario["pending"])


def test_files(run, small, tmp_path):
    report, folder = tmp_path / "r.html", tmp_path / "csv"
    got = run("simulate", "scenario", small, "--report", report, "--csv", folder)
    assert got.exit_code == 0
    assert report.read_text().startswith("<!doctype html>")
    assert "default/never-" in report.read_text()
    names = {path.name for path in folder.iterdir()}
    tables = ("samples", "placements", "nodes", "pending", "disruptions", "spread")
    assert names == {f"{name}.csv" for name in tables}


def test_fail_on_pending(run, small):
    assert run("simulate", "scenario", small, "--fail-on-pending").exit_code == 1


def test_nodes_from_elsewhere(run, write):
    alone, pool = write("s.yaml", SMALL), write("p.yaml", POOL)
    assert run("simulate", "scenario", alone, "-f", pool).exit_code == 0
    got = run("simulate", "scenario", alone)
    assert got.exit_code == 2
    assert got.stderr == (
        "moorage: small: the cluster has no nodes; add Node or NodePool documents to the "
        "scenario, or name their file with -f\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        pytest.param(["nowhere.yaml"], "nowhere.yaml: no such file or folder", id="no file"),
        pytest.param(["SMALL", "--explain", "x", "--report", "r.html"], "no pod 'x'", id="no pod"),
        pytest.param(
            ["SMALL", "--report", "no/such/r.html"], "there is no folder no/such", id="no folder"
        ),
        pytest.param(
            ["SMALL", "--sweep", "seed=0..1", "--csv", "x"],
            "--csv is for one run, not for a sweep",
            id="tables of a sweep",
        ),
        pytest.param(
            ["SMALL", "--sweep", "seed=0..1", "--report", "x"],
            "--report is for one run, not for a sweep",
            id="the report of a sweep",
        ),
        pytest.param(
            ["SMALL", "--csv", "x.csv"],
            "several tables are written; name a folder, not x.csv",
            id="a file for several tables",
        ),
        pytest.param(
            ["SMALL", "--results", "x"], "--results requires --sweep", id="results of one run"
        ),
    ],
)
def test_bad_input_is_one_line(run, small, tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    got = run("simulate", "scenario", *(small if each == "SMALL" else each for each in arguments))
    assert got.exit_code == 2
    assert message in got.stderr


@pytest.mark.parametrize("style", ["openb", "google"])
def test_traces(run, style):
    folder = EXAMPLES / "traces"
    files = ("--pods", folder / f"{style}_pods.csv", "--nodes", folder / f"{style}_nodes.csv")
    got = run("simulate", "trace", style, *files, "-o", "json")
    assert got.exit_code == 0, got.stderr
    summary = json.loads(got.stdout)["summary"]
    assert summary["created"] == summary["bound"] + summary["pending"]
    assert summary["endedTotal"] == summary["ended"] > 0


def test_workloads_and_kustomize_output_from_standard_input(run):
    deployment = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 3
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: c, image: c, resources: {requests: {cpu: "1"}}}]}
"""
    got = run("simulate", "-f", "-", "-o", "json", stdin=f"{POOL}---{deployment}")
    assert got.exit_code == 0
    assert json.loads(got.stdout)["summary"]["placed"] == 3


def test_the_cost_of_a_run(run, write, tmp_path):
    prices = write("prices.yaml", {"general": 0.2})
    report = tmp_path / "report.html"
    question = ("simulate", "scenario", EXAMPLES / "scenarios" / "hour.yaml", "--prices", prices)
    got = run(*question, "--report", report)
    # Five nodes for an hour; one of them is away for ten minutes.
    cost = "The nodes cost 0.9667 during the run. At the end they cost 1.00 per hour: general 1.00"
    assert cost in got.stdout
    assert "cost of the nodes during the run" in report.read_text()
    assert json.loads(run(*question, "-o", "json").stdout)["cost"]["ofRun"] == 0.9667


def test_prices_that_no_node_has_are_refused_before_the_run(run, monkeypatch):
    monkeypatch.setattr("moorage.scenarios.play.Play.run", lambda *_: pytest.fail("it runs"))
    got = run("simulate", "scenario", EXAMPLES / "scenarios" / "hour.yaml", "--price-label", "x")
    assert (got.exit_code, "no node has a price" in got.stderr) == (2, True)
