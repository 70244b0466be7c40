"""Clock: the times that the live shell reads; a simulated one replaces it in tests.

monotonic   durations and timeouts; may stand still while the machine sleeps
boot        the same, including the time in which the machine sleeps (on Linux)
wall        seconds since 1970; may jump
"""

import time
from datetime import UTC, datetime

BOOT_TIME = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock:
    """The clocks of this machine."""

    monotonic = staticmethod(time.monotonic)
    wall = staticmethod(time.time)

    def boot(self) -> float:
        return time.clock_gettime(BOOT_TIME)

    def second(self) -> str:
        """The time of day for objects, as in `2026-01-31T12:00:00Z`."""
        return datetime.fromtimestamp(self.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def micro(self) -> str:
        """The same with microseconds."""
        return datetime.fromtimestamp(self.wall(), UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


SYSTEM = Clock()
