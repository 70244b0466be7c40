"""Documents, and lists of them -> validated objects of the kinds that they state."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec
from msgspec import UNSET, Raw, structs

from moorage.api import kinds
from moorage.api.kinds import READ, WORKLOADS, Kind
from moorage.api.manifests import errors, strict, unread_fields, unread_workloads
from moorage.api.manifests.checks import DocumentChecks, Findings
from moorage.api.manifests.errors import Origin
from moorage.api.manifests.json_parts import HEADER, Entry, JsonList
from moorage.api.manifests.shared_parts import SharedParts
from moorage.api.manifests.unread_fields import ROLLED_OUT
from moorage.api.manifests.unread_workloads import UnreadWorkload
from moorage.api.meta import KubeObject
from moorage.api.validation import guards
from moorage.errors import ManifestError

T = TypeVar("T", bound=KubeObject)
Validate = Literal["strict", "warn", "ignore"]

_ROLLED_OUT_STRUCTS = tuple(READ[kind].struct for kind in ROLLED_OUT)


@cache
def _decoder(struct: type[KubeObject]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(struct)


def _of_kind(raw: Raw, known: Kind, api_version: str, kind: str) -> KubeObject | None:
    """The object, if its text is of this kind and is valid; its list states what it does not."""
    try:
        obj: KubeObject = _decoder(known.struct).decode(raw)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    is_same = (obj.kind or kind) == known.name and (obj.api_version or api_version) == (
        known.api_version
    )
    return obj if is_same else None


# A file that describes what happens to a cluster.
SCENARIO = ("moorage.dev/v1", "Scenario")
NOT_AN_OBJECT = "is no object of a cluster; run it with `moorage simulate scenario FILE`"


@dataclass(slots=True)
class Manifest:
    """The objects that were read, in order, and how many of other kinds were skipped.

    `workloads` are objects that no scheduler reads, because controllers make pods or nodes from
    them: deployments, jobs, node pools. `moorage.expansion` does that, and takes `everything`.
    """

    objects: list[KubeObject] = field(default_factory=list)
    workloads: list[KubeObject] = field(default_factory=list)
    skipped: Counter[str] = field(default_factory=Counter)
    # Those of them that make pods.
    unread_workloads: list[UnreadWorkload] = field(default_factory=list)
    # What is suspicious and was accepted; what was left out, and why.
    warnings: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    # Where each object was read: by kind, namespace and name.
    origins: dict[tuple[str, str, str], Origin] = field(default_factory=dict)

    @property
    def everything(self) -> list[KubeObject]:
        return [*self.objects, *self.workloads]

    def location(self, obj: KubeObject) -> str:
        """Where an object was read, and which one it is."""
        kind = READ[type(obj).__name__]
        namespace = (obj.namespace or "default") if kind.namespaced else ""
        where = self.origins.get((kind.name, namespace, obj.name))
        name = f"{kind.name} {f'{namespace}/' if namespace else ''}{obj.name}"
        return name if where is None else f"{where}, {name}"


class DocumentReader:
    """Reads documents, as JSON text or as plain data, into a manifest.

    Unknown and duplicate fields are `problems`, or with `warn` the manifest's warnings. Violations
    of Kubernetes' rules are problems. With `ignore` neither is looked for, except for values that
    would change decisions silently.
    """

    skips_scenarios = False

    def __init__(self, validate: Validate = "ignore") -> None:
        self.manifest = Manifest()
        self.problems: list[str] = []
        self._validate = validate
        self._generated: Counter[str] = Counter()
        self._uids: dict[str, tuple[str, str, str]] = {}  # Kind, namespace and name by UID.
        self._checks = DocumentChecks()
        self._parts = SharedParts()
        # The kind of the last object: most objects of a dump are of the same kind.
        self._last_kind: Kind | None = None

    def suspect(self, problem: str) -> None:
        """Record a mistake that leaves the object readable."""
        if self._validate == "strict":
            self.problems.append(problem)
        elif self._validate == "warn":
            self.manifest.warnings.append(problem)

    def _is_valid(self, origin: Origin, subject: str, findings: Findings) -> bool:
        """Record what was found; False if an API server would refuse the object."""
        for suspect in findings.suspects:
            self.suspect(str(errors.invalid_field(origin, subject, suspect)))
        for error in findings.errors:
            self.problems.append(str(errors.invalid_field(origin, subject, error)))
        return not findings.errors

    def _converted(
        self, origin: Origin, document: Mapping[str, Any], kind: Kind
    ) -> KubeObject | None:
        """The object; None if it cannot be decoded because of a field that is not known."""
        try:
            return _convert(origin, document, kind.struct, kind.name)
        except ManifestError:
            unknown = list(strict.field_errors(kind.name, document))
            if self._validate != "strict" or not unknown:
                raise
            self._is_valid(origin, errors.subject(kind.name, document), Findings(unknown, []))
            return None

    def _check(self, origin: Origin, document: Mapping[str, Any], kind: str) -> bool:
        if self._validate == "ignore" or strict.is_stored(document):
            return True
        findings = self._checks.of_data(kind, document)
        return self._is_valid(origin, errors.subject(kind, document), findings)

    def keep(self, raw: Raw, api_version: str = "", kind: str = "") -> Entry:
        """What is needed of a JSON text in the end: its object, or the text for checks and errors.

        Version and kind are those that its list states.
        """
        obj = self._decoded(raw, api_version, kind)
        if obj is None or (not obj.uid and self._needs_text(obj)):
            return raw.copy()
        return self._parts.share(obj)

    def _decoded(self, raw: Raw, api_version: str, kind: str) -> KubeObject | None:
        """The object, unless the text has errors or is of no kind that is read."""
        last = self._last_kind
        if last is not None and (obj := _of_kind(raw, last, api_version, kind)) is not None:
            return obj
        try:
            header = HEADER.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None
        known = kinds.known(header.api_version or api_version, header.kind or kind)
        if known is None or known is last:
            return None
        self._last_kind = known
        return _of_kind(raw, known, api_version, kind)

    def _needs_text(self, obj: KubeObject) -> bool:
        """Whether an object that no API server has stored is made with more than its struct."""
        return self._validate != "ignore" or isinstance(obj, _ROLLED_OUT_STRUCTS)

    def read_kept(self, origin: Origin, document: object) -> None:
        """Read a document: what `keep` returned, a list of that, or plain data."""
        if isinstance(document, JsonList):
            api_version, kind = _item_kind(document.api_version, document.kind)
            for i, item in enumerate(document.items):
                if isinstance(item, Raw):
                    self.read_raw(origin.of_item(i), item, api_version, kind)
                else:
                    self.add(origin.of_item(i), item, READ[type(item).__name__])
        elif isinstance(document, Raw):
            self.read_raw(origin, document)
        elif isinstance(document, KubeObject):
            self.add(origin, document, READ[type(document).__name__])
        else:
            self.read(origin, document)

    def read_raw(self, origin: Origin, raw: Raw, api_version: str = "", kind: str = "") -> None:
        """Read a JSON text."""
        if (obj := self._decoded(raw, api_version, kind)) is not None:
            self._add_decoded(origin, raw, obj, READ[type(obj).__name__])
            return
        try:
            header = HEADER.decode(raw)
        except msgspec.ValidationError:
            self.read(origin, msgspec.json.decode(raw), api_version, kind)
            return
        api_version, kind = header.api_version or api_version, header.kind or kind
        if kind.endswith("List") and header.items is not UNSET:
            inherited = _item_kind(api_version, kind)
            for i, item in enumerate(header.items or []):
                self.read_raw(origin.of_item(i), item, *inherited)
        elif known := kinds.known(api_version, kind):
            obj = _convert(origin, msgspec.json.decode(raw), known.struct, known.name)
            self._add_decoded(origin, raw, obj, known)
        else:
            self._skip(origin, msgspec.json.decode(raw), api_version, kind)

    def _add_decoded(self, origin: Origin, raw: Raw, obj: KubeObject, kind: Kind) -> None:
        """Check the JSON text of an object, unless an API server stored it, and add the object."""
        if not obj.uid:
            if self._validate != "ignore":
                findings = self._checks.of_json(kind.name, raw)
                found = findings.suspects or findings.errors
                subject = errors.subject(kind.name, msgspec.json.decode(raw)) if found else ""
                if not self._is_valid(origin, subject, findings):
                    return
            if kind.name in ROLLED_OUT:
                obj = unread_fields.with_digest(obj, msgspec.json.decode(raw))
        self.add(origin, self._parts.share(obj), kind)

    def read(self, origin: Origin, document: object, api_version: str = "", kind: str = "") -> None:
        """Read a parsed document, which may be a list of others."""
        if not isinstance(document, Mapping):
            raise errors.not_an_object(origin, document)
        api_version = _stated(origin, document, "apiVersion") or api_version
        kind = _stated(origin, document, "kind") or kind
        items = document.get("items")
        if kind.endswith("List") and items is not None:
            if not isinstance(items, list | tuple):
                shown = errors.shown(items)
                raise ManifestError(f"{origin}, items: must be a list, is {shown}")
            inherited = _item_kind(api_version, kind)
            for i, item in enumerate(items):
                self.read(origin.of_item(i), item, *inherited)
        elif known := kinds.known(api_version, kind):
            obj = self._converted(origin, document, known)
            if obj is not None and self._check(origin, document, known.name):
                if known.name in ROLLED_OUT and not obj.uid:
                    obj = unread_fields.with_digest(obj, document)
                self.add(origin, self._parts.share(obj), known)
        else:
            self._skip(origin, document, api_version, kind)

    def _skip(
        self, origin: Origin, document: Mapping[str, Any], api_version: str, kind: str
    ) -> None:
        """Count an object of a kind that is not read; raise if that looks like a mistake."""
        if not isinstance(document, Mapping):
            raise errors.not_an_object(origin, document)
        if not kind:
            raise ManifestError(f'{origin}, kind: is missing; write for example "kind: Pod"')
        subject = errors.subject(kind, document)
        if not api_version:
            hint = f"; write {READ[kind].api_version}" if kind in READ else ""
            raise ManifestError(f"{origin}, {subject}, apiVersion: is missing{hint}")
        if kinds.is_outdated(api_version, kind):
            problem = f"{api_version} is not read; write {READ[kind].api_version}"
            raise ManifestError(f"{origin}, {subject}, apiVersion: {problem}")
        if (kind_meant := kinds.meant(api_version, kind)) is not None:
            write = f"write apiVersion: {kind_meant.api_version}, kind: {kind_meant.name}"
            problem = f'no matches for kind "{kind}" in version "{api_version}"'
            raise ManifestError(f"{origin}, {subject}: {problem}; {write}")
        if (api_version, kind) == SCENARIO:
            if self.skips_scenarios:
                return
            raise ManifestError(f"{origin}, {subject}: {NOT_AN_OBJECT}")
        if not kind.endswith("List"):  # A list without items is empty.
            self.manifest.skipped[f"{api_version} {kind}"] += 1
            if (found := unread_workloads.find(api_version, kind, document)) is not None:
                self.manifest.unread_workloads.append(found)

    def add(self, origin: Origin, obj: KubeObject, kind: Kind) -> None:
        """Validate an object and add it to the manifest."""
        if not obj.kind or not obj.api_version:
            obj = structs.replace(obj, kind=kind.name, api_version=kind.api_version)
        obj = self._with_name(origin, obj, kind)
        meta = obj.metadata
        namespace = (meta.namespace or "default") if kind.namespaced else ""
        if error := guards.field_error(obj):
            subject = errors.subject(kind.name, dump(obj))
            raise errors.invalid_field(origin, subject, (error.field, error.message))
        self._check_new(origin, (kind.name, namespace, meta.name), meta.uid)
        workload = kind.name in WORKLOADS
        (self.manifest.workloads if workload else self.manifest.objects).append(obj)

    def _check_new(self, origin: Origin, key: tuple[str, str, str], uid: str) -> None:
        """Reject a second object of the same kind and name, or of the same UID."""
        origins = self.manifest.origins
        if (first := origins.setdefault(key, origin)) is not origin:
            raise ManifestError(f"{origin}, {_named(key)}: is already defined in {first}")
        if uid and (other := self._uids.setdefault(uid, key)) is not key:
            owner = f"{_named(other)} ({origins[other]})"
            problem = f"metadata.uid: {errors.shown(uid)} is also the UID of {owner}"
            raise ManifestError(f"{origin}, {_named(key)}, {problem}")

    def _with_name(self, origin: Origin, obj: KubeObject, kind: Kind) -> KubeObject:
        meta = obj.metadata
        if not f"{meta.namespace}{meta.name}{meta.generate_name}".isprintable():
            # Control characters could change the terminal on which the name is shown.
            path = f"{origin}, {kind.name}, metadata.name: {errors.shown(meta.name)}"
            raise ManifestError(f"{path} holds characters that cannot be printed")
        if meta.name:
            return obj
        if not meta.generate_name:
            raise ManifestError(f"{origin}, {kind.name}, metadata.name: is missing")
        key = f"{kind.name}/{meta.namespace}/{meta.generate_name}"
        self._generated[key] += 1
        name = f"{meta.generate_name}{self._generated[key]:05}"
        return structs.replace(obj, metadata=structs.replace(meta, name=name))


class WholeDocumentReader(DocumentReader):
    """Keeps whole documents of all kinds, with their origins: for the store of `serve`."""

    skips_scenarios = True  # The objects beside one are the cluster that it begins with.

    def __init__(self, validate: Validate = "ignore") -> None:
        super().__init__(validate)
        self.found: list[tuple[str, dict[str, Any]]] = []

    def keep(self, raw: Raw, api_version: str = "", kind: str = "") -> Entry:
        """The text: all fields are needed."""
        return raw.copy()

    def read_raw(self, origin: Origin, raw: Raw, api_version: str = "", kind: str = "") -> None:
        """Read a JSON text."""
        self.read(origin, msgspec.json.decode(raw), api_version, kind)

    def read(self, origin: Origin, document: object, api_version: str = "", kind: str = "") -> None:
        """Read a parsed document, which may be a list of others."""
        if isinstance(document, Mapping) and "items" not in document:
            api_version = _stated(origin, document, "apiVersion") or api_version
            kind = _stated(origin, document, "kind") or kind
            known = kinds.known(api_version, kind)
            if known is None:
                self._skip(origin, document, api_version, kind)
                _convert(origin, document, KubeObject, kind)  # For the errors in its metadata.
            elif (obj := self._converted(origin, document, known)) is not None:
                self._check(origin, document, kind)
                if obj.name:
                    namespace = (obj.namespace or "default") if known.namespaced else ""
                    self._check_new(origin, (kind, namespace, obj.name), obj.uid)
            whole = {**_normalize(document), "apiVersion": api_version, "kind": kind}
            self.found.append((str(origin), whole))
        else:
            super().read(origin, document, api_version, kind)


def _named(key: tuple[str, str, str]) -> str:
    kind, namespace, name = key
    return f"{kind} {f'{namespace}/' if namespace else ''}{name}"


def _stated(origin: Origin, document: Mapping[str, Any], name: str) -> str:
    """The text in a field of a document, empty if the field is absent."""
    text = document.get(name)
    if text is not None and not isinstance(text, str):
        raise ManifestError(f"{origin}, {name}: must be text, is {errors.shown(text)}")
    return text or ""


def _item_kind(api_version: str, kind: str) -> tuple[str, str]:
    """The version and kind of items of a list that do not state their own."""
    return (api_version, kind.removesuffix("List")) if kind != "List" else ("", "")


def decode(document: Mapping[str, Any], struct: type[T], where: str) -> T:
    """A document as an object of a kind that is not Kubernetes'; errors name the field."""
    plain = _normalize(document)
    try:
        return msgspec.convert(plain, struct)
    except msgspec.ValidationError as error:
        meta = plain.get("metadata")
        name = meta.get("name", "") if isinstance(meta, Mapping) else ""
        subject = f"{struct.__name__} {name}".rstrip()
        translated = errors.translate(str(error), plain)
        raise errors.invalid_field(Origin(where), subject, translated) from None


def _convert(
    origin: Origin, document: Mapping[str, Any], struct: type[KubeObject], kind: str
) -> KubeObject:
    try:
        return msgspec.convert(document, struct)
    except msgspec.ValidationError:
        plain = _normalize(document)  # Slow, and few documents need it.
    try:
        return msgspec.convert(plain, struct)
    except msgspec.ValidationError as error:
        translated = errors.translate(str(error), plain)
        raise errors.invalid_field(origin, errors.subject(kind, plain), translated) from None


def dump(obj: KubeObject) -> dict[str, Any]:
    """An object as plain data, without the fields that have their default."""
    document: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(obj))
    return document


_TEXT_MAPS = {"labels", "annotations", "matchLabels", "nodeSelector", "parameters"}
_QUANTITY_MAPS = {"requests", "limits", "overhead", "allocatedResources"}


def _normalize(node: Any, field_name: object = "") -> Any:
    """Drop nulls, or make them the empty value inside a map; make keys of maps text."""
    if isinstance(node, list | tuple):
        return [_normalize(each) for each in node]
    if not isinstance(node, Mapping):
        return node
    empty = "" if field_name in _TEXT_MAPS else 0 if field_name in _QUANTITY_MAPS else None
    plain = {
        key if isinstance(key, str) else json.dumps(key, default=str): (
            empty if each is None else _normalize(each, key)
        )
        for key, each in node.items()
    }
    return {key: each for key, each in plain.items() if each is not None}
