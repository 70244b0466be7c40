"""The dumps that tools/start_cost.py writes are those of a cluster whose pods all run."""

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
