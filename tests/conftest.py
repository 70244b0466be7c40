"""What holds for every test: its time limit, how much Hypothesis tries, and a heap that is quickly
looked through.

MOORAGE_EXAMPLES=1000 tries that many examples of every property; some take a fraction of it. A
busy machine is no reason to fail, so that no example has a deadline and none is called too slow.
"""

import gc
import os
import signal
import time

import psutil
import pytest
import pytest_timeout
from hypothesis import HealthCheck, settings

from moorage.core.journal import Journal

settings.register_profile(
    "moorage",
    max_examples=max(4, int(os.environ.get("MOORAGE_EXAMPLES", "50"))),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("moorage")


# A test that takes longer than the `timeout` of pyproject.toml fails by an exception in the main
# thread. An event loop may catch it, and a fixture may hang next, so that it is raised again; a
# test that has not ended after the last time takes its process with it.
RAISED_EVERY_SECONDS = 2
MOST_RAISED = 30
LIMIT, STARTED_AT = pytest.StashKey(), pytest.StashKey()
CLOCKS_DIFFER_SECONDS = 1.0  # The kernel's start of a process, and the clock.


@pytest.hookimpl(wrapper=True)
def pytest_timeout_set_timer(item, settings):
    item.stash[LIMIT] = settings
    started_at = item.stash.setdefault(STARTED_AT, time.time())  # noqa: TID251 of the test
    result = yield
    fail = signal.getsignal(signal.SIGALRM)
    raised = 0

    def end(number, frame):
        nonlocal raised
        if not pytest_timeout.is_debugging():
            raised += 1
            if raised > MOST_RAISED:
                pytest_timeout.timeout_timer(item, settings)
            # What waits for a process of this test goes on.
            for each in psutil.Process().children(recursive=True):
                if each.create_time() > started_at - CLOCKS_DIFFER_SECONDS:
                    each.kill()
            signal.setitimer(signal.ITIMER_REAL, RAISED_EVERY_SECONDS)
        fail(number, frame)

    signal.signal(signal.SIGALRM, end)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item):
    # The limit of a test ends when the test fails; its fixtures may hang, too.
    if LIMIT in item.stash and not signal.getitimer(signal.ITIMER_REAL)[0]:
        item.ihook.pytest_timeout_set_timer(item=item, settings=item.stash[LIMIT])
    yield
    refreeze()


thaw = gc.unfreeze
has_thawed = False


def unfreeze():
    """As gc.unfreeze, which `moorage bench` calls; everything is frozen again after the test."""
    global has_thawed
    has_thawed = True
    thaw()


def pytest_collection_finish():
    # Thousands of collected tests stay to the end. To look through them for garbage takes half a
    # second each time, and to count them, as gc.get_freeze_count does, a tenth.
    gc.collect()
    gc.freeze()
    gc.unfreeze = unfreeze


def refreeze():
    global has_thawed
    if has_thawed:
        gc.freeze()
        has_thawed = False


@pytest.fixture
def best_nodes(monkeypatch):
    """Journals keep three of the best nodes of every decision, with their scores per plugin."""
    monkeypatch.setattr(Journal, "best_nodes", 3)
