"""Events that operators read."""

import asyncio
import json
from contextlib import asynccontextmanager

from aiohttp import web
from fake_clock import WallClock
from scripted import HANG_UP, serving

from moorage.api.server_requests import EmitEvent, PodRef
from moorage.live import event_recorder
from moorage.live.event_recorder import EventRecorder

GOOD = (201, {})


def event(note="no room", pod="web", reason="FailedScheduling"):
    ref = PodRef("ns", pod, f"uid-{pod}")
    return EmitEvent(ref, "Warning", reason, "Scheduling", note, "default-scheduler")


@asynccontextmanager
async def recording(clock, *answers):
    async with serving(*answers, clock=clock) as (scripted, client):
        recorder = EventRecorder(client, "host")
        task = asyncio.create_task(recorder.run())
        yield recorder, scripted
        task.cancel()
        await asyncio.wait({task})


def written(*steps, answers=(GOOD,)):
    """Emit events, or advance the clock; returns what was written."""
    clock = WallClock()

    async def record():
        async with recording(clock, *answers) as (recorder, scripted):
            for step in steps:
                if isinstance(step, EmitEvent):
                    recorder.emit(step)
                else:
                    clock.now += step
                    recorder.clean_up()
            async with asyncio.timeout(60):
                await recorder.flushed()
            methods = [each.split()[0] for each in scripted.requests]
            bodies = [json.loads(body) for body in scripted.bodies]
            return sorted(zip(methods, bodies, scripted.requests, strict=True), key=lambda w: w[0])

    return asyncio.run(record())


def test_document():
    ((method, body, request),) = written(event())
    assert (method, request) == ("POST", "POST /apis/events.k8s.io/v1/namespaces/ns/events")
    assert body["metadata"]["name"].startswith("web.")
    assert body["eventTime"] == "2023-11-14T22:13:20.250000Z"
    assert body["reportingController"] == "default-scheduler"
    assert body["reportingInstance"] == "default-scheduler-host"
    assert body["regarding"]["uid"] == "uid-web"
    assert (body["type"], body["reason"], body["action"]) == (
        "Warning",
        "FailedScheduling",
        "Scheduling",
    )
    assert body["note"] == "no room"


def test_names_respect_the_limit_of_the_api_server():
    long = "a" * 235 + "-b" * 9
    ((_, body, _),) = written(event(pod=long))
    start, _, moment = body["metadata"]["name"].rpartition(".")
    assert len(body["metadata"]["name"]) <= 253
    assert (start, len(moment)) == ("a" * 235, 16)
    assert body["regarding"]["name"] == long


def test_a_long_reporter_is_shortened():
    long = EmitEvent(PodRef("ns", "web", "1"), "Normal", "Scheduled", "Binding", "", "s" * 140)
    ((_, body, _),) = written(long)
    assert body["reportingInstance"] == "s" * 128


def test_a_series_whose_event_was_deleted_is_created_again():
    async def nothing_to_patch(request):
        return web.json_response({}, status=404 if request.method == "PATCH" else 201)

    writes = written(event(), event(), answers=[nothing_to_patch])
    assert [method for method, *_ in writes] == ["PATCH", "POST", "POST"]
    first, anew = sorted((body for _, body, _ in writes[1:]), key=len)
    assert anew["series"]["count"] == 2
    assert {**first, "series": anew["series"]} == anew


def series(writes):
    return [body["series"]["count"] for method, body, _ in writes if method == "PATCH"]


def test_the_second_occurrence_starts_a_series():
    writes = written(event(), event(), event(), event())
    assert [method for method, *_ in writes] == ["PATCH", "POST"]
    assert series(writes) == [2]


def test_a_series_that_ends_is_written_with_its_count():
    assert sorted(series(written(event(), event(), event(), 360.0, event()))) == [2, 3]


def test_a_long_series_is_written_regularly():
    steps = [event(), *(step for _ in range(8) for step in (300.0, event()))]
    assert sorted(series(written(*steps))) == [2, 7]


def test_other_notes_and_other_pods_are_other_events():
    writes = written(event(), event(note="other"), event(pod="db"), event(reason="Other"))
    assert [method for method, *_ in writes] == ["POST"] * 4


def test_failures(monkeypatch):
    monkeypatch.setattr(event_recorder, "RETRY_SECONDS", 0.01)
    assert len(written(event(), answers=[HANG_UP, (500, {}), GOOD])) == 3
    assert len(written(event(), answers=[(403, {"message": "no"}), GOOD])) == 1


def test_events_beyond_the_limit_are_dropped(monkeypatch):
    monkeypatch.setattr(event_recorder, "MAX_WRITES", 10)

    async def record():
        async with recording(WallClock(), GOOD) as (recorder, _):
            for i in range(15):
                recorder.emit(event(note=str(i)))
            return recorder.dropped

    assert asyncio.run(record()) == 5


def test_the_number_of_series_is_limited(monkeypatch):
    monkeypatch.setattr(event_recorder, "MAX_SERIES", 2)
    writes = written(event("a"), event("a"), event("a"), event("b"), event("c"), event("a"))
    assert [method for method, *_ in writes].count("POST") == 4
    assert sorted(series(writes)) == [2, 3]
