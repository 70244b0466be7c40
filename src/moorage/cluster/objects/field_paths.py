"""Paths of fields in rules (`fieldPath: .spec.limits['cpu']`), checked against a schema."""

import re
from typing import Any

_STEP = re.compile(r"\.([^.\[\]']+)|\['((?:[^'\\]|\\.)*)'\]")
_ESCAPE = re.compile(r"\\(.)")
_LETTERS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


def normalized(path: str, schema: dict[str, Any]) -> str | None:
    """The path as errors show it; None if the schema has no such field."""
    result, end = "", 0
    while end < len(path):
        step = _STEP.match(path, end)
        if step is None:
            return None
        end = step.end()
        name = step[1] or _ESCAPE.sub(lambda m: _LETTERS.get(m[1], m[1]), step[2])
        properties, more = schema.get("properties"), schema.get("additionalProperties")
        if properties:
            if not isinstance(properties.get(name), dict):
                return None
            schema, result = properties[name], f"{result}.{name}"
        elif isinstance(more, dict):
            schema, result = more, f"{result}[{name}]"
        else:
            return None
    return result.removeprefix(".") or None
