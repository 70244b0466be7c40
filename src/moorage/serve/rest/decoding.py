"""Request bodies: JSON or YAML bytes to values."""

import json
from collections.abc import Iterator
from typing import Any

import msgspec

from moorage.api import documents
from moorage.api.documents import DocumentError
from moorage.cluster.status_errors import BadRequestError


def decode_json(body: bytes) -> Any:
    """The value of a JSON text."""
    try:
        return documents.decode_json(body)
    except DocumentError as error:
        raise BadRequestError(f"the body of the request is not JSON: {error.problem}") from None


class _Pairs(dict[str, Any]):
    """An object of a JSON text, and the keys that it has more than once."""

    duplicates: tuple[str, ...] = ()


def duplicate_fields(body: bytes) -> list[str]:
    """The paths of fields that a JSON text has more than once."""
    found = False

    def collect(pairs: list[tuple[str, Any]]) -> _Pairs:
        nonlocal found
        made = _Pairs(pairs)
        if len(made) < len(pairs):
            found = True
            names = [name for name, _ in pairs]
            made.duplicates = tuple(name for name in made if names.count(name) > 1)
        return made

    value = json.loads(body, object_pairs_hook=collect)
    return list(_duplicates(value, "")) if found else []


def _duplicates(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, _Pairs):
        yield from (f"{path}{name}" for name in value.duplicates)
        for name, each in value.items():
            yield from _duplicates(each, f"{path}{name}.")
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from _duplicates(each, f"{path.removesuffix('.')}[{index}].")


def decode_yaml(body: bytes, *, strict: bool = False) -> Any:
    """The value of the only YAML document; keys and values are those that JSON has.

    A strict client does not accept repeated keys.
    """
    try:
        found = list(documents.parse_yaml(body.decode()))
    except UnicodeDecodeError:
        raise BadRequestError("the body of the request is not UTF-8") from None
    except DocumentError as error:
        line = "" if error.line is None else f"line {error.line}: "
        problem = f"the body of the request is not YAML: {line}{error.problem}"
        raise BadRequestError(problem) from None
    if len(found) > 1:
        raise BadRequestError(f"the body of the request has {len(found)} YAML documents, not one")
    if strict and found and found[0].repeated:
        lines = [
            f'line {each.line}: key "{each.key}" already set in map' for each in found[0].repeated
        ]
        listed = "".join(f"\n  {line}" for line in lines)
        raise BadRequestError(
            f"error decoding YAML: error converting YAML to JSON: yaml: unmarshal errors:{listed}"
        )
    # Through JSON, so that aliases become copies, and infinite numbers null.
    return documents.decode_json(msgspec.json.encode(found[0].value)) if found else None
