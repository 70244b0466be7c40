"""Storms on a cluster with volumes: local disks, provisioned disks, and disks bound elsewhere.

storm.run(7, cluster=RandomVolumeCluster(7))
"""

from random import Random

from tests.storm import LASTS_SECONDS, Change, Manifest, RandomCluster

from moorage.sim.run import Simulation

HOSTNAME = "kubernetes.io/hostname"
LOCAL, MADE, AT_ONCE = "local", "made", "at-once"
DRIVER = "csi.example.com"


class RandomVolumeCluster(RandomCluster):
    """A random cluster with claims, pods that use them, and changes to both."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self._draw = Random(f"volumes {seed}")
        self._disks = [
            _disk(f"disk-{i}-{n}", node["metadata"]["name"], self._draw.choice(("1Gi", "5Gi")))
            for i, node in enumerate(self._nodes)
            for n in range(self._draw.choice((0, 1, 2)))
        ]
        self._claims = [self._claim(f"claim-{i}") for i in range(self._draw.randint(3, 8))]

    def objects(self) -> list[Manifest]:
        """The objects at the start."""
        classes = [
            _class(LOCAL, "kubernetes.io/no-provisioner", "WaitForFirstConsumer"),
            _class(MADE, DRIVER, "WaitForFirstConsumer"),
            _class(AT_ONCE, DRIVER, "Immediate"),
        ]
        names = [claim["metadata"]["name"] for claim in self._claims]
        users = [self._user(f"user-{i}", name) for i, name in enumerate(names)]
        # Some claims are shared, as by the replicas of a Deployment.
        shared = [name for name in names if self._draw.random() < 0.3]
        users += [self._user(f"sharer-{i}", name) for i, name in enumerate(shared)]
        csi_nodes = [_csi_node(node["metadata"]["name"]) for node in self._nodes]
        more = [*classes, *csi_nodes, *self._disks, *self._claims, *users]
        return [*super().objects(), *more]

    def script(self) -> list[tuple[float, Change]]:
        """Changes with their times, in order."""
        times = [self._draw.uniform(0, LASTS_SECONDS) for _ in range(8)]
        changes = [(round(at, 3), self._volume_change(i)) for i, at in enumerate(times)]
        return sorted([*super().script(), *changes], key=lambda change: change[0])

    def _volume_change(self, i: int) -> Change:
        draw = self._draw
        claim = draw.choice(self._claims)["metadata"]["name"]
        user = f"user-{draw.randrange(len(self._claims))}"
        disk = draw.choice(self._disks)["metadata"]["name"] if self._disks else "none"
        node = draw.choice(self._nodes)["metadata"]["name"]
        late = [self._claim(f"late-claim-{i}"), self._user(f"late-user-{i}", f"late-claim-{i}")]
        scratch = self._scratch(f"scratch-{i}")
        kinds: list[Change] = [
            lambda sim: sim.create(late),
            lambda sim: sim.create([scratch]),
            lambda sim: sim.create([_disk(f"late-disk-{i}", node, "5Gi")]),
            lambda sim: sim.update(_stolen(sim, disk)),
            lambda sim: sim.update(_stolen(sim, disk)),
            lambda sim: sim.delete("PersistentVolumeClaim", "default", claim),
            lambda sim: sim.delete("PersistentVolume", "", disk),
            lambda sim: sim.delete("Pod", "default", user),
        ]
        return draw.choice(kinds)

    def _claim(self, name: str) -> Manifest:
        spec = {
            "storageClassName": self._draw.choice((LOCAL, LOCAL, MADE, MADE, AT_ONCE)),
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": self._draw.choice(("1Gi", "2Gi"))}},
        }
        meta = {"name": name, "namespace": "default"}
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": meta,
            "spec": spec,
        }

    def _user(self, name: str, claim: str) -> Manifest:
        pod = self._pod(name)
        volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
        return pod | {"spec": pod["spec"] | {"volumes": [volume]}}

    def _scratch(self, name: str) -> Manifest:
        pod, template = self._pod(name), {"spec": self._claim("scratch")["spec"]}
        volume = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}
        return pod | {"spec": pod["spec"] | {"volumes": [volume]}}


def _class(name: str, provisioner: str, mode: str) -> Manifest:
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": name},
        "provisioner": provisioner,
        "volumeBindingMode": mode,
    }


def _csi_node(name: str) -> Manifest:
    driver = {"name": DRIVER, "nodeID": name, "topologyKeys": ["zone"]}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": {"drivers": [driver | {"allocatable": {"count": 3}}]},
    }


def _disk(name: str, node: str, size: str) -> Manifest:
    here = {"key": HOSTNAME, "operator": "In", "values": [node]}
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": size},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": LOCAL,
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}},
        },
    }


def _stolen(sim: Simulation, disk: str) -> Manifest:
    """The disk, bound to a claim of another namespace."""
    volume = sim.read("PersistentVolume", "", disk)
    thief = {"namespace": "elsewhere", "name": "thief", "uid": "thief"}
    return {**volume, "spec": {**volume["spec"], "claimRef": thief}}
