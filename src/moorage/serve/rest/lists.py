"""Lists: label and field selectors, and pages at one version."""

import base64
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import msgspec

from moorage.api import selectors
from moorage.api.selectors import EVERYTHING, FieldSelector, Selector, SelectorError
from moorage.serve.controllers.objects import Object
from moorage.serve.resources import EVENTS, EVENTS_V1, Resource
from moorage.serve.rest.requests import ListOptions
from moorage.serve.status_errors import BadRequestError, ExpiredError
from moorage.serve.store import ObjectKey, Store, StoredObject

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


class ObjectSelector:
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
                raise BadRequestError(f"field label not supported: {requirement.key}")
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
            if not accepts(field_value(obj, key)):
                return False
        return True


def object_selector(
    resource: Resource, label_text: str, field_text: str, name: str = ""
) -> ObjectSelector:
    """The selectors of a request; raises BadRequestError."""
    try:
        labels = selectors.parse_label_selector(label_text) if label_text else EVERYTHING
        fields = selectors.parse_field_selector(field_text) if field_text else FieldSelector()
    except SelectorError as error:
        raise BadRequestError(f"unable to parse requirement: {error}") from None
    if name:
        by_name = selectors.equals("metadata.name", name)
        fields = FieldSelector((*fields.requirements, by_name))
    return ObjectSelector(resource, labels, fields)


def field_value(obj: Object, path: str) -> str:
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


class ListPage(NamedTuple):
    """What a list shows, and how it goes on."""

    items: Sequence[StoredObject]
    version: int
    token: str = ""
    remaining: int | None = None


class ContinueToken(msgspec.Struct, array_like=True, frozen=True):
    """Where the next page begins, and at which version."""

    version: int
    namespace: str
    name: str


def read_page(
    store: Store,
    resource: Resource,
    namespace: str | None,
    reading: ListOptions,
    *,
    shown_as: Resource,
) -> ListPage:
    """The page that is asked for; raises BadRequestError or ExpiredError."""
    choice = object_selector(shown_as, reading.label_selector, reading.field_selector)
    version, after = store.version, None
    if reading.token:
        token = _decode_token(reading.token)
        version, after = token.version, (token.namespace, token.name)
    elif reading.match == "Exact":
        assert reading.version is not None
        version = reading.version
    if max(version, reading.version or 0) > store.version:
        # An API server would wait, and then call it a timeout. Clients take both as "list anew".
        raise ExpiredError(f"Too large resource version: {version}, current: {store.version}")
    items = store.snapshot(resource, namespace, version)
    if after is not None:
        items = [item for item in items if item[0] > after]
    if not choice.is_everything:
        items = [item for item in items if choice.matches(item[1].object)]
    return _first_page(items, version, reading.limit, whole=choice.is_everything)


def _first_page(
    items: Sequence[tuple[ObjectKey, StoredObject]], version: int, limit: int, *, whole: bool
) -> ListPage:
    if not limit or len(items) <= limit:
        return ListPage([stored for _, stored in items], version)
    shown = items[:limit]
    token = _encode_token(ContinueToken(version, *shown[-1][0]))
    left = len(items) - limit if whole else None
    return ListPage([stored for _, stored in shown], version, token, left)


def _encode_token(token: ContinueToken) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> ContinueToken:
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.json.decode(
            base64.b64decode(padded, b"-_", validate=True), type=ContinueToken
        )
    except (ValueError, msgspec.MsgspecError):
        raise BadRequestError("continue key is not valid: it is not one that a list gave") from None
