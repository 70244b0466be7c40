"""Lists and watches become observations, also after failures."""

import asyncio
import json
import math

import pytest
from aiohttp import web
from scripted import HANG_UP, never, serving

from moorage.api.kinds import KINDS
from moorage.core.scheduler import Scheduler
from moorage.live import reflector as reflectors
from moorage.live.api_errors import ApiError, ApiStatusError
from moorage.live.reflector import ObservationQueue, Reflector

POD = KINDS["Pod"]


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(reflectors, "FIRST_WAIT_SECONDS", 0.01)
    monkeypatch.setattr(reflectors, "LONGEST_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(reflectors, "UNSERVED_WAIT_SECONDS", 0.02)


def pod(name, version, uid="", **spec):
    meta = {"name": name, "namespace": "ns", "uid": uid or name, "resourceVersion": str(version)}
    return {"metadata": meta, "spec": spec}


def listed(*pods, version="10", more=""):
    meta = {"resourceVersion": version, "continue": more}
    return 200, {"metadata": meta, "items": list(pods) or None}


def line(change, obj):
    return {"type": change, "object": obj}


def gone():
    return line("ERROR", {"kind": "Status", "code": 410, "message": "too old resource version"})


def observed(*answers, **options):
    """The kinds and names of the first `count` observations of a reflector, and its requests."""
    found, requests, reflector = observations(*answers, **options)
    return [(type(each).__name__, each.obj.name) for each in found], requests, reflector


def observations(*answers, count, after=None, kind=POD):

    async def follow():
        async with serving(*answers, never) as (scripted, client):
            queue = ObservationQueue()
            reflector = Reflector(client, kind, queue, needed_by=("A", "B"))
            task = asyncio.create_task(reflector.run())
            async with asyncio.timeout(60):
                if after is not None:
                    await after(reflector, scripted)
                while queue.put_count < count or len(scripted.requests) < len(answers):
                    await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.wait({task})
            return list(iter(queue.take, None)), scripted.requests, reflector

    return asyncio.run(follow())


def test_list_in_pages_and_watch():
    found, requests, reflector = observed(
        listed(pod("a", 1), more="page2"),
        listed(pod("b", 2)),
        [
            line("ADDED", pod("c", 11)),
            line("MODIFIED", pod("a", 12)),
            line("DELETED", pod("b", 13)),
        ],
        count=5,
    )
    names = [("Added", "a"), ("Added", "b"), ("Added", "c"), ("Updated", "a"), ("Deleted", "b")]
    assert found == names
    selector = "fieldSelector=status.phase%21%3DSucceeded%2Cstatus.phase%21%3DFailed"
    assert requests[0] == f"GET /api/v1/pods?{selector}&limit=500"
    assert requests[1] == f"GET /api/v1/pods?{selector}&limit=500&continue=page2"
    assert "watch=true" in requests[2]
    assert "resourceVersion=10" in requests[2]
    assert reflector.is_synced


def test_watch_resumes_where_it_ended():
    bookmark = line("BOOKMARK", {"metadata": {"resourceVersion": "40"}})
    _, requests, _ = observed(
        listed(),
        [line("ADDED", pod("a", 11))],
        HANG_UP,
        [bookmark],
        [],
        count=1,
    )
    versions = [each.partition("resourceVersion=")[2].partition("&")[0] for each in requests[1:5]]
    assert versions == ["10", "11", "11", "40"]


def node(name, version, heartbeat, **changes):
    meta = {"name": name, "uid": name, "resourceVersion": str(version), **changes}
    ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": heartbeat}
    return {"metadata": meta, "status": {"conditions": [ready], "allocatable": {"cpu": "4"}}}


def test_heartbeats_of_nodes_are_not_observed():
    found, requests, reflector = observations(
        listed(node("a", 1, "08:00"), node("b", 2, "08:00")),
        [line("MODIFIED", node("a", 11, "08:10"))],
        [
            line("MODIFIED", node("b", 12, "08:10", labels={"zone": "1"})),
            line("MODIFIED", node("b", 13, "08:20", labels={"zone": "1"})),
            line("MODIFIED", node("b", 14, "08:30")),
            line("DELETED", node("a", 15, "08:30")),
            line("ADDED", node("a", 16, "08:30")),
        ],
        kind=KINDS["Node"],
        count=6,
    )
    seen = [(type(each).__name__, each.obj.metadata.resource_version) for each in found]
    assert seen == [
        *(("Added", "1"), ("Added", "2")),
        *(("Updated", "12"), ("Updated", "14"), ("Deleted", "15"), ("Added", "16")),
    ]
    assert "resourceVersion=11" in requests[2], "the watch resumes behind the heartbeat"
    versions = [each.metadata.resource_version for each in reflector.objects()]
    assert versions == ["14", "16"]


@pytest.mark.parametrize(
    "failure",
    [
        pytest.param([gone()], id="410 within the watch"),
        pytest.param((410, {"code": 410, "message": "too old"}), id="410 at once"),
        pytest.param([b'{"type": "ADDED", "obj\n'], id="a line that is not JSON"),
        pytest.param([line("SURPRISE", pod("z", 99))], id="an unknown event type"),
    ],
)
def test_a_new_list_becomes_differences(failure):
    """Missed deletions are observed; unchanged objects are not observed again."""
    found, _, _ = observed(
        listed(pod("a", 1), pod("b", 2), pod("c", 3), pod("d", 4)),
        failure,
        listed(pod("a", 1), pod("c", 20), pod("d", 21, uid="other"), pod("e", 22), version="30"),
        count=8,
    )
    assert found[:4] == [("Added", name) for name in "abcd"]
    assert found[4:] == [("Deleted", "b"), ("Updated", "c"), ("Updated", "d"), ("Added", "e")]


def test_a_list_with_earlier_versions_overrules():
    """After a restore from a backup: b was created since, c changed since, d was deleted since."""
    found, _, reflector = observed(
        listed(pod("a", 1), pod("b", 20), pod("c", 21, nodeName="n"), version="30"),
        [gone()],
        listed(pod("a", 1), pod("c", 5), pod("d", 6), version="7"),
        count=8,
    )
    assert found[:3] == [("Added", name) for name in "abc"]
    assert found[3] == ("Deleted", "b")
    assert found[4:] == [(change, name) for name in "cd" for change in ("Deleted", "Added")]
    assert sorted(reflector.keys()) == ["ns/a", "ns/c", "ns/d"]


def test_a_list_with_a_later_version_and_older_objects_overrules():
    """Restored from a backup, then written to: a is older, b another one, c was deleted before."""
    found, _, _ = observations(
        listed(pod("a", 20), pod("b", 21), pod("c", 5), version="30"),
        [line("DELETED", pod("c", 31)), gone()],
        listed(pod("a", 4), pod("b", 3, uid="earlier"), pod("c", 5), pod("d", 35), version="40"),
        count=12,
    )
    scheduler = Scheduler()
    for observation in found:
        scheduler.observe(observation, 0.0)
    known = {each.name: each.metadata.resource_version for each in scheduler.known_pods()}
    assert known == {"a": "4", "b": "3", "c": "5", "d": "35"}


@pytest.mark.parametrize(
    "before",
    [
        pytest.param([], id="it did not exist then"),
        pytest.param([pod("a", 5, uid="earlier")], id="another pod had its name"),
    ],
)
def test_a_pod_that_an_earlier_list_hides_comes_back_with_the_watch(before):
    found, _, _ = observations(
        listed(pod("a", 20), version="30"),
        [gone()],
        listed(*before, version="7"),
        [line("DELETED", pod("a", 19, uid="earlier")), line("ADDED", pod("a", 20))],
        count=4,
    )
    scheduler = Scheduler()
    for observation in found:
        scheduler.observe(observation, 0.0)
    assert scheduler.known_pod("ns/a").uid == "a"


def test_a_list_is_earlier_than_all_events_before_it():
    """A watch that repeats events does not make an outdated list look new."""
    found, _, _ = observations(
        listed(pod("a", 20), pod("b", 10), version="30"),
        [line("MODIFIED", pod("b", 10)), gone()],
        listed(pod("b", 10), version="15"),
        [line("ADDED", pod("a", 20))],
        count=5,
    )
    scheduler = Scheduler()
    for observation in found:
        scheduler.observe(observation, 0.0)
    assert scheduler.known_pod("ns/a") is not None


def test_watch_that_waits_at_a_future_version(monkeypatch):
    monkeypatch.setattr(reflectors, "SILENT_SECONDS", 0.05)

    async def restored(request):
        """By request, not by order: a busy machine may look up before the watch has begun."""
        if "watch=true" in request.query_string:
            await never(request)
        is_list = "limit=500" in request.query_string
        return web.json_response(listed(*[pod("a", 5)] * is_list, version="7")[1])

    answers = [listed(pod("a", 20), version="30"), *[restored] * 3]
    found, requests, _ = observed(*answers, count=3)
    assert found == [("Added", "a"), ("Deleted", "a"), ("Added", "a")]
    looked_up, listed_again, *_ = [each for each in requests[1:] if "watch=true" not in each]
    assert "limit=1" in looked_up
    assert "limit=500" in listed_again
    assert any("watch=true" in each for each in requests)


def test_silent_watch_at_the_current_version_goes_on(monkeypatch):
    monkeypatch.setattr(reflectors, "SILENT_SECONDS", 0.03)
    looked_up = []

    async def silent(request):
        if "watch=true" in request.query_string:
            await never(request)
        looked_up.append(request.query_string)
        return web.json_response({"metadata": {"resourceVersion": "30"}, "items": []})

    async def wait(reflector, scripted):
        while len(looked_up) < 3:
            await asyncio.sleep(0.01)

    answers = [listed(pod("a", 20), version="30"), silent, silent, silent, silent]
    _, requests, _ = observed(*answers, count=1, after=wait)
    assert sum("watch=true" in each for each in requests) == 1


@pytest.mark.parametrize(
    "sent",
    [
        pytest.param([line("BOOKMARK", {"metadata": {"resourceVersion": "7"}})], id="bookmark"),
        pytest.param((504, {"code": 504, "message": "Too large resource version: 30, current: 7"}),
                     id="refused"),
    ],
)  # fmt: skip
def test_watch_from_a_future_version_is_noticed(sent):
    found, _, _ = observed(
        listed(pod("a", 20), version="30"), sent, listed(pod("a", 5), version="7"), count=3
    )
    assert found == [("Added", "a"), ("Deleted", "a"), ("Added", "a")]


def test_events_before_an_error_are_observed():
    found, requests, _ = observed(
        listed(), [line("ADDED", pod("a", 11)), b"nonsense\n"], listed(pod("a", 11)), count=1
    )
    assert found == [("Added", "a")]
    assert "watch" not in requests[2]


@pytest.fixture
def new_reflector():
    async def make():
        async with serving(never) as (_, client):
            return Reflector(client, POD, ObservationQueue())

    return asyncio.run(make())


def test_an_expired_version_is_listed_at_once_but_only_the_first_time(new_reflector):
    waits = [new_reflector._handle_status(ApiStatusError(410, "expired")) for _ in range(2)]
    assert waits[0] == 0.0 < waits[1]


def test_the_server_decides_how_long_to_wait(new_reflector):
    busy = ApiStatusError(429, "busy")
    busy.retry_after_seconds = 7.0
    assert new_reflector._handle_status(busy) == 7.0


def test_before_the_first_list(new_reflector):
    assert (new_reflector.listed_at, new_reflector.objects()) == (-math.inf, [])


def test_an_observation_wakes_the_reader():
    queue = ObservationQueue()
    queue.put([])
    assert queue.wake.is_set()


def test_back_off_starts_again_after_progress(monkeypatch):
    monkeypatch.setattr(reflectors, "LONGEST_WAIT_SECONDS", 60.0)
    waits, back_off = [], Reflector._back_off

    def recorded(reflector):
        waits.append(back_off(reflector))
        return waits[-1]

    monkeypatch.setattr(Reflector, "_back_off", recorded)
    rounds = 12
    answers = []
    for i in range(rounds):
        added = json.dumps(line("ADDED", pod("a", 11 + i))).encode()
        answers += [listed(version=str(11 + i)), [added + b"\nnonsense\n"]]
    found, _, _ = observed(*answers, count=2 * rounds - 1)
    assert found[:3] == [("Added", "a"), ("Deleted", "a"), ("Added", "a")]
    assert len(waits) >= rounds - 1
    assert max(waits) <= reflectors.FIRST_WAIT_SECONDS  # None is doubled.


def test_an_event_in_two_chunks():
    text = b'{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"11"}}}\n'
    found, _, _ = observed(listed(), [text[:30], text[30:]], count=1)
    assert found == [("Added", "a")]


def test_an_object_that_needs_normalizing_is_read():
    odd = pod("odd", 11)
    odd["metadata"]["labels"] = None  # as some writers have it
    found, _, _ = observed(listed(odd, pod("a", 1)), [line("MODIFIED", {**odd})], count=3)
    assert found == [("Added", "odd"), ("Added", "a"), ("Updated", "odd")]


def test_an_invalid_object_is_skipped():
    bad = pod("bad", 5, containers="none")
    found, _, _ = observed(listed(bad, pod("a", 1)), count=1)
    assert found == [("Added", "a")]


def test_list_that_expires_between_its_pages():
    found, requests, _ = observed(
        listed(pod("a", 1), more="page2"),
        (410, {"code": 410, "message": "expired"}),
        listed(pod("a", 1), pod("b", 2)),
        count=2,
    )
    assert found == [("Added", "a"), ("Added", "b")]
    assert "limit" not in requests[2]


@pytest.mark.parametrize("code", [403, 404])
def test_unserved_kind_is_reported_once(code, caplog, monkeypatch):
    monkeypatch.setattr(reflectors, "FORBIDDEN_SECONDS", 0.0)

    async def settled(reflector, _):
        await reflector.settled()
        assert reflector.unserved == "no such thing"
        assert not reflector.is_synced

    refused = (code, {"code": code, "message": "no such thing"})
    with caplog.at_level("WARNING", logger="moorage"):
        found, _, reflector = observed(
            refused,
            refused,
            refused,
            listed(pod("a", 1)),
            count=1,
            after=settled,
            kind=KINDS["Service"],
        )
    assert found == [("Added", "a")]  # it may come to be served later
    assert reflector.unserved == ""
    reports = [r for r in caplog.records if "does not serve" in r.getMessage()]
    assert len(reports) == 1
    assert reports[0].named["needed_by"] == "A, B"


def test_a_kind_that_is_forbidden_briefly_is_listed_later(caplog):
    # An API server that has just started has not read the roles yet.
    async def settled(reflector, _):
        await reflector.settled()
        assert reflector.is_synced

    refused = (403, {"code": 403, "message": "not yet"})
    with caplog.at_level("WARNING", logger="moorage"):
        found, _, _ = observed(
            *[refused] * 5,
            listed(pod("a", 1)),
            count=1,
            after=settled,
            kind=KINDS["Service"],
        )
    assert found == [("Added", "a")]
    assert not [r for r in caplog.records if "does not serve" in r.getMessage()]


@pytest.mark.parametrize(
    ("kind", "failures", "is_logged"),
    [
        pytest.param("Pod", 2, False, id="one failure is not logged"),
        pytest.param("Pod", 3, True, id="three failures are"),
        pytest.param("Service", 3, False, id="not for every kind"),
    ],
)
def test_an_unreachable_server_is_logged(caplog, monkeypatch, kind, failures, is_logged):
    list_it = reflectors.listing.list_all
    failures_left = iter([ApiError("no response")] * failures)

    async def fail_first(*arguments):
        for failure in failures_left:
            raise failure
        return await list_it(*arguments)

    monkeypatch.setattr(reflectors.listing, "list_all", fail_first)
    with caplog.at_level("WARNING", logger="moorage"):
        observed(listed(pod("a", 1)), count=1, kind=KINDS[kind])
    reports = [r for r in caplog.records if "cannot be reached" in r.getMessage()]
    assert bool(reports) is is_logged


@pytest.mark.parametrize("code", [403, 404])
def test_pods_that_are_forbidden_are_never_unserved(code):
    async def still_waiting(reflector, scripted):
        while len(scripted.requests) < 3:
            await asyncio.sleep(0.005)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.001):
                await reflector.settled()

    refused = (code, {"code": code, "message": "no such thing"})
    found, _, reflector = observed(
        *[refused] * 20, listed(pod("a", 1)), count=1, after=still_waiting
    )
    assert found == [("Added", "a")]
    assert reflector.is_synced


def test_refresh_lists_at_once():
    async def refreshed(reflector, scripted):
        while len(scripted.requests) < 2:  # It watches, and nothing comes.
            await asyncio.sleep(0.005)
        await reflector.refresh()

    found, requests, _ = observed(listed(pod("a", 1)), never, listed(), count=2, after=refreshed)
    assert found == [("Added", "a"), ("Deleted", "a")]
    assert "watch" not in requests[2]
