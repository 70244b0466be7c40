"""Content negotiation: the encoding and the form of a response, chosen from the Accept header."""

from functools import lru_cache
from typing import NamedTuple

from moorage.cluster.status_errors import NotAcceptableError
from moorage.serve.protobuf import envelope

JSON, YAML, PROTOBUF = "application/json", "application/yaml", envelope.MEDIA_TYPE
ENCODINGS = (JSON, YAML, PROTOBUF)
"""All encodings, the default first."""


class ResponseFormat(NamedTuple):
    """A form of the response and its encoding; `as_` is empty for plain objects."""

    as_: str = ""
    group: str = ""
    version: str = ""
    encoding: str = JSON

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}"

    @property
    def form(self) -> "ResponseFormat":
        """The form in JSON, to compare it with those that are offered."""
        return self._replace(encoding=JSON)


PLAIN = ResponseFormat()
TABLE, PARTIAL, PARTIAL_LIST = "Table", "PartialObjectMetadata", "PartialObjectMetadataList"
OBJECT_FORMATS = tuple(
    ResponseFormat(as_, "meta.k8s.io", version)
    for as_ in (TABLE, PARTIAL, PARTIAL_LIST)
    for version in ("v1", "v1beta1")
)
DISCOVERY_V2 = ResponseFormat("APIGroupDiscoveryList", "apidiscovery.k8s.io", "v2")
# Forms that only JSON and YAML have: cells of a table have no type.
_WITHOUT_PROTOBUF = (TABLE, DISCOVERY_V2.as_)


class _Clause(NamedTuple):
    media: str
    parameters: dict[str, str]

    @property
    def rank(self) -> tuple[float, bool, bool]:
        """The sort key: quality first, then exact types before wildcards."""
        try:
            quality = float(self.parameters.get("q", "1"))
        except ValueError:
            quality = 0.0
        return -quality, self.media.startswith("*/"), self.media.endswith("/*")

    def accepts(self, encoding: str) -> bool:
        return self.media in (encoding, "application/*", "*/*")


@lru_cache(maxsize=256)
def accepted_format(
    accept: str,
    offered: tuple[ResponseFormat, ...] = (),
    encodings: tuple[str, ...] = ENCODINGS,
) -> ResponseFormat:
    """The first offered format of an Accept header; plain objects are always offered.

    `encodings` are those of plain objects; custom resources have no protobuf. Raises
    NotAcceptableError.
    """
    if not accept:
        return PLAIN
    for clause in sorted(_clauses(accept), key=lambda clause: clause.rank):
        given = clause.parameters
        form = ResponseFormat(given.get("as", ""), given.get("g", ""), given.get("v", ""))
        for encoding in ENCODINGS:
            if not clause.accepts(encoding):
                continue
            if form == PLAIN:
                served = encoding in encodings
            else:
                served = form in offered
                served = served and not (encoding == PROTOBUF and form.as_ in _WITHOUT_PROTOBUF)
            if served:
                return form._replace(encoding=encoding)
    listed = ", ".join(ENCODINGS)
    raise NotAcceptableError(f"only the following media types are accepted: {listed}")


def status_encoding(accept: str) -> str:
    """The encoding of a Status and of other objects without another form; JSON if none fits."""
    try:
        return accepted_format(accept).encoding
    except NotAcceptableError:
        return JSON


def _clauses(accept: str) -> list[_Clause]:
    found = []
    for clause in accept.split(","):
        media, *parameters = (part.strip() for part in clause.split(";"))
        pairs = (part.split("=", 1) for part in parameters if "=" in part)
        found.append(_Clause(media.lower(), {key: value.strip('"') for key, value in pairs}))
    return found
