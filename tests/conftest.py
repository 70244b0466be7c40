"""What holds for every test: how much Hypothesis tries, and a heap that is quickly looked through.

MOORAGE_EXAMPLES=1000 tries that many examples of every property; some take a fraction of it. A
busy machine is no reason to fail, so that no example has a deadline and none is called too slow.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

from moorage.core.journal import Journal

settings.register_profile(
    "moorage",
    max_examples=max(4, int(os.environ.get("MOORAGE_EXAMPLES", "50"))),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("moorage")


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


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    global has_thawed
    if has_thawed:
        gc.freeze()
        has_thawed = False


@pytest.fixture
def best_nodes(monkeypatch):
    """Journals keep three of the best nodes of every decision, with their scores per plugin."""
    monkeypatch.setattr(Journal, "best_nodes", 3)
