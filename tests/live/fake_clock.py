"""A clock that a test sets forward."""

import time

from moorage.live.clock import Clock


class RealClock(Clock):
    """Real time, `ahead` seconds later: as after SIGSTOP."""

    ahead = 0.0

    def boot(self):
        return time.monotonic() + self.ahead


class WallClock(Clock):
    """A time of day that stands still."""

    now = 1_700_000_000.25

    def wall(self):
        return self.now
