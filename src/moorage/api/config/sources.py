"""Parse a configuration file, YAML or JSON, to plain data; repeated keys are errors.

Knows nothing of what the keys mean.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moorage.api import documents
from moorage.api.config.errors import shown
from moorage.api.documents import DocumentError
from moorage.errors import ConfigError

MAX_BITS = 64


def read(path: Path) -> Any:
    """The plain data of a YAML or JSON file; None if it is empty."""
    try:
        text = documents.read_file(path, documents.MAX_SETTINGS_BYTES).decode()
    except DocumentError as error:
        raise ConfigError([error.problem]) from None
    except UnicodeDecodeError as error:
        raise ConfigError([f"not UTF-8 text: {error.reason} at byte {error.start}"]) from None
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the name
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigError([reason[:1].lower() + reason[1:]]) from None
    return parse(text)


def parse(text: str) -> Any:
    """The plain data of one YAML or JSON document."""
    if text.lstrip().startswith("{"):
        try:
            return plain(_parse_json(text))
        except RecursionError:
            raise ConfigError(["nested too deeply"]) from None
        except ValueError:
            pass  # YAML may begin with a brace, too.
    return plain(_parse_yaml(text))


def plain(value: Any) -> Any:
    """A copy that has only JSON's types; raises ConfigError for other values."""
    match value:
        case Mapping():
            return {_key(key): plain(member) for key, member in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case str():
            # JSON can contain half a surrogate pair (\\ud800), which cannot be printed.
            return value.encode(errors="replace").decode()
        case bool() | None:
            return value
        case int() if value.bit_length() <= MAX_BITS:
            return value
        case float() if math.isfinite(value):
            return value
        case _:
            raise ConfigError([f"not a value that JSON knows: {_describe(value)}"])


def _parse_json(text: str) -> Any:
    repeated: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            repeated.extend(f"key {shown(n)}" for n in found if names.count(n) > 1)
        return found

    value = json.loads(text, object_pairs_hook=members)
    _refuse_repeated(repeated)
    return value


def _parse_yaml(text: str) -> Any:
    try:
        found = list(documents.parse_yaml(text))
    except DocumentError as error:
        line = "" if error.line is None else f"line {error.line}: "
        raise ConfigError([f"yaml: {line}{error.problem}"]) from None
    repeated = [each for document in found for each in document.repeated]
    _refuse_repeated([f"line {line}: key {shown(key)}" for line, key, _ in sorted(repeated)])
    values = [document.value for document in found if document.value is not None]
    if len(values) > 1:
        raise ConfigError([f"one document is expected, {len(values)} are there"])
    return values[0] if values else None


def _refuse_repeated(repeated: list[str]) -> None:
    if repeated:
        raise ConfigError([f"strict decoding error: {key} already set in map" for key in repeated])


def _describe(value: object) -> str:
    if isinstance(value, int):
        return f"an integer of more than {MAX_BITS} bits"
    return f"{type(value).__name__} {repr(value)[:80]}"


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)
