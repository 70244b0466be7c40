"""Delete: at once, after a grace period, or when the finalizers are removed."""

from typing import Any, NamedTuple

import msgspec

from moorage.api.admission import SYSTEM_PRIORITIES
from moorage.serve import status_errors, timestamps
from moorage.serve.controllers.objects import Object
from moorage.serve.objects import validation
from moorage.serve.resources import NAMESPACES, PODS, PRIORITY_CLASSES, Resource
from moorage.serve.status_errors import BadRequestError
from moorage.serve.verbs import update

BACKGROUND, FOREGROUND, ORPHAN = "Background", "Foreground", "Orphan"
_FINALIZER_OF = {FOREGROUND: "foregroundDeletion", ORPHAN: "orphan"}
_NAMESPACES_THAT_STAY = ("default", "kube-system", "kube-public")
_DEFAULT_GRACE_SECONDS = 30


class Preconditions(msgspec.Struct, frozen=True, rename="camel"):
    """Which object is meant."""

    uid: str | None = None
    resource_version: str | None = None


class DeleteOptions(msgspec.Struct, frozen=True, rename="camel"):
    """What a client may say about how an object should end."""

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
        raise BadRequestError(
            f'propagationPolicy: Unsupported value: "{options.propagation}": supported values: '
            '"Foreground", "Background", "Orphan"'
        )
    if options.grace_period_seconds is not None and not (
        -(2**31) < options.grace_period_seconds < 2**31
    ):
        raise BadRequestError(f"gracePeriodSeconds: out of range: {options.grace_period_seconds}")
    return options


class DeleteResult(NamedTuple):
    """What a deletion comes to: gone at once, or marked like this for now."""

    gone: bool
    marked: Object


def delete_object(
    resource: Resource, obj: Object, options: DeleteOptions, now: float
) -> DeleteResult:
    """What becomes of an object that somebody wants deleted."""
    meta = obj["metadata"]
    _check(resource, meta, options)
    meta = _with_propagation(meta, options.propagation)
    grace = _grace_seconds(resource, obj, options.grace_period_seconds)
    if "deletionTimestamp" in meta:
        return _shorten(resource, {**obj, "metadata": meta}, grace, now)
    if grace == 0 and not meta.get("finalizers") and resource is not NAMESPACES:
        return DeleteResult(gone=True, marked=obj)
    marked: Object = {
        **obj,
        "metadata": {
            **meta,
            "deletionTimestamp": timestamps.to_text(now + grace),
            "deletionGracePeriodSeconds": grace,
            "generation": meta.get("generation", 0) + 1,
        },
    }
    if resource is NAMESPACES:
        marked["status"] = {**marked.get("status", {}), "phase": "Terminating"}
    return DeleteResult(gone=update.is_finished(resource, marked), marked=marked)


def _shorten(resource: Resource, obj: Object, grace: int, now: float) -> DeleteResult:
    """Deleted again: the end may come sooner than it was going to, never later."""
    meta = obj["metadata"]
    if grace < meta.get("deletionGracePeriodSeconds", 0):
        obj = {
            **obj,
            "metadata": {
                **meta,
                "deletionTimestamp": timestamps.to_text(now + grace),
                "deletionGracePeriodSeconds": grace,
            },
        }
    return DeleteResult(gone=update.is_finished(resource, obj), marked=obj)


def _check(resource: Resource, meta: dict[str, Any], options: DeleteOptions) -> None:
    name = meta["name"]
    wanted = options.preconditions or Preconditions()
    if wanted.uid is not None and wanted.uid != meta["uid"]:
        raise status_errors.uid_differs(resource, name, wanted.uid, meta["uid"])
    version = wanted.resource_version
    if version is not None and version != meta["resourceVersion"]:
        why = f"Precondition failed: ResourceVersion in precondition: {version}, "
        why += f"ResourceVersion in object meta: {meta['resourceVersion']}"
        raise status_errors.conflict(resource, name, why)
    if resource is PRIORITY_CLASSES and name in SYSTEM_PRIORITIES:
        why = "this is a system priority class and cannot be deleted"
        raise status_errors.forbidden(resource, name, why)
    if resource is NAMESPACES and name in _NAMESPACES_THAT_STAY:
        raise status_errors.forbidden(resource, name, "this namespace may not be deleted")
    if (options.grace_period_seconds or 0) < -1:
        raise validation.invalid(
            resource,
            name,
            "gracePeriodSeconds",
            options.grace_period_seconds,
            "must be greater than or equal to 0",
        )


def _with_propagation(meta: dict[str, Any], propagation: str | None) -> dict[str, Any]:
    if propagation is None:
        return meta
    ours = _FINALIZER_OF.values()
    others = [each for each in meta.get("finalizers", ()) if each not in ours]
    wanted = [_FINALIZER_OF[propagation]] if propagation in _FINALIZER_OF else []
    finalizers = others + wanted
    if finalizers == meta.get("finalizers", []):
        return meta
    rest = {key: value for key, value in meta.items() if key != "finalizers"}
    return {**rest, "finalizers": finalizers} if finalizers else rest


def _grace_seconds(resource: Resource, obj: Object, asked: int | None) -> int:
    """How long the end may take; 0 where no kubelet has anything to wind down."""
    if resource is not PODS:
        return 0
    spec, phase = obj["spec"], obj.get("status", {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    own = spec.get("terminationGracePeriodSeconds", _DEFAULT_GRACE_SECONDS)
    grace = own if asked is None else asked
    return 1 if grace < 0 else int(grace)
