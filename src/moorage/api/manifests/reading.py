"""Documents, and lists of them, as objects of the kinds that they state."""

from collections.abc import Mapping
from functools import cache
from typing import Any

import msgspec
from msgspec import Raw, Struct

from moorage.api import kinds
from moorage.api.kinds import READ
from moorage.api.manifests import complaints, decoding
from moorage.api.manifests.collection import Collection, Manifest
from moorage.api.manifests.complaints import Origin
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError


class _Header(Struct, rename="camel", gc=False):
    """As much of a document as says what it is."""

    api_version: str = ""
    kind: str = ""
    items: Raw = Raw()


_HEADER = msgspec.json.Decoder(_Header)
_RAWS = msgspec.json.Decoder(list[Raw] | None)


@cache
def _decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


@cache
def _list_decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[struct])  # type: ignore[valid-type]  # a type that is a value


class Reading:
    """One pass over some documents: each, in whatever form it comes, ends in the collection."""

    def __init__(self) -> None:
        self.collection = Collection()

    @property
    def manifest(self) -> Manifest:
        """What was found."""
        return self.collection.manifest

    def raw_document(self, origin: Origin, raw: Raw, api_version: str = "", kind: str = "") -> None:
        """Take in a JSON text; the version and kind are those that its list stated."""
        try:
            header = _HEADER.decode(raw)
        except msgspec.ValidationError:
            self.document(origin, msgspec.json.decode(raw), api_version, kind)
            return
        api_version, kind = header.api_version or api_version, header.kind or kind
        if kind.endswith("List") and header.items:
            self._raw_items(origin, header.items, api_version, kind)
        elif known := kinds.known(api_version, kind):
            try:
                obj = _decoder(known.struct).decode(raw)
            except msgspec.ValidationError:
                obj = decoding.convert(origin, msgspec.json.decode(raw), known)
            self.collection.add(origin, obj, known)
        else:
            self.skip(origin, msgspec.json.decode(raw), api_version, kind)

    def _raw_items(self, origin: Origin, items: Raw, api_version: str, kind: str) -> None:
        api_version, kind = _item_kind(api_version, kind)
        known = kinds.known(api_version, kind)
        try:
            objects = _list_decoder(known.struct).decode(items) if known else None
        except msgspec.ValidationError:
            objects = None  # Somewhere in there: look at each for itself.
        if known and objects is not None:
            for i, obj in enumerate(objects):
                self.collection.add(origin.of_item(i), obj, known)
            return
        try:
            raws = _RAWS.decode(items)
        except msgspec.ValidationError:
            raise ManifestError(f"{origin}, items: must be a list") from None
        for i, raw in enumerate(raws or ()):
            self.raw_document(origin.of_item(i), raw, api_version, kind)

    def document(
        self, origin: Origin, document: object, api_version: str = "", kind: str = ""
    ) -> None:
        """Take in a parsed document, which may be a list of others."""
        if not isinstance(document, Mapping):
            raise complaints.not_an_object(origin, document)
        api_version = stated(origin, document, "apiVersion") or api_version
        kind = stated(origin, document, "kind") or kind
        items = document.get("items")
        if kind.endswith("List") and items is not None:
            if not isinstance(items, list | tuple):
                shown = complaints.shown(items)
                raise ManifestError(f"{origin}, items: must be a list, is {shown}")
            inherited = _item_kind(api_version, kind)
            for i, item in enumerate(items):
                self.document(origin.of_item(i), item, *inherited)
        elif known := kinds.known(api_version, kind):
            self.collection.add(origin, decoding.convert(origin, document, known), known)
        else:
            self.skip(origin, document, api_version, kind)

    def skip(
        self, origin: Origin, document: Mapping[str, Any], api_version: str, kind: str
    ) -> None:
        """Count an object that is not read; complain if it looks as if it should have been."""
        if not isinstance(document, Mapping):
            raise complaints.not_an_object(origin, document)
        if not kind:
            raise ManifestError(f'{origin}, kind: is missing; write for example "kind: Pod"')
        if not api_version:
            who = complaints.who(kind, document)
            hint = f"; write {READ[kind].api_version}" if kind in READ else ""
            raise ManifestError(f"{origin}, {who}, apiVersion: is missing{hint}")
        if kinds.is_outdated(api_version, kind):
            who, hint = complaints.who(kind, document), f"write {READ[kind].api_version}"
            raise ManifestError(f"{origin}, {who}, apiVersion: {api_version} is not read; {hint}")
        if not kind.endswith("List"):  # A list without items is just empty.
            self.manifest.skipped[f"{api_version} {kind}"] += 1


def stated(origin: Origin, document: Mapping[str, Any], name: str) -> str:
    """What a document says in its field of this name, which has to be text."""
    text = document.get(name)
    if text is not None and not isinstance(text, str):
        raise ManifestError(f"{origin}, {name}: must be text, is {complaints.shown(text)}")
    return text or ""


def _item_kind(api_version: str, kind: str) -> tuple[str, str]:
    """What the items of a list are that do not say so themselves."""
    return (api_version, kind.removesuffix("List")) if kind != "List" else ("", "")
