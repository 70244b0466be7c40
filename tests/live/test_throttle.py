"""At most so many requests a second."""

import pytest

from moorage.live.throttle import TokenBucket


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.mark.parametrize(
    ("per_second", "burst", "pauses", "waits"),
    [
        pytest.param(10, 2, [0, 0, 0, 0], [0, 0, 0.1, 0.2], id="a burst, then one after the other"),
        pytest.param(10, 1, [0, 0.1, 0.1], [0, 0, 0], id="slow enough"),
        pytest.param(10, 1, [0, 0.05, 1], [0, 0.05, 0], id="half the way"),
        pytest.param(
            10, 2, [0, 100, 0, 0], [0, 0, 0, 0.1], id="a pause saves no more than a burst"
        ),
        pytest.param(-1, 1, [0, 0, 0], [0, 0, 0], id="no limit"),
    ],
)
def test_waits(per_second, burst, pauses, waits):
    clock = Clock()
    bucket = TokenBucket(per_second, burst, clock)
    found = []
    for pause in pauses:
        clock.now += pause
        found.append(bucket.reserve())
    assert found == pytest.approx(waits)
