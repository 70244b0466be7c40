"""msgspec's complaints in our words: which field, what it must be, what it is.

msgspec names types as Python does, and leaves out the keys of maps; whoever wrote a manifest looks
for the key and knows no `str`.
"""

import re
from typing import Any

from moorage.api.admission import join_path
from moorage.api.manifests.complaints import shown

_FAULT = re.compile(r"(?P<rule>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?")
_FIELD = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>\w+)`")
_RULE = re.compile(r"Expected `(?P<types>[^`]+)`(?P<bound>[^,]*)(?:, got `(?P<got>\w+)`)?")
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?:(?P<index>\d+)|\.\.\.)\]")
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}


def translate(error: str, document: Any) -> tuple[str, str]:
    """msgspec's complaint about a document as a field path and a problem in our words."""
    fault = _FAULT.fullmatch(error)
    if fault and (lacking := _FIELD.fullmatch(fault["rule"])):
        path, _ = _find(document, fault["path"] or "", None)
        problem = "is missing" if lacking["what"].startswith("missing") else "is not a known field"
        return join_path(path, lacking["name"]), problem
    rule = _RULE.match(fault["rule"]) if fault else None
    if fault is None or rule is None:
        return "", error
    path, culprit = _find(document, fault["path"] or "", rule["got"])
    types = rule["types"].split(" | ")
    if {"str", "int", "float"} <= set(types):
        expected = "a quantity"
    else:
        expected = " or ".join(_WORDS.get(each, each) for each in types if each != "null")
    hint = ""
    if types[0] == "str" and isinstance(culprit, bool | int | float):
        hint = "; put it in quotes"
    return path, f"must be {expected}{rule['bound']}, is {shown(culprit)}{hint}"


def _find(document: Any, path: str, got: str | None) -> tuple[str, Any]:
    """Follow msgspec's path, which does not name the keys of maps, to the value at its end."""
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
