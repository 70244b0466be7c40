"""Which requests are repeated, and when."""

import asyncio
import socket
import time

import pytest
from aiohttp import web
from scripted import HANG_UP, never, serving

from moorage.errors import KubeconfigError
from moorage.live.api_errors import ApiStatusError, FencedError, NoResponseError, NotSentError
from moorage.live.client import Client
from moorage.live.connection import Connection, Identity

GOOD = (200, {"good": True})
ERROR = (500, {"code": 500, "message": "etcdserver: request timed out"})
BUSY = (429, {"code": 429, "message": "too many requests"}, {"Retry-After": "0"})


def asked(*answers, method="POST", repeatable=False, **options):
    """The response or the error, and the number of requests."""

    async def ask():
        async with serving(*answers) as (scripted, client):
            try:
                found = await client.request(method, "/x", b"{}", repeatable=repeatable, **options)
            except Exception as error:
                found = error
            return found, len(scripted.requests)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("answers", "repeatable", "requests"),
    [
        pytest.param([GOOD], False, 1, id="success"),
        pytest.param([BUSY, BUSY, GOOD], False, 3, id="429 is repeated"),
        pytest.param([ERROR, GOOD], True, 2, id="500 of a repeatable request"),
        pytest.param([HANG_UP, GOOD], True, 2, id="broken connection of a repeatable request"),
    ],
)
def test_repeated_until_success(answers, repeatable, requests):
    assert asked(*answers, repeatable=repeatable) == (b'{"good": true}', requests)


@pytest.mark.parametrize(
    ("answers", "repeatable", "error", "text", "requests"),
    [
        pytest.param(
            [ERROR, GOOD],
            False,
            ApiStatusError,
            "etcdserver: request timed out",
            1,
            id="500, no repeat",
        ),
        pytest.param(
            [HANG_UP, GOOD],
            False,
            NoResponseError,
            "the connection broke",
            1,
            id="broken connection, no repeat",
        ),
        pytest.param(
            [never],
            False,
            NoResponseError,
            "no answer within 0.2 s",
            1,
            id="timeout, no repeat",
        ),
        pytest.param(
            [(404, {"message": "pods not found"})],
            True,
            ApiStatusError,
            "pods not found",
            1,
            id="404",
        ),
        pytest.param(
            [ERROR], True, ApiStatusError, "etcdserver", 3, id="no more than the given tries"
        ),
        pytest.param([(500, "??")], False, ApiStatusError, "??", 1, id="a body that is no Status"),
    ],
)
def test_errors(answers, repeatable, error, text, requests):
    seconds = 0.2 if never in answers else 60.0  # A busy machine may take longer to answer.
    found, count = asked(*answers, repeatable=repeatable, tries=3, seconds=seconds)
    assert isinstance(found, error)
    assert text in str(found)
    assert count == requests


def test_retry_after_is_honoured():
    began = time.monotonic()
    asked((429, {}, {"Retry-After": "1"}), GOOD)
    assert time.monotonic() - began >= 1.0


def test_no_connection():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def ask():
        async with Client(Connection(server=f"http://127.0.0.1:{port}")) as client:
            await client.request("POST", "/x", b"{}", tries=2)

    with pytest.raises(NotSentError, match="Cannot connect"):
        asyncio.run(ask())


def test_connection_errors_name_the_network_error():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

    async def ask():
        async with Client(Connection(server=f"https://127.0.0.1:{port}")) as client:
            await client.get("/x", tries=1)

    with pytest.raises(NotSentError) as caught:
        asyncio.run(ask())
    assert str(caught.value).startswith(f"GET /x: Cannot connect to host 127.0.0.1:{port}: [Errno")


@pytest.mark.parametrize(
    ("leads", "requests"),
    [
        pytest.param([False], 0, id="before it connects"),
        pytest.param([True, False], 0, id="when it is connected"),
        pytest.param([True, True, False], 1, id="before it is sent again"),
    ],
)
def test_fence_is_checked_just_before_sending(leads, requests):
    answers = iter(leads)
    found, count = asked(BUSY, GOOD, fence=lambda: next(answers))
    assert isinstance(found, FencedError)
    assert count == requests


def test_a_request_that_waits_for_its_token_is_fenced_too():
    leads = True

    async def ask():
        nonlocal leads
        async with serving(GOOD, per_second=1, burst=1) as (scripted, client):
            await client.request("POST", "/x", b"{}")
            waiting = asyncio.create_task(client.request("POST", "/x", b"{}", fence=lambda: leads))
            await asyncio.sleep(0.05)
            leads = False
            await asyncio.wait({waiting})
            return waiting.exception(), len(scripted.requests)

    error, requests = asyncio.run(ask())
    assert isinstance(error, FencedError)
    assert requests == 1


def test_token_is_sent():
    seen = []

    async def look(request):
        from aiohttp import web

        seen.append((request.headers["Authorization"], request.headers["User-Agent"]))
        return web.Response()

    async def ask():
        async with serving(look, token="secret") as (_, client):
            await client.get("/x")

    asyncio.run(ask())
    assert seen[0][0] == "Bearer secret"
    assert seen[0][1].startswith("moorage/")


def test_requests_are_counted():
    counted = []

    async def ask():
        async with serving(ERROR, GOOD) as (_, client):
            client.observer = lambda method, code, seconds: counted.append((method, code))
            await client.get("/x")

    asyncio.run(ask())
    assert counted == [("GET", 500), ("GET", 200)]


def test_missing_credentials_are_an_api_error(tmp_path):
    token = tmp_path / "token"
    token.write_text("")
    connection = Connection(server="http://127.0.0.1:1", identity=Identity(token_file=token))

    async def ask():
        async with Client(connection) as client:
            await client.get("/x", tries=1)

    with pytest.raises(NotSentError, match="the token is empty"):
        asyncio.run(ask())


@pytest.mark.parametrize("use", ["request", "stream"])
def test_a_refused_token_is_read_again_before_the_next_request(tmp_path, use):
    """Also if the refused request is not repeated, as those for the lease and for watches."""
    token = tmp_path / "token"
    token.write_text("old")

    async def check(request):
        good = request.headers["Authorization"] == "Bearer new"
        return web.json_response({}, status=200 if good else 401)

    async def ask():
        async with serving(check) as (_, reached):
            connection = Connection(server=reached.server, identity=Identity(token_file=token))
            async with Client(connection) as client:
                with pytest.raises(ApiStatusError):
                    await go(client)
                token.write_text("new")
                await go(client)

    async def go(client):
        if use == "request":
            await client.get("/x", tries=1)
            return
        async with client.stream("/x", seconds=5.0) as stream:
            await stream.readany()

    asyncio.run(ask())


def test_refused_credentials_are_an_error_at_the_start():
    async def check(answer):
        async with serving(answer, token="old") as (_, client):
            await client.check()

    with pytest.raises(KubeconfigError, match=r"refuses these credentials \(401\): Unauthorized"):
        asyncio.run(check((401, {"code": 401, "message": "Unauthorized"})))
    asyncio.run(check((403, {"code": 403, "message": "Forbidden"})))
    asyncio.run(check((500, {"code": 500, "message": "starting"})))
