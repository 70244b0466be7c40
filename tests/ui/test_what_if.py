"""What if a node is drained: the answer of `planning.drain`, and of the command that is shown."""

import json
import shlex

import pytest
import yaml
from tests.ui.builders import cluster, make_pod

from moorage import drain
from moorage.errors import InputError
from moorage.ui import what_if
from moorage.ui.snapshot import ClusterSnapshot


def owned(name, node):
    pod = make_pod(name, node)
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "w"}
    pod["metadata"]["ownerReferences"] = [{**owner, "controller": True}]
    return pod


@pytest.fixture
def objects():
    return [*cluster(5), owned("web-1", "node-0"), owned("web-2", "node-0")]


def test_as_planning_answers(objects):
    found = what_if.drain(ClusterSnapshot(objects), "node-0")
    expected = drain(objects, ["node-0"])
    assert {each["pod"]: each["to"] for each in found["moves"]} == {
        move.pod: move.to for move in expected.moves if move.to
    }
    assert found["counts"]["moves"] == 2
    assert [each["pod"] for each in found["lost"]] == [each.pod for each in expected.lost]
    assert found["clean"] is expected.is_clean is False


def test_the_command_gives_the_same_answer(objects, tmp_path):
    from click.testing import CliRunner

    from moorage.cli.main import moorage

    file = tmp_path / "a cluster.yaml"
    file.write_text(yaml.safe_dump_all(objects))
    found = what_if.drain(ClusterSnapshot(objects, options=("-f", str(file))), "node-0")
    name, *arguments = shlex.split(found["command"])
    assert name == "moorage"
    said = json.loads(CliRunner().invoke(moorage, [*arguments, "-o", "json"]).stdout)
    moved = {pod: each["to"] for pod, each in said["moves"].items() if each["to"]}
    assert moved == {each["pod"]: each["to"] for each in found["moves"]}


def test_an_unknown_node(objects):
    with pytest.raises(InputError, match="there is no node 'x'"):
        what_if.drain(ClusterSnapshot(objects), "x")
