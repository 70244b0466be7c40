"""The secure port: health checks, metrics, configuration, dumps, authorization."""

import asyncio
import json
import socket
import ssl
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from moorage.api import config
from moorage.api.server_requests import BindPod
from moorage.core.effects import Done
from moorage.core.observations import Added
from moorage.errors import InputError
from moorage.live import authorization, server, tls
from moorage.live.authorization import ACCESS_REVIEWS, TOKEN_REVIEWS, Authorizer
from moorage.live.client import Client
from moorage.live.connection import Connection
from moorage.live.health import Health
from moorage.live.leader_election import LeaderElector
from moorage.live.run import LiveScheduler
from moorage.live.timed import TimedScheduler
from moorage.live.tls import self_signed
from moorage.metrics.meter import Meter
from moorage.testing import make_node, make_pod

NOWHERE = Connection(server="http://127.0.0.1:1")
NOT_READY = "[-]sched-handler-sync failed: reason withheld"


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


def make_live(*, elected=True, settings=None):
    configuration = config.load(settings)
    meter = Meter(Clock(), lambda: 1.0, 100)
    scheduler = TimedScheduler(configuration, meter)
    client = Client(NOWHERE)
    elector = LeaderElector(client, configuration.leader_election, "me") if elected else None
    live = LiveScheduler(scheduler, client, [], host="here", elector=elector)
    live.is_synced = True
    return live, meter, configuration


# Health


def stuck_leader(live):
    live.elector.is_held, live.elector.renewed_at = True, live.client.clock.boot() - 36.0


def late_leader(live):
    live.elector.is_held, live.elector.renewed_at = True, live.client.clock.boot() - 30.0


def unsynced(live):
    live.is_synced = False


def stopping(live):
    live.is_stopping = True


@pytest.mark.parametrize(
    ("path", "happens", "failed"),
    [
        pytest.param("readyz", lambda live: None, [], id="a standby is ready"),
        pytest.param("readyz", unsynced, ["sched-handler-sync"], id="33: not listed yet"),
        pytest.param("readyz", stopping, ["shutdown"], id="shutting down"),
        pytest.param("readyz", stuck_leader, ["leaderElection"], id="a stuck leader"),
        pytest.param("healthz", stuck_leader, ["leaderElection"], id="a stuck leader"),
        pytest.param("healthz", late_leader, [], id="a leader that is a little late"),
        pytest.param("healthz", unsynced, [], id="healthy before it is ready"),
        pytest.param("livez", stuck_leader, [], id="a standby is alive"),
    ],
)
def test_checks(path, happens, failed):
    live, _, _ = make_live()
    health = Health(live)
    happens(live)
    answer = health.check_all(path)
    assert answer.code == (500 if failed else 200)
    assert [line[3:].split()[0] for line in answer.text.splitlines() if line[:3] == "[-]"] == failed


def test_a_stuck_loop_is_not_alive():
    live, _, _ = make_live(elected=False)
    clock = Clock()
    health = Health(live, clock)
    live.scheduler.observe(Added(make_node()), 0.0)
    live.scheduler.observe(Added(make_pod()), 0.0)
    clock.now = 1000.0
    assert health.check_all("livez").code == 200  # It does not lead yet.
    live.leads = True
    clock.now += 59
    assert health.check_all("livez").code == 200
    clock.now += 2
    assert health.check_one("livez", "schedulingLoop").text == (
        "internal server error: no pod was tried for 61 s\n"
    )
    live.scheduler.schedule_one(0.0)
    assert health.check_all("livez").code == 200


@pytest.mark.parametrize(
    ("query", "code", "text"),
    [
        pytest.param({}, 500, ["[+]leaderElection ok", "[+]shutdown ok", NOT_READY], id="as it is"),
        pytest.param(
            {"exclude": ["sched-handler-sync"], "verbose": True},
            200,
            ["[+]leaderElection ok", "[+]shutdown ok", "[+]sched-handler-sync excluded: ok"],
            id="one excluded",
        ),
        pytest.param({"exclude": ["sched-handler-sync"]}, 200, None, id="in few words"),
        pytest.param(
            {"exclude": ["other"]},
            500,
            [
                "[+]leaderElection ok",
                "[+]shutdown ok",
                NOT_READY,
                'warn: some health checks cannot be excluded: no matches for "other"',
            ],
            id="an unknown check excluded",
        ),
    ],
)
def test_response_texts(query, code, text):
    live, _, _ = make_live()
    live.is_synced = False
    answer = Health(live).check_all("readyz", **query)
    assert answer.code == code
    verdict = f"readyz check {'passed' if code == 200 else 'failed'}"
    assert answer.text == ("ok" if text is None else "\n".join([*text, verdict, ""]))


def test_slis_count_outcomes():
    live, _, _ = make_live()
    health = Health(live)
    health.check_all("readyz")
    live.is_synced = False
    health.check_all("readyz")
    said = list(health.slis())
    assert 'kubernetes_healthcheck{name="sched-handler-sync",type="readyz"} 0' in said
    wanted = 'kubernetes_healthchecks_total{name="shutdown",status="success",type="readyz"} 2'
    assert wanted in said


# Over HTTP


@asynccontextmanager
async def serving(live, meter, configuration, *, authorizer=None, context=None):
    authorizer = authorizer or Authorizer(None, trust_loopback=True)
    made = server.SecureServer(live, meter, configuration, authorizer)
    async with made.listening("127.0.0.1", 0, context) as port:
        scheme = "http" if context is None else "https"
        async with aiohttp.ClientSession(f"{scheme}://localhost:{port}") as session:
            yield session


def get(*paths, method="GET", settings=None, prepare=None):
    """Status and text of each path."""

    async def ask():
        live, meter, configuration = make_live(settings=settings)
        if prepare is not None:
            prepare(live)
        found = []
        async with serving(live, meter, configuration) as session:
            for path in paths:
                async with session.request(method, path) as answer:
                    found.append((answer.status, await answer.text()))
        return found

    return asyncio.run(ask())


def scheduled(live):
    scheduler = live.scheduler
    scheduler.observe(Added(make_node("n1")), 0.0)
    scheduler.observe(Added(make_pod("p", uid="p", requests={"cpu": "1"})), 0.0)
    scheduler.observe(Added(make_pod("huge", uid="huge", requests={"cpu": "99"})), 0.0)
    for _ in range(2):
        for effect in scheduler.schedule_one(1.0):
            if isinstance(effect.request, BindPod):
                scheduler.complete(effect.ticket, Done(), 2.0)


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        pytest.param("/healthz", 200, "ok", id="healthz"),
        pytest.param("/livez", 200, "ok", id="livez"),
        pytest.param("/readyz", 200, "ok", id="readyz"),
        pytest.param(
            "/livez?verbose",
            200,
            "[+]ping ok\n[+]schedulingLoop ok\nlivez check passed\n",
            id="in many words",
        ),
        pytest.param("/readyz/shutdown", 200, "ok", id="a single check"),
        pytest.param("/readyz/other", 404, "there is no check other\n", id="unknown check"),
        pytest.param("/metrics/slis", 200, "# TYPE kubernetes_healthcheck gauge", id="slis"),
        pytest.param("/metrics", 200, "scheduler_pending_pods", id="metrics"),
        pytest.param("/other", 404, "404", id="no such path"),
    ],
)
def test_paths(path, status, text):
    ((got, body),) = get(path)
    assert got == status
    assert text in body


def test_metrics_count_pods():
    ((_, text),) = get("/metrics", prepare=scheduled)
    wanted = (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1.0',
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="unschedulable"} 1.0',
        'scheduler_pending_pods{queue="unschedulable"} 1.0',
        'scheduler_event_handling_duration_seconds_count{event="NodeAdd"} 1.0',
        'moorage_core_duration_seconds_count{verb="schedule_one"} 2.0',
    )
    lines = text.splitlines()
    # Labels come in the order of kube-scheduler's table; which one does not matter to anybody.
    normal = {_sorted_labels(line) for line in lines}
    assert {_sorted_labels(line) for line in wanted} <= normal


def _sorted_labels(line):
    name, brace, rest = line.partition("{")
    labels, _, value = rest.partition("}")
    return (name, *sorted(labels.split(",")), value) if brace else (line,)


def test_metrics_can_be_reset():
    assert get("/metrics", method="DELETE", prepare=scheduled) == [(200, "metrics reset\n")]


def test_configz_shows_the_configuration_without_keys():
    tls = {"keyData": "c2VjcmV0", "certData": "cHVibGlj"}
    settings = {
        "apiVersion": config.API_VERSION,
        "kind": config.KIND,
        "extenders": [{"urlPrefix": "https://e", "tlsConfig": tls}],
    }
    ((_, text),) = get("/configz", settings=settings)
    shown = json.loads(text)["componentconfig"]
    assert shown["kind"] == config.KIND
    assert shown["profiles"][0]["schedulerName"] == "default-scheduler"
    assert shown["extenders"][0]["tlsConfig"] == {"insecure": False, "certData": "cHVibGlj"}


def test_dumps():
    (_, queue), (_, cache) = get("/debug/queue", "/debug/cache", prepare=scheduled)
    (waiting,) = json.loads(queue)["unschedulable"]
    assert waiting["pod"] == "default/huge"
    assert waiting["unschedulablePlugins"] == ["NodeResourcesFit"]
    held = json.loads(cache)
    assert held["assumed"] == ["default/p"]
    assert held["table"] == [
        {
            "node": "n1",
            "pods": ["default/p"],
            "requested": {"cpu": "1"},
            "allocatable": {"cpu": "4", "memory": "32Gi"},
        }
    ]


# TLS


def test_a_self_signed_certificate():
    async def ask():
        context = tls.server_context()
        trusting = ssl.create_default_context()
        trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
        async with (
            serving(*make_live(), context=context) as session,
            session.get("/livez", ssl=trusting) as answer,
        ):
            return await answer.text()

    assert asyncio.run(ask()) == "ok"


def test_a_given_certificate(tmp_path):
    certificate, key = self_signed(["localhost"])
    (tmp_path / "cert").write_bytes(certificate)
    (tmp_path / "key").write_bytes(key)

    async def ask():
        context = tls.server_context(str(tmp_path / "cert"), str(tmp_path / "key"))
        trusting = ssl.create_default_context(cadata=certificate.decode())
        async with (
            serving(*make_live(), context=context) as session,
            session.get("/livez", ssl=trusting) as answer,
        ):
            return await answer.text()

    assert asyncio.run(ask()) == "ok"


@pytest.mark.parametrize(
    ("files", "text"),
    [
        pytest.param(("cert", ""), "have to be given together", id="no key"),
        pytest.param(("/nowhere", "/nowhere"), "No such file", id="not there"),
        pytest.param((__file__, __file__), "PEM", id="not a certificate"),
    ],
)
def test_certificates_that_cannot_be_used(files, text):
    with pytest.raises(InputError, match=text):
        tls.server_context(*files)


def test_a_port_that_is_taken():
    async def listen():
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            made = server.SecureServer(*make_live(), Authorizer(None))
            async with made.listening("127.0.0.1", taken.getsockname()[1], None):
                pass

    with pytest.raises(InputError, match=r"cannot listen on 127\.0\.0\.1:\d+: .*in use"):
        asyncio.run(listen())


def test_an_invalid_address():
    async def listen():
        made = server.SecureServer(*make_live(), Authorizer(None))
        async with made.listening("300.1.1.1", 0, None):
            pass

    with pytest.raises(InputError, match=r"cannot listen on 300\.1\.1\.1:0: name .* not known"):
        asyncio.run(listen())


# Who may look

REMOTE = "10.1.2.3"


@pytest.mark.parametrize(
    ("peer", "header", "path", "code"),
    [
        pytest.param(REMOTE, "", "/healthz", 200, id="health is open"),
        pytest.param(REMOTE, "", "/healthz/ping", 401, id="exactly that path"),
        pytest.param(REMOTE, "", "/metrics", 401, id="metrics are not"),
        pytest.param("127.0.0.1", "", "/metrics", 200, id="from this machine"),
        pytest.param("::1", "", "/metrics/slis", 200, id="from this machine by IPv6"),
        pytest.param("127.0.0.1", "", "/ui/api/pods/a/b", 200, id="the web UI"),
        pytest.param(REMOTE, "", "/ui/api/pods/a/b", 401, id="the web UI from elsewhere"),
        pytest.param(REMOTE, "Bearer from-file", "/ui/api/cluster", 200, id="the web UI, a token"),
        pytest.param(REMOTE, "Bearer scraper", "/ui/api/cluster", 403, id="no permission for it"),
        pytest.param("127.0.0.1", "", "/configz", 401, id="not the configuration"),
        pytest.param("127.0.0.1", "", "/debug/queue", 401, id="not the queue"),
        pytest.param("127.0.0.1", "Bearer from-file", "/configz", 200, id="with a token"),
        pytest.param(REMOTE, "Bearer from-file", "/metrics", 200, id="the token of the file"),
        pytest.param(REMOTE, "bearer from-file", "/metrics", 200, id="in lower case"),
        pytest.param(REMOTE, "Basic from-file", "/metrics", 401, id="not as a password"),
        pytest.param(REMOTE, "Bearer scraper", "/metrics", 200, id="the cluster allows it"),
        pytest.param(REMOTE, "Bearer scraper", "/configz", 403, id="the cluster does not"),
        pytest.param(REMOTE, "Bearer stranger", "/metrics", 401, id="the cluster does not know it"),
        pytest.param(REMOTE, "", "/open/wide", 200, id="a prefix that is open"),
    ],
)
def test_authorization(tmp_path, peer, header, path, code):
    (tmp_path / "token").write_text("from-file\n")

    async def ask(client):
        authorizer = Authorizer(
            client, always=["/healthz", "/open*"], token_file=str(tmp_path / "token")
        )
        return await authorizer.code(peer, header, "GET", path)

    assert asyncio.run(_with_reviews(ask))[0] == code


def test_reviews_are_cached():
    clock = Clock()

    async def ask(client):
        authorizer = Authorizer(client, clock=clock)
        codes = []
        for now in (0.0, 9.0, 11.0):
            clock.now = now
            codes.append(await authorizer.code(REMOTE, "Bearer scraper", "GET", "/metrics"))
        return codes

    codes, reviews = asyncio.run(_with_reviews(ask))
    assert codes == [200, 200, 200]
    assert reviews == 4


@pytest.mark.parametrize(
    ("host", "code"),
    [("127.0.0.1:1", 404), ("localhost", 404), ("[::1]:2", 404), ("evil.org", 403)],
)
def test_the_web_ui_has_no_other_names(host, code):
    async def ask():
        async with (
            serving(*make_live()) as session,
            session.get("/ui/api/cluster", headers={"Host": host}) as answer,
        ):
            return answer.status

    assert asyncio.run(ask()) == code


def test_loopback_may_not_reset_metrics_unless_it_is_trusted():
    async def ask(**options):
        return await Authorizer(None, **options).code("127.0.0.1", "", "DELETE", "/metrics")

    assert asyncio.run(ask()) == 401
    assert asyncio.run(ask(trust_loopback=True)) == 200


def test_invented_tokens_cause_few_reviews():
    clock = Clock()

    async def ask(client):
        authorizer = Authorizer(client, clock=clock)
        good = [await authorizer.code("10.0.0.9", "Bearer scraper", "GET", "/metrics")]
        codes = []
        for i in range(400):
            clock.now = i / 100
            codes.append(await authorizer.code(REMOTE, f"Bearer token-{i}", "GET", "/metrics"))
            if i % 100 == 0:
                good.append(await authorizer.code("10.0.0.9", "Bearer scraper", "GET", "/metrics"))
        again = await authorizer.code(REMOTE, "Bearer token-0", "GET", "/metrics")
        return codes, good, again

    (codes, good, again), reviews = asyncio.run(_with_reviews(ask))
    assert set(codes) == {401, 429}
    assert reviews <= 2 + authorization.REVIEW_BURST + 4 * authorization.REVIEWS_PER_SECOND
    assert good == [200] * 5
    assert again == 401  # A negative review is cached.


def test_without_a_review_nothing_is_allowed():
    async def ask():
        async with Client(NOWHERE) as client:
            return await Authorizer(client).code(REMOTE, "Bearer x", "GET", "/metrics")

    assert asyncio.run(ask()) == 401


def test_a_token_file_without_a_token(tmp_path):
    (tmp_path / "empty").touch()
    with pytest.raises(InputError, match="there is no token in it"):
        Authorizer(None, token_file=str(tmp_path / "empty"))


async def _with_reviews(ask):
    """Run with a client of an API server that knows one scraper; the result, and the reviews."""
    count = 0

    async def tokens(request):
        nonlocal count
        count += 1
        token = (await request.json())["spec"]["token"]
        user = {"username": "prometheus", "groups": ["scrapers"]}
        return web.json_response({"status": {"authenticated": token == "scraper", "user": user}})

    async def access(request):
        nonlocal count
        count += 1
        spec = (await request.json())["spec"]
        assert (spec["user"], spec["groups"]) == ("prometheus", ["scrapers"])
        allowed = spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
        return web.json_response({"status": {"allowed": allowed}})

    application = web.Application()
    application.router.add_post(TOKEN_REVIEWS, tokens)
    application.router.add_post(ACCESS_REVIEWS, access)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        port = runner.addresses[0][1]
        async with Client(Connection(server=f"http://127.0.0.1:{port}")) as client:
            return await ask(client), count
    finally:
        await runner.cleanup()
