"""Timestamps of objects as seconds of the scheduler's clock."""

from datetime import UTC, datetime

# A virtual clock starts at 0, which stands for this moment. A real one counts from 1970.
EPOCH = datetime(2026, 1, 1, tzinfo=UTC)

_EPOCH_SECONDS = EPOCH.timestamp()


def seconds(text: str, now: float) -> float | None:
    """A timestamp in seconds of the clock that shows `now`; None if it cannot be read."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    since_1970 = moment.timestamp()
    return since_1970 if now >= _EPOCH_SECONDS else since_1970 - _EPOCH_SECONDS
