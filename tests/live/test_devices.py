"""`moorage run` against `moorage serve` in another process: device claims from end to end.

The tests share a server and a scheduler. Each has a node, a driver and a device class of its own,
named after the test, so that none of them sees the devices of another.
"""

import os
import signal

import pytest
from world import World, until

RESOURCE = "/apis/resource.k8s.io/v1"
CLAIMS = f"{RESOURCE}/namespaces/default/resourceclaims"
PODS = "/api/v1/namespaces/default/pods"
FINALIZER = "resource.kubernetes.io/delete-protection"


class DeviceWorld(World):
    """A cluster of `moorage serve`, and a scheduler."""

    def __init__(self, folder, *flags):
        self.flags = flags
        super().__init__(folder)
        self.start()

    def start(self):
        """Start a scheduler, and wait until it schedules."""
        scheduler = self.run(*self.flags)
        until(lambda: scheduler.said("scheduling"))
        return scheduler

    def claim(self, name):
        return self.call("GET", f"{CLAIMS}/{name}")

    def claim_of(self, pod):
        """The claim that was created for a pod, by the controller or by the scheduler."""
        status = self.call("GET", f"{PODS}/{pod}")["status"]
        if extended := status.get("extendedResourceClaimStatus"):
            return self.claim(extended["resourceClaimName"])
        return self.claim(status["resourceClaimStatuses"][0]["resourceClaimName"])

    def has_run(self, *pods):
        phases = {name: pod["status"]["phase"] for name, pod in self.pods().items()}
        return all(phases[name] == "Running" for name in pods)


class Devices:
    """A node, a driver and a class for one test."""

    def __init__(self, world, name):
        self.world = world
        self.name = name
        self.node = f"{name}-node"
        self.driver = f"{name}.example.com"

    def create_node(self, node=""):
        self.world.create_node(node or self.node, cpu="8")

    def create_class(self, **spec):
        expression = f'device.driver == "{self.driver}"'
        spec = {"selectors": [{"cel": {"expression": expression}}], **spec}
        body = {"metadata": {"name": self.name}, "spec": spec}
        self.world.call("POST", f"{RESOURCE}/deviceclasses", body)

    def create_slice(self, *devices, node=""):
        node = node or self.node
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": self.driver, "nodeName": node, "pool": pool, "devices": list(devices)}
        body = {"metadata": {"name": f"{node}-{self.driver}"}, "spec": spec}
        self.world.call("POST", f"{RESOURCE}/resourceslices", body)

    def create_all(self, *devices, **spec):
        self.create_node()
        self.create_class(**spec)
        self.create_slice(*devices)

    def requests(self, **exactly):
        request = {"name": "gpu", "exactly": {"deviceClassName": self.name, **exactly}}
        return {"devices": {"requests": [request]}}

    def create_claim(self, name="", **exactly):
        name = name or self.name
        body = {"metadata": {"name": name}, "spec": self.requests(**exactly)}
        self.world.call("POST", CLAIMS, body)
        return name

    def create_template(self, **exactly):
        body = {"metadata": {"name": self.name}, "spec": {"spec": self.requests(**exactly)}}
        path = f"{RESOURCE}/namespaces/default/resourceclaimtemplates"
        self.world.call("POST", path, body)

    def create_pod(self, number=0, claim="", **spec):
        """A pod with its own claim from the template, or with a claim by name."""
        entry = {"resourceClaimName": claim} if claim else {"resourceClaimTemplateName": self.name}
        name = f"{self.name}-{number}"
        self.world.create_pod(name, cpu="10m", resourceClaims=[{"name": "gpu", **entry}], **spec)
        return name

    def is_waiting(self, pod):
        return self.world.reasons().get(pod)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    # A scheduler that was killed has ended, so the next one need not wait for its lease.
    made = DeviceWorld(tmp_path_factory.mktemp("devices"), "--leader-elect=false")
    yield made
    made.close()


@pytest.fixture
def devices(world, request):
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:40].rstrip("-")
    return Devices(world, name)


def gpus(count, **fields):
    return [{"name": f"gpu-{i}", **fields} for i in range(count)]


def results(claim):
    return claim["status"]["allocation"]["devices"]["results"]


def test_allocation(world, devices):
    devices.create_all(*gpus(1))
    devices.create_template()
    pod = devices.create_pod()
    until(lambda: world.has_run(pod))
    claim = world.claim_of(pod)
    assert claim["metadata"]["finalizers"] == [FINALIZER]
    (user,) = claim["status"]["reservedFor"]
    assert (user["resource"], user["name"]) == ("pods", pod)
    (result,) = results(claim)
    assert (result["driver"], result["device"]) == (devices.driver, "gpu-0")
    allocation = claim["status"]["allocation"]
    assert allocation["allocationTimestamp"]
    (term,) = allocation["nodeSelector"]["nodeSelectorTerms"]
    assert term == {
        "matchFields": [{"key": "metadata.name", "operator": "In", "values": [devices.node]}]
    }


def test_shared_claim(world, devices):
    devices.create_all(*gpus(1))
    other = f"{devices.name}-other"
    devices.create_node(other)
    claim = devices.create_claim()
    pods = [devices.create_pod(i, claim) for i in range(2)]
    until(lambda: world.has_run(*pods))
    assert {world.bound()[pod] for pod in pods} == {devices.node}
    users = world.claim(claim)["status"]["reservedFor"]
    assert sorted(user["name"] for user in users) == pods
    # The devices are free when the last pod has ended.
    for pod in pods:
        world.delete_pod(pod)
    until(lambda: "allocation" not in world.claim(claim)["status"])
    assert "finalizers" not in world.claim(claim)["metadata"]


def test_what_comes_late_wakes_the_pod(world, devices):
    devices.create_node()
    claim = f"{devices.name}-late"
    pod = devices.create_pod(claim=claim)
    devices.create_claim(claim)
    until(lambda: "device class" in (devices.is_waiting(pod) or ""))
    devices.create_class()
    until(lambda: "cannot allocate all claims" in (devices.is_waiting(pod) or ""))
    devices.create_slice(*gpus(1))
    until(lambda: world.has_run(pod))


def test_freed_device_wakes_the_next_pod(world, devices):
    devices.create_all(*gpus(1))
    devices.create_template()
    first = devices.create_pod(0)
    until(lambda: world.has_run(first))
    second = devices.create_pod(1)
    until(lambda: devices.is_waiting(second))
    world.delete_pod(first)
    until(lambda: world.has_run(second))


def test_ten_pods_race_for_six_devices(world, devices):
    devices.create_class()
    devices.create_template()
    for i in range(3):
        devices.create_node(f"{devices.name}-{i}")
        devices.create_slice(*gpus(2), node=f"{devices.name}-{i}")
    pods = [devices.create_pod(i) for i in range(10)]
    waiting = until(lambda: (found := [p for p in pods if devices.is_waiting(p)])[3:] and found)
    assert len(waiting) == 4
    running = [pod for pod in pods if pod not in waiting]
    until(lambda: world.has_run(*running))
    given = [(r["pool"], r["device"]) for pod in running for r in results(world.claim_of(pod))]
    assert len(set(given)) == len(given) == 6


def test_taints(world, devices):
    devices.create_all(*gpus(1, taints=[{"key": "worn", "effect": "NoSchedule"}]))
    devices.create_template()
    pod = devices.create_pod()
    until(lambda: devices.is_waiting(pod))
    claim = devices.create_claim(tolerations=[{"key": "worn", "operator": "Exists"}])
    tolerant = devices.create_pod(1, claim)
    until(lambda: world.has_run(tolerant))
    assert results(world.claim(claim))[0]["tolerations"][0]["key"] == "worn"
    assert devices.is_waiting(pod)


def test_admin_access(world, devices):
    devices.create_all(*gpus(1))
    namespace = {"metadata": {"labels": {"resource.kubernetes.io/admin-access": "true"}}}
    world.call("PATCH", "/api/v1/namespaces/default", namespace)
    user = devices.create_claim()
    admin = devices.create_claim(f"{devices.name}-admin", adminAccess=True)
    pods = [devices.create_pod(0, user), devices.create_pod(1, admin)]
    until(lambda: world.has_run(*pods))
    assert results(world.claim(user))[0]["device"] == "gpu-0"
    (result,) = results(world.claim(admin))
    assert (result["device"], result["adminAccess"]) == ("gpu-0", True)


def test_consumable_capacity(world, devices):
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "10Gi"}}}
    devices.create_all(*gpus(1, **shared))
    devices.create_template(capacity={"requests": {"memory": "4Gi"}})
    pods = [devices.create_pod(i) for i in range(3)]
    waiting = until(lambda: [pod for pod in pods if devices.is_waiting(pod)])
    running = [pod for pod in pods if pod not in waiting]
    until(lambda: world.has_run(*running))
    assert len(running) == 2
    given = [results(world.claim_of(pod))[0] for pod in running]
    assert [each["consumedCapacity"] for each in given] == [{"memory": "4Gi"}] * 2
    assert len({each["shareID"] for each in given}) == 2


def test_binding_conditions(world, devices):
    conditions = {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
    devices.create_all(*gpus(1, **conditions))
    claim = devices.create_claim()
    pod = devices.create_pod(claim=claim)
    until(lambda: world.claim(claim)["status"].get("allocation"))
    assert pod not in world.bound()
    met = {"type": "Ready", "status": "True", "reason": "Done", "message": ""}
    met["lastTransitionTime"] = "2026-01-01T00:00:00Z"
    device = {"driver": devices.driver, "pool": devices.node, "device": "gpu-0"}
    body = {"status": {"devices": [device | {"conditions": [met]}]}}
    world.call("PATCH", f"{CLAIMS}/{claim}/status", body)
    until(lambda: world.has_run(pod))


def test_extended_resource(world, devices):
    resource = f"{devices.driver}/gpu"
    devices.create_all(*gpus(2), extendedResourceName=resource)
    amounts = {
        "requests": {"cpu": "10m", "memory": "1Mi", resource: "2"},
        "limits": {resource: "2"},
    }
    container = {"name": "main", "image": "x", "resources": amounts}
    pod = f"{devices.name}-pod"
    world.create_pod(pod, containers=[container])
    until(lambda: world.has_run(pod))
    status = world.pods()[pod]["status"]["extendedResourceClaimStatus"]
    (mapping,) = status["requestMappings"]
    assert (mapping["containerName"], mapping["resourceName"]) == ("main", resource)
    claim = world.claim_of(pod)
    assert len(results(claim)) == 2
    world.delete_pod(pod)
    until(lambda: claim["metadata"]["name"] not in _names(world.call("GET", CLAIMS)))


def _names(listed):
    return [item["metadata"]["name"] for item in listed["items"]]


def kill_in_the_middle(devices, *kills):
    """Kill the scheduler when so many of 20 pods are bound; no device is given twice."""
    world, name = devices.world, devices.name
    devices.create_class()
    devices.create_template()
    for i in range(4):
        devices.create_node(f"{name}-{i}")
        devices.create_slice(*gpus(5), node=f"{name}-{i}")
    pods = [devices.create_pod(i) for i in range(20)]
    for enough in kills:
        until(lambda: len(world.bound().keys() & set(pods)) >= enough, step=0.001)  # noqa: B023
        world.schedulers[-1].signal(signal.SIGKILL)
        world.schedulers[-1].wait()
        world.start()
    until(lambda: world.has_run(*pods))
    given = [(r["pool"], r["device"]) for pod in pods for r in results(world.claim_of(pod))]
    assert len(set(given)) == len(given) == 20


def test_kill_in_the_middle(devices):
    kill_in_the_middle(devices, 3)


@pytest.mark.skipif(not os.environ.get("MOORAGE_LONG"), reason="takes half a minute")
def test_kill_with_default_leases(tmp_path):
    world = DeviceWorld(tmp_path)
    try:
        kill_in_the_middle(Devices(world, "killed"), 3, 9)
    finally:
        world.close()
