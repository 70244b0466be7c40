"""A configuration's text: from a file to plain data.

YAML and JSON are both read, and keys that stand twice are noticed; what the keys mean is not
known here.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from moorage.api.config.faults import shown
from moorage.errors import ConfigError

LARGEST_BITS = 64


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
            pass  # YAML may begin with a brace as well.
    return plain(_parse_yaml(text))


def plain(value: Any) -> Any:
    """A copy with nothing in it that JSON could not say."""
    match value:
        case Mapping():
            return {_key(key): plain(member) for key, member in value.items()}
        case list() | tuple():
            return [plain(item) for item in value]
        case str():
            # JSON can spell half a character (\\ud800); no terminal could print that.
            return value.encode(errors="replace").decode()
        case bool() | None:
            return value
        case int() if value.bit_length() <= LARGEST_BITS:
            return value
        case float() if math.isfinite(value):
            return value
        case _:
            raise ConfigError([f"not a value that JSON knows: {_described(value)}"])


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
        # PyYAML lets a value that belies its tag, as `!!bool perhaps`, through as it falls.
        raise ConfigError([f"yaml: {type(error).__name__}: {error}"]) from None
    _refuse_repeated(repeated)
    documents = [document for document in documents if document is not None]
    if len(documents) > 1:
        raise ConfigError([f"one document is expected, {len(documents)} are there"])
    return documents[0] if documents else None


def _documents(text: str) -> tuple[list[Any], list[str]]:
    loader = _Loader(text)
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


class _Loader(yaml.SafeLoader):
    """A safe loader for which dates are text, as they are in JSON.

    The one in Python: that in C is faster, but a file of many brackets makes it crash the process.
    """


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _repeated_keys(root: yaml.Node) -> list[str]:
    """Keys that stand twice in a mapping; looked for before `<<` is resolved, which may repeat."""
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
            if id(child) not in visited:  # An alias leads to where another path has been.
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
        raise ConfigError(
            [f"strict decoding error: {text} already set in map" for text in repeated]
        )


def _yaml_problem(error: yaml.YAMLError) -> str:
    if isinstance(error, yaml.MarkedYAMLError) and error.problem_mark is not None:
        return f"yaml: line {error.problem_mark.line + 1}: {error.problem or error.context}"
    return f"yaml: {' '.join(str(error).split())}"


def _described(value: object) -> str:
    if isinstance(value, int):
        return f"an integer of more than {LARGEST_BITS} bits"
    return f"{type(value).__name__} {repr(value)[:80]}"


def _key(key: Any) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)
