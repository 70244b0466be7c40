"""LocalClient: the API for controllers and the scheduler in this process, without HTTP."""

import contextlib
from typing import Any, assert_never

import msgspec
from msgspec import UNSET

from moorage.api import resource_claims
from moorage.api.devices import ResourceClaim
from moorage.api.meta import Condition, ObjectMeta
from moorage.api.pod import Pod
from moorage.api.server_requests import (
    BindPod,
    ClaimRequest,
    CreateResourceClaim,
    DeallocateResourceClaim,
    DeletePod,
    DeleteResourceClaim,
    EmitEvent,
    LookUpPod,
    PatchClaim,
    PatchPodGroupStatus,
    PatchPodStatus,
    PatchVolume,
    ReleaseResourceClaim,
    Request,
    ReserveResourceClaim,
)
from moorage.cluster import status_errors
from moorage.cluster.api_server import ApiServer
from moorage.cluster.event_writer import EventWriter
from moorage.cluster.resources import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    POD_GROUPS,
    PODS,
    RESOURCE_CLAIMS,
    Resource,
)
from moorage.cluster.status_errors import NotFoundError, StatusError
from moorage.cluster.store import key_of
from moorage.cluster.verbs.binding import Binding, BindingTarget
from moorage.cluster.verbs.delete import DeleteOptions, Preconditions
from moorage.controllers import objects
from moorage.controllers.events import NewEvent
from moorage.controllers.objects import Object
from moorage.core.effects import Done


class LocalClient:
    """Performs the writes of controllers and the effects of the scheduler."""

    def __init__(self, api: ApiServer) -> None:
        self._api = api
        self.events = EventWriter(api.store)

    # For controllers

    def create(self, obj: Object) -> Object:
        """Create an object; the API completes a `generateName`."""
        return self._api.create(self._api.resource_of(obj), obj)

    def update(self, obj: Object) -> None:
        """Replace spec, status and metadata of an object at once."""
        self._api.replace(self._api.resource_of(obj), obj)

    def delete(self, obj: Object, grace_seconds: int | None, propagation: str | None) -> None:
        """Delete the object of that UID."""
        same = Preconditions(uid=objects.uid(obj))
        options = DeleteOptions(grace_seconds, same, propagation_policy=propagation)
        self._api.delete(self._api.resource_of(obj), *key_of(obj), options)

    def emit(self, obj: Object, event: NewEvent) -> None:
        """Write an Event about an object."""
        self.events.emit(obj, event, self._api.now())

    # For the scheduler

    def perform(self, request: Request) -> Done:
        """Perform a request of the scheduler; raises StatusError."""
        match request:
            case BindPod(pod=ref, node=node):
                binding = Binding(BindingTarget("Node", node), ObjectMeta(uid=ref.uid))
                self._api.bind(ref.namespace, ref.name, binding)
            case PatchPodStatus():
                self._patch_status(request)
            case PatchPodGroupStatus(pod=ref):
                group = self._object(POD_GROUPS, ref.namespace, request.name, request.uid)
                self._api.replace(POD_GROUPS, self._with_condition(group, request.condition))
            case DeletePod(pod=ref):
                self.delete(self._object(PODS, ref.namespace, ref.name, ref.uid), None, None)
            case EmitEvent(pod=ref):
                meta = {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid}
                pod = {"apiVersion": "v1", "kind": "Pod", "metadata": meta}
                what = (request.type, request.reason, request.note)
                self.emit(pod, NewEvent(*what, request.reporter, request.action))
            case LookUpPod(pod=ref):
                found = self._api.store.find(PODS, ref.namespace, ref.name)
                same = found is not None and objects.uid(found) == ref.uid
                return Done(msgspec.convert(found, Pod) if same else None)
            case PatchVolume():
                claim = msgspec.to_builtins(request.claim)
                self._patch_storage(PERSISTENT_VOLUMES, "", request, claimRef=claim)
            case PatchClaim(namespace=namespace):
                self._patch_storage(PERSISTENT_VOLUME_CLAIMS, namespace, request)
            case _ if isinstance(request, ClaimRequest):
                return Done(claim=self._change_claim(request))
            case _:
                assert_never(request)
        return Done()

    def annotate(self, pod: Pod, annotations: dict[str, str]) -> None:
        """Set annotations of a pod; no write if it has them, or is gone."""
        stored = self._api.store.find(PODS, pod.namespace, pod.name)
        if stored is None or objects.uid(stored) != pod.uid:
            return
        before = stored["metadata"].get("annotations") or {}
        if not annotations.items() <= before.items():
            changed = objects.with_metadata(stored, annotations={**before, **annotations})
            with contextlib.suppress(StatusError):  # Results are no reason not to schedule.
                self._api.replace(PODS, changed)

    def _change_claim(self, request: ClaimRequest) -> ResourceClaim | None:
        """Create, change or delete a device claim; the claim as it is afterwards."""
        ref = request.pod
        if isinstance(request, CreateResourceClaim):
            return self._create_claim(request)
        stored = self._api.store.find(RESOURCE_CLAIMS, request.namespace, request.name)
        known = None if stored is None else msgspec.convert(stored, ResourceClaim)
        if isinstance(request, ReserveResourceClaim):
            known = known if known is not None and known.uid == request.uid else None
            pod, now = (ref.name, ref.uid), self._api.store.clock()
            claim = resource_claims.reserved(known, request.key, pod, request.allocation, now)
            return self._write_claim(claim)
        if known is None or known.uid != request.uid:
            raise status_errors.not_found(RESOURCE_CLAIMS, request.name)
        match request:
            case ReleaseResourceClaim():
                return self._write_claim(resource_claims.released(known, ref.uid))
            case DeallocateResourceClaim(version=version):
                if known.metadata.resource_version != version:
                    raise status_errors.modified(RESOURCE_CLAIMS, request.name)
                return self._write_claim(resource_claims.deallocated(known))
            case DeleteResourceClaim():
                self._write_claim(resource_claims.without_finalizer(known))
                with contextlib.suppress(NotFoundError):  # It was being deleted already.
                    self._api.delete(RESOURCE_CLAIMS, request.namespace, request.name)
                return None

    def _create_claim(self, request: CreateResourceClaim) -> ResourceClaim:
        new = objects.plain(request.claim)
        pod = self._object(PODS, request.pod.namespace, request.pod.name, request.pod.uid)
        new["metadata"]["ownerReferences"] = [objects.controller_reference(pod)]
        return msgspec.convert(self._api.create(RESOURCE_CLAIMS, new), ResourceClaim)

    def _write_claim(self, claim: ResourceClaim) -> ResourceClaim:
        """Write finalizers and status of a claim; its other fields stay as they are stored."""
        stored = self._api.store.get(RESOURCE_CLAIMS, *claim.key.split("/"))
        new = objects.with_metadata(stored, finalizers=list(claim.metadata.finalizers))
        allocation, users = claim.status.allocation, claim.status.reserved_for
        new = objects.with_status(
            new,
            allocation=None if allocation is None else objects.plain(allocation),
            reservedFor=objects.plain(users) or None,
            devices=objects.status(stored).get("devices") if claim.status.devices else None,
        )
        return msgspec.convert(self._api.replace(RESOURCE_CLAIMS, new), ResourceClaim)

    def _object(self, resource: Resource, namespace: str, name: str, uid: str) -> Object:
        """The object of that UID; raises NotFoundError if there is another of the same name."""
        obj = self._api.store.get(resource, namespace, name)
        if objects.uid(obj) != uid:
            raise status_errors.not_found(resource, name)
        return obj

    def _patch_status(self, request: PatchPodStatus) -> None:
        ref = request.pod
        pod = self._object(PODS, ref.namespace, ref.name, ref.uid)
        if request.condition is not None:
            pod = self._with_condition(pod, request.condition)
        if request.nominated_node_name is not UNSET:
            pod = objects.with_status(pod, nominatedNodeName=request.nominated_node_name or None)
        if (special := request.extended_resource_claim_status) is not None:
            pod = objects.with_status(pod, extendedResourceClaimStatus=objects.plain(special))
        self._api.replace(PODS, pod)

    def _with_condition(self, obj: Object, condition: Condition) -> Object:
        fields: dict[str, Any] = msgspec.to_builtins(condition)
        fields.pop("lastTransitionTime", None)
        return objects.with_condition(obj, self._api.store.clock(), **fields)

    def _patch_storage(
        self, resource: Resource, namespace: str, request: PatchVolume | PatchClaim, **spec: Any
    ) -> None:
        """Set annotations and fields of the spec, if the object still has the given version."""
        obj = self._object(resource, namespace, request.name, request.uid)
        meta = {**obj["metadata"], "annotations": request.annotations}
        changed = {**obj, "metadata": meta, "spec": {**obj.get("spec", {}), **spec}}
        self._api.replace(resource, changed, expect_version=request.version)
