"""JSON documents, one after the other or a line each, found but not yet read.

They stay text here, so that each goes straight into an object, without a dict in between: the dump
of a large cluster may have hundreds of megabytes.
"""

import re

import msgspec
from msgspec import Raw

from moorage.errors import ManifestError

_RAW = msgspec.json.Decoder(Raw)


class SyntaxFault(ManifestError):
    """Not JSON; it may still be YAML."""


def documents(source: str, data: bytes) -> list[Raw]:
    """The text of each document."""
    try:
        return _RAW.decode_lines(data)
    except msgspec.DecodeError as error:
        at = re.search(r" \(byte (\d+)\)$", str(error))
        reached = data[: int(at[1])] if at else data.rstrip()
        problem = str(error).removeprefix("JSON is malformed: ").removesuffix(at[0] if at else "")
        line = reached.count(b"\n") + 1
        raise SyntaxFault(f"{source}, line {line}: is not JSON: {problem}") from None
