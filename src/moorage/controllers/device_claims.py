"""The ResourceClaim controller on the store: `moorage.controllers.claims` decides.

Decisions are made on structs and written into the stored objects, so that fields which Moorage does
not read are kept.
"""

from collections.abc import Iterator
from typing import Any, assert_never

import msgspec

from moorage.api import timestamps
from moorage.api.devices import (
    DeviceRequestAllocationResult,
    ResourceClaim,
    ResourceClaimTemplate,
)
from moorage.api.pod import Pod
from moorage.api.resource_claims import FINALIZER
from moorage.controllers import claims, drivers, objects
from moorage.controllers.claims import Decision
from moorage.controllers.index import ObjectIndex, StoredStructs
from moorage.controllers.objects import Object
from moorage.controllers.writes import Create, Delete, Report, RequeueAt, Update, Write

CLAIM = "resource.k8s.io/ResourceClaim"
TEMPLATE = "resource.k8s.io/ResourceClaimTemplate"
SLICE = "resource.k8s.io/ResourceSlice"
REPORTER = "resource_claim"


def has_claims(pod: Object) -> bool:
    """Whether a pod uses devices, by claims or by extended resources."""
    extended = objects.status(pod).get("extendedResourceClaimStatus")
    return bool(objects.spec(pod).get("resourceClaims") or extended)


def names(pod: Object) -> list[str]:
    """The names of a pod's claims."""
    return claims.names(msgspec.convert(pod, Pod))


def entries(pod: Object, field: str) -> Iterator[str]:
    """The values of a field of the pod's `resourceClaims`."""
    for entry in objects.spec(pod).get("resourceClaims") or ():
        if value := entry.get(field):
            yield value


def reconcile_pod(pod: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Create the claims of a pod from their templates, and write their names to its status."""
    found = _NamespaceObjects(index, objects.namespace(pod))
    owned = [
        index.struct(ResourceClaim, each) for each in index.controlled(CLAIM, objects.uid(pod))
    ]
    typed = index.struct(Pod, pod)
    for decision in claims.for_pod(typed, found.claim, found.template, owned):
        yield from _writes(decision, found, pod)


def reconcile(claim: Object, index: ObjectIndex, now: float) -> Iterator[Write]:
    """Release a claim of pods that have ended, and prepare its devices."""
    found = _NamespaceObjects(index, objects.namespace(claim))
    typed = index.struct(ResourceClaim, claim)
    decisions = list(claims.for_claim(typed, found.pod))
    for decision in decisions:
        yield from _writes(decision, found, claim)
    if not decisions and _are_pretended(drivers.pending(typed), index):
        yield from _prepare(claim, typed, now)


def _are_pretended(results: tuple[DeviceRequestAllocationResult, ...], index: ObjectIndex) -> bool:
    """Whether devices wait for a driver that only pretends: those of node pools."""
    if not results:
        return False
    pretended = {
        (objects.spec(each).get("driver"), objects.value_at(each, "spec", "pool", "name"))
        for each in index.all(SLICE)
        if drivers.POOL_LABEL in objects.labels(each)
    }
    return all((result.driver, result.pool) in pretended for result in results)


def _prepare(claim: Object, typed: ResourceClaim, now: float) -> Iterator[Write]:
    """Meet the binding conditions of allocated devices, after a while."""
    assert typed.status.allocation is not None
    allocated_at = timestamps.to_seconds(typed.status.allocation.allocation_timestamp, now)
    at = allocated_at + drivers.PREPARE_SECONDS
    if at > now:
        yield RequeueAt(at)
        return
    new = drivers.prepared(typed, timestamps.to_text(now)).status.devices
    old = objects.status(claim).get("devices") or []
    added = objects.plain(new[len(old) :])
    yield Update(objects.with_status(claim, devices=[*old, *added]))


def are_ready(pod: Object, index: ObjectIndex) -> bool:
    """Whether all claims of a pod are allocated and reserved for it."""
    found = _NamespaceObjects(index, objects.namespace(pod))
    return claims.are_ready(index.struct(Pod, pod), found.claim)


def _writes(decision: Decision, found: "_NamespaceObjects", subject: Object) -> Iterator[Write]:
    match decision:
        case claims.CreateClaim(claim=claim):
            new = objects.plain(claim)
            new["metadata"]["ownerReferences"] = [objects.controller_reference(subject)]
            yield Create(new)
        case claims.SetPodClaims(statuses=statuses):
            yield Update(
                objects.with_status(subject, resourceClaimStatuses=objects.plain(statuses))
            )
        case claims.UpdateClaim(claim=claim):
            yield Update(_updated(found.stored(claim.name), decision))
        case claims.DeleteClaim(claim=claim):
            yield Delete(found.stored(claim.name))
        case claims.ReportFailure(message=message):
            yield Report(subject, claims.FAILED_CREATION, message, REPORTER)
        case _:
            assert_never(decision)


def _updated(claim: Object, decision: claims.UpdateClaim) -> Object:
    fields: dict[str, Any] = {"reservedFor": objects.plain(decision.reserved_for) or None}
    if decision.free:
        fields |= {"allocation": None, "devices": None}
        claim = objects.without_finalizer(claim, FINALIZER)
    return objects.with_status(claim, **fields)


class _NamespaceObjects:
    """The objects of one namespace by name: as structs, and as they are stored."""

    def __init__(self, index: ObjectIndex, namespace: str) -> None:
        self._index = index
        self._structs = StoredStructs(index)
        self._namespace = namespace

    def claim(self, name: str) -> ResourceClaim | None:
        return self._structs.get(ResourceClaim, f"{self._namespace}/{name}")

    def template(self, name: str) -> ResourceClaimTemplate | None:
        return self._structs.get(ResourceClaimTemplate, f"{self._namespace}/{name}")

    def pod(self, name: str) -> Pod | None:
        return self._structs.get(Pod, f"{self._namespace}/{name}")

    def stored(self, name: str) -> Object:
        found = self._index.get(CLAIM, self._namespace, name)
        assert found is not None, "a decision is about an object of the index"
        return found
