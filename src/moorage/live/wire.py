"""Decode the responses of list and watch.

The items of a page are decoded at once. A watch event is decoded as a change of an object first;
other events (BOOKMARK, ERROR) are decoded in two steps: the type, then the object.
"""

from functools import cache
from typing import Any, Generic, TypeVar, cast

import msgspec
from msgspec import Raw, Struct

from moorage.api import manifests
from moorage.api.kinds import Kind
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError
from moorage.live import api_errors
from moorage.live.logs import Logger

T = TypeVar("T")

# Types of watch events that carry an object of the kind.
CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))


class UnreadableError(Exception):
    """A response that is no list or no watch event; the only recovery is a new list."""


class ListMeta(Struct, frozen=True, rename="camel"):
    """The resourceVersion of a list, and the token for its next page."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class ObjectPage(Struct, Generic[T], frozen=True):
    """One page of a list; Go encodes an empty list as null."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _WatchEvent(Struct, Generic[T], frozen=True, gc=False):
    type: str
    object: T


_RAW_EVENT = msgspec.json.Decoder(_WatchEvent[Raw])
_RAW_PAGE = msgspec.json.Decoder(ObjectPage[Raw])


@cache
def _decoder(struct: type[KubeObject], inside: Any = None) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct if inside is None else inside[struct])


def decode_page(body: bytes, kind: Kind, log: Logger) -> ObjectPage[Any]:
    """Decode one page of a list; invalid objects are skipped and logged."""
    try:
        return cast(ObjectPage[Any], _decoder(kind.struct, ObjectPage).decode(body))
    except msgspec.ValidationError:
        pass  # At least one object is invalid: decode each by itself.
    except msgspec.DecodeError as error:
        raise UnreadableError(f"the list is not JSON: {error}") from None
    try:
        raws = _RAW_PAGE.decode(body)
    except msgspec.ValidationError as error:
        raise UnreadableError(f"what came is not a list: {error}") from None
    objects = [decode_object(raw, kind, log) for raw in raws.items or ()]
    return ObjectPage(metadata=raws.metadata, items=[obj for obj in objects if obj is not None])


def decode_version(body: bytes) -> str:
    """The resourceVersion of a list."""
    try:
        return _RAW_PAGE.decode(body).metadata.resource_version
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"what came is not a list: {error}") from None


def decode_object(raw: bytes | Raw, kind: Kind, log: Logger) -> Any:
    """Decode one object; an invalid one is logged, and None is returned."""
    try:
        return _decoder(kind.struct).decode(raw)
    except msgspec.ValidationError:
        pass
    except msgspec.DecodeError as error:
        raise UnreadableError(f"an object is not JSON: {error}") from None
    try:
        document = msgspec.json.decode(raw)
        if isinstance(document, dict):  # The items of a list state neither.
            document |= {"kind": kind.name, "apiVersion": kind.api_version}
        return manifests.from_dicts([document])[0]
    except (ManifestError, ValueError) as error:
        log.error("object left out: it cannot be read", problem=str(error))
        return None


def decode_event(line: bytes, kind: Kind, log: Logger) -> tuple[str, Any, str]:
    """Decode a watch event: its type, its object or None, and the resourceVersion of a bookmark.

    An ERROR event is raised as ApiStatusError.
    """
    try:
        change = _decoder(kind.struct, _WatchEvent).decode(line)
        if change.type in CHANGES:
            return change.type, change.object, ""
    except msgspec.MsgspecError:
        pass  # The object is invalid, or not of this kind.
    try:
        found = _RAW_EVENT.decode(line)
    except msgspec.MsgspecError as error:
        raise UnreadableError(f"a line of the watch cannot be read: {error}") from None
    if found.type == "ERROR":
        raise api_errors.from_watch_event(found.object)
    if found.type == "BOOKMARK":
        return found.type, None, _RAW_PAGE.decode(found.object).metadata.resource_version
    return found.type, decode_object(found.object, kind, log), ""
