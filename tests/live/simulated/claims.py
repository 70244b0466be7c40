"""Volumes and devices of a simulation: what people do with them, and what must hold.

ClaimWorkload   disks and devices of nodes, claims of pods; volumes are bound to claims, or made for
                them, when their first pod is scheduled (WaitForFirstConsumer)
ClaimChecks     a volume has one claim at most, and a claim keeps its volume; a device is allocated
                to one claim; a pod is bound when its claims are bound to volumes that its node
                reaches, and its devices are allocated on its node and reserved for it
"""

import itertools
from contextlib import suppress

from tests.storage_manifests import BY_HAND, claim, claimed, local_disk, storage_class

from moorage.cluster.resources import (
    DEVICE_CLASSES,
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    RESOURCE_CLAIM_TEMPLATES,
    RESOURCE_CLAIMS,
    RESOURCE_SLICES,
    STORAGE_CLASSES,
)
from moorage.cluster.status_errors import StatusError
from moorage.cluster.store import DELETED

HOSTNAME = "kubernetes.io/hostname"
DRIVER, TEMPLATE = "gpu.example.com", "one"
REQUEST = {"name": "gpu", "exactly": {"deviceClassName": "gpu"}}
DEVICES = {"devices": {"requests": [REQUEST]}}


class ClaimWorkload:
    def __init__(self, api, random):
        self._api = api
        self._random = random
        self._names = itertools.count(1)
        api.create(STORAGE_CLASSES, storage_class("made"))
        api.create(STORAGE_CLASSES, storage_class("disks", BY_HAND))
        selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
        api.create(DEVICE_CLASSES, {"metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}})
        meta = {"name": TEMPLATE, "namespace": "default"}
        api.create(RESOURCE_CLAIM_TEMPLATES, {"metadata": meta, "spec": {"spec": DEVICES}})

    def add_to_node(self, node):
        """Disks and devices of a new node."""
        meta = node["metadata"]
        for _ in range(self._random.choice((0, 1, 2))):
            disk = local_disk(f"disk-{next(self._names)}", HOSTNAME, meta["name"], "disks")
            disk["spec"]["local"] = {"path": "/disk"}
            self._api.create(PERSISTENT_VOLUMES, disk)
        devices = [{"name": f"gpu-{i}"} for i in range(self._random.choice((0, 1, 2)))]
        owner = {"apiVersion": "v1", "kind": "Node", "name": meta["name"], "uid": meta["uid"]}
        pool = {"name": meta["name"], "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": meta["name"], "pool": pool, "devices": devices}
        slice_meta = {"name": f"{meta['name']}-gpu", "ownerReferences": [owner]}
        self._api.create(RESOURCE_SLICES, {"metadata": slice_meta, "spec": spec})

    def add_to_pod(self, spec):
        """Claims of a new pod: some of its own, some shared with other pods."""
        draw = self._random
        if draw.random() < 0.3:
            spec["volumes"] = [claimed(self._volume_claim())]
        if draw.random() < 0.3:
            own = {"resourceClaimTemplateName": TEMPLATE}
            entry = own if draw.random() < 0.7 else {"resourceClaimName": self._device_claim()}
            spec["resourceClaims"] = [{"name": "gpu", **entry}]
            spec["containers"][0]["resources"]["claims"] = [{"name": "gpu"}]

    def _volume_claim(self):
        if self._random.random() < 0.3 and (found := self._any(PERSISTENT_VOLUME_CLAIMS)):
            return found["metadata"]["name"]
        new = claim(f"data-{next(self._names)}", self._random.choice(("made", "disks")))
        self._api.create(PERSISTENT_VOLUME_CLAIMS, new)
        return new["metadata"]["name"]

    def _device_claim(self):
        if self._random.random() < 0.5 and (found := self._any(RESOURCE_CLAIMS)):
            return found["metadata"]["name"]
        meta = {"name": f"gpu-{next(self._names)}", "namespace": "default"}
        self._api.create(RESOURCE_CLAIMS, {"metadata": meta, "spec": DEVICES})
        return meta["name"]

    def delete_claim(self):
        """Delete a claim that no pod uses."""
        used = {name for pod in self._api.store.each(PODS) for name in volume_claims(pod)}
        for kind in (PERSISTENT_VOLUME_CLAIMS, RESOURCE_CLAIMS):
            if (found := self._any(kind)) and found["metadata"]["name"] not in used:
                with suppress(StatusError):
                    self._api.delete(kind, "default", found["metadata"]["name"])

    def _any(self, resource):
        found = [stored.object for _, stored in self._api.store.snapshot(resource)]
        return self._random.choice(found) if found else None


class ClaimChecks:
    """Sees every change of the cluster; `fail` is called with what is wrong."""

    def __init__(self, api, fail, *, checks_devices):
        self._store = api.store
        self._fail = fail
        self._checks_devices = checks_devices
        self._claim_of = {}  # UID of a volume -> UID of its claim
        self._volume_of = {}  # UID of a claim -> name of its volume
        self._allocated = {}  # device -> UID of the claim that it is allocated to
        self.allocations = 0

    def changed(self, change):
        obj = change.object
        if change.resource is PERSISTENT_VOLUMES:
            reference = {} if change.type == DELETED else obj["spec"].get("claimRef") or {}
            self._keep(self._claim_of, obj, reference.get("uid"))
        elif change.resource is PERSISTENT_VOLUME_CLAIMS:
            name = None if change.type == DELETED else obj["spec"].get("volumeName")
            self._keep(self._volume_of, obj, name)
        elif change.resource is RESOURCE_CLAIMS:
            self._claim_changed(obj, is_deleted=change.type == DELETED)

    def _keep(self, partners, obj, partner):
        """A volume or claim gets no second partner, unless it lost the first."""
        uid, name = obj["metadata"]["uid"], obj["metadata"]["name"]
        before = partners.pop(uid, None)
        if partner is None:
            return
        if before not in (None, partner):
            self._fail(f"{name} was bound to {before}, now to {partner}")
        if partner in partners.values():
            self._fail(f"{name} is bound to {partner}, which is bound already")
        partners[uid] = partner

    def _claim_changed(self, claim, *, is_deleted):
        uid, name = claim["metadata"]["uid"], claim["metadata"]["name"]
        for device in [each for each, owner in self._allocated.items() if owner == uid]:
            del self._allocated[device]
        for device in () if is_deleted else devices(claim):
            if device in self._allocated and self._checks_devices:
                self._fail(f"{device} is allocated to {name} and {self._allocated[device]}")
            self._allocated[device] = uid
            self.allocations += 1

    def bound(self, pod):
        """A pod was bound to a node."""
        meta, node = pod["metadata"], pod["spec"]["nodeName"]
        for name in volume_claims(pod):
            found = self._store.find(PERSISTENT_VOLUME_CLAIMS, "default", name)
            volume = found and self._volume_of.get(found["metadata"]["uid"])
            stored = volume and self._store.find(PERSISTENT_VOLUMES, "", volume)
            if not stored or self._claim_of.get(stored["metadata"]["uid"]) is None:
                self._fail(f"{meta['name']} was bound before its claim {name}")
            if not reaches(stored, self._store.find(NODES, "", node)):
                self._fail(f"{meta['name']} was bound to {node}, which does not reach {volume}")
        for name in device_claims(pod):
            found = self._store.find(RESOURCE_CLAIMS, "default", name)
            status = (found or {}).get("status") or {}
            users = [each["uid"] for each in status.get("reservedFor") or ()]
            nodes = {pool for _, pool, _ in devices(found or {})}
            if meta["uid"] not in users or nodes != {node}:
                self._fail(f"{meta['name']} was bound to {node} with {name}: {status}")

    def check_end(self, uids):
        """After a time without faults, claims are reserved for pods that exist."""
        for found in self._store.each(RESOURCE_CLAIMS):
            status = found.get("status") or {}
            users = {each["uid"] for each in status.get("reservedFor") or ()}
            # Devices stay allocated to the claim of a pod whose binding failed.
            if not users <= uids:
                self._fail(f"{found['metadata']['name']} is not released: {status}")


def volume_claims(pod):
    volumes = pod["spec"].get("volumes") or ()
    found = (each.get("persistentVolumeClaim") for each in volumes)
    return [each["claimName"] for each in found if each]


def device_claims(pod):
    statuses = pod.get("status", {}).get("resourceClaimStatuses") or ()
    made = {each["name"]: each.get("resourceClaimName") for each in statuses}
    for entry in pod["spec"].get("resourceClaims") or ():
        yield entry.get("resourceClaimName") or made.get(entry["name"], "")


def devices(claim):
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results = allocation.get("devices", {}).get("results") or ()
    return [(each["driver"], each["pool"], each["device"]) for each in results]


def reaches(volume, node):
    """Whether a node, which may be gone, has the label that a volume asks for."""
    required = (volume["spec"].get("nodeAffinity") or {}).get("required")
    if node is None or required is None:
        return True
    labels = node["metadata"]["labels"]
    return any(
        all(labels.get(each["key"]) in each["values"] for each in term["matchExpressions"])
        for term in required["nodeSelectorTerms"]
    )
