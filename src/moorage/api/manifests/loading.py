"""Paths or dicts in, objects out."""

import codecs
import gc
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from moorage.api.kinds import READ
from moorage.api.manifests import files, json_text, yaml_text
from moorage.api.manifests.collection import Manifest
from moorage.api.manifests.complaints import Origin
from moorage.api.manifests.reading import Reading
from moorage.api.manifests.whole import WholeReading
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError


def load(paths: Iterable[str | Path]) -> Manifest:
    """All objects in these files and folders; `-` is standard input."""
    reading = Reading()
    _read_all(reading, paths)
    return reading.manifest


def load_whole(paths: Iterable[str | Path]) -> list[tuple[str, dict[str, Any]]]:
    """The same, but whole objects of any kind, unread, and where each stands."""
    reading = WholeReading()
    _read_all(reading, paths)
    return reading.found


def from_dicts(objects: Iterable[Mapping[str, Any] | KubeObject]) -> list[KubeObject]:
    """Objects from dicts as JSON would give them; those that are objects already pass through."""
    return read(objects).objects


def read(objects: Iterable[Mapping[str, Any] | KubeObject]) -> Manifest:
    """The same, with the workloads and what was left out."""
    reading = Reading()
    for i, each in enumerate(objects):
        origin = Origin(f"objects[{i}]")
        if isinstance(each, KubeObject):
            reading.collection.add(origin, each, READ[type(each).__name__])
        else:
            reading.document(origin, each)
    return reading.manifest


def documents(path: str | Path) -> list[tuple[str, Any]]:
    """The plain documents of a file, each with where it stands."""
    found: list[tuple[str, Any]] = []
    for source, data in files.contents(path):
        text = data.removeprefix(codecs.BOM_UTF8)
        try:
            every = enumerate(yaml_text.documents(source, text.decode()), 1)
            found += [(str(Origin(source, n)), each) for n, each in every if each is not None]
        except (UnicodeDecodeError, RecursionError):
            raise ManifestError(f"{source}: is not text; expected YAML or JSON") from None
    return found


def _read_all(reading: Reading, paths: Iterable[str | Path]) -> None:
    with _collector_at_rest():
        for path in paths:
            for source, data in files.contents(path):
                if not _read(reading, source, data) and not Path(path).is_dir():
                    raise ManifestError(f"{source}: holds no objects")


@contextmanager
def _collector_at_rest() -> Iterator[None]:
    """No garbage is collected meanwhile: there is none, and looking for it doubles the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _read(reading: Reading, source: str, data: bytes) -> bool:
    """Take in one file; False if there is nothing in it."""
    data = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in data:
        raise ManifestError(f"{source}: is a binary file; expected YAML or JSON")
    try:
        if source.endswith((".json", ".jsonl", ".ndjson")):
            return _read_json(reading, source, data)
        if re.match(rb"\s*[{[]", data):  # JSON is read a hundred times faster than YAML.
            try:
                return _read_json(reading, source, data)
            except json_text.SyntaxFault:
                pass
        return _read_yaml(reading, source, data.decode())
    except UnicodeDecodeError:
        raise ManifestError(f"{source}: is not text; expected YAML or JSON") from None
    except RecursionError:
        raise ManifestError(f"{source}: is nested too deeply") from None


def _read_json(reading: Reading, source: str, data: bytes) -> bool:
    documents = json_text.documents(source, data)
    for number, raw in enumerate(documents, 1):
        reading.raw_document(Origin(source, number), raw)
    return bool(documents)


def _read_yaml(reading: Reading, source: str, text: str) -> bool:
    empty = True
    for number, document in enumerate(yaml_text.documents(source, text), 1):
        if document is not None:
            reading.document(Origin(source, number), document)
            empty = False
    return not empty
