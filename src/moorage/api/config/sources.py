"""Parse a configuration file, YAML or JSON, to plain data; repeated keys are errors.

Knows nothing of what the keys mean.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from moorage.api.config.errors import shown
from moorage.errors import ConfigError

MAX_BITS = 64


def read(path: Path) -> Any:
    """The plain data of a YAML or JSON file; None if it is empty."""
    try:
        text = path.read_text(encoding="utf-8")
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
        documents, repeated = _documents(text)
    except yaml.YAMLError as error:
        raise ConfigError([_yaml_problem(error)]) from None
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        # PyYAML raises these for values that do not match an explicit tag: `!!bool perhaps`.
        raise ConfigError([f"yaml: {type(error).__name__}: {error}"]) from None
    _refuse_repeated(repeated)
    documents = [document for document in documents if document is not None]
    if len(documents) > 1:
        raise ConfigError([f"one document is expected, {len(documents)} are there"])
    return documents[0] if documents else None


def _documents(text: str) -> tuple[list[Any], list[str]]:
    loader = _ConfigLoader(text)
    documents: list[Any] = []
    repeated: list[str] = []
    try:
        while loader.check_node():
            node = loader.get_node()
            assert node is not None
            repeated += _repeated_keys(node)
            documents.append(loader.construct_document(node))
    finally:
        loader.dispose()
    return documents, repeated


class _ConfigLoader(yaml.SafeLoader):
    """A safe loader that reads dates as text, as in JSON.

    The Python implementation: the C one is faster, but crashes on a file of many brackets.
    """


_ConfigLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _repeated_keys(root: yaml.Node) -> list[str]:
    """Keys that are repeated in a mapping; before `<<` is resolved, which may repeat keys."""
    repeated = []
    pending, visited = [root], {id(root)}
    while pending:
        node = pending.pop()
        keys = [key for key, _ in node.value] if isinstance(node, yaml.MappingNode) else []
        seen = set()
        for key in keys:
            if isinstance(key, yaml.ScalarNode) and not key.tag.endswith(":merge"):
                if key.value in seen:
                    repeated.append((key.start_mark.line + 1, key.value))
                seen.add(key.value)
        for child in _children(node):
            if id(child) not in visited:  # An alias refers to a node that was visited.
                visited.add(id(child))
                pending.append(child)
    return [f"line {line}: key {shown(key)}" for line, key in sorted(repeated)]


def _children(node: yaml.Node) -> list[yaml.Node]:
    match node:
        case yaml.MappingNode():
            return [child for pair in node.value for child in pair]
        case yaml.SequenceNode():
            return list(node.value)
        case _:
            return []


def _refuse_repeated(repeated: list[str]) -> None:
    if repeated:
        raise ConfigError([f"strict decoding error: {key} already set in map" for key in repeated])


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"yaml: line {error.problem_mark.line + 1}: {error.problem or error.context}"
    return f"yaml: {' '.join(str(error).split())}"


def _describe(value: object) -> str:
    if isinstance(value, int):
        return f"an integer of more than {MAX_BITS} bits"
    return f"{type(value).__name__} {repr(value)[:80]}"


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)
