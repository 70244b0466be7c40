"""Lists: label and field selectors, and pages at one version."""

import base64
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from moorage.api import selectors
from moorage.api.selectors import EVERYTHING, FieldSelector, Selector, SelectorError
from moorage.cluster import status_errors
from moorage.cluster.resources import EVENTS, EVENTS_V1, Resource
from moorage.cluster.status_errors import BadRequestError
from moorage.cluster.store import Store, StoredObject
from moorage.controllers import objects
from moorage.controllers.objects import Object
from moorage.serve.rest.requests import ListOptions

# The fields that field selectors support, for all kinds and per kind.
_COMMON_FIELDS = ("metadata.name", "metadata.namespace")
_REFERENCE_FIELDS = (
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
        *(f"involvedObject.{field}" for field in _REFERENCE_FIELDS),
        "reason",
        "reportingComponent",
        "source",
        "type",
    ),
}
_FALSE_IF_ABSENT = ("spec.unschedulable", "spec.hostNetwork")
_ZERO_IF_ABSENT = ("status.replicas", "status.successful")


class ObjectSelector:
    """A label selector and a field selector; raises BadRequestError for an unknown field."""

    def __init__(self, resource: Resource, labels: Selector, fields: FieldSelector) -> None:
        self._labels = labels
        self._all_labels = labels.is_empty
        own = resource.selectable_fields if resource.custom else _FIELDS.get(resource.kind, ())
        supported = _COMMON_FIELDS + own
        self._fields: list[tuple[str, Callable[[str | None], bool]]] = []
        for requirement in fields.requirements:
            key = requirement.key
            if resource is EVENTS_V1:
                key = key.replace("regarding.", "involvedObject.")
                key = key.replace("reportingController", "reportingComponent")
            if key not in supported:
                if own or resource.custom:
                    raise BadRequestError(f"field label not supported: {requirement.key}")
                only = ", ".join(f'"{each}"' for each in _COMMON_FIELDS)
                text = f'"{requirement.key}" is not a known field selector: only {only}'
                raise BadRequestError(text)
            self._fields.append((key, requirement.accepts))

    @property
    def selects_all(self) -> bool:
        return self._all_labels and not self._fields

    def matches(self, obj: Object) -> bool:
        if not self._all_labels and not self._labels.matches(objects.labels(obj)):
            return False
        # A plain loop is faster than all(): watches call this for every change.
        for key, accepts in self._fields:  # noqa: SIM110
            if not accepts(field_value(obj, key)):
                return False
        return True


def object_selector(resource: Resource, options: ListOptions, name: str = "") -> ObjectSelector:
    """The selectors of a request, and the name in its URL; raises BadRequestError."""
    label_text, field_text = options.label_selector, options.field_selector
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
    """A field as a string; an absent one is empty, false or 0."""
    value = objects.value_at(obj, *path.split("."))
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
    """The objects of a list, or of one page of it."""

    items: Sequence[StoredObject]
    version: int
    continue_token: str = ""
    remaining: int | None = None


class ContinueToken(msgspec.Struct, array_like=True, frozen=True):
    """The version of a list, and the key of the last object of a page."""

    version: int
    namespace: str
    name: str


def read_page(
    store: Store,
    resource: Resource,
    namespace: str | None,
    selector: ObjectSelector,
    options: ListOptions,
) -> ListPage:
    """The requested page of a list; raises BadRequestError or RequestTimeoutError."""
    newest = store.version if store.readable_version is None else store.readable_version
    version, after = newest, None
    if options.continue_token:
        token = _decode_token(options.continue_token)
        version, after = token.version, (token.namespace, token.name)
    elif options.match == "Exact":
        assert options.version is not None
        version = options.version
    if max(version, options.version or 0) > newest:
        # An API server waits a little for this version first.
        raise status_errors.version_too_large(max(version, options.version or 0), newest)
    scan = store.scan(resource, namespace, version, after)
    items = scan.items
    if not selector.selects_all:
        items = (item for item in items if selector.matches(item[1].object))
    # As in an API server, whose cache answers a list of version 0 and knows no pages.
    limit = 0 if options.version == 0 and after is None else options.limit
    if not limit:
        return ListPage([stored for _, stored in items], version)
    page = list(itertools.islice(items, limit))
    if len(page) < limit or next(items, None) is None:
        return ListPage([stored for _, stored in page], version)
    next_token = _encode_token(ContinueToken(version, *page[-1][0]))
    remaining = scan.length - limit if selector.selects_all else None
    return ListPage([stored for _, stored in page], version, next_token, remaining)


def _encode_token(token: ContinueToken) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode_token(text: str) -> ContinueToken:
    try:
        padded = text + "=" * (-len(text) % 4)
        body = base64.b64decode(padded, b"-_", validate=True)
        return msgspec.json.decode(body, type=ContinueToken)
    except (ValueError, msgspec.MsgspecError):
        text = "invalid continue token: continue key is not valid: it is not one that a list gave"
        raise BadRequestError(text) from None
