"""Binding: assign a pod to a node, unless it is bound, being deleted or gated."""

from typing import Any

import msgspec

from moorage.api.meta import ObjectMeta
from moorage.cluster import status_errors
from moorage.cluster.objects import validation
from moorage.cluster.resources import PODS, Resource
from moorage.cluster.status_errors import BadRequestError, ConflictError
from moorage.controllers import objects
from moorage.controllers.objects import Object

BINDINGS = Resource("", "v1", "Binding", "bindings", "Namespaced")


class BindingTarget(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class Binding(msgspec.Struct, frozen=True, rename="camel"):
    """The node of a pod; the metadata may have the pod's UID and annotations to add."""

    target: BindingTarget = BindingTarget()
    metadata: ObjectMeta = ObjectMeta()


def read_binding(body: Any, name: str = "") -> Binding:
    """The Binding of a request; raises BadRequestError or InvalidError."""
    try:
        binding = msgspec.convert(body, Binding)
    except msgspec.ValidationError as error:
        raise BadRequestError(f"Binding cannot be read: {error}") from None
    target = binding.target
    if target.kind not in ("", "Node"):
        raise validation.invalid(BINDINGS, name, "target.kind", target.kind, 'must be "Node"')
    if not target.name:
        raise validation.required(BINDINGS, name, "target.name")
    return binding


def bound_pod(pod: Object, binding: Binding, at: str) -> Object:
    """The pod on its node; raises ConflictError."""
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    if binding.metadata.uid and binding.metadata.uid != meta["uid"]:
        raise status_errors.uid_differs(PODS, name, binding.metadata.uid, meta["uid"])
    why = ""
    if objects.is_terminating(pod):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        text = f'Operation cannot be fulfilled on pods/binding "{name}": {why}'
        raise ConflictError(text, PODS, name)
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    scheduled = {"type": "PodScheduled", "status": "True"}
    status["conditions"] = objects.set_condition(status.get("conditions", []), scheduled, at)
    new = {**pod, "spec": {**spec, "nodeName": binding.target.name}, "status": status}
    if binding.metadata.annotations:
        annotations = {**objects.annotations(pod), **binding.metadata.annotations}
        new["metadata"] = {**meta, "annotations": annotations}
    return new
