"""Error messages about objects in manifests: where the object is, which one it is, what is wrong.

Also translates msgspec's messages: it names types as Python does, and leaves out the keys of maps.
Authors of manifests look for the key and do not know `str`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from moorage.api.kinds import READ
from moorage.api.validation.field_errors import join_path
from moorage.errors import ManifestError

Problem = tuple[str, str]
"""A field's path, and what is wrong with its value."""


class Origin(NamedTuple):
    """The location of an object: file, document, item of a list."""

    source: str
    document: int | None = None
    item: int | None = None

    def __str__(self) -> str:
        document = "" if self.document is None else f", document {self.document}"
        item = "" if self.item is None else f", items[{self.item}]"
        return f"{self.source}{document}{item}"

    def of_item(self, index: int) -> "Origin":
        """The location of an item of this list; quicker than `_replace`, for there are many."""
        return Origin(self.source, self.document, index)


def invalid_field(origin: Origin, subject: str, error: Problem) -> ManifestError:
    """The error for an invalid field, in one line."""
    path, problem = error
    return ManifestError(f"{origin}, {subject}{f', {path}' if path else ''}: {problem}")


def not_an_object(origin: Origin, document: object) -> ManifestError:
    """The error for a document that is not a mapping."""
    if isinstance(document, list):
        problem = "is a list; put it under `items:` of a document with `kind: List`"
    else:
        problem = f"must be an object with apiVersion and kind, is {shown(document)}"
    return ManifestError(f"{origin}: {problem}")


def subject(kind: str, document: Mapping[str, Any]) -> str:
    """The kind and name of an unvalidated object, as far as it has a name."""
    meta = document.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name = meta.get("name") or meta.get("generateName")
    if not isinstance(name, str):
        return kind
    namespaced = kind not in READ or READ[kind].namespaced
    namespace = (meta.get("namespace") or "default") if namespaced else ""
    if isinstance(namespace, str) and namespace:
        return f"{kind} {namespace}/{name}"
    return f"{kind} {name}"


def shown(value: object) -> str:
    """A value as error messages show it, shortened."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


_MESSAGE = re.compile(r"(?P<rule>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?")
_FIELD = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>\w+)`")
_RULE = re.compile(r"Expected `(?P<types>[^`]+)`(?P<bound>[^,]*)(?:, got `(?P<got>\w+)`)?")
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?:(?P<index>\d+)|\.\.\.)\]")
_TYPE_NAMES = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}


def translate(message: str, document: Any) -> Problem:
    """msgspec's message about a document as a field path and a problem."""
    found = _MESSAGE.fullmatch(message)
    if found and (field := _FIELD.fullmatch(found["rule"])):
        path, _ = _find(document, found["path"] or "", None)
        problem = "is missing" if field["what"].startswith("missing") else "is not a known field"
        return join_path(path, field["name"]), problem
    rule = _RULE.match(found["rule"]) if found else None
    if found is None or rule is None:
        return "", message
    path, value = _find(document, found["path"] or "", rule["got"])
    types = rule["types"].split(" | ")
    if {"str", "int", "float"} <= set(types):
        expected = "a quantity"
    else:
        expected = " or ".join(_TYPE_NAMES.get(each, each) for each in types if each != "null")
    hint = ""
    if types[0] == "str" and isinstance(value, bool | int | float):
        hint = "; put it in quotes"
    return path, f"must be {expected}{rule['bound']}, is {shown(value)}{hint}"


def _find(document: Any, path: str, got: str | None) -> tuple[str, Any]:
    """Follow msgspec's path to the value at its end; keys of maps are found by the value's type."""
    found, node = "", document
    for step in _STEP.finditer(path):
        key: Any = step["field"]
        if step["index"]:
            key = int(step["index"])
        elif key is None:
            key = next((k for k, v in node.items() if _type_name(v) == got), None)
            if key is None:
                break
        found = f"{found}[{key}]" if isinstance(key, int) else join_path(found, str(key))
        node = node[key]
    return found, node


def _type_name(value: object) -> str:
    name = type(value).__name__
    return {"dict": "object", "list": "array"}.get(name, name)
