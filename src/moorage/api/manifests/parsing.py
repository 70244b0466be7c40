"""Files, folders and standard input -> their text; YAML -> documents as plain data."""

import codecs
import io
import sys
from collections.abc import Callable, Container, Iterable, Iterator
from pathlib import Path
from typing import IO, Any

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
CHART, CHART_FOLDERS = "Chart.yaml", ("templates", "charts")
CHART_PROBLEM = "{0}: is a Helm chart; render it first: helm template {0} | moorage ... -f -"

MAX_BYTES = 2**30
"""The most text in memory: a YAML file, or a JSON document that is not a list."""
MAX_DUMP_BYTES = 2**34
"""The size of a file that is read in parts: of 1,000,000 pods, kubectl prints 9 GB."""
MAX_KEPT_BYTES = 2**26
"""A larger text that begins as JSON is not read again as YAML, which would take minutes."""


def is_url(path: str | Path) -> bool:
    """Whether a path is the address of a file on the web."""
    return str(path).startswith(("http://", "https://"))


class InputText:
    """The text of a file, as UTF-8 without a mark; it is read in parts."""

    part_bytes = 2**20

    def __init__(self, source: str, file: IO[bytes], *, in_folder: bool = False) -> None:
        self.source = source
        self.in_folder = in_folder  # The folder was given, not the file.
        self.unread = b""
        self.line = 1  # Where `unread` begins.
        self.is_at_end = False
        self._file = file
        self._bytes = 0
        self._consumed: list[bytes] | None = []

    def read_more(self) -> bool:
        """Add to the unread text; False at the end of the file."""
        if self.is_at_end:
            return False
        is_first = not self._bytes
        size = max(self.part_bytes, len(self.unread))
        read = self._read(min(size, MAX_BYTES - len(self.unread) + 1))
        if is_first and read.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            # Windows tools write UTF-16.
            read += self._read(MAX_BYTES - len(read) + 1)
            self._check(len(read), MAX_BYTES)
            self.unread = read.decode("utf-16").encode()
            return True
        if b"\0" in read:
            raise ManifestError(f"{self.source}: is a binary file; expected YAML or JSON")
        self.unread += read.removeprefix(codecs.BOM_UTF8) if is_first else read
        self._check(len(self.unread), MAX_BYTES)
        self._check(self._bytes, MAX_DUMP_BYTES)
        return bool(read)

    def _read(self, size: int) -> bytes:
        try:
            read = self._file.read(size)
        except OSError as error:
            raise ManifestError(f"{self.source}: {error.strerror or error}") from None
        self._bytes += len(read)
        self.is_at_end = len(read) < size
        return read

    def _check(self, size: int, limit: int) -> None:
        if size > limit:
            raise ManifestError(f"{self.source}: is larger than {limit >> 20} MiB")

    def consume(self, size: int) -> None:
        """Go on behind so many bytes of the unread text."""
        self.line += self.unread.count(b"\n", 0, size)
        if self._bytes > MAX_KEPT_BYTES:
            self._consumed = None
        if self._consumed is not None:
            self._consumed.append(self.unread[:size])
        self.unread = self.unread[size:]

    def whole(self) -> bytes | None:
        """All of the text; None if too much of it is consumed."""
        if self._consumed is None:
            return None
        while self.read_more():
            pass
        return b"".join((*self._consumed, self.unread))


def contents(
    path: str | Path, fetch: Fetch | None = None, left_out: Container[Path] = ()
) -> Iterator[InputText]:
    """Every file at this path or below it, except absolute paths that are left out of folders.

    `fetch` reads what is not in the file system: nothing here opens a connection.
    """
    if fetch is not None and is_url(path):
        yield InputText(str(path), io.BytesIO(fetch(str(path))))
        return
    if path == STANDARD_INPUT:
        if sys.stdin is None:
            raise ManifestError("standard input: is closed")
        yield InputText("standard input", sys.stdin.buffer)
        return
    if not str(path):
        raise ManifestError("the name of a file is empty")
    path = Path(path)
    charts: list[Path] = []
    try:
        files = [path]
        if is_folder := path.is_dir():
            files = [each for each in sorted(path.rglob("*")) if _is_manifest(each, path)]
            if not files:
                raise ManifestError(f"{path}: no {', '.join(SUFFIXES[:3])} files in this folder")
            charts = _charts(path, files)
            files = [each for each in files if not any(map(each.is_relative_to, charts))]
            files = [each for each in files if each.resolve() not in left_out]
        for each in files:
            with each.open("rb") as file:
                yield InputText(str(each), file, in_folder=is_folder)
    except FileNotFoundError:
        raise ManifestError(f"{path}: no such file or folder") from None
    except OSError as error:
        raise ManifestError(f"{path}: {error.strerror or error}") from None
    if charts:
        raise ManifestError(*(CHART_PROBLEM.format(chart) for chart in charts))


def _charts(folder: Path, files: Iterable[Path]) -> list[Path]:
    """The Helm charts of a folder, without those inside others; refuses a part of a chart."""
    here = folder.resolve()
    for each in here.parents:
        if (each / CHART).is_file() and here.relative_to(each).parts[0] in CHART_FOLDERS:
            raise ManifestError(CHART_PROBLEM.format(each))
    found: list[Path] = []
    for each in sorted((file.parent for file in files if file.name == CHART), key=_depth):
        if not any(map(each.is_relative_to, found)):
            found.append(each)
    return found


def _depth(folder: Path) -> int:
    return len(folder.parts)


def _is_manifest(path: Path, folder: Path) -> bool:
    # Hidden folders contain no manifests: .git, .github, editors' settings.
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix in SUFFIXES and path.is_file() and not hidden


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
