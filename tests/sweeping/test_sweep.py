"""Many runs: each as if it were alone, finished ones kept, interrupted ones made again."""

import dataclasses
import json
import os
import pickle
from pathlib import Path

import pytest
from tests.planning.conftest import node, pod

from moorage import Simulation
from moorage.api import config, manifests
from moorage.errors import InputError
from moorage.scenarios import reading
from moorage.scenarios.play import Play
from moorage.sweeping import processes
from moorage.sweeping.parameters import grid, parse
from moorage.sweeping.run import SweepRun
from moorage.sweeping.sweep import RunFolder, sweep

EXAMPLES = Path(__file__).parents[2] / "examples"
POOL = {
    "apiVersion": "moorage.dev/v1",
    "kind": "NodePool",
    "metadata": {"name": "general"},
    "spec": {"count": 2, "template": {"status": {"allocatable": {"cpu": "2", "memory": "8Gi"}}}},
}
WEB = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "web", "namespace": "shop"},
    "spec": {
        "replicas": 5,
        "selector": {"matchLabels": {"app": "web"}},
        "template": {"metadata": {"labels": {"app": "web"}}, "spec": pod("x", 1000)["spec"]},
    },
}


def make_run(*objects, **fields):
    return SweepRun(tuple(manifests.read(objects).everything), config.load(None), **fields)


@pytest.fixture
def run():
    return make_run(POOL, WEB)


def pending(swept):
    return [each.summary["pending"] for each in swept.runs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("nodes.general=0..3", [5, 3, 1, 0], id="nodes of a pool"),
        pytest.param("replicas.web=3,4,6", [0, 0, 2], id="pods of a workload"),
        pytest.param("replicas.shop/web=6", [2], id="a workload with its namespace"),
    ],
)
def test_objects_follow_their_parameters(run, text, expected):
    assert pending(sweep(run, grid([parse(text)]), workers=1)) == expected


def test_configurations_follow_their_parameters(run, tmp_path):
    never = {"plugins": {"filter": {"disabled": [{"name": "NodeResourcesFit"}]}}}
    file = tmp_path / "loose.yaml"
    header = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    file.write_text(json.dumps(header | {"profiles": [never]}))
    assert pending(sweep(run, grid([parse(f"config=default,{file}")]), workers=1)) == [1, 0]
    backoff = run.configured({"config.podMaxBackoffSeconds": 77})
    assert backoff.pod_max_backoff_seconds == 77
    weighed = run.configured({"weight.NodeAffinity": 9}).profiles[0].plugins
    assert [p.weight for p in weighed.multi_point.enabled if p.name == "NodeAffinity"] == [9]


def test_a_run_is_what_it_would_be_alone(run):
    (one,) = sweep(run, [{"seed": 5}], workers=1).runs
    alone = Simulation([POOL, WEB], seed=5)
    alone.run()
    assert one.summary == alone.result.summary()


def test_processes_give_what_one_process_gives(run):
    runs = grid([parse("seed=0..2"), parse("nodes.general=1,3")])
    assert sweep(run, runs, workers=2) == sweep(run, runs, workers=1)


def test_results_come_in_the_order_of_the_items():
    said = []
    got = processes.each(abs, [-3, 2, -1], workers=2, on_progress=lambda *at: said.append(at))
    assert got == [3, 2, 1]
    assert said == [(1, 3), (2, 3), (3, 3)]


def test_finished_runs_are_kept(run, tmp_path):
    runs = grid([parse("seed=0..3")])
    first = sweep(run, runs[:3], RunFolder(tmp_path, run.digest()), workers=1)
    again = sweep(run, runs, RunFolder(tmp_path, run.digest()), workers=1)
    assert (first.reused, again.reused) == (0, 3)
    assert again.runs[:3] == first.runs


def test_an_interrupted_run_is_made_again(run, tmp_path):
    runs = grid([parse("seed=0..4")])
    whole = sweep(run, runs, workers=1)

    def interrupted(function, items):
        for place, item in enumerate(items):
            if place == 2:
                raise KeyboardInterrupt
            yield place, function(item)

    with pytest.raises(KeyboardInterrupt):
        sweep(run, runs, RunFolder(tmp_path, run.digest()), as_completed=interrupted)
    finished = sorted(tmp_path.glob("run-*.json"))
    assert len(finished) == 2
    # As if the power had failed in the middle of writing: one cut off, one not in place yet.
    finished[0].write_text(finished[0].read_text()[:40])
    (tmp_path / ".run-x.json.1.part").write_text("{")
    got = sweep(run, runs, RunFolder(tmp_path, run.digest()), workers=1)
    assert got.reused == 1
    assert got.runs == whole.runs
    assert len(list(tmp_path.glob("run-*.json"))) == 5


def test_another_input_is_another_sweep(run, tmp_path):
    runs = grid([parse("seed=0")])
    sweep(run, runs, RunFolder(tmp_path, run.digest()), workers=1)
    other = make_run(POOL, WEB, pod("more", 100))
    assert sweep(other, runs, RunFolder(tmp_path, other.digest()), workers=1).reused == 0


def test_seeds_are_grouped_and_rows_are_flat(run):
    got = sweep(run, grid([parse("seed=0..1"), parse("nodes.general=1,2")]), workers=1)
    assert [(rest, len(runs)) for rest, runs in got.groups()] == [
        ({"nodes.general": 1}, 2),
        ({"nodes.general": 2}, 2),
    ]
    first = got.rows()[0]
    assert (first["seed"], first["pending"], first["utilisation.cpu.last"]) == (0, 3, 1.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        pytest.param({"nodes.x": 1}, "no NodePool of this name", id="unknown pool"),
        pytest.param({"replicas.x": 1}, "no workload of this name", id="unknown workload"),
        pytest.param({"weight.X": 1}, "no profile has a plugin", id="unknown plugin"),
        pytest.param({"config": "nowhere.yaml"}, "nowhere.yaml", id="no such file"),
        pytest.param({"config.nowhere": 1}, "nowhere", id="no such field"),
        pytest.param({"config.profiles.7.x": 1}, "there is no item 7", id="no such profile"),
        pytest.param({"config.parallelism.x": 1}, "is not a field of anything", id="too deep"),
    ],
)
def test_errors_come_before_the_first_run(run, parameters, message):
    def nobody(function, items):
        raise AssertionError("a run has begun")

    with pytest.raises(InputError, match=message):
        sweep(run, [parameters], as_completed=nobody)


def test_a_folder_that_cannot_be(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file"):
        RunFolder(tmp_path / "file", "x")


def test_empty_cluster_is_a_run_too():
    assert pending(sweep(make_run(pod("p")), [{"seed": 0}], workers=1)) == [1]


def test_a_node_is_no_pool():
    with pytest.raises(InputError, match="no NodePool"):
        make_run(node("general")).applied({"nodes.general": 3})


def test_a_worker_that_dies():
    with pytest.raises(InputError, match="a worker process died"):
        processes.each(os._exit, [1, 2], workers=2)


def test_a_worker_that_raises(run):
    with pytest.raises(InputError, match="no NodePool of this name"):
        processes.each(run, [{"nodes.x": 1}, {"nodes.y": 1}], workers=2)


def test_scenarios_are_swept_too():
    plan = reading.load(EXAMPLES / "scenarios" / "day.yaml")
    short = dataclasses.replace(plan, duration=600.0)
    run = SweepRun(plan.objects, config.load(None), plan=dataclasses.replace(short, objects=()))
    got = sweep(pickle.loads(pickle.dumps(run)), [{"seed": 1}, {"seed": 2}], workers=1)
    alone = Play(short, seed=2).run()
    assert got.runs[1].summary == alone.result.summary()
    assert got.runs[0].summary["created"] > 0


def test_a_weight_by_the_name_of_a_plugin_s_class(tmp_path):
    (tmp_path / "pack.py").write_text(
        "class GpuPack:\n"
        "    name = 'GpuPack'\n"
        "    def score(self, state, pod, node):\n"
        "        return 100\n"
    )
    enabled = {"multiPoint": {"enabled": [{"name": "pack.py:GpuPack"}]}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": enabled}],
    }
    run = SweepRun((), config.load(document, base_dir=tmp_path))
    for name in ("GpuPack", "pack.py:GpuPack"):
        [profile] = run.configured({f"weight.{name}": 7}).profiles
        weights = {each.name: each.weight for each in profile.plugins.multi_point.enabled}
        assert weights["pack.py:GpuPack"] == 7
    with pytest.raises(InputError, match="no profile has a plugin of this name"):
        run.configured({"weight.Pack": 7})
