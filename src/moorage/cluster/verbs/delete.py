"""Delete: at once, after a grace period, or when the finalizers are removed."""

from typing import Any, NamedTuple

import msgspec

from moorage.api import timestamps
from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.cluster import status_errors
from moorage.cluster.objects import validation
from moorage.cluster.resources import (
    JOBS,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    REPLICATION_CONTROLLERS,
    Resource,
)
from moorage.cluster.status_errors import BadRequestError, InvalidError
from moorage.cluster.verbs import update
from moorage.controllers import objects
from moorage.controllers.garbage_collection import FOREGROUND_FINALIZER, ORPHAN_FINALIZER
from moorage.controllers.objects import Object
from moorage.controllers.writes import BACKGROUND, FOREGROUND, ORPHAN

_FINALIZERS = {FOREGROUND: FOREGROUND_FINALIZER, ORPHAN: ORPHAN_FINALIZER}
_PERMANENT_NAMESPACES = ("default", "kube-system", "kube-public")
DEFAULT_GRACE_SECONDS = 30
# Kinds whose dependents are kept unless a request says otherwise; newer kinds delete them.
_ORPHANING = (JOBS, REPLICATION_CONTROLLERS)


class Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    """The UID and version that the object must have."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    """The options of a deletion."""

    grace_period_seconds: int | None = None
    preconditions: Preconditions | None = None
    orphan_dependents: bool | None = None
    propagation_policy: str | None = None
    dry_run: list[str] = []  # msgspec copies it for every instance

    @property
    def propagation(self) -> str | None:
        if self.orphan_dependents is not None:
            return ORPHAN if self.orphan_dependents else BACKGROUND
        return self.propagation_policy


def read_options(body: Any) -> DeleteOptions:
    """The options of a request; raises BadRequestError."""
    try:
        options = msgspec.convert(body, DeleteOptions)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"DeleteOptions cannot be read: {error}") from None
    if options.propagation not in (None, BACKGROUND, FOREGROUND, ORPHAN):
        text = (
            f'Unsupported value: "{options.propagation}": supported values: "Foreground", '
            '"Background", "Orphan", "nil"'
        )
        raise _invalid_policy("FieldValueNotSupported", text)
    if options.orphan_dependents is not None and options.propagation_policy is not None:
        text = (
            f'Invalid value: "{options.propagation_policy}": orphanDependents and '
            "deletionPropagation cannot be both set"
        )
        raise _invalid_policy("FieldValueInvalid", text)
    grace = options.grace_period_seconds
    if grace is not None and not -(2**31) < grace < 2**31:
        raise BadRequestError(f"gracePeriodSeconds: out of range: {grace}")
    return options


def _invalid_policy(reason: str, text: str) -> InvalidError:
    return status_errors.invalid_options("DeleteOptions", reason, "propagationPolicy", text)


def delete_object(
    resource: Resource, obj: Object, options: DeleteOptions, now: float
) -> tuple[Object, bool]:
    """The object as it is marked until it is removed, and whether it is removed now.

    Raises ConflictError, ForbiddenError or InvalidError.
    """
    _check(resource, obj["metadata"], options)
    propagation = options.propagation
    if propagation is None and resource in _ORPHANING:
        decided = [each for each in objects.finalizers(obj) if each in _FINALIZERS.values()]
        propagation = None if decided else ORPHAN
    meta = _with_propagation(obj["metadata"], propagation)
    grace, is_marked = 0, "deletionTimestamp" in meta
    if resource is PODS:
        spec, phase = obj["spec"], obj.get("status", {}).get("phase", "")
        own = spec.get("terminationGracePeriodSeconds")
        grace = pod_grace_seconds(options.grace_period_seconds, own, spec.get("nodeName"), phase)
    before = meta.get("deletionGracePeriodSeconds", 0) if is_marked else None
    is_kept = bool(meta.get("finalizers")) or resource is NAMESPACES
    decision = decide(grace, before, is_kept=is_kept)
    if decision.is_removed and not is_marked:
        return obj, True
    marked = {**obj, "metadata": meta}
    if decision.grace_seconds != before:
        at = timestamps.to_text(now + decision.grace_seconds)
        deadline: dict[str, Any] = {"deletionTimestamp": at}
        if resource is not NAMESPACES:
            deadline["deletionGracePeriodSeconds"] = decision.grace_seconds
        marked["metadata"] = {**meta, **deadline}
    if not is_marked:
        if "generation" in meta:
            marked["metadata"]["generation"] = meta["generation"] + 1
        if resource is NAMESPACES:
            marked["status"] = {**marked.get("status", {}), "phase": "Terminating"}
    return marked, update.is_finished(resource, marked)


class Deletion(NamedTuple):
    """The grace period that an object is marked with, and whether it is removed now."""

    grace_seconds: int
    is_removed: bool


def decide(grace_seconds: int, before: int | None, *, is_kept: bool) -> Deletion:
    """What a deletion does; `before` is the grace period of an object that is being deleted.

    A second deletion may shorten the grace period, but not extend it. Finalizers keep the object.
    """
    left = grace_seconds if before is None else min(grace_seconds, before)
    return Deletion(left, is_removed=left == 0 and not is_kept)


def pod_grace_seconds(requested: int | None, own: int | None, node: str | None, phase: str) -> int:
    """The grace period of a pod; 0 if no kubelet has to stop anything."""
    if not node or phase in ("Succeeded", "Failed"):
        return 0
    found = (each for each in (requested, own, DEFAULT_GRACE_SECONDS) if each is not None)
    grace = next(found)
    return 1 if grace < 0 else int(grace)


def check_deletable(resource: Resource, name: str) -> None:
    """Raise ForbiddenError for objects that every cluster has."""
    if resource is PRIORITY_CLASSES and name in SYSTEM_PRIORITIES:
        why = "this is a system priority class and cannot be deleted"
        raise status_errors.forbidden(resource, name, why)
    if resource is NAMESPACES and name in _PERMANENT_NAMESPACES:
        raise status_errors.forbidden(resource, name, "this namespace may not be deleted")


def _check(resource: Resource, meta: dict[str, Any], options: DeleteOptions) -> None:
    name = meta["name"]
    expected = options.preconditions or Preconditions()
    if expected.uid is not None and expected.uid != meta["uid"]:
        raise status_errors.precondition_failed(
            resource, name, "UID", expected.uid, meta["uid"], "deleted and then recreated"
        )
    version = expected.resource_version
    if version is not None and version != meta["resourceVersion"]:
        raise status_errors.precondition_failed(
            resource, name, "ResourceVersion", version, meta["resourceVersion"], "modified"
        )
    check_deletable(resource, name)
    grace = options.grace_period_seconds
    if (grace or 0) < -1:
        rule = "must be greater than or equal to 0"
        raise validation.invalid(resource, name, "gracePeriodSeconds", grace, rule)


def _with_propagation(meta: dict[str, Any], propagation: str | None) -> dict[str, Any]:
    """The metadata with the finalizer of the propagation policy, and without the others."""
    if propagation is None:
        return meta
    others = [each for each in meta.get("finalizers", ()) if each not in _FINALIZERS.values()]
    finalizers = others + ([_FINALIZERS[propagation]] if propagation in _FINALIZERS else [])
    if finalizers == meta.get("finalizers", []):
        return meta
    rest = {key: value for key, value in meta.items() if key != "finalizers"}
    return {**rest, "finalizers": finalizers} if finalizers else rest
