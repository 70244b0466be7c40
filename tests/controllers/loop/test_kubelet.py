"""Kubelets: readiness of pods, the end of pods, and the capacity of nodes."""

from moorage.cluster.resources import NODES, PODS


def pod(**spec):
    fields = spec.pop("container", {})
    return {"spec": {"containers": [{"name": "c", "image": "i", **fields}], **spec}}


def conditions(world, name):
    found = world.get("Pod", name)["status"]["conditions"]
    return {each["type"]: each["status"] for each in found}


def test_a_pod_is_ready_after_the_initial_delay_of_its_probe(world):
    world.nodes(1)
    probe = {"tcpSocket": {"port": 80}, "initialDelaySeconds": 20}
    world.create("Pod", "slow", **pod(container={"readinessProbe": probe}))
    world.run(15)
    assert world.get("Pod", "slow")["status"]["phase"] == "Running"
    assert conditions(world, "slow")["Ready"] == "False"
    assert world.get("Pod", "slow")["status"]["containerStatuses"][0]["ready"] is False
    world.run(10)
    assert conditions(world, "slow")["Ready"] == "True"
    assert world.get("Pod", "slow")["status"]["containerStatuses"][0]["ready"] is True


def test_readiness_gates(world):
    world.nodes(1)
    world.create("Pod", "gated", **pod(readinessGates=[{"conditionType": "example.com/up"}]))
    world.run(5)
    assert conditions(world, "gated")["ContainersReady"] == "True"
    assert conditions(world, "gated")["Ready"] == "False"
    for status in ("True", "False"):
        found = world.get("Pod", "gated")
        others = [
            each for each in found["status"]["conditions"] if each["type"] != "example.com/up"
        ]
        gate = {"type": "example.com/up", "status": status}
        new = {**found, "status": {**found["status"], "conditions": [*others, gate]}}
        world.api.update(PODS, new, subresource="status")
        world.run(1)
        assert conditions(world, "gated")["Ready"] == status


def test_pre_stop_sleep_delays_the_end(world):
    world.nodes(1)
    hook = {"preStop": {"sleep": {"seconds": 8}}}
    world.create("Pod", "sleeper", **pod(container={"lifecycle": hook}))
    world.run(5)
    world.delete("Pod", "sleeper")
    world.run(8)
    assert world.exists("Pod", "sleeper")
    world.run(2)
    assert not world.exists("Pod", "sleeper")


def test_extended_resources_are_copied_into_allocatable(world):
    world.nodes(1)
    world.run(1)

    def set_capacity(change):
        node = world.get("Node", "n0")
        capacity = change(dict(node["status"]["capacity"]))
        new = {**node, "status": {**node["status"], "capacity": capacity}}
        world.api.update(NODES, new, subresource="status")
        world.run(1)
        return world.get("Node", "n0")["status"]["allocatable"]

    assert set_capacity(lambda old: old | {"example.com/foo": "5"})["example.com/foo"] == "5"
    left = set_capacity(lambda old: {k: v for k, v in old.items() if k != "example.com/foo"})
    assert "example.com/foo" not in left
    assert left["cpu"] == "8"


def test_a_pod_whose_host_port_is_taken_fails(world):
    world.nodes(2)

    def create(name, node):
        ports = [{"containerPort": 80, "hostPort": 8080}]
        world.create("Pod", name, **pod(nodeName=node, container={"ports": ports}))
        world.run(2)
        return world.get("Pod", name)["status"]

    assert create("first", "n0")["phase"] == "Running"
    assert create("other", "n1")["phase"] == "Running"
    second = create("second", "n0")
    assert (second["phase"], second["reason"]) == ("Failed", "NodePorts")
