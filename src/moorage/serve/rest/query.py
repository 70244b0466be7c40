"""What the part of a URL behind `?` says."""

from collections.abc import Mapping
from typing import NamedTuple

from moorage.serve.refusals import BadRequest, Invalid

_INT64 = 2**63


class Reading(NamedTuple):
    """How a collection is to be read."""

    label_selector: str
    field_selector: str
    limit: int
    token: str
    version: int | None
    match: str
    watch: bool
    bookmarks: bool
    initial_events: bool | None
    timeout_seconds: float | None
    include_object: str


def read(query: Mapping[str, str]) -> Reading:
    """The options of a list or a watch; raises BadRequest."""
    reading = Reading(
        label_selector=query.get("labelSelector", ""),
        field_selector=query.get("fieldSelector", ""),
        limit=_integer(query, "limit"),
        token=query.get("continue", ""),
        version=_version(query),
        match=query.get("resourceVersionMatch", ""),
        watch=flag(query, "watch"),
        bookmarks=flag(query, "allowWatchBookmarks"),
        initial_events=flag(query, "sendInitialEvents") if "sendInitialEvents" in query else None,
        timeout_seconds=_integer(query, "timeoutSeconds") if query.get("timeoutSeconds") else None,
        include_object=query.get("includeObject", "Metadata") or "Metadata",
    )
    _check(reading)
    return reading


def dry_run(query: Mapping[str, str]) -> bool:
    """Whether nothing is to be kept; raises Invalid for what is not understood."""
    value = query.get("dryRun", "")
    if value not in ("", "All"):
        raise Invalid(f'dryRun: Unsupported value: "{value[:60]}": supported values: "All"')
    return value == "All"


def flag(query: Mapping[str, str], name: str) -> bool:
    """A yes or no; as with an API server, a name without a value is a yes."""
    if name not in query:
        return False
    return query[name].lower() not in ("0", "f", "false")


def _check(reading: Reading) -> None:
    if reading.match not in ("", "Exact", "NotOlderThan"):
        raise BadRequest(f'resourceVersionMatch: Unsupported value: "{reading.match[:60]}"')
    if reading.match and reading.version is None and reading.initial_events is None:
        raise BadRequest(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless "
            "resourceVersion is provided"
        )
    if reading.match == "Exact" and (reading.watch or reading.version == 0):
        raise BadRequest(
            "resourceVersionMatch: Forbidden: an exact version is for lists, and not 0"
        )
    if reading.initial_events is not None and (
        not reading.watch or reading.match != "NotOlderThan"
    ):
        raise BadRequest(
            "sendInitialEvents: Forbidden: it is for watches with resourceVersionMatch=NotOlderThan"
        )
    if reading.include_object not in ("None", "Metadata", "Object"):
        raise BadRequest(f'includeObject: Unsupported value: "{reading.include_object[:60]}"')
    if reading.token and reading.version:
        raise BadRequest("specifying resource version is not allowed when using continue")


def _integer(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < _INT64):
        raise BadRequest(f"{name}: has to be a whole number, is {text[:60]!r}")
    return int(text)


def _version(query: Mapping[str, str]) -> int | None:
    text = query.get("resourceVersion", "")
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) < 20 and int(text) < _INT64):
        raise BadRequest(f'resourceVersion: Invalid value: "{text[:60]}"')
    return int(text)
