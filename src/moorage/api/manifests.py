"""YAML and JSON files, folders and dumps -> objects; complaints say which file and where.

Objects are checked for shape, names and quantities, once, here; everybody behind trusts them.
What an API server would fill in is added later, by `defaults`. Kinds that no scheduler reads are
counted and left out.
"""

import codecs
import gc
import json
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import msgspec
import yaml
from msgspec import Raw, Struct, structs

from moorage.api import admission, words
from moorage.api.kinds import READ, WORKLOADS, Kind
from moorage.api.meta import KubeObject
from moorage.errors import ManifestError

SUFFIXES = (".yaml", ".yml", ".json", ".jsonl", ".ndjson")
STANDARD_INPUT = "-"

T = TypeVar("T", bound=KubeObject)


@dataclass(slots=True)
class Manifest:
    """What was read: the objects in order, and how many of which kinds were left out.

    `workloads` are those that no scheduler reads, because others are made of them: deployments,
    jobs, node pools. `moorage.expansion` does that, and takes `everything`.
    """

    objects: list[KubeObject] = field(default_factory=list)
    workloads: list[KubeObject] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)

    @property
    def everything(self) -> list[KubeObject]:
        return [*self.objects, *self.workloads]


class Origin(NamedTuple):
    """Where an object stands, for complaints."""

    source: str
    document: int | None = None
    item: int | None = None

    def __str__(self) -> str:
        document = "" if self.document is None else f", document {self.document}"
        item = "" if self.item is None else f", items[{self.item}]"
        return f"{self.source}{document}{item}"


def load(paths: Iterable[str | Path]) -> Manifest:
    """All objects in these files and folders; `-` is standard input."""
    reading = _Reading()
    _read_all(reading, paths)
    return reading.manifest


def load_whole(paths: Iterable[str | Path]) -> list[tuple[str, dict[str, Any]]]:
    """The same, but whole objects of any kind, unread, and where each stands."""
    reading = _Whole()
    _read_all(reading, paths)
    return reading.found


def _read_all(reading: "_Reading", paths: Iterable[str | Path]) -> None:
    with _collector_at_rest():
        for path in paths:
            for source, data in _contents(path):
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


def from_dicts(objects: Iterable[Mapping[str, Any] | KubeObject]) -> list[KubeObject]:
    """Objects from dicts as JSON would give them; those that are objects already pass through."""
    return read(objects).objects


def read(objects: Iterable[Mapping[str, Any] | KubeObject]) -> Manifest:
    """The same, with the workloads and what was left out."""
    reading = _Reading()
    for i, each in enumerate(objects):
        origin = Origin(f"objects[{i}]")
        if isinstance(each, KubeObject):
            reading.add(origin, each, READ[type(each).__name__])
        else:
            reading.document(origin, each)
    return reading.manifest


def documents(path: str | Path) -> list[tuple[str, Any]]:
    """The plain documents of a file, each with where it stands."""
    found: list[tuple[str, Any]] = []
    for source, data in _contents(path):
        text = data.removeprefix(codecs.BOM_UTF8)
        try:
            every = enumerate(_yaml_documents(source, text.decode()), 1)
            found += [(str(Origin(source, n)), each) for n, each in every if each is not None]
        except (UnicodeDecodeError, RecursionError):
            raise ManifestError(f"{source}: is not text; expected YAML or JSON") from None
    return found


def decode(document: Mapping[str, Any], struct: type[T], where: str) -> T:
    """A document as an object of a kind that is not Kubernetes'; complaints name the field."""
    try:
        return msgspec.convert(tidy := _tidy(document), struct)
    except msgspec.ValidationError as error:
        meta = tidy.get("metadata")
        name = meta.get("name", "") if isinstance(meta, Mapping) else ""
        who = f"{struct.__name__} {name}".rstrip()
        raise _complaint(Origin(where), who, *_fault(str(error), tidy)) from None


def fault_of(obj: KubeObject) -> tuple[str, str] | None:
    """The path of the first quantity or word that is none, and what is wrong with it."""
    return admission.bad_quantity(obj) or words.bad_word(obj)


def dump(obj: KubeObject) -> dict[str, Any]:
    """An object as JSON would have it, without the fields that say nothing."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return document


# Files ------------------------------------------------------------------------------------------


def _contents(path: str | Path) -> Iterator[tuple[str, bytes]]:
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


def _read(reading: "_Reading", source: str, data: bytes) -> bool:
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
            except _SyntaxFault:
                pass
        return _read_yaml(reading, source, data.decode())
    except UnicodeDecodeError:
        raise ManifestError(f"{source}: is not text; expected YAML or JSON") from None
    except RecursionError:
        raise ManifestError(f"{source}: is nested too deeply") from None


class _SyntaxFault(ManifestError):
    """Not JSON; it may still be YAML."""


def _read_json(reading: "_Reading", source: str, data: bytes) -> bool:
    try:
        documents = _RAW.decode_lines(data)
    except msgspec.DecodeError as error:
        at = re.search(r" \(byte (\d+)\)$", str(error))
        reached = data[: int(at[1])] if at else data.rstrip()
        problem = str(error).removeprefix("JSON is malformed: ").removesuffix(at[0] if at else "")
        line = reached.count(b"\n") + 1
        raise _SyntaxFault(f"{source}, line {line}: is not JSON: {problem}") from None
    for number, raw in enumerate(documents, 1):
        reading.raw_document(Origin(source, number), raw)
    return bool(documents)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML as Kubernetes reads it: times stay text, 1e3 is a number, 1:30 is not."""

    yaml_implicit_resolvers: dict[str, Any] = {}

    def construct_document(self, node: yaml.Node) -> Any:
        """As ever, but two objects that ran together are no object: one of them would be lost."""
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
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}",
        re.compile(f"^(?:{_pattern})$"),
        [letter.replace("\0", "") for letter in _first],
    )


def _read_yaml(reading: "_Reading", source: str, text: str) -> bool:
    empty = True
    for number, document in enumerate(_yaml_documents(source, text), 1):
        if document is not None:  # Nothing between two separators.
            reading.document(Origin(source, number), document)
            empty = False
    return not empty


def _yaml_documents(source: str, text: str) -> Iterator[Any]:
    documents = yaml.load_all(text, _Loader)
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
            # PyYAML stumbles like this over values that do not fit an explicit tag: `!!int x`.
            raise ManifestError(f"{source}: a tag does not fit its value: {error}") from None
        yield document


# Documents --------------------------------------------------------------------------------------


class _Header(Struct, rename="camel", gc=False):
    """As much of a document as says what it is."""

    api_version: str = ""
    kind: str = ""
    items: Raw = Raw()


_RAW = msgspec.json.Decoder(Raw)
_RAWS = msgspec.json.Decoder(list[Raw] | None)
_HEADER = msgspec.json.Decoder(_Header)


@cache
def _decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


@cache
def _list_decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(list[struct])  # type: ignore[valid-type]


class _Reading:
    """One pass over some documents: what was found, and where, so that nothing is found twice."""

    def __init__(self) -> None:
        self.manifest = Manifest()
        self._origins: dict[tuple[str, str, str], Origin] = {}
        self._generated: Counter[str] = Counter()

    def raw_document(self, origin: Origin, raw: Raw, api_version: str = "", kind: str = "") -> None:
        """Take in a JSON text; the version and kind are those that its list stated."""
        try:
            header = _HEADER.decode(raw)
        except msgspec.ValidationError:
            self.document(origin, msgspec.json.decode(raw), api_version, kind)
            return
        api_version, kind = header.api_version or api_version, header.kind or kind
        if kind.endswith("List") and header.items:
            self._raw_items(origin, header.items, api_version, kind)
        elif known := _known(api_version, kind):
            try:
                obj = _decoder(known.struct).decode(raw)
            except msgspec.ValidationError:
                obj = _convert(origin, msgspec.json.decode(raw), known)
            self.add(origin, obj, known)
        else:
            self._skip(origin, msgspec.json.decode(raw), api_version, kind)

    def _raw_items(self, origin: Origin, items: Raw, api_version: str, kind: str) -> None:
        api_version, kind = _item_kind(api_version, kind)
        known = _known(api_version, kind)
        try:
            objects = _list_decoder(known.struct).decode(items) if known else None
        except msgspec.ValidationError:
            objects = None  # Somewhere in there: look at each for itself.
        if known and objects is not None:
            for i, obj in enumerate(objects):
                self.add(origin._replace(item=i), obj, known)
            return
        try:
            raws = _RAWS.decode(items)
        except msgspec.ValidationError:
            raise ManifestError(f"{origin}, items: must be a list") from None
        for i, raw in enumerate(raws or ()):
            self.raw_document(origin._replace(item=i), raw, api_version, kind)

    def document(
        self, origin: Origin, document: object, api_version: str = "", kind: str = ""
    ) -> None:
        """Take in a parsed document, which may be a list of others."""
        if not isinstance(document, Mapping):
            raise ManifestError(f"{origin}: {_not_an_object(document)}")
        api_version = _text(origin, document, "apiVersion") or api_version
        kind = _text(origin, document, "kind") or kind
        items = document.get("items")
        if kind.endswith("List") and items is not None:
            if not isinstance(items, list | tuple):
                raise ManifestError(f"{origin}, items: must be a list, is {shown(items)}")
            inherited = _item_kind(api_version, kind)
            for i, item in enumerate(items):
                self.document(origin._replace(item=i), item, *inherited)
        elif known := _known(api_version, kind):
            self.add(origin, _convert(origin, document, known), known)
        else:
            self._skip(origin, document, api_version, kind)

    def _skip(
        self, origin: Origin, document: Mapping[str, Any], api_version: str, kind: str
    ) -> None:
        if not isinstance(document, Mapping):
            raise ManifestError(f"{origin}: {_not_an_object(document)}")
        if not kind:
            raise ManifestError(f'{origin}, kind: is missing; write for example "kind: Pod"')
        if not api_version:
            hint = f"; write {READ[kind].api_version}" if kind in READ else ""
            raise ManifestError(f"{origin}, {_who(kind, document)}, apiVersion: is missing{hint}")
        if _is_outdated(api_version, kind):
            hint = f"write {READ[kind].api_version}"
            who = _who(kind, document)
            raise ManifestError(f"{origin}, {who}, apiVersion: {api_version} is not read; {hint}")
        if not kind.endswith("List"):  # A list without items is just empty.
            self.manifest.skipped[f"{api_version} {kind}"] += 1

    def add(self, origin: Origin, obj: KubeObject, kind: Kind) -> None:
        """Check an object and keep it."""
        if not obj.kind or not obj.api_version:
            obj = structs.replace(obj, kind=kind.name, api_version=kind.api_version)
        obj = self._named(origin, obj, kind)
        meta = obj.metadata
        place = (meta.namespace or "default") if kind.namespaced else ""
        if fault := fault_of(obj):
            raise _complaint(origin, _who(kind.name, dump(obj)), *fault)
        first = self._origins.setdefault((kind.name, place, meta.name), origin)
        if first is not origin:
            who = f"{kind.name} {f'{place}/' if place else ''}{meta.name}"
            raise ManifestError(f"{origin}, {who}: is already defined in {first}")
        workload = kind.name in WORKLOADS
        (self.manifest.workloads if workload else self.manifest.objects).append(obj)

    def _named(self, origin: Origin, obj: KubeObject, kind: Kind) -> KubeObject:
        meta = obj.metadata
        if not f"{meta.namespace}{meta.name}{meta.generate_name}".isprintable():
            # It would reach a terminal, and might steer it.
            what = f"{origin}, {kind.name}, metadata.name: {shown(meta.name)}"
            raise ManifestError(f"{what} holds characters that cannot be printed")
        if meta.name:
            return obj
        if not meta.generate_name:
            raise ManifestError(f"{origin}, {kind.name}, metadata.name: is missing")
        key = f"{kind.name}/{meta.namespace}/{meta.generate_name}"
        self._generated[key] += 1
        name = f"{meta.generate_name}{self._generated[key]:05}"
        return structs.replace(obj, metadata=structs.replace(meta, name=name))


class _Whole(_Reading):
    """Keeps whole objects, whatever their kind."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, Any]]] = []

    def raw_document(self, origin: Origin, raw: Raw, api_version: str = "", kind: str = "") -> None:
        """Take in a JSON text."""
        self.document(origin, msgspec.json.decode(raw), api_version, kind)

    def document(
        self, origin: Origin, document: object, api_version: str = "", kind: str = ""
    ) -> None:
        """Take in a parsed document, which may be a list of others."""
        if isinstance(document, Mapping) and "items" not in document:
            api_version = _text(origin, document, "apiVersion") or api_version
            kind = _text(origin, document, "kind") or kind
            self._skip(origin, document, api_version, kind)  # For its complaints.
            self.found.append(
                (str(origin), {**_tidy(document), "apiVersion": api_version, "kind": kind})
            )
        else:
            super().document(origin, document, api_version, kind)


def _known(api_version: str, kind: str) -> Kind | None:
    known = READ.get(kind)
    return known if known and known.api_version == api_version else None


def _is_outdated(api_version: str, kind: str) -> bool:
    """Whether this is a kind that is read, in a version that is not: to skip it would surprise.

    Others have kinds of the same name, in groups of their own: Knative's Service, Volcano's Job.
    """
    known = READ.get(kind)
    if known is None or known.api_version == api_version:
        return False
    group = api_version.rpartition("/")[0]
    return group == known.group or (group == "extensions" and known.group == "apps")


def _item_kind(api_version: str, kind: str) -> tuple[str, str]:
    """What the items of a list are that do not say so themselves."""
    return (api_version, kind.removesuffix("List")) if kind != "List" else ("", "")


def _convert(origin: Origin, document: Mapping[str, Any], kind: Kind) -> KubeObject:
    try:
        return msgspec.convert(document, kind.struct)
    except msgspec.ValidationError:
        tidy = _tidy(document)  # Few documents need it, so it waits until one does.
    try:
        return msgspec.convert(tidy, kind.struct)
    except msgspec.ValidationError as error:
        raise _complaint(origin, _who(kind.name, tidy), *_fault(str(error), tidy)) from None


_MAPS_OF_TEXT = {"labels", "annotations", "matchLabels", "nodeSelector", "parameters"}
_MAPS_OF_QUANTITIES = {"requests", "limits", "overhead", "allocatedResources"}


def _tidy(node: Any, inside: object = "") -> Any:
    """A null is an absent field or, inside a map, an empty value; keys of maps are text."""
    if isinstance(node, list | tuple):
        return [_tidy(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    empty = "" if inside in _MAPS_OF_TEXT else 0 if inside in _MAPS_OF_QUANTITIES else None
    tidy = {_key(key): empty if each is None else _tidy(each, key) for key, each in node.items()}
    return {key: each for key, each in tidy.items() if each is not None}


def _key(key: object) -> str:
    return key if isinstance(key, str) else json.dumps(key, default=str)


# Complaints -------------------------------------------------------------------------------------


def _text(origin: Origin, document: Mapping[str, Any], name: str) -> str:
    text = document.get(name)
    if text is not None and not isinstance(text, str):
        raise ManifestError(f"{origin}, {name}: must be text, is {shown(text)}")
    return text or ""


def _who(kind: str, document: Mapping[str, Any]) -> str:
    meta = document.get("metadata")
    meta = meta if isinstance(meta, Mapping) else {}
    name = meta.get("name") or meta.get("generateName")
    if not isinstance(name, str):
        return kind
    namespaced = kind not in READ or READ[kind].namespaced
    place = (meta.get("namespace") or "default") if namespaced else ""
    return f"{kind} {place}/{name}" if isinstance(place, str) and place else f"{kind} {name}"


def _complaint(origin: Origin, who: str, path: str, problem: str) -> ManifestError:
    return ManifestError(f"{origin}, {who}{f', {path}' if path else ''}: {problem}")


_FAULT = re.compile(r"(?P<rule>.*?)(?: - at (?:`key` in )?`\$(?P<path>.*)`)?")
_FIELD = re.compile(r"Object (?P<what>missing required|contains unknown) field `(?P<name>\w+)`")
_RULE = re.compile(r"Expected `(?P<types>[^`]+)`(?P<bound>[^,]*)(?:, got `(?P<got>\w+)`)?")
_STEP = re.compile(r"\.(?P<field>[^.\[]+)|\[(?:(?P<index>\d+)|\.\.\.)\]")
_WORDS = {
    "str": "text",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "object": "a mapping",
    "array": "a list",
}


def _fault(error: str, document: Any) -> tuple[str, str]:
    """msgspec's complaint about a document as a field path and a problem in our words."""
    fault = _FAULT.fullmatch(error)
    if fault and (lacking := _FIELD.fullmatch(fault["rule"])):
        path, _ = _find(document, fault["path"] or "", None)
        problem = "is missing" if lacking["what"].startswith("missing") else "is not a known field"
        return admission.join_path(path, lacking["name"]), problem
    rule = _RULE.match(fault["rule"]) if fault else None
    if fault is None or rule is None:
        return "", error
    path, culprit = _find(document, fault["path"] or "", rule["got"])
    types = rule["types"].split(" | ")
    if {"str", "int", "float"} <= set(types):
        expected = "a quantity"
    else:
        expected = " or ".join(_WORDS.get(each, each) for each in types if each != "null")
    hint = ""
    if types[0] == "str" and isinstance(culprit, bool | int | float):
        hint = "; put it in quotes"
    return path, f"must be {expected}{rule['bound']}, is {shown(culprit)}{hint}"


def _find(document: Any, path: str, got: str | None) -> tuple[str, Any]:
    """Follow msgspec's path, which does not name the keys of maps, to the value at its end."""
    found, node = "", document
    for step in _STEP.finditer(path):
        key: Any = step["field"]
        if step["index"]:
            key = int(step["index"])
        elif key is None:
            key = next((k for k, v in node.items() if _type_name(v) == got), None)
            if key is None:
                break
        found = f"{found}[{key}]" if isinstance(key, int) else admission.join_path(found, str(key))
        node = node[key]
    return found, node


def _type_name(value: object) -> str:
    name = type(value).__name__
    return {"dict": "object", "list": "array"}.get(name, name)


def shown(value: object) -> str:
    """A value as a complaint shows it, cut short."""
    text = json.dumps(value, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _not_an_object(document: object) -> str:
    if isinstance(document, list):
        return "is a list; put it under `items:` of a document with `kind: List`"
    return f"must be an object with apiVersion and kind, is {shown(document)}"
