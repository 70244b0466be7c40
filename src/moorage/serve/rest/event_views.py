"""Events through their two doors: `v1`, as they are kept, and `events.k8s.io/v1`."""

from moorage.serve.controllers.objects import Object

# events.k8s.io/v1 -> v1; what is not listed has one name in both.
_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "reportingController": "reportingComponent",
    "deprecatedSource": "source",
    "deprecatedCount": "count",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
}
_NAMES_BACK = {kept: shown for shown, kept in _NAMES.items()}


def to_kept(obj: Object) -> Object:
    """An event of events.k8s.io/v1 as it is kept."""
    kept = {_NAMES.get(key, key): value for key, value in obj.items()}
    return {**kept, "apiVersion": "v1"}


def to_shown(obj: Object) -> Object:
    """A kept event as events.k8s.io/v1 shows it."""
    shown = {_NAMES_BACK.get(key, key): value for key, value in obj.items()}
    return {**shown, "apiVersion": "events.k8s.io/v1"}
