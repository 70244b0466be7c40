"""The columns of Events, which have fields of two API versions: `v1`, then `events.k8s.io/v1`."""

from typing import Any

from moorage.api import timestamps
from moorage.controllers.objects import Object, value_at
from moorage.serve.rest.tables import cells
from moorage.serve.rest.tables.cells import UNKNOWN, number, text
from moorage.serve.rest.tables.column import TableColumn, text_column, wide


def _event_object(obj: Object) -> Any:
    return value_at(obj, "involvedObject") or value_at(obj, "regarding") or {}


def _event_object_name(obj: Object, _now: float) -> str:
    involved = _event_object(obj)
    return f"{text(involved, 'kind').lower()}/{text(involved, 'name')}"


def _event_ages(obj: Object, now: float) -> tuple[str, str]:
    """How long ago an event was seen first and last."""
    first = value_at(obj, "firstTimestamp") or value_at(obj, "deprecatedFirstTimestamp")
    last = value_at(obj, "lastTimestamp") or value_at(obj, "deprecatedLastTimestamp")
    last = value_at(obj, "series", "lastObservedTime") or last
    first_age = cells.age(first or value_at(obj, "eventTime"), now)
    last_age = cells.age(last, now) if timestamps.to_seconds(last) else first_age
    return first_age if first_age != UNKNOWN else last_age, last_age


def _event_count(obj: Object, _now: float) -> int:
    count = number(obj, "count") or number(obj, "deprecatedCount") or 1
    return number(obj, "series", "count") or count


def _event_source(obj: Object, _now: float) -> str:
    source = value_at(obj, "source") or value_at(obj, "deprecatedSource") or {}
    reporter = text(obj, "reportingComponent") or text(obj, "reportingController")
    parts = [text(source, "component", default=reporter), text(source, "host")]
    return ", ".join(part for part in parts if part)


def _event_message(obj: Object, _now: float) -> str:
    return (text(obj, "message") or text(obj, "note")).strip()


# Events alone have their name in a wide column at the end.
EVENT_COLUMNS = (
    TableColumn("Last Seen", lambda obj, now: _event_ages(obj, now)[1]),
    text_column("Type", "type"),
    text_column("Reason", "reason"),
    TableColumn("Object", _event_object_name),
    wide(TableColumn("Subobject", lambda obj, now: text(_event_object(obj), "fieldPath"))),
    wide(TableColumn("Source", _event_source)),
    TableColumn("Message", _event_message),
    wide(TableColumn("First Seen", lambda obj, now: _event_ages(obj, now)[0])),
    wide(TableColumn("Count", _event_count)),
    wide(text_column("Name", "metadata.name")),
)
