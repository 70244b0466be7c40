"""A clock that a test sets forward."""

from moorage.live.clock import Clock


class WallClock(Clock):
    """A time of day that stands still."""

    now = 1_700_000_000.25

    def wall(self):
        return self.now
