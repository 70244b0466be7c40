"""Cells of a table: values of objects as kubectl prints them.

Objects in the store may have any shape in fields that no struct checks. A cell shows an unexpected
value and never raises.
"""

from collections.abc import Mapping
from typing import Any

from moorage.api import timestamps
from moorage.controllers.objects import value_at

Map = Mapping[str, Any]

NONE, UNKNOWN, UNSET = "<none>", "<unknown>", "<unset>"


def text(obj: Any, *path: str, default: str = "") -> str:
    """The value at a path as a string."""
    value = value_at(obj, *path)
    return default if value in (None, "") else str(value)


def number(obj: Any, *path: str) -> int:
    """An integer at a path; 0 for anything else."""
    value = value_at(obj, *path)
    return value if isinstance(value, int) else 0


def maps(obj: Any, *path: str) -> list[Map]:
    """The objects of a list at a path; empty for anything else."""
    value = value_at(obj, *path)
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def condition(obj: Any, type_: str) -> Map:
    """The condition of that type, or an empty one."""
    for each in maps(obj, "status", "conditions"):
        if each.get("type") == type_:
            return each
    return {}


def age(timestamp: Any, now: float) -> str:
    """The time since a timestamp."""
    then = timestamps.to_seconds(timestamp, default=-1.0)
    return UNKNOWN if then < 0 else duration(now - then)


def duration(seconds: float) -> str:
    """A duration in one or two units, as kubectl prints it."""
    seconds = int(seconds)
    if seconds < -1:
        return "<invalid>"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    if minutes < 10:
        return _two_units(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two_units(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if days < 8:
        return _two_units(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _two_units(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two_units(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def selector(value: Any) -> str:
    """A label selector, or a plain map of labels."""
    if not isinstance(value, dict) or not value:
        return NONE
    labels = value.get("matchLabels")
    expressions = maps(value, "matchExpressions")
    if labels is None and not expressions:
        labels = value
    pieces = [f"{k}={v}" for k, v in sorted(labels.items())] if isinstance(labels, dict) else []
    for each in expressions:
        values = each.get("values")
        inside = ",".join(map(str, values)) if isinstance(values, list) else ""
        key, operator = each.get("key", ""), str(each.get("operator", "")).lower()
        pieces.append(f"{key} {operator} ({inside})" if inside else f"{key} {operator}")
    return ",".join(pieces) or NONE
