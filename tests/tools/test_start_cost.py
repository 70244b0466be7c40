"""The dumps that tools/start_cost.py writes are those of a cluster whose pods all run."""

import shutil

import compare_commits
import pytest
import start_cost

from moorage.api import manifests


@pytest.mark.parametrize("like", sorted(start_cost.FORMS))
def test_a_dump_has_all_nodes_and_running_pods(tmp_path, like):
    dump = tmp_path / "dump.json"
    start_cost.write(dump, like, 3, 50)
    objects = manifests.load([str(dump)]).everything
    nodes = [each for each in objects if type(each).__name__ == "Node"]
    pods = [each for each in objects if type(each).__name__ == "Pod"]
    assert [node.name for node in nodes] == ["node-0", "node-1", "node-2"]
    assert len({(pod.namespace, pod.name) for pod in pods}) == 50
    assert [pod.node_name for pod in pods] == [f"node-{i % 3}" for i in range(50)]
    assert {pod.status.phase for pod in pods} == {"Running"}


def test_the_measurement_leaves_no_bytecode_in_the_sources(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    source = tmp_path / "src"
    shutil.copytree(compare_commits.HERE, source, ignore=shutil.ignore_patterns("__pycache__"))
    dump = tmp_path / "work" / "dump.json"
    dump.parent.mkdir()
    start_cost.write(dump, "compact", 1, 1)
    start_cost.measure(source, dump)
    assert list(source.rglob("__pycache__")) == []
    assert list(dump.parent.rglob("*.pyc"))
