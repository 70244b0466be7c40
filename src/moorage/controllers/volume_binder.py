"""The controllers of volumes: bind claims to volumes, provision volumes, reclaim them.

    a claim, and a volume that is reserved for it     both refer to each other
    a claim that need not wait, and a volume that     the same
    matches it
    no such volume, and the class has a provisioner   BeginProvisioning; a claim that waits for its
                                                      first consumer needs a selected node
    provisioning ended                                a new volume; or the claim loses its node
    a claim without a class, and a default class      the claim gets the class
    the claim of a volume is gone                     the volume is deleted, or Released
    a pod with generic ephemeral volumes              new claims, which the pod owns

Every function reads the current state only, so a host may call it again after any change. A host
decides how long provisioning takes, and whether it fails.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeVar

from msgspec.structs import replace

from moorage.api import claims, defaults, selectors, volume_matching
from moorage.api.meta import (
    LabelSelectorRequirement,
    NodeSelector,
    NodeSelectorTerm,
    ObjectMeta,
    OwnerReference,
)
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.api.storage import (
    CSINode,
    CSISource,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeSpec,
    StorageClass,
    TypedReference,
    VolumeNodeAffinity,
)
from moorage.controllers.index import StructReader

T = TypeVar("T", PersistentVolume, PersistentVolumeClaim)

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
ZONE = "topology.kubernetes.io/zone"
_NONE = ("", claims.NO_PROVISIONER)
AVAILABLE, BOUND, RELEASED = "Available", "Bound", "Released"


class CreateStorage(NamedTuple):
    """Create a volume or a claim."""

    obj: PersistentVolume | PersistentVolumeClaim


class UpdateStorage(NamedTuple):
    """Replace a volume or a claim by a newer version."""

    old: PersistentVolume | PersistentVolumeClaim
    new: PersistentVolume | PersistentVolumeClaim


class DeleteVolume(NamedTuple):
    """Delete a volume."""

    volume: PersistentVolume


class BeginProvisioning(NamedTuple):
    """Provision a volume for a claim, on a node if one is selected; then call `provisioned`."""

    claim: PersistentVolumeClaim
    node: str | None


Decision = CreateStorage | UpdateStorage | DeleteVolume | BeginProvisioning


# Claims ----------------------------------------------------------------------------------------


def for_claim(claim: PersistentVolumeClaim, cluster: StructReader) -> Iterator[Decision]:
    """Bind an unbound claim, or provision a volume for it."""
    if claims.is_fully_bound(claim) or claim.metadata.deletion_timestamp is not None:
        return
    storage_class = cluster.get(StorageClass, claims.class_of(claim))
    node = claim.metadata.annotations.get(claims.SELECTED_NODE)
    waits = _waits(storage_class)
    volume = _volume_for(claim, cluster, waits=waits)
    if volume is not None:
        yield from _bind(volume, claim)
    elif claim.spec.volume_name:
        return
    elif (name := _missing_class(claim, cluster)) is not None:
        spec = replace(claim.spec, storage_class_name=name)
        yield UpdateStorage(claim, replace(claim, spec=spec))
    elif waits and node is None:
        return
    elif storage_class is not None and storage_class.provisioner not in _NONE:
        yield BeginProvisioning(claim, node)


def _waits(storage_class: StorageClass | None) -> bool:
    """Whether claims of a class wait for their first consumer."""
    mode = None if storage_class is None else storage_class.volume_binding_mode
    return mode == claims.WAIT_FOR_FIRST_CONSUMER


def _missing_class(claim: PersistentVolumeClaim, cluster: StructReader) -> str | None:
    """The default class, for a claim that was created before there was one."""
    if claim.spec.storage_class_name is not None or claims.CLASS in claim.metadata.annotations:
        return None
    return defaults.default_storage_class(cluster.all(StorageClass))


def _volume_for(
    claim: PersistentVolumeClaim, cluster: StructReader, *, waits: bool
) -> PersistentVolume | None:
    """The volume that a claim names or that is reserved for it, else the best that matches it.

    For a claim that waits for its consumer the scheduler selects a volume and reserves it.
    """
    try:
        want = volume_matching.wanted(claim)
    except selectors.SelectorError:
        return None
    if claim.spec.volume_name:
        named = cluster.get(PersistentVolume, claim.spec.volume_name)
        if named is None or not _is_free_for(named, claim):
            return None
        is_reserved = named.spec.claim_ref is not None
        return named if is_reserved or want.accepts(named) else None
    free = []
    for volume in cluster.all(PersistentVolume):
        if volume.spec.claim_ref is None:
            free.append(volume)
        elif _is_free_for(volume, claim) and want.allows(volume) and want.has_modes(volume):
            return volume
    if waits:
        return None
    of_class = (each for each in free if claims.class_of(each) == want.storage_class)
    return min(filter(want.suits, of_class), key=_preference, default=None)


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    return reference is None or claims.refers_to(reference, claim)


def _preference(volume: PersistentVolume) -> tuple[int, int, str]:
    """Volumes with the fewest access modes first, then the smallest."""
    return len(volume.spec.access_modes), claims.capacity_nano(volume), volume.name


def _bind(volume: PersistentVolume, claim: PersistentVolumeClaim) -> Iterator[Decision]:
    """Let claim and volume refer to each other."""
    taken = volume
    if volume.spec.claim_ref is None:
        taken = _annotated(taken, **{claims.BOUND_BY_CONTROLLER: "yes"})
    spec = replace(volume.spec, claim_ref=claims.reference_to(claim))
    yield UpdateStorage(volume, _with_phase(replace(taken, spec=spec), BOUND))
    marks = {claims.BIND_COMPLETED: "yes"}
    if not claim.spec.volume_name:
        marks[claims.BOUND_BY_CONTROLLER] = "yes"
    status = replace(
        claim.status,
        phase=BOUND,
        access_modes=volume.spec.access_modes,
        capacity=volume.spec.capacity,
        current_volume_attributes_class_name=volume.spec.volume_attributes_class_name,
    )
    bound = replace(claim, spec=replace(claim.spec, volume_name=volume.name), status=status)
    yield UpdateStorage(claim, _annotated(bound, **marks))


def _annotated(obj: T, without: str = "", **annotations: str) -> T:
    changed = obj.metadata.annotations | annotations
    changed.pop(without, None)
    return replace(obj, metadata=replace(obj.metadata, annotations=changed))


def _with_phase(volume: PersistentVolume, phase: str) -> PersistentVolume:
    return replace(volume, status=replace(volume.status, phase=phase))


# Provisioning ----------------------------------------------------------------------------------


def provisioned(
    claim: PersistentVolumeClaim, node: str | None, cluster: StructReader, *, failed: bool = False
) -> Iterator[Decision]:
    """What follows when provisioning for a claim and a node ended.

    After a failure the claim loses its node, so that the scheduler selects another one. The new
    volume refers to the claim, which is bound when the volume is observed.
    """
    selected = claim.metadata.annotations.get(claims.SELECTED_NODE)
    if claims.is_fully_bound(claim) or node != selected:
        return
    storage_class = cluster.get(StorageClass, claims.class_of(claim))
    on_node = None if node is None else cluster.get(Node, node)
    if not failed and storage_class is not None and (node is None or on_node is not None):
        yield CreateStorage(_new_volume(claim, storage_class, on_node, cluster))
    elif selected is not None:
        yield UpdateStorage(claim, _annotated(claim, without=claims.SELECTED_NODE))


def _new_volume(
    claim: PersistentVolumeClaim,
    storage_class: StorageClass,
    node: Node | None,
    cluster: StructReader,
) -> PersistentVolume:
    name = f"pvc-{claim.uid}"
    spec = PersistentVolumeSpec(
        capacity=claim.spec.resources.requests,
        access_modes=claim.spec.access_modes,
        storage_class_name=storage_class.name,
        volume_mode=claim.spec.volume_mode or "Filesystem",
        volume_attributes_class_name=claim.spec.volume_attributes_class_name,
        claim_ref=claims.reference_to(claim),
        persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
        csi=CSISource(driver=storage_class.provisioner, volume_handle=name),
        node_affinity=_affinity(storage_class, node, cluster),
    )
    meta = ObjectMeta(name=name, annotations={PROVISIONED_BY: storage_class.provisioner})
    volume = PersistentVolume(api_version="v1", kind="PersistentVolume", metadata=meta, spec=spec)
    return _with_phase(volume, AVAILABLE)


def _affinity(
    storage_class: StorageClass, node: Node | None, cluster: StructReader
) -> VolumeNodeAffinity | None:
    """The nodes that can use a new volume: those with the same topology as the selected node.

    A driver names the labels of its topology in the CSINode of each node. Without that it is the
    zone.
    """
    if node is None:
        terms = tuple(
            tuple((each.key, each.values) for each in term.match_label_expressions)
            for term in storage_class.allowed_topologies
        )
    else:
        csi_node = cluster.get(CSINode, node.name)
        drivers = () if csi_node is None else csi_node.spec.drivers
        named = (d.topology_keys for d in drivers if d.name == storage_class.provisioner)
        labels = node.labels
        keys = [key for key in next(named, (ZONE,)) if key in labels]
        terms = (tuple((key, (labels[key],)) for key in keys),)
    if not any(terms):
        return None
    required = NodeSelector(node_selector_terms=tuple(map(_one_of, terms)))
    return VolumeNodeAffinity(required=required)


def _one_of(labels: Iterable[tuple[str, tuple[str, ...]]]) -> NodeSelectorTerm:
    """Nodes that have one of the values of each label."""
    expressions = (LabelSelectorRequirement(key=k, operator="In", values=v) for k, v in labels)
    return NodeSelectorTerm(match_expressions=tuple(expressions))


# Volumes ---------------------------------------------------------------------------------------


def for_volume(volume: PersistentVolume, cluster: StructReader) -> Iterator[Decision]:
    """Set the phase of a volume, and reclaim it when its claim is gone."""
    reference = volume.spec.claim_ref
    if reference is None or not reference.uid:
        yield from _in_phase(volume, AVAILABLE)
        return
    claim = cluster.get(PersistentVolumeClaim, f"{reference.namespace}/{reference.name}")
    if claim is None or claim.uid != reference.uid:
        yield from _in_phase(volume, RELEASED)
        is_deleted = volume.metadata.deletion_timestamp is not None
        if volume.spec.persistent_volume_reclaim_policy == "Delete" and not is_deleted:
            yield DeleteVolume(volume)
    elif claim.spec.volume_name == volume.name:
        yield from _in_phase(volume, BOUND)
    elif claim.spec.volume_name:
        yield from _unbind(volume, reference)


def _in_phase(volume: PersistentVolume, phase: str) -> Iterator[Decision]:
    if volume.status.phase != phase:
        yield UpdateStorage(volume, _with_phase(volume, phase))


def _unbind(volume: PersistentVolume, reference: TypedReference) -> Iterator[Decision]:
    """Free a volume whose claim got another one."""
    annotations = volume.metadata.annotations
    if (
        PROVISIONED_BY in annotations
        and volume.spec.persistent_volume_reclaim_policy == "Delete"
        and volume.metadata.deletion_timestamp is None
    ):
        yield DeleteVolume(volume)
        return
    # A user's reservation is for the name of a claim.
    kept = replace(reference, uid="", resource_version="")
    reserved = None if claims.BOUND_BY_CONTROLLER in annotations else kept
    free = _annotated(volume, without=claims.BOUND_BY_CONTROLLER)
    free = replace(free, spec=replace(free.spec, claim_ref=reserved))
    yield UpdateStorage(volume, _with_phase(free, AVAILABLE))


# Generic ephemeral volumes ---------------------------------------------------------------------


def for_pod(pod: Pod, cluster: StructReader) -> Iterator[CreateStorage]:
    """Create the claims of a pod's generic ephemeral volumes; the pod owns them."""
    if pod.is_terminating:
        return
    owner = OwnerReference(
        api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
    )
    for volume in pod.spec.volumes:
        template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
        name = claims.name_of(pod, volume)
        if template is None or name is None:
            continue
        if cluster.get(PersistentVolumeClaim, f"{pod.namespace}/{name}") is None:
            meta = ObjectMeta(
                name=name,
                namespace=pod.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=(owner,),
            )
            claim = PersistentVolumeClaim(metadata=meta, spec=template.spec)
            yield CreateStorage(replace(claim, api_version="v1", kind="PersistentVolumeClaim"))
