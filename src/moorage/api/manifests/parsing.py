"""Files, folders and standard input -> JSON or YAML documents, not yet decoded as objects."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Raw

from moorage.errors import ManifestError

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
STANDARD_INPUT = "-"
TEMPLATE = (
    "looks like a template, because it contains {{; render it first, for example with "
    "`helm template`, and read the result"
)

_RAW = msgspec.json.Decoder(Raw)


def contents(path: str | Path) -> Iterator[tuple[str, bytes]]:
    """Every file at this path or below it: its name in error messages, and its content."""
    if path == STANDARD_INPUT:
        yield "standard input", sys.stdin.buffer.read()
        return
    path = Path(path)
    try:
        if not path.is_dir():
            yield str(path), path.read_bytes()
            return
        files = [each for each in sorted(path.rglob("*")) if _is_manifest(each, path)]
        if not files:
            raise ManifestError(f"{path}: no {', '.join(SUFFIXES[:3])} files in this folder")
        for each in files:
            yield str(each), each.read_bytes()
    except FileNotFoundError:
        raise ManifestError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror or error}") from None


def _is_manifest(path: Path, folder: Path) -> bool:
    # Hidden folders contain no manifests: .git, .github, editors' settings.
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix in SUFFIXES and path.is_file() and not hidden


class JsonSyntaxError(ManifestError):
    """Not JSON; it may still be YAML."""


def json_documents(source: str, data: bytes) -> list[Raw]:
    """The text of each JSON document.

    They stay text, so that each is decoded straight into an object: a dict in between would cost
    much time and memory in the dump of a large cluster.
    """
    try:
        return _RAW.decode_lines(data)
    except msgspec.DecodeError as error:
        at = re.search(r" \(byte (\d+)\)$", str(error))
        parsed = data[: int(at[1])] if at else data.rstrip()
        problem = str(error).removeprefix("JSON is malformed: ").removesuffix(at[0] if at else "")
        line = parsed.count(b"\n") + 1
        raise JsonSyntaxError(f"{source}, line {line}: is not JSON: {problem}") from None


class _ManifestLoader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]  # either
    """YAML as Kubernetes reads it: times stay text, 1e3 is a number, 1:30 is not."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    # Line and name of each duplicate key, of all documents.
    duplicates: list[tuple[int, str]]

    def construct_document(self, node: yaml.Node) -> Any:
        """Find duplicate keys; only here, because merge keys (`<<`) are still unmerged."""
        for key in _duplicate_keys(node):
            if key.value in ("apiVersion", "kind") and _has_key(node, key):
                # With a `---` missing, an object would be lost.
                problem = f"{key.value} stands there twice; is a line with --- missing above it?"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            self.duplicates.append((key.start_mark.line + 1, str(key.value)))
        return super().construct_document(node)


def _duplicate_keys(root: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """The second and further keys of the same name in one mapping."""
    todo, seen = [root], {id(root)}
    while todo:
        node = todo.pop()
        below: list[yaml.Node] = []
        if isinstance(node, yaml.SequenceNode):
            below = node.value
        elif isinstance(node, yaml.MappingNode):
            names: set[str] = set()
            for key, value in node.value:
                below.append(value)
                if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                    if key.value in names:
                        yield key
                    names.add(key.value)
        for each in below:
            # An alias is the node that it refers to: it is looked at once.
            if not isinstance(each, yaml.ScalarNode) and id(each) not in seen:
                seen.add(id(each))
                todo.append(each)


def _has_key(node: yaml.Node, key: yaml.Node) -> bool:
    return isinstance(node, yaml.MappingNode) and any(key is each for each, _ in node.value)


for _tag, _pattern, _first in (
    ("bool", r"(?i:true|false|yes|no|on|off)", "yYnNtTfFoO"),
    ("int", r"[-+]?(?:0|[1-9][0-9_]*|0[0-7_]+|0o[0-7]+|0x[0-9a-fA-F_]+|0b[01_]+)", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?"
        r"|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+0123456789.",
    ),
    ("null", r"~|null|Null|NULL|", "~nN\0"),
    ("merge", r"<<", "<"),
):
    _ManifestLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(f"^(?:{_pattern})$"),
        [letter.replace("\0", "") for letter in _first],
    )


def _load(text: str, duplicates: list[tuple[int, str]]) -> Iterator[Any]:
    loader = _ManifestLoader(text)
    loader.duplicates = duplicates
    try:
        while loader.check_data():
            yield loader.get_data()
    finally:
        loader.dispose()


def yaml_documents(
    source: str, text: str, on_duplicate: Callable[[int, str], None] | None = None
) -> Iterator[Any]:
    """Each YAML document; None where there is nothing between two separators.

    `on_duplicate` is called with the line and name of each duplicate key.
    """
    duplicates: list[tuple[int, str]] = []
    documents = _load(text, duplicates)
    while True:
        try:
            document = next(documents)
        except StopIteration:
            return
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = "" if mark is None else f", line {mark.line + 1}"
            problem = getattr(error, "problem", None) or getattr(error, "reason", error)
            if "{{" in text:
                raise ManifestError(f"{source}{line}: {TEMPLATE}") from None
            raise ManifestError(f"{source}{line}: is not YAML: {problem}") from None
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            # PyYAML raises these for values that do not match an explicit tag: `!!int x`.
            raise ManifestError(f"{source}: a tag does not fit its value: {error}") from None
        if on_duplicate is not None:
            for number, name in duplicates:
                on_duplicate(number, name)
        duplicates.clear()
        yield document
