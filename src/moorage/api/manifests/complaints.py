"""What is said about an object that cannot be read: where it stands, who it is, what is wrong."""

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.api.kinds import READ
from moorage.errors import ManifestError


class Origin(NamedTuple):
    """Where an object stands."""

    source: str
    document: int | None = None
    item: int | None = None

    def __str__(self) -> str:
        document = "" if self.document is None else f", document {self.document}"
        item = "" if self.item is None else f", items[{self.item}]"
        return f"{self.source}{document}{item}"

    def of_item(self, index: int) -> "Origin":
        """Where this item of the list stands; quicker than `_replace`, for there are many."""
        return Origin(self.source, self.document, index)


def complaint(origin: Origin, who: str, path: str, problem: str) -> ManifestError:
    """What is wrong with a field, in one line."""
    return ManifestError(f"{origin}, {who}{f', {path}' if path else ''}: {problem}")


def not_an_object(origin: Origin, document: object) -> ManifestError:
    """What is wrong with a document that is no mapping."""
    if isinstance(document, list):
        problem = "is a list; put it under `items:` of a document with `kind: List`"
    else:
        problem = f"must be an object with apiVersion and kind, is {shown(document)}"
    return ManifestError(f"{origin}: {problem}")


def who(kind: str, document: Mapping[str, Any]) -> str:
    """The kind and name of an object, as far as it has one: it may be anything yet."""
    meta = document.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name = meta.get("name") or meta.get("generateName")
    if not isinstance(name, str):
        return kind
    namespaced = kind not in READ or READ[kind].namespaced
    place = (meta.get("namespace") or "default") if namespaced else ""
    return f"{kind} {place}/{name}" if isinstance(place, str) and place else f"{kind} {name}"


def shown(value: object) -> str:
    """A value as a complaint shows it, cut short."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
