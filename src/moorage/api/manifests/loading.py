"""Paths or dicts in, objects out."""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw

from moorage import garbage
from moorage.api.kinds import READ
from moorage.api.manifests import parsing
from moorage.api.manifests.errors import Origin
from moorage.api.manifests.json_parts import JsonList, JsonSyntaxError, json_documents
from moorage.api.manifests.parsing import InputText
from moorage.api.manifests.reading import (
    DocumentReader,
    Manifest,
    Validate,
    WholeDocumentReader,
)
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError

KUSTOMIZATIONS = ("kustomization.yaml", "kustomization.yml", "Kustomization")

_STATED = msgspec.json.Decoder(dict[str, Raw])


def load(
    paths: Iterable[str | Path],
    validate: Validate = "ignore",
    fetch: parsing.Fetch | None = None,
    left_out: Container[Path] = (),
) -> Manifest:
    """All objects in these files and folders; `-` is standard input, URLs are passed to `fetch`.

    Files that are left out, by their absolute paths, are not read if a folder has them.

    The error has the problems of all files. With `strict`, fields that Kubernetes does not know are
    problems, too; with `warn` they are warnings.
    """
    reader = DocumentReader(validate)
    _read_all(reader, paths, fetch, left_out)
    return reader.manifest


def load_whole(
    paths: Iterable[str | Path],
    validate: Validate = "ignore",
    fetch: parsing.Fetch | None = None,
    left_out: Container[Path] = (),
) -> tuple[list[tuple[str, dict[str, Any]]], Manifest]:
    """Whole objects of all kinds as plain data, each with its location; and warnings and notes."""
    reader = WholeDocumentReader(validate)
    _read_all(reader, paths, fetch, left_out)
    return reader.found, reader.manifest


def from_dicts(objects: Iterable[Mapping[str, Any] | KubeObject]) -> list[KubeObject]:
    """Objects from dicts as decoded from JSON; objects are validated and passed through."""
    return read(objects).objects


def read(
    objects: Iterable[Mapping[str, Any] | KubeObject] | Manifest, locations: Sequence[str] = ()
) -> Manifest:
    """The same, with the workloads and what was skipped; a manifest has been validated already.

    Errors name the locations; without any, `objects[0]` and so on.
    """
    if isinstance(objects, Manifest):
        return objects
    reader = DocumentReader()
    for i, each in enumerate(objects):
        origin = Origin(locations[i] if locations else f"objects[{i}]")
        if isinstance(each, KubeObject):
            reader.add(origin, each, READ[type(each).__name__])
        else:
            reader.read(origin, each)
    return reader.manifest


def documents(
    path: str | Path, suspect: Callable[[str], None] = lambda _: None
) -> list[tuple[str, Any]]:
    """The documents of a file as plain data, each with its location.

    `suspect` is called with a line for each duplicate key.
    """
    found: list[tuple[str, Any]] = []
    for text in parsing.contents(path):
        source = text.source

        def duplicate(line: int, name: str, source: str = source) -> None:
            suspect(f'{source}, line {line}: duplicate field "{name}"')

        try:
            whole = text.whole()
            assert whole is not None, "nothing of it was consumed"
            every = enumerate(parsing.yaml_documents(source, whole.decode(), duplicate), 1)
            found += [(str(Origin(source, n)), each) for n, each in every if each is not None]
        except (UnicodeDecodeError, RecursionError):
            raise ManifestError(f"{source}: is not text; expected YAML or JSON") from None
    return found


def _read_all(
    reader: DocumentReader,
    paths: Iterable[str | Path],
    fetch: parsing.Fetch | None,
    left_out: Container[Path],
) -> None:
    paths = list(paths)
    with garbage.not_collected():
        for path in paths:
            try:
                for text in parsing.contents(path, fetch, left_out):
                    _read_file(reader, text)
            except ManifestError as error:
                reader.problems += error.problems
    if reader.problems:
        raise ManifestError(*reader.problems, *_render_first(paths, reader.problems))


def _render_first(paths: Iterable[str | Path], problems: Iterable[str]) -> Iterator[str]:
    """What to do about folders of kustomize, whose patches are not whole objects."""
    for path in map(Path, paths):
        files = (
            (each for name in KUSTOMIZATIONS for each in path.rglob(name)) if path.is_dir() else ()
        )
        outermost = min(files, key=lambda each: (len(each.parts), each), default=None)
        if outermost is not None and any(each.startswith(f"{path}/") for each in problems):
            folder = outermost.parent
            yield (
                f"{folder}: has a {outermost.name}, so some files may be patches; render it first: "
                f"kubectl kustomize {folder} | moorage ... -f -"
            )


def _read_file(reader: DocumentReader, text: InputText) -> None:
    """Read one file; its errors are problems of the reader, so that other files are read, too."""
    documents = 0
    try:
        for origin, document in _documents(reader, text):
            documents += 1
            try:
                if text.in_folder and _is_no_manifest(document):
                    note = "not a manifest, because it has neither apiVersion nor kind: skipped"
                    reader.manifest.notes.append(f"{text.source}: {note}")
                    return
                reader.read_kept(origin, document)
            except ManifestError as error:
                reader.problems += error.problems
    except ManifestError as error:
        reader.problems += error.problems
    except UnicodeDecodeError:
        reader.problems.append(f"{text.source}: is not text; expected YAML or JSON")
    except RecursionError:
        reader.problems.append(f"{text.source}: is nested too deeply")
    else:
        if not documents and not text.in_folder:
            reader.problems.append(f"{text.source}: holds no objects")


def _documents(reader: DocumentReader, text: InputText) -> Iterator[tuple[Origin, Any]]:
    """The documents of a file: JSON as what the reader keeps of it, YAML as plain data."""
    source = text.source
    is_json = source.endswith((".json", ".jsonl", ".ndjson"))
    text.read_more()
    # JSON is parsed a hundred times faster than YAML.
    if is_json or re.match(rb"\s*[{[]", text.unread):
        try:
            # All of a file before the first is read: it may turn out to be YAML.
            found = list(json_documents(text, reader.keep))
        except JsonSyntaxError:
            if is_json or (whole := text.whole()) is None:
                raise
        else:
            yield from ((Origin(source, number), each) for number, each in enumerate(found, 1))
            return
    else:
        whole = text.whole()
        assert whole is not None, "nothing of it was consumed"

    def duplicate(line: int, name: str) -> None:
        reader.suspect(f'{source}, line {line}: duplicate field "{name}"')

    every = parsing.yaml_documents(source, whole.decode(), duplicate)
    for number, document in enumerate(every, 1):
        if document is not None:
            yield Origin(source, number), document


def _is_no_manifest(document: Any) -> bool:
    """Whether a document states neither version nor kind: values of a chart, a dashboard."""
    if isinstance(document, KubeObject | JsonList):
        return False
    if isinstance(document, Raw):
        try:
            document = _STATED.decode(document)
        except msgspec.ValidationError:  # A list or a plain value.
            return True
    return not isinstance(document, Mapping) or not document.keys() & {"apiVersion", "kind"}
