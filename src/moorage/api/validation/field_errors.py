"""Errors of single fields in the API server's words, and access to fields of plain objects.

An object comes from a client, and only the fields that a struct knows have been checked for their
type. A field of the wrong type reads as absent here.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import msgspec

from moorage.api import quantity

Fields = Mapping[str, Any]
"""An object, or a part of it."""


class FieldError(NamedTuple):
    """What is wrong with the value of a field; `reason` is that of the cause in a Status."""

    field: str
    reason: str
    message: str

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


FieldErrors = Iterator[FieldError]
Check = Callable[[Any, str], FieldErrors]


def required(path: str, detail: str = "") -> FieldError:
    """A value is missing."""
    return FieldError(path, "FieldValueRequired", _with_detail("Required value", detail))


def invalid(path: str, value: Any, detail: str) -> FieldError:
    """A value breaks a rule."""
    return FieldError(path, "FieldValueInvalid", f"Invalid value: {shown(value)}: {detail}")


def duplicate(path: str, value: Any, detail: str = "") -> FieldError:
    """A value that must be unique occurs again."""
    message = _with_detail(f"Duplicate value: {shown(value)}", detail)
    return FieldError(path, "FieldValueDuplicate", message)


def forbidden(path: str, detail: str) -> FieldError:
    """A field may not be set, or not be changed."""
    return FieldError(path, "FieldValueForbidden", f"Forbidden: {detail}")


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    """A value is not among those of an enumeration."""
    listed = ", ".join(f'"{each}"' for each in supported)
    message = f"Unsupported value: {shown(value)}: supported values: {listed}"
    return FieldError(path, "FieldValueNotSupported", message)


def not_found(path: str, value: Any, detail: str = "") -> FieldError:
    """A name refers to nothing."""
    message = _with_detail(f"Not found: {shown(value)}", detail)
    return FieldError(path, "FieldValueNotFound", message)


def too_long(path: str, detail: str) -> FieldError:
    """A value has too many bytes."""
    return FieldError(path, "FieldValueTooLong", f"Too long: {detail}")


def _with_detail(text: str, detail: str) -> str:
    return f"{text}: {detail}" if detail else text


def shown(value: Any) -> str:
    """A value as messages show it."""
    return msgspec.json.encode(value).decode()


def shown_quantity(value: Any) -> str:
    """A quantity as messages show it."""
    try:
        return quantity.canonical(value)
    except ValueError:
        return str(value)


def join_path(path: str, name: str) -> str:
    """`requests.cpu`, but `requests[nvidia.com/gpu]`, as Kubernetes writes it."""
    if not path:
        return name
    return f"{path}.{name}" if re.fullmatch(r"[\w-]+", name) else f"{path}[{name}]"


# Access to fields


def mapping(holder: Fields, name: str) -> Fields:
    """A field that is an object; empty if it is absent."""
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def optional(holder: Fields, name: str) -> Fields | None:
    """A field that is an object; None if it is absent."""
    value = holder.get(name)
    return value if isinstance(value, dict) else None


def items(holder: Fields, name: str) -> list[Fields]:
    """A field that is a list of objects."""
    value = holder.get(name)
    if not value or not isinstance(value, list | tuple):
        return []
    return [each if isinstance(each, dict) else {} for each in value]


def texts(holder: Fields, name: str) -> list[str]:
    """A field that is a list of texts."""
    value = holder.get(name)
    if not value or not isinstance(value, list | tuple):
        return []
    return [each for each in value if isinstance(each, str)]


def text(holder: Fields, name: str) -> str:
    """A field that is a text; empty if it is absent."""
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def number(holder: Fields, name: str) -> int | None:
    """A field that is an integer."""
    value = holder.get(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def flag(holder: Fields, name: str) -> bool:
    """A field that is a boolean; false if it is absent."""
    return holder.get(name) is True


def is_set(holder: Fields, name: str) -> bool:
    """Whether a field has a value; null is absence."""
    return holder.get(name) is not None


# Checks of one field

NOT_NEGATIVE = "must be greater than or equal to 0"


def not_negative(holder: Fields, path: str, *names: str) -> FieldErrors:
    """Integers that must be 0 or more."""
    for name in names:
        if name in holder and (value := number(holder, name)) is not None and value < 0:
            yield invalid(join_path(path, name), value, NOT_NEGATIVE)


def one_of(
    holder: Fields, path: str, name: str, supported: Iterable[str], *, needed: bool = False
) -> FieldErrors:
    """An enumerated field; one that is empty is absent."""
    value = text(holder, name)
    if not value:
        if needed:
            yield required(join_path(path, name))
    elif value not in (supported := tuple(supported)):
        yield not_supported(join_path(path, name), value, supported)


def needed(holder: Fields, path: str, *names: str) -> FieldErrors:
    """Texts that must not be empty."""
    for name in names:
        if not text(holder, name):
            yield required(join_path(path, name))
