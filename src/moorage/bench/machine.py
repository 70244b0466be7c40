"""What a figure was taken on, and a yardstick for comparing figures of different machines.

Machines differ, and a busy one differs from itself. So a fixed loop of Python and NumPy is timed
beside every run, in CPU time, which neighbours disturb less: pods per yardstick stay about the
same where pods per second do not.
"""

import os
import platform
from collections.abc import Callable
from pathlib import Path

import numpy as np

from moorage.version import __version__

ROUNDS = 100_000
ROUNDS_PER_ARRAY = 50
ARRAY = 5_000


def describe() -> dict[str, str | int]:
    """Versions and hardware."""
    return {
        "moorage": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": np.__version__,
        "platform": platform.platform(),
        "processor": _processor(),
        "cores": _cores(),
    }


def calibrate(cpu_clock: Callable[[], float]) -> float:
    """CPU seconds that the fixed loop takes: dicts and integers, and now and then an array."""
    started_at = cpu_clock()
    numbers = np.arange(ARRAY, dtype=np.int64)
    kept: dict[int, int] = {}
    total = 0
    for i in range(ROUNDS):
        total += kept.get(i % 89, 0) % 7 + i
        kept[i % 97] = total
        if i % ROUNDS_PER_ARRAY == 0:
            numbers = (numbers * 3 + i) % 1009
            total += int(numbers.argmax())
    return cpu_clock() - started_at


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:  # Not Linux.
        lines = []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "") or platform.processor() or platform.machine()


def _cores() -> int:
    """The cores that this process may use, where the system says so."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
