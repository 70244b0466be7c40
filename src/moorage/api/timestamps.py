"""Timestamps of objects: RFC 3339 in UTC, with whole seconds or microseconds."""

from datetime import UTC, datetime
from functools import lru_cache

# A virtual clock starts at 0, which stands for this moment. A real one counts from 1970.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

EPOCH_SECONDS = EPOCH.timestamp()


def seconds(text: str, now: float) -> float | None:
    """A timestamp in seconds of the clock that shows `now`; None if it cannot be read."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since_1970 = moment.timestamp()
    return since_1970 if now >= EPOCH_SECONDS else since_1970 - EPOCH_SECONDS


@lru_cache(maxsize=1024)
def _rendered(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def to_text(now: float) -> str:
    """An instant in whole seconds, as most fields have it."""
    return _rendered(int(now))


def to_micro_text(now: float) -> str:
    """An instant in microseconds, as leases and `eventTime` have it."""
    return datetime.fromtimestamp(now, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def to_seconds(timestamp: object, default: float = 0.0) -> float:
    """A timestamp as seconds since the epoch; `default` if it is missing or malformed."""
    if not isinstance(timestamp, str) or not timestamp:
        return default
    try:
        at = datetime.fromisoformat(timestamp)
        return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return default
