"""Checks of documents from files: fields that Kubernetes does not know, and its rules of validity.

Many objects of a large file differ in their metadata only, so the rest is checked once per text.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec
from msgspec import Raw, Struct

from moorage.api import validation
from moorage.api.manifests import strict
from moorage.api.manifests.errors import Problem
from moorage.api.validation import names

# Kinds of which there are many, and whose rules do not read the metadata.
_MANY = frozenset({"Pod", "Node", "ReplicaSet", "Deployment", "StatefulSet", "DaemonSet", "Job"})
_READS_LABELS = b"matchLabelKeys"


class _Metadata(Struct, gc=False):
    metadata: Raw = Raw(b"{}")


_METADATA = msgspec.json.Decoder(_Metadata)


class Findings(NamedTuple):
    """What `--validate` decides about, and what is refused always."""

    suspects: list[Problem]
    errors: list[Problem]


class DocumentChecks:
    """Checks documents, and remembers which texts are valid."""

    def __init__(self) -> None:
        self._valid: set[bytes] = set()

    def of_data(self, kind: str, document: Mapping[str, Any]) -> Findings:
        """The findings in a parsed document."""
        key = b""
        if kind in _MANY:
            rest = {key: value for key, value in document.items() if key != "metadata"}
            key = _key(msgspec.json.encode(rest))
        return self._check(kind, document, key, [])

    def of_json(self, kind: str, raw: Raw) -> Findings:
        """The findings in a JSON text, which may give a field twice."""
        text = bytes(raw)
        metadata, key = b"", b""
        if kind in _MANY:
            metadata = bytes(_METADATA.decode(raw).metadata)
            key = _key(text.replace(metadata, b"", 1))
        if key in self._valid:
            meta, repeated = _decode(metadata)
            document = {"metadata": meta}
        else:
            document, repeated = _decode(text)
        return self._check(kind, document, key, repeated)

    def _check(
        self, kind: str, document: Mapping[str, Any], key: bytes, suspects: list[Problem]
    ) -> Findings:
        meta = document.get("metadata")
        meta = meta if isinstance(meta, Mapping) else {}
        # A name is generated for an object with a prefix; one without either is refused elsewhere.
        name = meta.get("name")
        named = meta if name else {**meta, "name": f"{meta.get('generateName') or ''}x"}
        errors = list(names.metadata(kind, named))
        if key in self._valid:
            suspects += strict.field_errors("ObjectMeta", meta, "metadata")
        else:
            suspects += strict.field_errors(kind, document)
            errors += validation.validate_spec(kind, document)
            if key and not suspects and not errors:
                self._valid.add(key)
        return Findings(suspects, [(each.field, each.message) for each in errors])


def _decode(text: bytes) -> tuple[Any, list[Problem]]:
    """The value of a JSON text, and the fields that it gives twice."""
    value = msgspec.json.decode(text)
    if msgspec.json.encode(value) == msgspec.json.format(text, indent=-1):
        return value, []  # Nothing is lost; ten times as fast as looking at each object.
    repeated: list[Problem] = []

    def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            repeated.extend(
                ("", f'duplicate field "{name}"') for name, count in counts.items() if count > 1
            )
        return found

    return json.loads(text, object_pairs_hook=collect), repeated


def _key(text: bytes) -> bytes:
    """What identifies a text; nothing if its rules read the metadata."""
    return b"" if _READS_LABELS in text else hashlib.blake2b(text, digest_size=16).digest()
