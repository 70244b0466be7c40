"""Bytes of list and watch -> objects. The items of a list are decoded at once; of a watch line
the type may have to come first, because only then it is known what its object is.
"""

from functools import cache
from typing import Any, Generic, TypeVar

import msgspec
from msgspec import Raw, Struct

from moorage.api import manifests
from moorage.api.kinds import Kind
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError
from moorage.live import refusals
from moorage.live.logs import Log

T = TypeVar("T")

# Types of lines that carry an object of the kind.
CHANGES = frozenset(("ADDED", "MODIFIED", "DELETED"))


class Unreadable(Exception):
    """What came is not what a list or a watch sends; only a new list helps."""


class ListMeta(Struct, frozen=True, rename="camel"):
    """Where a list stands, and how to read on."""

    resource_version: str = ""
    continue_: str = msgspec.field(name="continue", default="")


class Page(Struct, Generic[T], frozen=True):
    """A part of a list; Go writes an empty one as null."""

    metadata: ListMeta = ListMeta()
    items: list[T] | None = None


class _Line(Struct, Generic[T], frozen=True, gc=False):
    type: str
    object: T


class _Versioned(Struct, frozen=True, gc=False):
    metadata: ListMeta = ListMeta()


_LINE = msgspec.json.Decoder(_Line[Raw])
_VERSIONED = msgspec.json.Decoder(_Versioned)
_RAW_PAGE = msgspec.json.Decoder(Page[Raw])


@cache
def _page_decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(Page[struct])  # type: ignore[valid-type]  # a type that is a value


@cache
def _line_decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_Line[struct])  # type: ignore[valid-type]  # a type that is a value


@cache
def _decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


def page(body: bytes, kind: Kind, log: Log) -> Page[Any]:
    """One page of a list; an object that does not fit is left out, and said so."""
    try:
        found: Page[Any] = _page_decoder(kind.struct).decode(body)
        return found
    except msgspec.ValidationError:
        pass  # Some object in there is unusual: look at each for itself.
    except msgspec.DecodeError as error:
        raise Unreadable(f"the list is not JSON: {error}") from None
    try:
        raws = _RAW_PAGE.decode(body)
    except msgspec.ValidationError as error:
        raise Unreadable(f"what came is not a list: {error}") from None
    objects = [one(raw, kind, log) for raw in raws.items or ()]
    return Page(metadata=raws.metadata, items=[obj for obj in objects if obj is not None])


def one(raw: bytes | Raw, kind: Kind, log: Log) -> Any:
    """One object, or None if it does not fit."""
    try:
        return _decoder(kind.struct).decode(raw)
    except msgspec.ValidationError:
        pass
    except msgspec.DecodeError as error:
        raise Unreadable(f"an object is not JSON: {error}") from None
    try:
        (obj,) = manifests.from_dicts([_labelled(msgspec.json.decode(raw), kind)])
        return obj
    except (ManifestError, ValueError) as error:
        log.error("object left out: it cannot be read", problem=str(error))
        return None


def _labelled(document: Any, kind: Kind) -> Any:
    """Items of a list do not say what they are."""
    if not isinstance(document, dict):
        return document
    return {**document, "kind": kind.name, "apiVersion": kind.api_version}


def line(text: bytes, kind: Kind, log: Log) -> tuple[str, Any, str]:
    """A line of a watch: its type, its object if it has one, and a bookmark's version.

    An ERROR is raised as what it says.
    """
    try:
        usual = _line_decoder(kind.struct).decode(text)
        if usual.type in CHANGES:
            return usual.type, usual.object, ""
    except msgspec.MsgspecError:
        pass  # The object is unusual, or it is none of the kind.
    try:
        found = _LINE.decode(text)
    except msgspec.MsgspecError as error:
        raise Unreadable(f"a line of the watch cannot be read: {error}") from None
    if found.type == "ERROR":
        raise refusals.of_watch(found.object)
    if found.type == "BOOKMARK":
        return found.type, None, _VERSIONED.decode(found.object).metadata.resource_version
    return found.type, one(found.object, kind, log), ""
