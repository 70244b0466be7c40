"""Files, folders and standard input as bytes; what stands in them is not known here."""

import sys
from collections.abc import Iterator
from pathlib import Path

from moorage.errors import ManifestError

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
STANDARD_INPUT = "-"


def contents(path: str | Path) -> Iterator[tuple[str, bytes]]:
    """Every file at this path, or below it: what complaints call it, and what it says."""
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
    # Hidden folders hold other people's files: .git, .github, editors' settings.
    hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
    return path.suffix in SUFFIXES and path.is_file() and not hidden
