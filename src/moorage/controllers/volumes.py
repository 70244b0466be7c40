"""Volumes: bind claims to volumes, provision volumes, create claims of ephemeral volumes.

    a matching volume, Immediate                 bind at once
    a class with a provisioner, Immediate        create a volume after a short delay, then bind
    WaitForFirstConsumer                         the same, once a node is selected for a consumer
    the claim is gone                            delete its volume, or set it to Released

The scheduler selects a node by an annotation on the claim; a consumer that already has a node
selects it too. A volume that is provisioned for a node gets the zone of that node.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from moorage.api import quantity, timestamps
from moorage.api.defaults import IS_DEFAULT_CLASS
from moorage.controllers import objects, pods
from moorage.controllers.index import ObjectIndex
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, RequeueAt, Update, Write

CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "storage.k8s.io/StorageClass"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE = "topology.kubernetes.io/zone"
# How long it takes to provision a volume.
PROVISION_SECONDS = 0.5


def reconcile(obj: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Bind an unbound claim, or check the claim of a volume."""
    if objects.kind_of(obj) == VOLUME:
        yield from _reconcile_volume(obj, index)
    elif not objects.is_terminating(obj) and not is_bound(obj):
        yield from _reconcile_claim(obj, index, now)


def is_bound(claim: Object) -> bool:
    return objects.status(claim).get("phase") == "Bound"


def default_class(index: ObjectIndex) -> str:
    """The default class, which claims without a class get also after their creation."""
    found = [
        each
        for each in index.all(CLASS)
        if any(objects.annotations(each).get(name) == "true" for name in IS_DEFAULT_CLASS)
    ]
    # As in Kubernetes, the youngest of several.
    found.sort(key=lambda each: (-pods.created_at(each), objects.name(each)))
    return objects.name(found[0]) if found else ""


# Claims ----------------------------------------------------------------------------------------


def _reconcile_claim(claim: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    if "storageClassName" not in objects.spec(claim) and (name := default_class(index)):
        yield Update(objects.with_spec(claim, storageClassName=name))
        return
    volume_name = objects.spec(claim).get("volumeName")
    if volume_name:
        volume = index.get(VOLUME, "", volume_name)
        if volume is not None and _is_available_to(volume, claim):
            yield from bind(claim, volume)
        return
    class_ = index.get(CLASS, "", objects.spec(claim).get("storageClassName") or "")
    node = selected_node(claim, index)
    waits = (class_ or {}).get("volumeBindingMode") == "WaitForFirstConsumer"
    if waits and not node:
        return
    volume = best_volume(claim, index.all(VOLUME))
    if volume is not None:
        yield from bind(claim, volume)
    elif class_ is not None and class_.get("provisioner") != NO_PROVISIONER:
        created_at = timestamps.to_seconds(claim["metadata"].get("creationTimestamp"), now)
        ready_at = created_at + PROVISION_SECONDS
        if ready_at > now:
            yield RequeueAt(ready_at)
        else:  # The new volume comes back as a change, which binds it.
            yield Create(new_volume(claim, class_, index.get("Node", "", node)))


def selected_node(claim: Object, index: ObjectIndex) -> str:
    """The node for which a claim is to be bound, if one is selected."""
    annotated = objects.annotations(claim).get(SELECTED_NODE, "")
    return annotated or next((pods.node_name(pod) for pod in bound_users(claim, index)), "")


def bound_users(claim: Object, index: ObjectIndex) -> Iterator[Object]:
    """The pods that use a claim and have a node."""
    for pod in index.all("Pod", objects.namespace(claim)):
        if pods.node_name(pod) and objects.name(claim) in claims_of(pod):
            yield pod


def claims_of(pod: Object) -> list[str]:
    """The names of the claims that a pod uses, those of ephemeral volumes included."""
    found = []
    for volume in objects.spec(pod).get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            found.append(claim)
        elif volume.get("ephemeral"):
            found.append(_ephemeral_claim_name(pod, volume))
    return found


def best_volume(claim: Object, volumes: Sequence[Object]) -> Object | None:
    """A volume that is reserved for the claim, else the smallest that matches."""
    matching = [volume for volume in volumes if _matches(claim, volume)]
    reserved = [volume for volume in matching if objects.spec(volume).get("claimRef")]
    return min(reserved or matching, key=lambda v: (capacity(v), objects.name(v)), default=None)


def _matches(claim: Object, volume: Object) -> bool:
    requested, has = objects.spec(claim), objects.spec(volume)
    return (
        _is_available_to(volume, claim)
        and not objects.is_terminating(volume)
        and (requested.get("storageClassName") or "") == (has.get("storageClassName") or "")
        and set(requested.get("accessModes") or ()) <= set(has.get("accessModes") or ())
        and (requested.get("volumeMode") or "Filesystem") == (has.get("volumeMode") or "Filesystem")
        and capacity(volume) >= requested_size(claim)
        and ("selector" not in requested or objects.selector(claim).matches(objects.labels(volume)))
    )


def _is_available_to(volume: Object, claim: Object) -> bool:
    """Whether a volume has no claim, or this one."""
    reference = objects.spec(volume).get("claimRef")
    if not reference:
        return objects.status(volume).get("phase", "Available") in ("Available", "Pending")
    key = (objects.namespace(claim), objects.name(claim))
    same = (reference.get("namespace"), reference.get("name")) == key
    return same and _is_uid_of(reference, claim)


def _is_uid_of(reference: Object, claim: Object) -> bool:
    """Whether a reference has the UID of the claim, or none."""
    return reference.get("uid") in (None, "", objects.uid(claim))


def capacity(volume: Object) -> int:
    return quantity.value((objects.spec(volume).get("capacity") or {}).get("storage", 0))


def requested_size(claim: Object) -> int:
    resources = objects.spec(claim).get("resources") or {}
    return quantity.value((resources.get("requests") or {}).get("storage", 0))


def bind(claim: Object, volume: Object) -> Iterator[Write]:
    """Let claim and volume refer to each other."""
    taken = objects.with_spec(volume, claimRef=_claim_reference(claim))
    if not objects.spec(volume).get("claimRef"):
        taken = objects.with_annotations(taken, **{BOUND_BY_CONTROLLER: "yes"})
    yield Update(objects.with_status(taken, phase="Bound"))
    bound = objects.with_spec(claim, volumeName=objects.name(volume))
    bound = objects.with_annotations(bound, **{BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"})
    fields = {key: objects.spec(volume).get(key) for key in ("accessModes", "capacity")}
    fields["currentVolumeAttributesClassName"] = objects.spec(volume).get(
        "volumeAttributesClassName"
    )
    yield Update(objects.with_status(bound, phase="Bound", **fields))


def _claim_reference(claim: Object) -> Object:
    kind = {"apiVersion": "v1", "kind": CLAIM, "namespace": objects.namespace(claim)}
    return {**kind, "name": objects.name(claim), "uid": objects.uid(claim)}


# Volumes ---------------------------------------------------------------------------------------


def new_volume(claim: Object, class_: Object, node: Object | None) -> Object:
    """The volume that a provisioner creates for the claim."""
    requested = objects.spec(claim)
    name = f"pvc-{objects.uid(claim)}"
    spec: dict[str, Any] = {
        "capacity": {"storage": requested["resources"]["requests"]["storage"]},
        "accessModes": requested.get("accessModes") or ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": class_.get("reclaimPolicy") or "Delete",
        "storageClassName": objects.name(class_),
        "volumeMode": requested.get("volumeMode") or "Filesystem",
        "claimRef": _claim_reference(claim),
        "csi": {"driver": class_.get("provisioner", ""), "volumeHandle": name},
    }
    if attributes := requested.get("volumeAttributesClassName"):
        spec["volumeAttributesClassName"] = attributes
    zone = None if node is None else objects.labels(node).get(ZONE)
    if zone:
        term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [term]}}
    return {
        "apiVersion": "v1",
        "kind": VOLUME,
        "metadata": {"name": name, "annotations": {PROVISIONED_BY: class_.get("provisioner", "")}},
        "spec": spec,
        "status": {"phase": "Available"},
    }


def _reconcile_volume(volume: Object, index: ObjectIndex) -> Iterator[Write]:
    phase = objects.status(volume).get("phase")
    reference = objects.spec(volume).get("claimRef")
    if not reference:
        if phase != "Available":
            yield Update(objects.with_status(volume, phase="Available"))
        return
    claim = index.get(CLAIM, reference.get("namespace", ""), reference.get("name", ""))
    if claim is not None and _is_uid_of(reference, claim):
        volume_names = (None, "", objects.name(volume))
        if not is_bound(claim) and objects.spec(claim).get("volumeName") in volume_names:
            yield from bind(claim, volume)
    elif reference.get("uid"):  # Its claim was deleted.
        if objects.spec(volume).get("persistentVolumeReclaimPolicy") == "Delete":
            if not objects.is_terminating(volume):
                yield Delete(volume)
        elif phase != "Released":
            yield Update(objects.with_status(volume, phase="Released"))


# Claims of ephemeral volumes -------------------------------------------------------------------


def reconcile_ephemeral_claims(pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create the claims of a pod's generic ephemeral volumes; the pod owns them."""
    if objects.is_terminating(pod):
        return
    for volume in ephemeral_volumes(pod):
        claim = _ephemeral_claim(pod, volume)
        if index.get(CLAIM, objects.namespace(pod), objects.name(claim)) is None:
            yield Create(claim)


def ephemeral_volumes(pod: Object) -> list[Object]:
    return [each for each in objects.spec(pod).get("volumes") or () if each.get("ephemeral")]


def _ephemeral_claim_name(pod: Object, volume: Object) -> str:
    return f"{objects.name(pod)}-{volume.get('name', '')}"


def _ephemeral_claim(pod: Object, volume: Object) -> Object:
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    meta = template.get("metadata") or {}
    metadata = {
        "name": _ephemeral_claim_name(pod, volume),
        "namespace": objects.namespace(pod),
        "ownerReferences": [objects.controller_reference(pod)],
    }
    metadata |= {key: meta[key] for key in ("labels", "annotations") if meta.get(key)}
    spec = template.get("spec") or {}
    return {"apiVersion": "v1", "kind": CLAIM, "metadata": metadata, "spec": spec}
