"""Requests to the API server, their order, and the outcomes of its responses."""

import asyncio
import json
import time

import pytest
from aiohttp import web
from scripted import HANG_UP, never, serving

from moorage.api.meta import Condition
from moorage.api.server_requests import (
    BindPod,
    DeletePod,
    LookUpPod,
    PatchPodGroupStatus,
    PatchPodStatus,
    PodRef,
    ReleaseResourceClaim,
)
from moorage.core.effects import Done, Effect, Failed, Unknown
from moorage.live import logs
from moorage.live import performer as performer_module
from moorage.live.event_recorder import EventRecorder
from moorage.live.performer import ApiPerformer

REF = PodRef("ns", "web", "uid-1")
BIND = BindPod(REF, "node-1")
PATCH = PatchPodStatus(
    REF,
    condition=Condition(type="PodScheduled", status="False", reason="Unschedulable", message="no"),
)
VICTIM = PatchPodStatus(REF, condition=Condition(type="DisruptionTarget", status="True"))
DELETE = DeletePod(REF)
LOOK_UP = LookUpPod(REF)
GOOD = (201, {})


@pytest.fixture(autouse=True)
def few_tries(monkeypatch):
    monkeypatch.setattr(performer_module, "REPEATED_TRIES", 3)


def no(code, message="no"):
    return code, {"code": code, "message": message}


def performed(*requests, answers, leads=True, concurrency=32, is_busy=lambda: False, **limit):
    """The outcomes of requests, in order, and the server."""

    async def perform():
        outcomes = []
        async with serving(*answers, **limit) as (scripted, client):
            performer = ApiPerformer(
                client,
                EventRecorder(client, "host"),
                lambda: leads,
                lambda ticket, outcome: outcomes.append((ticket, outcome)),
                pytest.fail,
                concurrency=concurrency,
                is_busy=is_busy,
            )
            performer.perform([Effect(i, each) for i, each in enumerate(requests)])
            async with asyncio.timeout(60):
                await performer.drained()
            assert performer.bindings == 0
            return outcomes, scripted

    return asyncio.run(perform())


def pod(uid="uid-1", node=""):
    return 200, {
        "metadata": {"name": "web", "namespace": "ns", "uid": uid},
        "spec": {"nodeName": node},
    }


@pytest.mark.parametrize(
    ("request_", "answers", "outcome", "times"),
    [
        pytest.param(BIND, [GOOD], Done(), 1, id="bound"),
        pytest.param(BIND, [no(429), GOOD], Done(), 2, id="a binding is repeated after 429"),
        pytest.param(BIND, [no(409)], Failed("no"), 1, id="already bound"),
        pytest.param(BIND, [no(404)], Failed("no", missing=True), 1, id="no such pod"),
        pytest.param(BIND, [no(403)], Failed("no"), 1, id="forbidden"),
        pytest.param(BIND, [no(500), GOOD], Unknown("no"), 1, id="a binding is never repeated"),
        pytest.param(PATCH, [GOOD], Done(), 1, id="patched"),
        pytest.param(PATCH, [no(500), HANG_UP, GOOD], Done(), 3, id="a patch is repeated"),
        pytest.param(PATCH, [no(409)], Failed("no"), 1, id="another pod is not patched"),
        pytest.param(DELETE, [GOOD], Done(), 1, id="deleted"),
        pytest.param(DELETE, [no(404)], Failed("no", missing=True), 1, id="deleted already"),
        pytest.param(DELETE, [no(500)], Unknown("no"), 3, id="unknown whether it was deleted"),
    ],
)
def test_outcomes(request_, answers, outcome, times):
    outcomes, scripted = performed(request_, answers=answers)
    assert outcomes == [(0, outcome)]
    assert len(scripted.requests) == times


@pytest.mark.parametrize(
    ("answer", "text"),
    [pytest.param(HANG_UP, "the connection broke", id="hang-up"),
     pytest.param(never, "no answer within 0.2 s", id="too late")],
)  # fmt: skip
def test_binding_without_a_response(answer, text, monkeypatch):
    if answer is never:
        monkeypatch.setattr(performer_module, "BIND_SECONDS", 0.2)
    ((_, outcome),), _ = performed(BIND, answers=[answer])
    assert isinstance(outcome, Unknown)
    assert text in outcome.reason


@pytest.mark.parametrize(
    ("answers", "node"),
    [
        pytest.param([pod(node="node-1")], "node-1", id="bound"),
        pytest.param([no(500), pod()], "", id="not bound"),
        pytest.param([pod(uid="other")], None, id="another pod of the same name"),
        pytest.param([no(404)], None, id="gone"),
    ],
)
def test_look_up(answers, node):
    ((_, outcome),), _ = performed(LOOK_UP, answers=answers)
    assert isinstance(outcome, Done)
    assert (outcome.pod.node_name if outcome.pod else None) == node


def test_failed_look_up():
    ((_, outcome),), _ = performed(LOOK_UP, answers=[no(500)])
    assert outcome == Failed("no")


def test_requests():
    _, scripted = performed(BIND, answers=[GOOD])
    assert scripted.requests == ["POST /api/v1/namespaces/ns/pods/web/binding?timeout=10s"]
    assert json.loads(scripted.bodies[0]) == {
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": "web", "namespace": "ns", "uid": "uid-1"},
        "target": {"kind": "Node", "name": "node-1"},
    }
    _, scripted = performed(PATCH, answers=[GOOD])
    assert scripted.requests == ["PATCH /api/v1/namespaces/ns/pods/web/status"]
    patch = json.loads(scripted.bodies[0])
    assert patch["metadata"] == {"uid": "uid-1"}
    (condition,) = patch["status"]["conditions"]
    assert condition["message"] == "no"
    assert condition["lastTransitionTime"].endswith("Z")
    _, scripted = performed(DELETE, answers=[GOOD])
    assert json.loads(scripted.bodies[0])["preconditions"] == {"uid": "uid-1"}


@pytest.mark.parametrize(
    ("nominated", "sent"), [pytest.param("n", "n", id="set"), pytest.param("", None, id="cleared")]
)
def test_nominated_node(nominated, sent):
    _, scripted = performed(PatchPodStatus(REF, nominated_node_name=nominated), answers=[GOOD])
    assert json.loads(scripted.bodies[0])["status"] == {"nominatedNodeName": sent}


def test_the_condition_of_a_pod_group():
    condition = Condition(type="PodGroupScheduled", status="True", reason="Scheduled")
    request = PatchPodGroupStatus(REF, "train", "group-1", condition)
    [(_, outcome)], scripted = performed(request, answers=[GOOD])
    assert outcome == Done()
    body = json.loads(scripted.bodies[0])
    assert body["metadata"] == {"uid": "group-1"}
    [sent] = body["status"]["conditions"]
    assert (sent["type"], sent["status"], sent["reason"]) == (
        "PodGroupScheduled",
        "True",
        "Scheduled",
    )
    assert "lastProbeTime" not in sent, "a PodGroup has no such field"


def test_requests_for_one_pod_are_in_order_others_concurrent():
    order, bound = [], asyncio.Event()

    async def slow_for_web(request):
        name = request.path.split("/")[6]
        if name == "other":
            bound.set()
        elif request.method == "PATCH":  # It is answered after the other pod's request.
            await asyncio.wait_for(bound.wait(), 30)
        order.append(f"{request.method} {name}")
        return web.json_response({})

    other = BindPod(PodRef("ns", "other", "uid-2"), "node-1")
    performed(VICTIM, DELETE, other, answers=[slow_for_web])
    assert order == ["POST other", "PATCH web", "DELETE web"]


def test_waiting_statuses_are_merged():
    first, second, third = (
        PatchPodStatus(REF, condition=Condition(type="PodScheduled", message=text))
        for text in ("one", "two", "three")
    )
    nominating = PatchPodStatus(REF, nominated_node_name="node-9")
    outcomes, scripted = performed(first, second, nominating, third, answers=[GOOD])
    assert sorted(ticket for ticket, _ in outcomes) == [0, 1, 2, 3]
    assert len(scripted.requests) == 1
    status = json.loads(scripted.bodies[0])["status"]
    assert status["conditions"][0]["message"] == "three"
    assert status["nominatedNodeName"] == "node-9"


@pytest.mark.parametrize("per_second", [pytest.param(0, id="no limit"), 200])
def test_bindings_first_then_nominations_then_conditions(per_second):
    pods = [PodRef("ns", f"pod-{i}", f"uid-{i}") for i in range(60)]
    conditions = [PatchPodStatus(pod, condition=PATCH.condition) for pod in pods[:40]]
    nominations = [PatchPodStatus(pod, nominated_node_name="node-9") for pod in pods[40:50]]
    others = [DeletePod(pods[50]), *(BindPod(pod, "node-1") for pod in pods[51:])]
    order = []

    async def slow(request):
        await asyncio.sleep(0.01)
        body = await request.json()
        is_report = "conditions" in body.get("status", {})
        order.append("report" if is_report else request.method)
        return web.json_response({})

    limit = {"per_second": per_second, "burst": 1}
    performed(*conditions, *nominations, *others, answers=[slow], concurrency=4, **limit)
    assert len(order) == 60
    urgent = [each for each in order if each in ("POST", "DELETE")]
    assert "PATCH" not in [each for each in order if each != "report"][: len(urgent) - 4]
    behind = order[: max(i for i, each in enumerate(order) if each == "POST")]
    # No limit: they have workers of their own. Limited: one token of ten, and those that were
    # sent before the first binding was known.
    assert behind.count("report") <= (40 if per_second == 0 else 10)


def test_conditions_that_wait_for_the_server_delay_no_binding():
    bound = asyncio.Event()

    async def blocked(request):
        if request.method == "PATCH":
            await asyncio.wait_for(bound.wait(), 30)
        bound.set()
        return web.json_response({})

    pods = [PodRef("ns", f"pod-{i}", f"other-{i}") for i in range(100)]
    conditions = [PatchPodStatus(pod, condition=PATCH.condition) for pod in pods]
    outcomes, _ = performed(*conditions, BIND, answers=[blocked])
    assert outcomes[0] == (100, Done())


def test_conditions_pause_while_the_scheduler_is_busy(monkeypatch):
    monkeypatch.setattr(performer_module, "REPORT_PAUSE_SECONDS", 0.2)
    other = PatchPodStatus(PodRef("ns", "other", "uid-2"), condition=PATCH.condition)
    bind = BindPod(PodRef("ns", "third", "uid-3"), "node-1")
    began = time.monotonic()
    outcomes, _ = performed(other, bind, answers=[GOOD], is_busy=lambda: True)
    assert [ticket for ticket, _ in outcomes] == [1, 0]
    assert time.monotonic() - began >= 0.2


def test_binding_drops_the_condition_that_waits():
    many = [
        PatchPodStatus(PodRef("ns", "b", f"b-{i}"), condition=PATCH.condition) for i in range(9)
    ]
    outcomes, scripted = performed(*many, PATCH, BIND, answers=[GOOD])
    assert len(outcomes) == 11
    assert not any("web/status" in request for request in scripted.requests)


def test_request_before_a_deletion_has_its_priority():
    order = []

    async def note(request):
        order.append((request.method, "web" in request.path))
        return web.json_response({})

    busy = [BindPod(PodRef("ns", f"pod-{i}", f"uid-{i + 2}"), "n") for i in range(3)]
    performed(*busy, PATCH, DELETE, answers=[note], concurrency=1)
    assert order[-2:] == [("PATCH", True), ("DELETE", True)]


def test_two_types_of_conditions_are_not_merged():
    blocker = BindPod(REF, "node-1")
    outcomes, scripted = performed(blocker, PATCH, VICTIM, answers=[GOOD])
    assert [ticket for ticket, _ in outcomes] == [0, 1, 2]
    assert len(scripted.requests) == 3


def test_nothing_is_sent_without_the_lease():
    outcomes, scripted = performed(BIND, DELETE, PATCH, answers=[GOOD], leads=False)
    assert scripted.requests == []
    assert all(isinstance(outcome, Failed) for _, outcome in outcomes)


def test_a_repeated_failure_is_logged_once_per_reason(capsys):
    logs.configure()
    release = ReleaseResourceClaim(REF, "ns", "gpu", "claim-1")
    freed = (200, {"metadata": {"name": "gpu", "namespace": "ns", "uid": "claim-1"}})
    answers = [no(403), no(403), no(422, "bad"), no(422, "bad"), freed, no(403)]
    performed(*[release] * len(answers), answers=answers)
    reasons = [line.partition("why=")[2] for line in capsys.readouterr().err.splitlines()]
    assert reasons == ['"no"', '"bad"', '"no"']
