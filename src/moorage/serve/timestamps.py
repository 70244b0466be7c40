"""Timestamps of objects: RFC 3339 in UTC, with whole seconds or microseconds."""

from datetime import UTC, datetime
from functools import lru_cache


@lru_cache(maxsize=1024)
def _rendered(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_text(now: float) -> str:
    """An instant as most fields have it."""
    return _rendered(int(now))


def to_micro_text(now: float) -> str:
    """An instant as leases and newer events have it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_seconds(written: object, otherwise: float = 0.0) -> float:
    """The instant that a text names; `otherwise` where there is none, or none that can be read."""
    if not isinstance(written, str) or not written:
        return otherwise
    try:
        at = datetime.fromisoformat(written)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return otherwise
