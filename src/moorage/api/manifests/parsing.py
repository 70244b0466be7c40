"""Files, folders and standard input -> JSON or YAML documents, not yet decoded as objects."""

import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec import Raw

from moorage.api import documents
from moorage.api.documents import DocumentError
from moorage.errors import ManifestError

Fetch = Callable[[str], bytes]

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
STANDARD_INPUT = "-"
TEMPLATE = (
    "looks like a template, because it contains {{; render it first, for example with "
    "`helm template`, and read the result"
)

_RAW = msgspec.json.Decoder(Raw)


def is_url(path: str | Path) -> bool:
    """Whether a path is the address of a file on the web."""
    return str(path).startswith(("http://", "https://"))


def contents(path: str | Path, fetch: Fetch | None = None) -> Iterator[tuple[str, bytes]]:
    """Every file at this path or below it: its name in error messages, and its content.

    `fetch` reads what is not in the file system: nothing here opens a connection.
    """
    if fetch is not None and is_url(path):
        yield str(path), fetch(str(path))
        return
    if path == STANDARD_INPUT:
        yield "standard input", _content("standard input", sys.stdin.buffer)
        return
    path = Path(path)
    try:
        if not path.is_dir():
            yield str(path), _content(str(path), path)
            return
        files = [each for each in sorted(path.rglob("*")) if _is_manifest(each, path)]
        if not files:
            raise ManifestError(f"{path}: no {', '.join(SUFFIXES[:3])} files in this folder")
        for each in files:
            yield str(each), _content(str(each), each)
    except FileNotFoundError:
        raise ManifestError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror or error}") from None


def _content(source: str, file: Path | IO[bytes]) -> bytes:
    try:
        return documents.read_file(file)
    except DocumentError as error:
        raise ManifestError(f"{source}: {error.problem}") from None


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


def yaml_documents(
    source: str, text: str, on_duplicate: Callable[[int, str], None] | None = None
) -> Iterator[Any]:
    """Each YAML document; None where there is nothing between two separators.

    `on_duplicate` is called with the line and name of each duplicate key.
    """
    try:
        for document in documents.parse_yaml(text):
            for line, key, depth in document.repeated:
                if depth == 1 and key in ("apiVersion", "kind"):
                    # With a `---` missing, an object would be lost.
                    problem = f"{key} stands there twice; is a line with --- missing above it?"
                    raise DocumentError(problem, line)
                if on_duplicate is not None:
                    on_duplicate(line, key)
            yield document.value
    except DocumentError as error:
        line_text = "" if error.line is None else f", line {error.line}"
        problem = TEMPLATE if "{{" in text else f"is not YAML: {error.problem}"
        raise ManifestError(f"{source}{line_text}: {problem}") from None
