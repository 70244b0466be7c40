"""Storms on a cluster with devices: claims of pods, shared claims, and devices that come and go.

storm.run(7, cluster=RandomDeviceCluster(7))
"""

from random import Random

from tests.storm import LASTS_SECONDS, Change, Manifest, RandomCluster

from moorage.sim.run import Simulation

API = "resource.k8s.io/v1"
DRIVER = "gpu.example.com"
FAST, ANY, EXTENDED = "fast", "any", "example.com/gpu"


class RandomDeviceCluster(RandomCluster):
    """A random cluster with devices, pods that claim them, and changes to both."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._draw = Random(f"devices {seed}")
        self._slices = [self._slice(node["metadata"]["name"]) for node in self._nodes]
        self._claims = [self._claim(f"claim-{i}") for i in range(self._draw.randint(1, 3))]
        self._templates = [self._template(f"template-{i}") for i in range(3)]

    def objects(self) -> list[Manifest]:
        """The objects at the start."""
        classes = [
            _class(ANY, f'device.driver == "{DRIVER}"', EXTENDED),
            _class(FAST, f'device.attributes["{DRIVER}"].model == "fast"'),
        ]
        users = [self._user(f"user-{i}") for i in range(self._draw.randint(3, 9))]
        more = [*classes, *self._slices, *self._claims, *self._templates, *users]
        return [*super().objects(), *more]

    def script(self) -> list[tuple[float, Change]]:
        """Changes with their times, in order."""
        times = [self._draw.uniform(0, LASTS_SECONDS) for _ in range(10)]
        changes = [(round(at, 3), self._device_change(i)) for i, at in enumerate(times)]
        return sorted([*super().script(), *changes], key=lambda change: change[0])

    def _device_change(self, i: int) -> Change:
        draw = self._draw
        claim = draw.choice(self._claims)["metadata"]["name"]
        user, node = f"user-{draw.randrange(6)}", draw.choice(self._nodes)["metadata"]["name"]
        late = self._user(f"late-user-{i}")
        new_claim = self._claim(f"late-claim-{i}")
        kinds: list[Change] = [
            lambda sim: sim.create([late]),
            lambda sim: sim.create([self._user(f"more-users-{i}-{n}") for n in range(3)]),
            lambda sim: sim.create([new_claim, self._sharer(f"late-sharer-{i}", new_claim)]),
            lambda sim: sim.delete("Pod", "default", user),
            lambda sim: sim.delete("Pod", "default", user),
            lambda sim: sim.delete("ResourceClaim", "default", claim),
            lambda sim: sim.delete("ResourceSlice", "", f"{node}-{DRIVER}"),
            lambda sim: sim.create([self._slice(node)]),
            lambda sim: sim.update(_changed(sim, f"{node}-{DRIVER}", tainted=draw.random() < 0.5)),
            lambda sim: sim.delete("DeviceClass", "", FAST),
        ]
        return draw.choice(kinds)

    # Devices

    def _slice(self, node: str) -> Manifest:
        devices = [self._device(f"gpu-{i}") for i in range(self._draw.randint(0, 3))]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        return _object("ResourceSlice", f"{node}-{DRIVER}", spec)

    def _device(self, name: str) -> Manifest:
        draw = self._draw
        device: Manifest = {
            "name": name,
            "attributes": {"model": {"string": draw.choice(("fast", "slow"))}},
            "capacity": {"memory": {"value": "8Gi"}},
        }
        if draw.random() < 0.2:
            device["allowMultipleAllocations"] = True
        if draw.random() < 0.15:
            device |= {"bindingConditions": ["Ready"], "bindingFailureConditions": ["Broken"]}
        if draw.random() < 0.1:
            device["taints"] = [{"key": "worn", "effect": "NoSchedule"}]
        return device

    # Claims

    def _claim(self, name: str) -> Manifest:
        return _object("ResourceClaim", name, self._requests(), namespace="default")

    def _template(self, name: str) -> Manifest:
        spec = {"spec": self._requests()}
        return _object("ResourceClaimTemplate", name, spec, namespace="default")

    def _requests(self) -> Manifest:
        draw = self._draw
        requests = [self._request(f"r{i}") for i in range(draw.choice((1, 1, 1, 2)))]
        devices: Manifest = {"requests": requests}
        if draw.random() < 0.2:
            devices["constraints"] = [{"matchAttribute": f"{DRIVER}/model"}]
        return {"devices": devices}

    def _request(self, name: str) -> Manifest:
        draw = self._draw
        exactly: Manifest = {"deviceClassName": draw.choice((ANY, ANY, FAST))}
        exactly["count"] = draw.choice((1, 1, 1, 2))
        if draw.random() < 0.2:
            exactly["tolerations"] = [{"key": "worn", "operator": "Exists"}]
        if draw.random() < 0.3:
            exactly["capacity"] = {"requests": {"memory": draw.choice(("2Gi", "4Gi"))}}
        if draw.random() < 0.2:
            others = [{"name": "a", "deviceClassName": FAST}, {"name": "b", "deviceClassName": ANY}]
            return {"name": name, "firstAvailable": others}
        return {"name": name, "exactly": exactly}

    # Pods

    def _user(self, name: str) -> Manifest:
        draw = self._draw
        if draw.random() < 0.25:
            return self._sharer(name, draw.choice(self._claims))
        if draw.random() < 0.2:
            pod = self._small(name)
            (container,) = pod["spec"]["containers"]
            requests = {**container["resources"]["requests"], EXTENDED: "1"}
            changed = {**container, "resources": {"requests": requests, "limits": {EXTENDED: "1"}}}
            return pod | {"spec": {**pod["spec"], "containers": [changed]}}
        template = draw.choice(self._templates)["metadata"]["name"]
        return self._with_claim(name, {"resourceClaimTemplateName": template})

    def _sharer(self, name: str, claim: Manifest) -> Manifest:
        return self._with_claim(name, {"resourceClaimName": claim["metadata"]["name"]})

    def _with_claim(self, name: str, entry: Manifest) -> Manifest:
        pod = self._small(name)
        return pod | {"spec": {**pod["spec"], "resourceClaims": [{"name": "gpu", **entry}]}}

    def _small(self, name: str) -> Manifest:
        """A pod that mostly fits, so that devices are what is scarce."""
        pod = self._pod(name)
        containers = [{"name": "main", "resources": {"requests": {"cpu": "100m"}}}]
        spec = {**pod["spec"], "containers": containers}
        if self._draw.random() < 0.7:
            for field in ("schedulingGates", "nodeSelector", "affinity", "schedulerName"):
                spec.pop(field, None)
        meta = pod["metadata"]
        if self._draw.random() < 0.3:
            seconds = str(self._draw.choice((2, 5, 10)))
            meta = {**meta, "annotations": {"moorage.dev/run-seconds": seconds}}
        return pod | {"metadata": meta, "spec": spec}


def _object(kind: str, name: str, spec: Manifest, **meta: str) -> Manifest:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **meta}, "spec": spec}


def _class(name: str, expression: str, extended: str = "") -> Manifest:
    spec: Manifest = {"selectors": [{"cel": {"expression": expression}}]}
    return _object(
        "DeviceClass", name, spec | ({"extendedResourceName": extended} if extended else {})
    )


def _changed(sim: Simulation, name: str, *, tainted: bool) -> Manifest:
    """The slice with a new generation: all devices tainted, or none."""
    found = sim.read("ResourceSlice", "", name)
    taints = [{"key": "worn", "effect": "NoSchedule"}] if tainted else []
    spec = found["spec"]
    pool = {**spec["pool"], "generation": spec["pool"]["generation"] + 1}
    devices = [{**device, "taints": taints} for device in spec.get("devices", [])]
    return {**found, "spec": {**spec, "pool": pool, "devices": devices}}
