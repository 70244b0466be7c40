"""The rate of a token bucket, and which request gets the next token."""

import asyncio
from random import Random

import pytest
from simulated import loop as simulated_loop

from moorage.live.token_bucket import SHARE, Priority, TokenBucket

URGENT, NOMINATION, REPORT = Priority


def granted(per_second, burst, requests):
    """(name, seconds) in the order of the tokens; a request is (at, name, priority)."""

    async def take(loop):
        bucket = TokenBucket(per_second, burst, loop.time)
        order = []

        async def one(at, name, priority):
            await asyncio.sleep(at)
            if not bucket.take_now():
                await bucket.wait(priority)
            order.append((name, round(loop.time(), 3)))

        await asyncio.gather(*(one(*each) for each in requests))
        return order

    return simulated_loop.run(take, Random(1))


@pytest.mark.parametrize(
    ("per_second", "burst", "moments", "expected"),
    [
        pytest.param(10, 2, [0, 0, 0, 0], [0, 0, 0.1, 0.2], id="a burst, then one at a time"),
        pytest.param(10, 1, [0, 0.1, 0.2], [0, 0.1, 0.2], id="below the rate"),
        pytest.param(10, 1, [0, 0.05, 1], [0, 0.1, 1], id="waits for the rest of a token"),
        pytest.param(10, 2, [0, 9, 9, 9], [0, 9, 9, 9.1], id="tokens are limited to the burst"),
        pytest.param(-1, 1, [0, 0, 0], [0, 0, 0], id="no limit"),
    ],
)
def test_rate(per_second, burst, moments, expected):
    found = granted(per_second, burst, [(at, "", URGENT) for at in moments])
    assert [at for _, at in found] == pytest.approx(expected)


def test_the_most_important_request_is_served_first():
    requests = [(0, "burst", REPORT), (0, "report", REPORT), (0.01, "nomination", NOMINATION)]
    found = granted(10, 1, [*requests, (0.02, "binding", URGENT), (0.03, "second", URGENT)])
    assert [name for name, _ in found] == ["burst", "binding", "second", "nomination", "report"]


def test_urgent_requests_do_not_use_the_whole_rate():
    requests = [(0, f"report-{i}", REPORT) for i in range(10)]
    requests += [(0, f"binding-{i}", URGENT) for i in range(5 * SHARE)]
    found = granted(10, 1, requests)
    last = max(i for i, (name, _) in enumerate(found) if name.startswith("binding"))
    reports = [name for name, _ in found[:last] if name.startswith("report")]
    assert len(reports) == pytest.approx(5 * SHARE // (SHARE - 1), abs=1)


def test_a_cancelled_request_takes_no_token():
    async def take(loop):
        bucket = TokenBucket(10, 1, loop.time)
        assert bucket.take_now()
        first, second = (asyncio.create_task(bucket.wait(URGENT)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        await second
        return loop.time()

    assert simulated_loop.run(take, Random(1)) == pytest.approx(0.1, abs=1e-3)
