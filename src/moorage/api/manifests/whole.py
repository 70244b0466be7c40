"""Whole objects of any kind, for who keeps them as they are: the playground's store."""

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Raw

from moorage.api.manifests import decoding
from moorage.api.manifests.complaints import Origin
from moorage.api.manifests.reading import Reading, stated


class WholeReading(Reading):
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
            api_version = stated(origin, document, "apiVersion") or api_version
            kind = stated(origin, document, "kind") or kind
            self.skip(origin, document, api_version, kind)  # For its complaints.
            whole = {**decoding.tidy(document), "apiVersion": api_version, "kind": kind}
            self.found.append((str(origin), whole))
        else:
            super().document(origin, document, api_version, kind)
