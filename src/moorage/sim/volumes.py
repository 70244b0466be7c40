"""VolumeController: volumes are bound, provisioned and released as in Kubernetes.

One object simulates the volume controller, the provisioners of all classes, and the controller of
generic ephemeral volumes. It watches the cluster, and schedules actions on the clock.

    seen                                       and then, after a while
    a claim without a volume, or a volume that BindClaim: the claim gets the volume reserved for
    may be for one                             it; if it need not wait for a pod, any that suits it
    no such volume, and the class makes some,  ProvisionVolume: a volume for the node, and bind it;
    once the claim has a node if it must wait  if it cannot be made, the claim loses its node
    a pod with a generic ephemeral volume      CreateClaims
    a claim is deleted                         its volume is deleted, or Released
"""

import math
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from moorage.api import claims, selectors, volume_matching
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
    PersistentVolumeStatus,
    StorageClass,
    TypedReference,
    VolumeNodeAffinity,
)
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import FaultPlan

BIND_SECONDS = 0.2
PROVISION_SECONDS = 2.0
RETRY_SECONDS = 5.0


class BindClaim(Struct, frozen=True):
    """Look for a volume for a claim."""

    claim: str


class ProvisionVolume(Struct, frozen=True):
    """Provisioning of a volume for a claim ends, with a volume or with a failure."""

    claim: str
    uid: str
    node: str | None
    fails: bool


class CreateClaims(Struct, frozen=True):
    """Create the claims of a pod's generic ephemeral volumes."""

    pod: str
    uid: str


Action = BindClaim | ProvisionVolume | CreateClaims


class VolumeController:
    """Binds, provisions and releases volumes."""

    def __init__(self, cluster: MemoryCluster, clock: Clock[object], fault_plan: FaultPlan) -> None:
        self._cluster = cluster
        self._clock = clock
        self._fault_plan = fault_plan
        # Claims without a volume; those with a BindClaim on the clock; those (by UID and node)
        # with provisioning in progress.
        self._unbound: dict[str, None] = {}
        self._scheduled: set[str] = set()
        self._provisioning: set[tuple[str, str | None]] = set()
        cluster.watch(self._observe)

    def perform(self, what: Action) -> None:
        """Perform an action from the clock, unless its object changed meanwhile."""
        match what:
            case BindClaim():
                self._scheduled.discard(what.claim)
                self._bind(what.claim)
            case ProvisionVolume():
                self._provisioning.discard((what.uid, what.node))
                self._finish_provisioning(what)
            case CreateClaims():
                self._create_claims(what)

    def _observe(self, observation: Observation) -> None:
        match observation:
            case Added(obj=obj) | Updated(obj=obj) if isinstance(obj, PersistentVolumeClaim):
                self._observe_claim(obj)
            case Deleted(obj=PersistentVolumeClaim() as claim):
                self._unbound.pop(claim.key, None)
                self._release(claim)
            case Added(obj=PersistentVolume() as obj) | Updated(obj=PersistentVolume() as obj):
                self._observe_volume(obj)
            case Added(obj=StorageClass()):
                self._schedule_bind(*self._unbound)
            case Added(obj=Pod() as pod):
                if any(volume.ephemeral is not None for volume in pod.spec.volumes):
                    self._clock.in_(BIND_SECONDS, CreateClaims(pod.key, pod.uid))
            case Deleted(obj=Pod() as pod):
                self._drop_claims(pod)

    def _observe_claim(self, claim: PersistentVolumeClaim) -> None:
        if claims.is_fully_bound(claim):
            self._unbound.pop(claim.key, None)
        else:
            self._unbound[claim.key] = None
            self._schedule_bind(claim.key)

    def _observe_volume(self, volume: PersistentVolume) -> None:
        given = volume.spec.claim_ref
        if given is None:
            self._schedule_bind(*self._unbound)
        elif f"{given.namespace}/{given.name}" in self._unbound:
            self._schedule_bind(f"{given.namespace}/{given.name}")

    def _schedule_bind(self, *keys: str) -> None:
        for key in keys:
            if key not in self._scheduled:
                self._scheduled.add(key)
                self._clock.in_(BIND_SECONDS, BindClaim(key))

    # Existing volumes

    def _bind(self, key: str) -> None:
        claim = self._cluster.get(PersistentVolumeClaim, key)
        if claim is None or claims.is_fully_bound(claim):
            return
        storage_class = self._cluster.get(StorageClass, claims.class_of(claim))
        volume = self._volume_for(claim, waits=_waits(storage_class))
        if volume is not None:
            self._complete(volume, claim)
        elif storage_class is not None and not claim.spec.volume_name:
            self._provision(claim, storage_class)

    def _volume_for(self, claim: PersistentVolumeClaim, *, waits: bool) -> PersistentVolume | None:
        """The volume that a claim names, that is reserved for it, or else any that suits it."""
        if claim.spec.volume_name:
            named = self._cluster.get(PersistentVolume, claim.spec.volume_name)
            return named if named is not None and _is_free_for(named, claim) else None
        volumes = list(self._cluster.all(PersistentVolume))
        for volume in volumes:
            if volume.spec.claim_ref is not None and _is_free_for(volume, claim):
                return volume
        if waits:
            return None
        try:
            want = volume_matching.wanted(claim)
        except selectors.SelectorError:
            return None
        suiting = [
            volume
            for volume in volumes
            if volume.spec.claim_ref is None
            and claims.class_of(volume) == want.storage_class
            and want.suits(volume)
        ]
        return min(suiting, key=claims.capacity_nano, default=None)

    def _complete(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Bind a volume and a claim to each other."""
        volume_spec = replace(volume.spec, claim_ref=_reference(claim))
        bound = PersistentVolumeStatus(phase="Bound")
        self._cluster.update(replace(volume, spec=volume_spec, status=bound))
        marks = claim.metadata.annotations | {claims.BIND_COMPLETED: "yes"}
        meta = replace(claim.metadata, annotations=marks)
        spec = replace(claim.spec, volume_name=volume.name)
        status = replace(claim.status, phase="Bound")
        self._cluster.update(replace(claim, metadata=meta, spec=spec, status=status))

    # Provisioning

    def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        node = claim.metadata.annotations.get(claims.SELECTED_NODE)
        is_static = storage_class.provisioner in ("", claims.NO_PROVISIONER)
        if is_static or (_waits(storage_class) and node is None):
            return
        if (claim.uid, node) in self._provisioning:
            return
        fault = self._fault_plan.provisioning(self._clock.now)
        self._provisioning.add((claim.uid, node))
        if fault.seconds < math.inf:
            what = ProvisionVolume(claim.key, claim.uid, node, fault.fails)
            self._clock.in_(PROVISION_SECONDS + fault.seconds, what)

    def _finish_provisioning(self, what: ProvisionVolume) -> None:
        claim = self._cluster.get(PersistentVolumeClaim, what.claim)
        if claim is None or claim.uid != what.uid or claims.is_fully_bound(claim):
            return
        storage_class = self._cluster.get(StorageClass, claims.class_of(claim))
        node = None if what.node is None else self._cluster.get(Node, what.node)
        if what.node != claim.metadata.annotations.get(claims.SELECTED_NODE):
            self._schedule_bind(claim.key)  # Another node is selected by now.
        elif what.fails or storage_class is None or (what.node is not None and node is None):
            self._fail(claim)
        else:
            volume = self._new_volume(claim, storage_class, node)
            self._complete(self._cluster.create(volume, self._clock.now), claim)

    def _fail(self, claim: PersistentVolumeClaim) -> None:
        """Let the scheduler choose another node, or else retry later."""
        marks = dict(claim.metadata.annotations)
        if marks.pop(claims.SELECTED_NODE, None) is None:
            self._scheduled.add(claim.key)
            self._clock.in_(RETRY_SECONDS, BindClaim(claim.key))
        else:
            meta = replace(claim.metadata, annotations=marks)
            self._cluster.update(replace(claim, metadata=meta))

    def _new_volume(
        self, claim: PersistentVolumeClaim, storage_class: StorageClass, node: Node | None
    ) -> PersistentVolume:
        name = f"pvc-{claim.uid}"
        spec = PersistentVolumeSpec(
            capacity=claim.spec.resources.requests,
            access_modes=claim.spec.access_modes,
            storage_class_name=storage_class.name,
            volume_mode=claim.spec.volume_mode,
            volume_attributes_class_name=claim.spec.volume_attributes_class_name,
            claim_ref=_reference(claim),
            persistent_volume_reclaim_policy=storage_class.reclaim_policy or "Delete",
            csi=CSISource(driver=storage_class.provisioner, volume_handle=name),
            node_affinity=self._affinity(storage_class, node),
        )
        status = PersistentVolumeStatus(phase="Bound")
        return PersistentVolume(metadata=ObjectMeta(name=name), spec=spec, status=status)

    def _affinity(
        self, storage_class: StorageClass, node: Node | None
    ) -> VolumeNodeAffinity | None:
        """The nodes that can use a new volume: those with the same topology as this node."""
        if node is None:
            terms = tuple(
                tuple((e.key, e.values) for e in term.match_label_expressions)
                for term in storage_class.allowed_topologies
            )
        else:
            keys = self._topology_keys(node.name, storage_class.provisioner)
            terms = (tuple((key, (node.labels[key],)) for key in keys if key in node.labels),)
        if not any(terms):
            return None
        required = NodeSelector(node_selector_terms=tuple(map(_one_of, terms)))
        return VolumeNodeAffinity(required=required)

    def _topology_keys(self, node: str, driver: str) -> tuple[str, ...]:
        csi_node = self._cluster.get(CSINode, node)
        drivers = () if csi_node is None else csi_node.spec.drivers
        return next((each.topology_keys for each in drivers if each.name == driver), ())

    # Claims of other objects

    def _create_claims(self, what: CreateClaims) -> None:
        pod = self._cluster.get(Pod, what.pod)
        if pod is None or pod.uid != what.uid:
            return
        owner = OwnerReference(
            api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True
        )
        for volume in pod.spec.volumes:
            template = None if volume.ephemeral is None else volume.ephemeral.volume_claim_template
            name = f"{pod.name}-{volume.name}"
            key = f"{pod.namespace}/{name}"
            if template is None or self._cluster.get(PersistentVolumeClaim, key) is not None:
                continue
            meta = ObjectMeta(name=name, namespace=pod.namespace, owner_references=(owner,))
            new = PersistentVolumeClaim(metadata=meta, spec=template.spec)
            self._cluster.create(new, self._clock.now)

    def _drop_claims(self, pod: Pod) -> None:
        for volume in pod.spec.volumes:
            key = f"{pod.namespace}/{pod.name}-{volume.name}"
            claim = self._cluster.get(PersistentVolumeClaim, key)
            if volume.ephemeral is not None and claim and claims.is_made_for(claim, pod):
                self._cluster.remove(claim)

    def _release(self, claim: PersistentVolumeClaim) -> None:
        volume = self._cluster.get(PersistentVolume, claim.spec.volume_name)
        given = None if volume is None else volume.spec.claim_ref
        if volume is None or given is None or given.uid != claim.uid:
            return
        if volume.spec.persistent_volume_reclaim_policy == "Delete":
            self._cluster.remove(volume)
        else:
            released = PersistentVolumeStatus(phase="Released")
            self._cluster.update(replace(volume, status=released))


def _waits(storage_class: StorageClass | None) -> bool:
    """Whether claims of a class wait for their first pod."""
    mode = None if storage_class is None else storage_class.volume_binding_mode
    return mode == claims.WAIT_FOR_FIRST_CONSUMER


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    given = volume.spec.claim_ref
    return given is None or claims.refers_to(given, claim)


def _one_of(labels: Iterable[tuple[str, tuple[str, ...]]]) -> NodeSelectorTerm:
    """Nodes that have one of the values of each label."""
    expressions = (LabelSelectorRequirement(key=k, operator="In", values=v) for k, v in labels)
    return NodeSelectorTerm(match_expressions=tuple(expressions))


def _reference(claim: PersistentVolumeClaim) -> TypedReference:
    return TypedReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.namespace,
        name=claim.name,
        uid=claim.uid,
        resource_version=claim.metadata.resource_version,
    )
