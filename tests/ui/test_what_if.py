"""What if: the answer of `planning.what_if`, of the command that is shown, and the map."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests import command_line
from tests.ui.builders import cluster, make_pod

from moorage import what_if as answer_what_if
from moorage.errors import InputError
from moorage.planning import prices
from moorage.ui import documents, what_if
from moorage.ui.snapshot import ClusterSnapshot

GIBIBYTE = 1024**3
CHANGES = (("add", "node-1:2"), ("pods", "default/web-1:3"), ("remove", "node-0"))


def owned(name, node):
    pod = make_pod(name, node)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return pod


@pytest.fixture
def objects():
    return [*cluster(5), owned("web-1", "node-0"), owned("web-2", "node-0")]


def test_as_planning_answers(objects):
    found = what_if.try_out(ClusterSnapshot(objects), CHANGES)
    expected = answer_what_if(objects, CHANGES)
    assert {each["pod"]: each["to"] for each in found["placed"]} == expected.placed
    assert {each["pod"]: (each["from"], each["to"]) for each in found["moved"]} == expected.moved
    assert {each["pod"]: each["reason"] for each in found["lost"]} == expected.lost
    assert found["counts"] == {"placed": 3, "moved": 2, "pending": 0, "lost": 2, "blocked": 0}
    assert found["clean"] is expected.is_clean is False


def test_the_map_with_the_changes(objects):
    snapshot = ClusterSnapshot(objects)
    found = what_if.try_out(snapshot, CHANGES, "pods")
    shown = found["map"]
    assert shown["names"][:5] == [f"node-{i}" for i in range(5)]
    assert shown["removed"] == [0]
    assert [shown["names"][i] for i in shown["added"]] == ["node-1-new-0", "node-1-new-1"]
    pods = dict(zip(shown["names"], shown["requested"], strict=True))
    for position, come, leave in shown["flows"]:
        name = shown["names"][position]
        before = 2 + (name == "node-0") * 2 if position < 5 else 0
        if name != "node-0":
            assert pods[name] >= before + come - leave  # Pending pods were placed first.
            assert what_if.node(snapshot, name, CHANGES)["podCount"] == pods[name]
    assert sum(come for _, come, _ in shown["flows"]) == 5
    assert sum(leave for _, _, leave in shown["flows"]) == 4
    assert what_if.node(snapshot, "node-0", CHANGES)["podCount"] == 4


def test_the_command_gives_the_same_answer(objects, tmp_path):
    file = tmp_path / "a cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    options = ("-f", str(file), "--validate", "ignore")
    found = what_if.try_out(ClusterSnapshot(objects, options=options), CHANGES)
    name, *arguments = shlex.split(found["command"])
    assert name == "moorage"
    said = json.loads(command_line.run(*arguments, "-o", "json").stdout)
    assert said["placed"] == {each["pod"]: each["to"] for each in found["placed"]}
    assert list(said["moved"]) == [each["pod"] for each in found["moved"]]


NEW_CONFIG = """apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
  - schedulerName: default-scheduler
    plugins:
      score:
        disabled: [{name: "*"}]
        enabled: [{name: NodeResourcesFit, weight: 1}]
    pluginConfig:
      - name: NodeResourcesFit
        args: {scoringStrategy: {type: MostAllocated, resources: [{name: cpu, weight: 1}]}}
"""


def test_another_configuration_and_prices(objects, tmp_path):
    """The page, its command line in a shell, and planning agree."""
    objects = [each for each in objects if each["metadata"]["name"] != "web-2"]
    cluster, costs = tmp_path / "a cluster.yaml", tmp_path / "prices.yaml"
    cluster.write_text(yaml.safe_dump_all(objects))
    costs.write_text("node-0: 1.5\nnode-1: 0.25\n")
    options = ("-f", str(cluster), "--validate", "ignore", "--prices", str(costs))
    snapshot = ClusterSnapshot(objects, options=options, prices=prices.load(costs, None))
    assert what_if.try_out(snapshot, [("cordon", "node-4")])["cost"]["difference"] == 0
    found = what_if.try_out(snapshot, [("new-config", NEW_CONFIG), ("remove", "node-1")])
    # Without it the pod goes to an empty node, with it to the fullest one.
    assert [(each["pod"], each["to"]) for each in found["moved"]] == [("default/fits", "node-0")]
    assert found["cost"]["differenceText"] == "-0.25"
    assert found["cost"]["unpriced"] == 3
    bin_folder = str(Path(sys.executable).parent)
    shell = subprocess.run(
        ["sh", "-c", found["command"].replace("<<", "-o json <<", 1)],
        capture_output=True,
        text=True,
        env=os.environ | {"PATH": f"{bin_folder}:{os.environ['PATH']}"},
        check=True,
    )
    said = json.loads(shell.stdout)
    assert said["moved"] == {
        each["pod"]: {"from": each["from"], "to": each["to"]} for each in found["moved"]
    }
    assert said["cost"]["perHourAfter"] == found["cost"]["perHourAfter"] == 1.5


def test_no_prices_no_cost(objects):
    assert what_if.try_out(ClusterSnapshot(objects), CHANGES)["cost"] is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param(
            NEW_CONFIG.replace("NodeResourcesFit, weight", "'os:system', weight"),
            'plugin "os:system": only built-in plugins are allowed here',
            id="code",
        ),
        pytest.param(
            NEW_CONFIG.replace("NodeResourcesFit, weight", "Unknown, weight"),
            'plugin "Unknown": only built-in',
            id="unknown plugin",
        ),
        pytest.param("/etc/passwd", "an object is expected, this is a single value", id="a path"),
        pytest.param(" " * 7000 + NEW_CONFIG, "is larger than 6,000 bytes", id="too large"),
        pytest.param('{"a":' + "[" * 5000, "", id="too deep"),
        pytest.param("a: [", "yaml: line", id="not YAML"),
    ],
)
def test_configurations_that_are_refused(objects, text, message):
    with pytest.raises(InputError, match=f"^new-config: .*{re.escape(message)}") as refused:
        what_if.try_out(ClusterSnapshot(objects), [("new-config", text)])
    assert "\n" not in str(refused.value)


def test_unknown_names(objects):
    with pytest.raises(InputError, match="there is no node 'x'"):
        what_if.try_out(ClusterSnapshot(objects), [("remove", "x")])
    with pytest.raises(InputError, match="there is no node 'node-1-new-9'"):
        what_if.node(ClusterSnapshot(objects), "node-1-new-9", CHANGES)


@pytest.mark.parametrize(
    ("change", "lost"),
    [
        pytest.param(("drain", "node-1"), 2, id="a drain that loses pods"),
        pytest.param(("uncordon", "node-1"), 0, id="no difference"),
    ],
)
def test_totals_are_compared_once_the_pending_pods_are_placed(objects, change, lost):
    snapshot = ClusterSnapshot(objects)
    found = what_if.try_out(snapshot, [change])
    assert (found["counts"]["lost"], found["placedFirst"]) == (lost, 1)
    now = documents.cluster(snapshot)["resources"]
    for total, each, placed in zip(found["totals"], (500, GIBIBYTE), (1000, GIBIBYTE), strict=True):
        shown = next(figures for figures in now if figures["name"] == total["before"]["name"])
        assert total["before"]["requested"] == shown["requested"] + placed
        assert total["before"]["allocatable"] == shown["allocatable"]
        assert total["after"]["requested"] == total["before"]["requested"] - lost * each
