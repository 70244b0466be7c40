"""Request bodies: JSON or YAML bytes to values."""

from typing import Any

import msgspec

from moorage.api import documents
from moorage.api.documents import DocumentError
from moorage.cluster.status_errors import BadRequestError


def decode_json(body: bytes) -> Any:
    """The value of a JSON text."""
    try:
        return documents.decode_json(body)
    except DocumentError as error:
        raise BadRequestError(f"the body of the request is not JSON: {error.problem}") from None


def decode_yaml(body: bytes) -> Any:
    """The value of the only YAML document; keys and values are those that JSON has."""
    try:
        found = list(documents.parse_yaml(body.decode()))
    except UnicodeDecodeError:
        raise BadRequestError("the body of the request is not UTF-8") from None
    except DocumentError as error:
        line = "" if error.line is None else f"line {error.line}: "
        problem = f"the body of the request is not YAML: {line}{error.problem}"
        raise BadRequestError(problem) from None
    if len(found) > 1:
        raise BadRequestError(f"the body of the request has {len(found)} YAML documents, not one")
    # Through JSON, so that aliases become copies, and infinite numbers null.
    return documents.decode_json(msgspec.json.encode(found[0].value)) if found else None
