"""Error texts of a configuration, as Kubernetes' field.Error: path, type, value, rule."""

import json
from collections.abc import Iterable


def at(path: str, name: str) -> str:
    """The path of a field below `path`; the path of the root is empty."""
    return f"{path}.{name}" if path else name


def invalid(path: str, value: object, rule: str) -> str:
    return f"{path}: Invalid value: {shown(value)}: {rule}"


def required(path: str, rule: str = "") -> str:
    return f"{path}: Required value: {rule}" if rule else f"{path}: Required value"


def duplicate(path: str, value: object) -> str:
    return f"{path}: Duplicate value: {shown(value)}"


def forbidden(path: str, rule: str) -> str:
    return f"{path}: Forbidden: {rule}"


def unsupported(path: str, value: str, supported: Iterable[str]) -> str:
    values = ", ".join(shown(name) for name in supported)
    return f"{path}: Unsupported value: {shown(value)}: supported values: {values}"


def shown(value: object) -> str:
    """A value on one line, as JSON; strings are quoted."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False, default=str)
