"""Files, folders and standard input -> JSON or YAML documents, not yet decoded as objects."""

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import yaml
from msgspec import Raw

from moorage.errors import ManifestError

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
STANDARD_INPUT = "-"

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

    def construct_document(self, node: yaml.Node) -> Any:
        """Reject a repeated apiVersion or kind: with a `---` missing, an object would be lost."""
        seen: set[str] = set()
        for key, _ in node.value if isinstance(node, yaml.MappingNode) else ():
            name = str(key.value)
            if name in seen and name in ("apiVersion", "kind"):
                problem = f"{name} stands there twice; is a line with --- missing above it?"
                raise yaml.MarkedYAMLError(problem=problem, problem_mark=key.start_mark)
            seen.add(name)
        return super().construct_document(node)


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


def yaml_documents(source: str, text: str) -> Iterator[Any]:
    """Each YAML document; None where there is nothing between two separators."""
    documents = yaml.load_all(text, _ManifestLoader)
    while True:
        try:
            document = next(documents)
        except StopIteration:
            return
        except yaml.YAMLError as error:
            mark = getattr(error, "problem_mark", None)
            line = "" if mark is None else f", line {mark.line + 1}"
            problem = getattr(error, "problem", None) or getattr(error, "reason", error)
            raise ManifestError(f"{source}{line}: is not YAML: {problem}") from None
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            # PyYAML raises these for values that do not match an explicit tag: `!!int x`.
            raise ManifestError(f"{source}: a tag does not fit its value: {error}") from None
        yield document
