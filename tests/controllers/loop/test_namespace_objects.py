"""The objects of every namespace, and a server whose controllers run elsewhere."""

from moorage.cluster.resources import CONFIG_MAPS, SERVICE_ACCOUNTS
from moorage.controllers.namespace_objects import ROOT_AUTHORITY
from moorage.serve.control_plane import ControlPlane


def test_every_namespace_has_its_objects(world):
    world.create("Namespace", "shop")
    for namespace in ("default", "kube-system", "shop"):
        assert world.store.find(SERVICE_ACCOUNTS, namespace, "default") is not None
        assert world.store.find(CONFIG_MAPS, namespace, ROOT_AUTHORITY) is not None


def test_deleted_objects_come_back(world):
    old = world.store.get(SERVICE_ACCOUNTS, "default", "default")
    world.api.delete(SERVICE_ACCOUNTS, "default", "default")
    world.settle()
    new = world.store.get(SERVICE_ACCOUNTS, "default", "default")
    assert new["metadata"]["uid"] != old["metadata"]["uid"]


def test_without_controllers_kubelets_run(world):
    world.control_plane = ControlPlane(
        world.api, None, stopwatch=lambda: 0.0, runs_controllers=False
    )
    world.create("Namespace", "shop")
    world.create("Node", "n1")
    world.create("Pod", "web", spec={"nodeName": "n1", "containers": [{"name": "a", "image": "b"}]})
    template = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "a", "image": "b"}]},
    }
    selector = {"matchLabels": {"a": "b"}}
    world.create(
        "ReplicaSet", "set", spec={"replicas": 3, "selector": selector, "template": template}
    )
    world.run(5)
    assert world.get("Pod", "web")["status"]["phase"] == "Running"
    assert [pod["metadata"]["name"] for pod in world.all("Pod")] == ["web"]
