"""LocalClient: the API for controllers and the scheduler in this process, without HTTP."""

from collections.abc import Callable
from typing import Any, assert_never

import msgspec
from msgspec import UNSET

from moorage.api.meta import ObjectMeta
from moorage.api.pod import Pod
from moorage.core.effects import Done
from moorage.framework.effects import (
    BindPod,
    DeletePod,
    EmitEvent,
    LookUpPod,
    PatchClaim,
    PatchPodStatus,
    PatchVolume,
    PodRef,
    Request,
)
from moorage.serve import status_errors
from moorage.serve.api_server import ApiServer
from moorage.serve.controllers import objects
from moorage.serve.controllers.objects import Object
from moorage.serve.event_writer import EventWriter, NewEvent
from moorage.serve.resources import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, Resource
from moorage.serve.verbs.binding import Binding, BindingTarget
from moorage.serve.verbs.delete import DeleteOptions, Preconditions


class LocalClient:
    """Carries out the wishes of those who live in the same process."""

    def __init__(self, api: ApiServer, now: Callable[[], float]) -> None:
        self._api = api
        self._now = now
        self.events = EventWriter(api.store)

    # For controllers

    def create(self, obj: Object) -> Object:
        """Make an object; one with a `generateName` gets its name on the way."""
        return self._api.create(self._api.resource_of(obj), obj)

    def update(self, obj: Object) -> None:
        """Store an object as it should be, spec and status at once."""
        self._api.put(self._api.resource_of(obj), obj)

    def delete(self, obj: Object, grace_seconds: int | None, propagation: str | None) -> None:
        """Delete that very object."""
        options = DeleteOptions(
            grace_period_seconds=grace_seconds,
            preconditions=Preconditions(uid=objects.uid(obj)),
            propagation_policy=propagation,
        )
        where = (objects.namespace(obj), objects.name(obj))
        self._api.delete(self._api.resource_of(obj), *where, options)

    def tell(self, obj: Object, note: NewEvent) -> None:
        """Write an Event about an object."""
        self.events.tell(obj, note, self._now())

    # For the scheduler

    def perform(self, request: Request) -> Done:
        """Carry out a scheduler's request; raises a Refusal."""
        match request:
            case BindPod(pod=ref, node=node):
                binding = Binding(BindingTarget("Node", node), ObjectMeta(uid=ref.uid))
                self._api.bind(ref.namespace, ref.name, binding)
            case PatchPodStatus():
                self._patch(request)
            case DeletePod(pod=ref):
                self.delete(self._pod(ref), None, None)
            case EmitEvent(pod=ref):
                self._emit(request, ref)
            case LookUpPod(pod=ref):
                found = self._api.store.find(PODS, ref.namespace, ref.name)
                same = found is not None and objects.uid(found) == ref.uid
                return Done(msgspec.convert(found, Pod) if same else None)
            case PatchVolume():
                self._give(request)
            case PatchClaim(namespace=namespace, name=name):
                self._annotate(PERSISTENT_VOLUME_CLAIMS, namespace, name, request)
            case _:
                assert_never(request)
        return Done()

    def _pod(self, ref: PodRef) -> Object:
        pod = self._api.store.get(PODS, ref.namespace, ref.name)
        if objects.uid(pod) != ref.uid:
            raise status_errors.not_found(PODS, ref.name)  # A namesake is left alone.
        return pod

    def _patch(self, request: PatchPodStatus) -> None:
        pod = self._pod(request.pod)
        if request.condition is not None:
            fields: dict[str, Any] = msgspec.to_builtins(request.condition)
            fields.pop("lastTransitionTime", None)
            pod = objects.with_condition(pod, self._api.store.clock(), **fields)
        if request.nominated_node_name is not UNSET:
            pod = objects.with_status(pod, nominatedNodeName=request.nominated_node_name or None)
        self._api.put(PODS, pod)

    def _give(self, request: PatchVolume) -> None:
        claim = msgspec.to_builtins(request.claim)
        self._annotate(PERSISTENT_VOLUMES, "", request.name, request, claimRef=claim)

    def _annotate(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        request: PatchVolume | PatchClaim,
        **spec: Any,
    ) -> None:
        """Set annotations and parts of the spec, if the object is still of the wanted version."""
        obj = self._api.store.get(resource, namespace, name)
        if objects.uid(obj) != request.uid:
            raise status_errors.not_found(resource, name)  # As above.
        meta = {**obj["metadata"], "annotations": request.annotations}
        changed = {**obj, "metadata": meta, "spec": {**obj.get("spec", {}), **spec}}
        self._api.put(resource, changed, expect_version=request.version)

    def _emit(self, request: EmitEvent, ref: PodRef) -> None:
        note = NewEvent(
            request.type, request.reason, request.note, request.reporter, request.action
        )
        about = {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": ref.namespace, "name": ref.name, "uid": ref.uid},
        }
        self.tell(about, note)
