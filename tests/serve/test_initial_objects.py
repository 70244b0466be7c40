"""Objects that the server itself writes at its start, and those of files."""

from collections import Counter
from pathlib import Path

import pytest
from tests.controllers.loop.conftest import World

from moorage import Simulation
from moorage.api import manifests
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.cluster.resources import COMPONENT_STATUSES, NODES
from moorage.expansion import node_defaults
from moorage.serve import initial_objects
from moorage.serve.server import open_api

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_statuses_of_components_follow_what_this_process_runs():
    api = open_api(None)
    for is_running in (True, False):  # The second is a start on the same data.
        initial_objects.add_component_statuses(api, {"scheduler": is_running})
        (status,) = api.store.each(COMPONENT_STATUSES)
        (condition,) = status["conditions"]
        assert (condition["status"], "error" in condition) == (
            ("True", False) if is_running else ("Unknown", True)
        )


def test_what_a_quota_refuses_is_reported_and_left_out():
    api = open_api(None)
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}}
    quota["spec"] = {"hard": {"configmaps": "1"}}
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **more}}
        for name, more in (("a", {}), ("b", {}), ("c", {"uid": "1"}), ("d", {"uid": "2"}))
    ]
    warnings = []
    found = [(f"file, document {i}", obj) for i, obj in enumerate([*maps, quota], 1)]
    assert initial_objects.add_objects(api, found, warnings.append) == 3
    # Objects of a dump exist already; they count.
    assert [text.partition(", requested")[0] for text in warnings] == [
        f'file, document {i}: configmaps "{name}" is forbidden: exceeded quota: q'
        for i, name in ((1, "a"), (2, "b"))
    ]


def test_a_custom_resource_with_the_kind_of_a_skipped_one_is_created():
    api = open_api(None)
    names = {"kind": "Event", "plural": "events"}
    versions = [{"name": "v1", "served": True, "storage": True}]
    spec = {"group": "example.com", "scope": "Cluster", "names": names, "versions": versions}
    definition = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    definition |= {"metadata": {"name": "events.example.com"}, "spec": spec}
    event = {"kind": "Event", "metadata": {"name": "e"}}
    found = [{"apiVersion": "example.com/v1", **event}, {"apiVersion": "v1", **event}, definition]
    assert initial_objects.add_objects(api, [("a.yaml", obj) for obj in found]) == 2


def test_a_kind_that_is_not_served_is_reported_and_left_out():
    api = open_api(None)
    settings = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "Configuration"}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}
    warnings = []
    found = [("a.yaml", settings), ("b.yaml", node)]
    assert initial_objects.add_objects(api, found, warnings.append) == 1
    assert warnings == [
        'a.yaml: no matches for kind "Configuration" in version "kubescheduler.config.k8s.io/v1": '
        "it is left out"
    ]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param("demo", id="a folder with all kinds of workloads"),
        pytest.param("gangs", id="a folder with pod groups and a configuration"),
        pytest.param("devices", id="device claims"),
        pytest.param("stateful", id="claims of a StatefulSet"),
        pytest.param("scenarios/rollout.yaml", id="the cluster of a scenario, with a pool"),
        pytest.param("scenarios/hour.yaml", id="pools of a scenario"),
    ],
)
def test_the_same_files_are_read_as_by_simulate(name):
    path = EXAMPLES / name
    found, whole = manifests.load_whole([path], "strict")
    assert whole.unread_workloads == []
    # Of a file with a Scenario, `serve` takes the cluster; `simulate` refuses it with -f.
    manifest = manifests.read(obj for _, obj in found if obj["kind"] != "Scenario")
    manifest.objects, _ = node_defaults.complete(manifest.objects)
    sim = Simulation(manifest.everything)
    sim.run(30)
    node_defaults.complete_documents(found)
    world = World()
    initial_objects.add_objects(world.api, found)
    world.run(30)
    nodes = {obj["metadata"]["name"]: obj for obj in world.store.each(NODES)}
    simulated = {obj.name: obj for obj in sim.objects if isinstance(obj, Node)}
    assert nodes.keys() == simulated.keys() != set()
    for node, obj in simulated.items():
        assert nodes[node]["metadata"].get("labels", {}) == obj.labels
    pods = Counter(pod["metadata"]["namespace"] for pod in world.all("Pod"))
    assert pods == Counter(obj.namespace for obj in sim.objects if isinstance(obj, Pod))
