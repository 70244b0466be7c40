"""How a pod gets its node: refused if bound, being deleted, gated, or another pod is meant."""

from typing import Any

import msgspec

from moorage.api.meta import ObjectMeta
from moorage.serve import status_errors
from moorage.serve.controllers import objects
from moorage.serve.controllers.objects import Object
from moorage.serve.objects import validation
from moorage.serve.resources import PODS, Resource
from moorage.serve.status_errors import BadRequestError

BINDINGS = Resource("", "v1", "Binding", "bindings", "Namespaced")


class BindingTarget(msgspec.Struct, frozen=True):
    kind: str = ""
    name: str = ""


class Binding(msgspec.Struct, frozen=True, rename="camel"):
    """Which pod goes to which node."""

    target: BindingTarget = BindingTarget()
    metadata: ObjectMeta = ObjectMeta()


def read(body: Any, name: str = "") -> Binding:
    """The binding that a request asks for; raises BadRequestError or Invalid."""
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


def bound(pod: Object, binding: Binding, at: str) -> Object:
    """The pod on its node; raises Conflict."""
    meta, spec = pod["metadata"], pod["spec"]
    name = meta["name"]
    if binding.metadata.uid and binding.metadata.uid != meta["uid"]:
        raise status_errors.uid_differs(PODS, name, binding.metadata.uid, meta["uid"])
    why = ""
    if "deletionTimestamp" in meta:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise status_errors.ConflictError(
            f'Operation cannot be fulfilled on pods/binding "{name}": {why}', PODS, name
        )
    status = {key: value for key, value in pod["status"].items() if key != "nominatedNodeName"}
    scheduled = {"type": "PodScheduled", "status": "True"}
    status["conditions"] = objects.set_condition(status.get("conditions", []), scheduled, at)
    new = {**pod, "spec": {**spec, "nodeName": binding.target.name}, "status": status}
    if binding.metadata.annotations:
        annotations = {**meta.get("annotations", {}), **binding.metadata.annotations}
        new["metadata"] = {**meta, "annotations": annotations}
    return new
