"""What if: the answer of `planning.what_if`, of the command that is shown, and the map."""

import json
import shlex

import pytest
import yaml
from tests.ui.builders import cluster, make_pod

from moorage import what_if as answer_what_if
from moorage.errors import InputError
from moorage.ui import what_if
from moorage.ui.snapshot import ClusterSnapshot

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
    from click.testing import CliRunner

    from moorage.cli.main import moorage

    file = tmp_path / "a cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    found = what_if.try_out(ClusterSnapshot(objects, options=("-f", str(file))), CHANGES)
    name, *arguments = shlex.split(found["command"])
    assert name == "moorage"
    said = json.loads(CliRunner().invoke(moorage, [*arguments, "-o", "json"]).stdout)
    assert said["placed"] == {each["pod"]: each["to"] for each in found["placed"]}
    assert list(said["moved"]) == [each["pod"] for each in found["moved"]]


def test_unknown_names(objects):
    with pytest.raises(InputError, match="there is no node 'x'"):
        what_if.try_out(ClusterSnapshot(objects), [("remove", "x")])
    with pytest.raises(InputError, match="there is no node 'node-1-new-9'"):
        what_if.node(ClusterSnapshot(objects), "node-1-new-9", CHANGES)
