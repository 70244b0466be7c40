"""How Python's garbage collector is used: seldom.

Nearly all objects of a command live long, and few form cycles. Looking for garbage as often as
Python does by default rarely finds any.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# New objects before a collection of the youngest; collections of each generation before one of the
# next. Handling a single request makes more than Python's default of 700 objects.
THRESHOLDS = (50_000, 20, 100)


def collect_rarely() -> None:
    """From now on collect seldom, and do not look at the objects that are there."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)


@contextmanager
def collected_rarely() -> Iterator[None]:
    """The same for a while."""
    before = gc.get_threshold()
    collect_rarely()
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


@contextmanager
def not_collected() -> Iterator[None]:
    """Collect nothing while many objects are made that stay; collections would double the time."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
