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

from moorage.api import quantity
from moorage.serve import timestamps
from moorage.serve.controllers import objects, ownership, pods
from moorage.serve.controllers.index import ObjectIndex
from moorage.serve.controllers.objects import Object
from moorage.serve.controllers.writes import (
    CreateObject,
    DeleteObject,
    RequeueAt,
    UpdateObject,
    Write,
)

CLAIM, VOLUME, CLASS = "PersistentVolumeClaim", "PersistentVolume", "storage.k8s.io/StorageClass"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
BOUND_BY_US = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
ZONE = "topology.kubernetes.io/zone"
# How long it takes to make a volume.
PROVISION_SECONDS = 0.5


def reconcile(obj: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """A claim looks for a volume; a volume looks for its claim."""
    if objects.kind_of(obj) == VOLUME:
        yield from _reconcile_volume(obj, view)
    elif not objects.is_terminating(obj) and not _is_bound(obj):
        yield from _reconcile_claim(obj, view, now)


def _is_bound(claim: Object) -> bool:
    return objects.status(claim).get("phase") == "Bound"


# Claims ----------------------------------------------------------------------------------------


def _reconcile_claim(claim: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    named = objects.spec(claim).get("volumeName")
    if named:
        volume = view.get(VOLUME, "", named)
        if volume is not None and _is_available_to(volume, claim):
            yield from bind(claim, volume)
        return
    class_ = view.get(CLASS, "", objects.spec(claim).get("storageClassName") or "")
    node = selected_node(claim, view)
    if class_ is not None and waits_for_consumer(class_) and not node:
        return
    volume = best_volume(claim, view.all(VOLUME))
    if volume is not None:
        yield from bind(claim, volume)
    elif class_ is not None and class_.get("provisioner") != NO_PROVISIONER:
        yield from _provision(claim, class_, view.get("Node", "", node), now)


def waits_for_consumer(class_: Object) -> bool:
    return class_.get("volumeBindingMode") == "WaitForFirstConsumer"


def selected_node(claim: Object, view: ObjectIndex) -> str:
    """The node for which a claim is to be bound, if anybody has said so."""
    said = objects.annotations(claim).get(SELECTED_NODE, "")
    if said:
        return said
    for pod in view.all("Pod", objects.namespace(claim)):
        if pods.node_name(pod) and objects.name(claim) in claims_of(pod):
            return pods.node_name(pod)
    return ""


def claims_of(pod: Object) -> list[str]:
    """The claims that a pod uses; those of ephemeral volumes are named after pod and volume."""
    found = []
    for volume in objects.spec(pod).get("volumes") or ():
        if claim := (volume.get("persistentVolumeClaim") or {}).get("claimName"):
            found.append(claim)
        elif volume.get("ephemeral"):
            found.append(f"{objects.name(pod)}-{volume.get('name', '')}")
    return found


def best_volume(claim: Object, volumes: Sequence[Object]) -> Object | None:
    """The volume that fits best: the one meant for the claim, else the smallest large enough."""
    fitting = [volume for volume in volumes if _matches(claim, volume)]
    meant = [volume for volume in fitting if objects.spec(volume).get("claimRef")]
    return min(meant or fitting, key=lambda v: (size(v), objects.name(v)), default=None)


def _matches(claim: Object, volume: Object) -> bool:
    wanted, has = objects.spec(claim), objects.spec(volume)
    return (
        _is_available_to(volume, claim)
        and not objects.is_terminating(volume)
        and (wanted.get("storageClassName") or "") == (has.get("storageClassName") or "")
        and set(wanted.get("accessModes") or ()) <= set(has.get("accessModes") or ())
        and (wanted.get("volumeMode") or "Filesystem") == (has.get("volumeMode") or "Filesystem")
        and size(volume) >= requested_size(claim)
        and ("selector" not in wanted or objects.selector(claim).matches(objects.labels(volume)))
    )


def _is_available_to(volume: Object, claim: Object) -> bool:
    """Whether a volume belongs to nobody, or to this claim."""
    reference = objects.spec(volume).get("claimRef")
    if not reference:
        return objects.status(volume).get("phase", "Available") in ("Available", "Pending")
    return (reference.get("namespace"), reference.get("name")) == (
        objects.namespace(claim),
        objects.name(claim),
    ) and reference.get("uid") in (None, "", objects.uid(claim))


def size(volume: Object) -> int:
    return quantity.value((objects.spec(volume).get("capacity") or {}).get("storage", 0))


def requested_size(claim: Object) -> int:
    resources = objects.spec(claim).get("resources") or {}
    return quantity.value((resources.get("requests") or {}).get("storage", 0))


def bind(claim: Object, volume: Object) -> Iterator[Write]:
    """The two of them, pointing at each other."""
    reference = {
        "apiVersion": "v1",
        "kind": CLAIM,
        "namespace": objects.namespace(claim),
        "name": objects.name(claim),
        "uid": objects.uid(claim),
    }
    taken = objects.with_spec(volume, claimRef=reference)
    if not objects.spec(volume).get("claimRef"):
        taken = objects.with_annotations(taken, **{BOUND_BY_US: "yes"})
    yield UpdateObject(objects.with_status(taken, phase="Bound"))
    settled = objects.with_spec(claim, volumeName=objects.name(volume))
    settled = objects.with_annotations(settled, **{BIND_COMPLETED: "yes", BOUND_BY_US: "yes"})
    has = objects.spec(volume)
    yield UpdateObject(
        objects.with_status(
            settled,
            phase="Bound",
            accessModes=has.get("accessModes"),
            capacity=has.get("capacity"),
        )
    )


# Volumes ---------------------------------------------------------------------------------------


def _provision(claim: Object, class_: Object, node: Object | None, now: float) -> Iterator[Write]:
    """A new volume for the claim; when it is there, they are bound."""
    ready_at = (
        timestamps.to_seconds(claim["metadata"].get("creationTimestamp"), now) + PROVISION_SECONDS
    )
    if ready_at > now:
        yield RequeueAt(ready_at)
        return
    volume = new_volume(claim, class_, node)
    yield CreateObject(volume)


def new_volume(claim: Object, class_: Object, node: Object | None) -> Object:
    """What a provisioner would make for the claim."""
    wanted = objects.spec(claim)
    name = f"pvc-{objects.uid(claim)}"
    spec: dict[str, Any] = {
        "capacity": {"storage": ((wanted.get("resources") or {}).get("requests") or {})["storage"]},
        "accessModes": wanted.get("accessModes") or ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": class_.get("reclaimPolicy") or "Delete",
        "storageClassName": objects.name(class_),
        "volumeMode": wanted.get("volumeMode") or "Filesystem",
        "claimRef": {
            "apiVersion": "v1",
            "kind": CLAIM,
            "namespace": objects.namespace(claim),
            "name": objects.name(claim),
            "uid": objects.uid(claim),
        },
        "csi": {"driver": class_.get("provisioner", ""), "volumeHandle": name},
    }
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


def _reconcile_volume(volume: Object, view: ObjectIndex) -> Iterator[Write]:
    phase = objects.status(volume).get("phase")
    reference = objects.spec(volume).get("claimRef")
    if not reference:
        if phase != "Available":
            yield UpdateObject(objects.with_status(volume, phase="Available"))
        return
    claim = view.get(CLAIM, reference.get("namespace", ""), reference.get("name", ""))
    if claim is not None and reference.get("uid") in (None, "", objects.uid(claim)):
        if not _is_bound(claim) and objects.spec(claim).get("volumeName") in (
            None,
            "",
            objects.name(volume),
        ):
            yield from bind(claim, volume)
    elif reference.get("uid"):  # It had a claim, which is gone.
        if objects.spec(volume).get("persistentVolumeReclaimPolicy") == "Delete":
            if not objects.is_terminating(volume):
                yield DeleteObject(volume)
        elif phase != "Released":
            yield UpdateObject(objects.with_status(volume, phase="Released"))


def reconcile_ephemeral_claims(pod: Object, view: ObjectIndex, now: float) -> Iterator[Write]:
    """Make the claims that a pod's volumes describe."""
    del now  # Nothing here depends on time.
    if objects.is_terminating(pod):
        return
    for volume in ephemeral_volumes(pod):
        claim = ephemeral_claim(pod, volume)
        if view.get(CLAIM, objects.namespace(pod), objects.name(claim)) is None:
            yield CreateObject(claim)


def ephemeral_volumes(pod: Object) -> list[Object]:
    """The volumes of a pod that bring their claim along."""
    return [each for each in objects.spec(pod).get("volumes") or () if each.get("ephemeral")]


def ephemeral_claim(pod: Object, volume: Object) -> Object:
    """The claim of a volume, under the name by which everybody finds it."""
    template = volume["ephemeral"].get("volumeClaimTemplate") or {}
    meta = template.get("metadata") or {}
    metadata = {
        "name": f"{objects.name(pod)}-{volume.get('name', '')}",
        "namespace": objects.namespace(pod),
        "ownerReferences": [ownership.reference(pod)],
    }
    metadata |= {key: meta[key] for key in ("labels", "annotations") if meta.get(key)}
    spec = template.get("spec") or {}
    return {"apiVersion": "v1", "kind": CLAIM, "metadata": metadata, "spec": spec}
