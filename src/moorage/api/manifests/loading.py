"""Paths or dicts in, objects out."""

import codecs
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moorage.api.kinds import READ
from moorage.api.manifests import parsing
from moorage.api.manifests.errors import Origin
from moorage.api.manifests.reading import DocumentReader, Manifest, WholeDocumentReader
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError


def load(paths: Iterable[str | Path]) -> Manifest:
    """All objects in these files and folders; `-` is standard input."""
    reader = DocumentReader()
    _read_all(reader, paths)
    return reader.manifest


def load_whole(paths: Iterable[str | Path]) -> list[tuple[str, dict[str, Any]]]:
    """Whole objects of all kinds as plain data, each with its location."""
    reader = WholeDocumentReader()
    _read_all(reader, paths)
    return reader.found


def from_dicts(objects: Iterable[Mapping[str, Any] | KubeObject]) -> list[KubeObject]:
    """Objects from dicts as decoded from JSON; objects are validated and passed through."""
    return read(objects).objects


def read(objects: Iterable[Mapping[str, Any] | KubeObject]) -> Manifest:
    """The same, with the workloads and what was skipped."""
    reader = DocumentReader()
    for i, each in enumerate(objects):
        origin = Origin(f"objects[{i}]")
        if isinstance(each, KubeObject):
            reader.add(origin, each, READ[type(each).__name__])
        else:
            reader.read(origin, each)
    return reader.manifest


def documents(path: str | Path) -> list[tuple[str, Any]]:
    """The documents of a file as plain data, each with its location."""
    found: list[tuple[str, Any]] = []
    for source, data in parsing.contents(path):
        text = data.removeprefix(codecs.BOM_UTF8)
        try:
            every = enumerate(parsing.yaml_documents(source, text.decode()), 1)
            found += [(str(Origin(source, n)), each) for n, each in every if each is not None]
        except (UnicodeDecodeError, RecursionError):
            raise ManifestError(f"{source}: is not text; expected YAML or JSON") from None
    return found


def _read_all(reader: DocumentReader, paths: Iterable[str | Path]) -> None:
    with _garbage_collector_disabled():
        for path in paths:
            for source, data in parsing.contents(path):
                if not _read_file(reader, source, data) and not Path(path).is_dir():
                    raise ManifestError(f"{source}: holds no objects")


@contextmanager
def _garbage_collector_disabled() -> Iterator[None]:
    """Reading makes no garbage, and looking for it doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read_file(reader: DocumentReader, source: str, data: bytes) -> bool:
    """Read one file; False if it has no documents."""
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        raise ManifestError(f"{source}: is a binary file; expected YAML or JSON")
    try:
        if source.endswith((".json", ".jsonl", ".ndjson")):
            return _read_json(reader, source, data)
        if re.match(rb"\s*[{[]", data):  # JSON is parsed a hundred times faster than YAML.
            try:
                return _read_json(reader, source, data)
            except parsing.JsonSyntaxError:
                pass
        return _read_yaml(reader, source, data.decode())
    except UnicodeDecodeError:
        raise ManifestError(f"{source}: is not text; expected YAML or JSON") from None
    except RecursionError:
        raise ManifestError(f"{source}: is nested too deeply") from None


def _read_json(reader: DocumentReader, source: str, data: bytes) -> bool:
    documents = parsing.json_documents(source, data)
    for number, raw in enumerate(documents, 1):
        reader.read_raw(Origin(source, number), raw)
    return bool(documents)


def _read_yaml(reader: DocumentReader, source: str, text: str) -> bool:
    is_empty = True
    for number, document in enumerate(parsing.yaml_documents(source, text), 1):
        if document is not None:
            reader.read(Origin(source, number), document)
            is_empty = False
    return not is_empty
