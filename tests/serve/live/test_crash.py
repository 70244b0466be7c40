"""kill -9 during many creates: acknowledged objects survive, and the server starts again."""

import asyncio
import json

import aiohttp

OBJECTS = 2000
KILLED_AFTER = 700
AT_ONCE = 16
PODS = "/api/v1/namespaces/default/pods"
POD = {"containers": [{"name": "c", "image": "a", "resources": {"requests": {"cpu": "1m"}}}]}


async def create_until_it_dies(server):
    """The names and versions that the server acknowledged before it was killed."""
    acknowledged = {}
    names = iter(range(OBJECTS))

    async def some(session) -> None:
        for number in names:
            body = {"metadata": {"name": f"p{number}"}, "spec": POD}
            try:
                async with session.post(PODS, json=body) as answer:
                    assert answer.status == 201
                    meta = (await answer.json())["metadata"]
                    acknowledged[meta["name"]] = (meta["uid"], int(meta["resourceVersion"]))
            except (aiohttp.ClientError, ConnectionError):
                return
            if len(acknowledged) == KILLED_AFTER:
                server.kill()

    async with aiohttp.ClientSession(server.url) as session:
        await asyncio.gather(*(some(session) for _ in range(AT_ONCE)))
    return acknowledged


async def what_is_there(url):
    async with aiohttp.ClientSession(url) as session, session.get(PODS) as answer:
        return await answer.json()


async def first_line(url, version):
    """The first line of a watch from a version."""
    params = {"watch": "1", "resourceVersion": str(version), "timeoutSeconds": "20"}
    async with (
        aiohttp.ClientSession(url, read_bufsize=2**22) as session,
        session.get(PODS, params=params) as answer,
    ):
        return json.loads(await answer.content.readline())


async def all_scheduled(url, until_seconds=60):
    async with asyncio.timeout(until_seconds):
        while True:
            items = (await what_is_there(url))["items"]
            if all(pod["spec"].get("nodeName") for pod in items):
                return items
            await asyncio.sleep(0.2)


def test_kill_9_loses_no_acknowledged_write(serving):
    options = ("--data-dir", "kept", "--nodes", "20")
    with serving(*options) as first:
        acknowledged = asyncio.run(create_until_it_dies(first))
    assert len(acknowledged) >= KILLED_AFTER
    with serving(*options) as second:
        listed = asyncio.run(what_is_there(second.url))
        there = {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in listed["items"]}
        lost = [name for name, (uid, _) in acknowledged.items() if there.get(name) != uid]
        assert lost == []
        newest = max(version for _, version in acknowledged.values())
        assert int(listed["metadata"]["resourceVersion"]) > newest
        # A watch from before the crash cannot be continued without a gap, and is told so.
        changes = asyncio.run(first_line(second.url, newest))
        assert changes["type"] == "ERROR"
        assert changes["object"]["code"] == 410
        # One from the new list goes on, and so does scheduling.
        asyncio.run(create_one(second.url, "after"))
        version = listed["metadata"]["resourceVersion"]
        assert asyncio.run(first_line(second.url, version))["type"] in ("ADDED", "MODIFIED")
        items = asyncio.run(all_scheduled(second.url))
        assert "after" in {pod["metadata"]["name"] for pod in items}
        assert len(items) == len(there) + 1


async def create_one(url, name):
    body = {"metadata": {"name": name}, "spec": POD}
    async with aiohttp.ClientSession(url) as session, session.post(PODS, json=body) as answer:
        assert answer.status == 201


def test_second_server_on_the_same_folder_fails(serving, tmp_path):
    with serving("--data-dir", "kept", "--nodes", "1"):
        try:
            with serving("--data-dir", "kept", "--nodes", "1"):
                raise RuntimeError("two servers write to one folder")
        except AssertionError:
            complaint = (tmp_path / "stderr.txt").read_text()
            (tmp_path / "stderr.txt").write_text("")
    assert complaint.count("\n") == 1
    assert complaint.startswith("moorage: kept: ")
