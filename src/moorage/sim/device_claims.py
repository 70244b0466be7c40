"""ClaimController: device claims are created from templates and released as in Kubernetes.

It watches the cluster and schedules actions on the clock; `moorage.controllers.claims` decides.

    observed                                        action, after a while
    a pod with claims, its claims and templates     SyncPodClaims: create claims, write their names
    a claim; a pod with claims that ends            SyncClaim: release it, free its devices
    a pod is gone                                   its own claims are deleted at once
"""

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar, assert_never

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.devices import ResourceClaim, ResourceClaimTemplate
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.cluster.status_errors import ForbiddenError
from moorage.controllers import claims
from moorage.controllers.claims import Decision
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.clock import Clock
from moorage.sim.cluster import MemoryCluster

T = TypeVar("T", bound=KubeObject)

SYNC_SECONDS = 0.1

Keys = dict[str, dict[str, None]]  # ordered sets of keys


class SyncPodClaims(Struct, frozen=True):
    """Create the claims of a pod."""

    pod: str


class SyncClaim(Struct, frozen=True):
    """Release a claim of pods that have ended."""

    claim: str


Action = SyncPodClaims | SyncClaim


class ClaimController:
    """Creates, reserves, releases and deletes device claims.

    It also collects claims whose pod does not exist, unless their pods may follow later.
    """

    def __init__(
        self, cluster: MemoryCluster, clock: Clock[object], *, pods_may_follow: bool = False
    ) -> None:
        self._pods_may_follow = pods_may_follow
        self._cluster = cluster
        self._clock = clock
        self._due: set[Action] = set()
        # UID of a pod -> its own claims; claim -> pods that name it; template -> pods that need it.
        self._owned: Keys = {}
        self._users: Keys = {}
        self._waiting: Keys = {}
        # Pods whose claims a quota refused.
        self._refused: dict[str, None] = {}
        kinds = (Pod, ResourceClaim, ResourceClaimTemplate)
        cluster.watch(self._observe, *kinds, running=_without_claims)

    def perform(self, action: Action) -> bool:
        """Perform an action from the clock, unless its object is gone; whether it did anything."""
        self._due.discard(action)
        match action:
            case SyncPodClaims(pod=key):
                pod = self._cluster.get(Pod, key)
                return pod is not None and self._sync_pod(pod)
            case SyncClaim(claim=key):
                claim = self._cluster.get(ResourceClaim, key)
                return claim is not None and self._sync_claim(claim)
            case _:
                assert_never(action)

    def _sync_pod(self, pod: Pod) -> bool:
        find = self._finder(ResourceClaim, pod.namespace)
        find_template = self._finder(ResourceClaimTemplate, pod.namespace)
        keys = list(self._owned.get(pod.uid, ()))
        owned = [each for key in keys if (each := self._cluster.get(ResourceClaim, key))]
        return self._apply(claims.for_pod(pod, find, find_template, owned))

    def _sync_claim(self, claim: ResourceClaim) -> bool:
        find = self._finder(Pod, claim.namespace)
        if not self._pods_may_follow and self._is_orphan(claim):
            # As the garbage collector does: the claim was created after its pod was deleted.
            self._cluster.delete(ResourceClaim, claim.key, self._clock.now)
            return True
        return self._apply(claims.for_claim(claim, find))

    def _is_orphan(self, claim: ResourceClaim) -> bool:
        owner = claims.owning_pod(claim)
        if owner is None or claim.metadata.deletion_timestamp is not None:
            return False
        return self._cluster.get(Pod, f"{claim.namespace}/{owner.name}") is None

    def _finder(self, kind: type[T], namespace: str) -> Callable[[str], T | None]:
        return lambda name: self._cluster.get(kind, f"{namespace}/{name}")

    def _apply(self, decisions: Iterable[Decision]) -> bool:
        """Carry decisions out; whether there were any."""
        cluster, changes = self._cluster, False
        for decision in decisions:
            changes = True
            match decision:
                case claims.CreateClaim(claim=claim):
                    try:
                        cluster.create(claim, self._clock.now)
                    except ForbiddenError:  # By a quota: tried again when a claim is deleted.
                        owner = claims.owning_pod(claim)
                        if owner is not None:
                            self._refused[f"{claim.namespace}/{owner.name}"] = None
                        return changes
                case claims.SetPodClaims(pod=pod, statuses=statuses):
                    cluster.write_status(pod, replace(pod.status, resource_claim_statuses=statuses))
                case claims.UpdateClaim():
                    cluster.write(claims.updated(decision))
                case claims.DeleteClaim(claim=claim):
                    # An update of the same claim may have come first.
                    if cluster.get(ResourceClaim, claim.key) is not None:
                        cluster.delete(ResourceClaim, claim.key, self._clock.now)
                case claims.ReportFailure():
                    pass  # The pod's entry says why it is pending.
                case _:
                    assert_never(decision)
        return changes

    # What changes

    def _observe(self, observation: Observation) -> None:
        match observation:
            case Added(obj=Pod() as pod):
                if pod.spec.resource_claims:
                    self._note_references(pod)
                self._observe_pod(pod)
            case Updated(obj=Pod() as pod):
                self._observe_pod(pod)
            case Deleted(obj=Pod() as pod):
                self._drop_pod(pod)
            case Added(obj=ResourceClaim() as claim) | Updated(obj=ResourceClaim() as claim):
                self._observe_claim(claim)
            case Deleted(obj=ResourceClaim() as claim):
                self._drop_claim(claim)
            case Added(obj=ResourceClaimTemplate() as template):
                self._schedule(*map(SyncPodClaims, self._waiting.get(template.key, ())))

    def _note_references(self, pod: Pod) -> None:
        for names, key in self._references(pod):
            names.setdefault(key, {})[pod.key] = None

    def _observe_pod(self, pod: Pod) -> None:
        if pod.spec.resource_claims and not pod.is_terminating and not pod.is_terminal:
            self._schedule(SyncPodClaims(pod.key))
        if not claims.needs_claims(pod, pod.metadata.uid):
            self._schedule(*(SyncClaim(f"{pod.namespace}/{name}") for name in claims.names(pod)))
            self._schedule(*map(SyncClaim, self._owned.get(pod.uid, ())))

    def _drop_pod(self, pod: Pod) -> None:
        for names, key in self._references(pod):
            names.get(key, {}).pop(pod.key, None)
        for key in list(self._owned.get(pod.uid, ())):  # As the garbage collector does.
            self._cluster.delete(ResourceClaim, key, self._clock.now)
        self._schedule(*(SyncClaim(f"{pod.namespace}/{name}") for name in claims.names(pod)))

    def _references(self, pod: Pod) -> Iterable[tuple[Keys, str]]:
        """The claims and templates that a pod names, with the index that each belongs to."""
        for entry in pod.spec.resource_claims:
            if entry.resource_claim_name:
                yield self._users, f"{pod.namespace}/{entry.resource_claim_name}"
            elif entry.resource_claim_template_name:
                yield self._waiting, f"{pod.namespace}/{entry.resource_claim_template_name}"

    def _observe_claim(self, claim: ResourceClaim) -> None:
        self._schedule(SyncClaim(claim.key))
        owner = claims.owning_pod(claim)
        if owner is not None:
            self._owned.setdefault(owner.uid, {})[claim.key] = None
            self._schedule(SyncPodClaims(f"{claim.namespace}/{owner.name}"))
        self._schedule(*map(SyncPodClaims, self._users.get(claim.key, ())))

    def _drop_claim(self, claim: ResourceClaim) -> None:
        if (owner := claims.owning_pod(claim)) is not None:
            self._owned.get(owner.uid, {}).pop(claim.key, None)
            self._schedule(SyncPodClaims(f"{claim.namespace}/{owner.name}"))
        self._schedule(*map(SyncPodClaims, self._refused))
        self._refused.clear()

    def _schedule(self, *actions: Action) -> None:
        for action in actions:
            if action not in self._due:
                self._due.add(action)
                self._clock.in_(SYNC_SECONDS, action)


def _without_claims(pods: Mapping[str, Pod]) -> None:
    """Settled pods have no device claims."""
