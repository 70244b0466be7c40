"""Which fields of a kind can be selected by, and their values as text."""

from collections.abc import Callable
from typing import Any

from moorage.api import selectors
from moorage.api.selectors import EVERYTHING, FieldSelector, Selector, SelectorError
from moorage.serve.controllers.objects import Object
from moorage.serve.refusals import BadRequest
from moorage.serve.resources import EVENTS, EVENTS_V1, Resource

_ALWAYS = ("metadata.name", "metadata.namespace")
_OBJECT_FIELDS = (
    "kind",
    "namespace",
    "name",
    "uid",
    "apiVersion",
    "resourceVersion",
    "fieldPath",
)
_FIELDS: dict[str, tuple[str, ...]] = {
    "Pod": (
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.phase",
        "status.podIP",
        "status.nominatedNodeName",
    ),
    "Node": ("spec.unschedulable",),
    "Namespace": ("status.phase",),
    "Secret": ("type",),
    "ReplicaSet": ("status.replicas",),
    "ReplicationController": ("status.replicas",),
    "Job": ("status.successful",),
    "Event": (
        *(f"involvedObject.{field}" for field in _OBJECT_FIELDS),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}
_FALSE_IF_ABSENT = ("spec.unschedulable", "spec.hostNetwork")
_ZERO_IF_ABSENT = ("status.replicas", "status.successful")


class Choice:
    """A label and a field selector together."""

    def __init__(self, resource: Resource, labels: Selector, fields: FieldSelector) -> None:
        self._labels = labels
        self._all_labels = labels.is_empty
        supported = (*_ALWAYS, *(() if resource.custom else _FIELDS.get(resource.kind, ())))
        self._fields: list[tuple[str, Callable[[str | None], bool]]] = []
        for requirement in fields.requirements:
            key = requirement.key
            if resource is EVENTS_V1:
                key = key.replace("regarding.", "involvedObject.")
                key = key.replace("reportingController", "reportingComponent")
            if key not in supported:
                raise BadRequest(f"field label not supported: {requirement.key}")
            self._fields.append((key, requirement.accepts))

    @property
    def is_everything(self) -> bool:
        return self._all_labels and not self._fields

    def matches(self, obj: Object) -> bool:
        """Whether an object is selected."""
        if not self._all_labels:
            labels = obj["metadata"].get("labels") or {}
            if not self._labels.matches(labels):
                return False
        # A plain loop: watches ask this for every change.
        for key, accepts in self._fields:  # noqa: SIM110
            if not accepts(value_of(obj, key)):
                return False
        return True


def choose(resource: Resource, label_text: str, field_text: str, name: str = "") -> Choice:
    """The selectors of a request; raises BadRequest."""
    try:
        labels = selectors.parse_label_selector(label_text) if label_text else EVERYTHING
        fields = selectors.parse_field_selector(field_text) if field_text else FieldSelector()
    except SelectorError as error:
        raise BadRequest(f"unable to parse requirement: {error}") from None
    if name:
        by_name = selectors.equals("metadata.name", name)
        fields = FieldSelector((*fields.requirements, by_name))
    return Choice(resource, labels, fields)


def value_of(obj: Object, path: str) -> str:
    """A field as text; an absent one reads as the empty string."""
    value: Any = obj
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    if path == "source" and obj.get("kind") == EVENTS.kind:
        value = (obj.get("source") or {}).get("component") or obj.get("reportingComponent")
    if value is None:
        if path in _FALSE_IF_ABSENT:
            return "false"
        return "0" if path in _ZERO_IF_ABSENT else ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
