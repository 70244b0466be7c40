"""What holds for every test: how much Hypothesis tries, and a heap that is quickly looked through.

MOORAGE_EXAMPLES=1000 tries that many examples of every property; some take a fraction of it. A
busy machine is no reason to fail, so that no example has a deadline and none is called too slow.
"""

import gc
import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "moorage",
    max_examples=max(4, int(os.environ.get("MOORAGE_EXAMPLES", "50"))),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("moorage")


def pytest_collection_finish():
    # Thousands of collected tests stay to the end. Nobody needs to ask again and again whether
    # they are garbage, which takes half a second each time.
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown():
    if not gc.get_freeze_count():  # A test of `moorage bench` has thawed everything.
        gc.freeze()
