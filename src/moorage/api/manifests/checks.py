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
        rest = {key: value for key, value in document.items() if key != "metadata"}
        text = msgspec.json.encode(rest) if kind in _MANY else b""
        return self._check(kind, document, text, [])

    def of_json(self, kind: str, raw: Raw) -> Findings:
        """The findings in a JSON text, which may give a field twice."""
        metadata = bytes(_METADATA.decode(raw).metadata)
        text = bytes(raw).replace(metadata, b"", 1) if kind in _MANY else b""
        repeated: list[Problem] = []

        def collect(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
            found = dict(pairs)
            if len(found) < len(pairs):
                counts = Counter(name for name, _ in pairs)
                repeated.extend(
                    ("", f'duplicate field "{name}"') for name, count in counts.items() if count > 1
                )
            return found

        if text and self._digest(text) in self._valid:
            document = {"metadata": json.loads(metadata, object_pairs_hook=collect)}
        else:
            document = json.loads(bytes(raw), object_pairs_hook=collect)
        return self._check(kind, document, text, repeated)

    def _digest(self, text: bytes) -> bytes:
        return hashlib.blake2b(text, digest_size=16).digest()

    def _check(
        self, kind: str, document: Mapping[str, Any], text: bytes, suspects: list[Problem]
    ) -> Findings:
        digest = self._digest(text) if text and _READS_LABELS not in text else b""
        meta = document.get("metadata")
        meta = meta if isinstance(meta, Mapping) else {}
        # A name is generated for an object with a prefix; one without either is refused elsewhere.
        name = meta.get("name") or f"{meta.get('generateName') or ''}x"
        errors = list(names.metadata(kind, {**meta, "name": name}))
        if digest in self._valid:
            suspects += strict.field_errors("ObjectMeta", meta, "metadata")
            return Findings(suspects, [(each.field, each.message) for each in errors])
        suspects += strict.field_errors(kind, document)
        errors += validation.validate_spec(kind, document)
        if digest and not suspects and not errors:
            self._valid.add(digest)
        return Findings(suspects, [(each.field, each.message) for each in errors])
