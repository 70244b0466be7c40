"""Binding: assign a pod to a node, unless it is bound, being deleted or gated."""

from typing import Any

import msgspec

from moorage.api.meta import ObjectMeta
from moorage.cluster import status_errors
from moorage.cluster.resources import PODS
from moorage.cluster.status_errors import BadRequestError, UnclassifiedError
from moorage.controllers import objects
from moorage.controllers.objects import Object

SCHEDULED = {"type": "PodScheduled", "status": "True"}


class BindingTarget(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class Binding(msgspec.Struct, frozen=True, rename="camel"):
    """The node of a pod; the metadata may have the pod's UID and annotations to add."""

    target: BindingTarget = BindingTarget()
    metadata: ObjectMeta = ObjectMeta()


def read_binding(body: Any, name: str) -> Binding:
    """The Binding of a request for the pod of this name; raises StatusError."""
    try:
        binding = msgspec.convert(body, Binding)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"Binding cannot be read: {error}") from None
    if binding.metadata.name != name:
        raise BadRequestError("name in URL does not match name in Binding object")
    target = binding.target
    if target.kind not in ("", "Node"):
        supported = 'supported values: "Node", "<empty>"'
        raise UnclassifiedError(f'target.kind: Unsupported value: "{target.kind}": {supported}')
    if not target.name:
        raise UnclassifiedError("target.name: Required value")
    return binding


def check_unassigned(name: str, node: str, *, is_terminating: bool, is_gated: bool) -> None:
    """Raise ConflictError for a pod that may not be bound."""
    if is_terminating:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif node:
        why = f'pod {name} is already assigned to node "{node}"'
    elif is_gated:
        why = f"pod {name} has non-empty .spec.schedulingGates"
    else:
        return
    raise status_errors.binding_conflict(PODS, name, why)


def bound_pod(pod: Object, binding: Binding, at: str) -> Object:
    """The pod on its node; raises ConflictError."""
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    status_errors.check_uid(PODS, name, binding.metadata.uid or None, meta["uid"])
    check_unassigned(
        name,
        spec.get("nodeName", ""),
        is_terminating=objects.is_terminating(pod),
        is_gated=bool(spec.get("schedulingGates")),
    )
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    status["conditions"] = objects.set_condition(status.get("conditions", []), SCHEDULED, at)
    new = {**pod, "spec": {**spec, "nodeName": binding.target.name}, "status": status}
    if binding.metadata.annotations:
        annotations = {**objects.annotations(pod), **binding.metadata.annotations}
        new["metadata"] = {**meta, "annotations": annotations}
    return new
