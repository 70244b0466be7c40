"""VolumeController: volumes are bound, provisioned and released as in Kubernetes.

It watches the cluster and schedules actions on the clock; `moorage.controllers.volume_binder`
decides, here and in `serve`.

    observed                                            action, after a while
    an unbound claim; a volume, or a class, for one     SyncClaim: bind it, or begin to provision
    a changed volume; a deleted claim                   SyncVolume: set its phase, or reclaim it
    provisioning began                                  EndProvisioning: a volume, or a failure
    a pod with generic ephemeral volumes                CreateClaims
    a pod is gone                                       its own claims are deleted at once
    a claim or a volume is being deleted, or the last   SyncClaim, SyncVolume: it is removed, unless
    pod of a deleted claim is gone                      it is in use

Volumes that are given with a claim which is not part of the simulation are left alone.
"""

import contextlib
import math
from collections.abc import Iterable, Mapping

from msgspec import Struct

from moorage.api import claims
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from moorage.cluster.status_errors import ForbiddenError
from moorage.controllers import storage_protection, volume_binder
from moorage.controllers.volume_binder import BeginProvisioning, CreateStorage, UpdateStorage
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster
from moorage.sim.faults import FaultPlan

BIND_SECONDS = 0.2
PROVISION_SECONDS = 2.0
RETRY_SECONDS = 5.0


class SyncClaim(Struct, frozen=True):
    """Look for a volume for a claim."""

    claim: str


class SyncVolume(Struct, frozen=True):
    """Set the phase of a volume, or reclaim it."""

    volume: str


class EndProvisioning(Struct, frozen=True):
    """Provisioning of a volume for a claim ends, with a volume or with a failure."""

    claim: str
    uid: str
    node: str | None
    fails: bool


class CreateClaims(Struct, frozen=True):
    """Create the claims of a pod's generic ephemeral volumes."""

    pod: str
    uid: str


Action = SyncClaim | SyncVolume | EndProvisioning | CreateClaims


class VolumeController:
    """Binds, provisions and releases volumes."""

    def __init__(self, cluster: MemoryCluster, clock: Clock[object], fault_plan: FaultPlan) -> None:
        self._cluster = cluster
        self._clock = clock
        self._fault_plan = fault_plan
        # Claims without a volume; actions on the clock; claims (by UID and node) with provisioning
        # in progress.
        self._unbound: dict[str, None] = {}
        self._users: dict[str, dict[str, None]] = {}  # the pods of each claim
        self._scheduled: set[Action] = set()
        self._provisioning: set[tuple[str, str | None]] = set()
        cluster.watch(self._observe, PersistentVolumeClaim, PersistentVolume, StorageClass)
        cluster.watch(self._observe_pod, Pod, running=self._observe_running)

    def perform(self, action: Action) -> None:
        """Perform an action from the clock, unless its object changed meanwhile."""
        self._scheduled.discard(action)
        cluster = self._cluster
        match action:
            case SyncClaim(claim=key):
                if (claim := cluster.get(PersistentVolumeClaim, key)) is not None:
                    self._apply(volume_binder.for_claim(claim, cluster))
                    self._release(storage_protection.for_claim(claim, self._users_of(claim)))
            case SyncVolume(volume=name):
                if (volume := cluster.get(PersistentVolume, name)) is not None:
                    self._apply(volume_binder.for_volume(volume, cluster))
                    volume = cluster.get(PersistentVolume, name) or volume
                    self._release(storage_protection.for_volume(volume))
            case EndProvisioning():
                self._provisioning.discard((action.uid, action.node))
                self._end_provisioning(action)
            case CreateClaims(pod=key, uid=uid):
                pod = cluster.get(Pod, key)
                if pod is not None and pod.uid == uid:
                    self._apply(volume_binder.for_pod(pod, cluster))

    def _end_provisioning(self, action: EndProvisioning) -> None:
        claim = self._cluster.get(PersistentVolumeClaim, action.claim)
        if claim is None or claim.uid != action.uid or claims.is_fully_bound(claim):
            return
        decisions = volume_binder.provisioned(
            claim, action.node, self._cluster, failed=action.fails
        )
        self._apply(decisions)
        # After a failure without a node, or if another node is selected by now.
        self._schedule(
            SyncClaim(claim.key), seconds=RETRY_SECONDS if action.fails else BIND_SECONDS
        )

    def _apply(self, decisions: Iterable[volume_binder.Decision]) -> None:
        for decision in decisions:
            match decision:
                case CreateStorage(obj=obj):
                    with contextlib.suppress(ForbiddenError):  # A quota refuses the claim of a pod.
                        self._cluster.create(obj, self._clock.now)
                case UpdateStorage(new=new):
                    self._cluster.update(new)
                case volume_binder.DeleteVolume(volume=volume):
                    self._cluster.remove(volume)
                case BeginProvisioning():
                    self._provision(decision)

    def _release(self, decisions: Iterable[UpdateStorage]) -> None:
        """Let deleted claims and volumes go; the others got their finalizer when created."""
        for old, new in decisions:
            if old.metadata.deletion_timestamp is not None:
                self._cluster.write(new)

    def _users_of(self, claim: PersistentVolumeClaim) -> list[Pod]:
        found = (self._cluster.get(Pod, key) for key in self._users.get(claim.key, ()))
        return [pod for pod in found if pod is not None]

    def _provision(self, decision: BeginProvisioning) -> None:
        claim, node = decision
        if (claim.uid, node) in self._provisioning:
            return
        self._provisioning.add((claim.uid, node))
        fault = self._fault_plan.provisioning(self._clock.now)
        if fault.seconds < math.inf:
            action = EndProvisioning(claim.key, claim.uid, node, fault.fails)
            self._clock.in_(PROVISION_SECONDS + fault.seconds, action)

    # What changes

    def _observe(self, observation: Observation) -> None:
        match observation:
            case Added(obj=PersistentVolumeClaim() as claim):
                self._observe_claim(claim)
            case Updated(obj=PersistentVolumeClaim() as claim):
                self._observe_claim(claim)
            case Deleted(obj=PersistentVolumeClaim() as claim):
                self._unbound.pop(claim.key, None)
                if claim.spec.volume_name:
                    self._schedule(SyncVolume(claim.spec.volume_name))
            case Added(obj=PersistentVolume() as volume):
                self._observe_volume(volume)
            case Updated(obj=PersistentVolume() as volume):
                self._schedule(SyncVolume(volume.name))
                self._observe_volume(volume)
            case Added(obj=StorageClass()):
                self._schedule(*map(SyncClaim, self._unbound))

    def _observe_pod(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Pod() as pod) if pod.spec.volumes:
                self._add_pod(pod)
            case Deleted(obj=Pod() as pod) if pod.spec.volumes:
                self._drop_claims(pod)
                self._forget_pod(pod)

    def _observe_running(self, pods: Mapping[str, Pod]) -> None:
        for pod in pods.values():
            if pod.spec.volumes:
                self._add_pod(pod)

    def _observe_claim(self, claim: PersistentVolumeClaim) -> None:
        if claim.metadata.deletion_timestamp is not None:
            self._unbound.pop(claim.key, None)
            self._schedule(SyncClaim(claim.key), seconds=0)
        elif claims.is_fully_bound(claim):
            self._unbound.pop(claim.key, None)
        else:
            self._unbound[claim.key] = None
            self._schedule(SyncClaim(claim.key))

    def _observe_volume(self, volume: PersistentVolume) -> None:
        reference = volume.spec.claim_ref
        if reference is None:
            self._schedule(*map(SyncClaim, self._unbound))
        elif (key := f"{reference.namespace}/{reference.name}") in self._unbound:
            self._schedule(SyncClaim(key))

    def _schedule(self, *actions: Action, seconds: float = BIND_SECONDS) -> None:
        for action in actions:
            if action not in self._scheduled:
                self._scheduled.add(action)
                self._clock.in_(seconds, action)

    def _add_pod(self, pod: Pod) -> None:
        if any(volume.ephemeral is not None for volume in pod.spec.volumes):
            self._schedule(CreateClaims(pod.key, pod.uid))
        for name in claims.names_of(pod):
            self._users.setdefault(f"{pod.namespace}/{name}", {})[pod.key] = None

    def _forget_pod(self, pod: Pod) -> None:
        for name in claims.names_of(pod):
            key = f"{pod.namespace}/{name}"
            users = self._users.get(key, {})
            users.pop(pod.key, None)
            if not users:
                self._users.pop(key, None)
            claim = self._cluster.get(PersistentVolumeClaim, key)
            if claim is not None and claim.metadata.deletion_timestamp is not None:
                self._schedule(SyncClaim(key), seconds=0)

    def _drop_claims(self, pod: Pod) -> None:
        """Delete the claims that a pod owns, as the garbage collector does."""
        for volume in pod.spec.volumes:
            key = f"{pod.namespace}/{pod.name}-{volume.name}"
            claim = self._cluster.get(PersistentVolumeClaim, key)
            if volume.ephemeral is not None and claim and claims.is_made_for(claim, pod):
                self._cluster.remove(claim)
