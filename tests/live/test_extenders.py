"""HTTP extenders: a real one, in another process, for each verb and each kind of failure."""

import asyncio
import json
import subprocess
import sys
import textwrap

import pytest
from msgspec.structs import replace

from moorage.api import config
from moorage.api.server_requests import BindPod, PodRef
from moorage.core.effects import Done, Failed, Unknown
from moorage.core.extenders import ExtenderVictims
from moorage.core.journal import Bound, Decided, Erred, Refused
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler
from moorage.errors import InputError
from moorage.framework.post_filter import Candidate
from moorage.live import extenders
from moorage.live.extenders import ExtenderError, HttpExtenders
from moorage.live.tls import self_signed
from moorage.testing import make_node, make_pod

# Answers /VERB with the answer of that name, and /asked with all that it was asked.
EXTENDER = textwrap.dedent("""
    import asyncio, json, ssl, sys
    from aiohttp import web

    asked = []

    async def answer(request):
        verb = request.match_info["verb"]
        if verb == "asked":
            return web.json_response(asked)
        body = await request.read()
        asked.append([verb, request.headers["Content-Type"], json.loads(body)])
        if verb == "slow":
            await asyncio.sleep(30)
        if verb == "broken":
            request.transport.abort()
        if verb == "failing":
            return web.Response(status=500)
        return web.Response(body=answers[verb].encode())

    async def main():
        app = web.Application()
        app.router.add_route("*", "/{verb}", answer)
        runner = web.AppRunner(app)
        await runner.setup()
        context = None
        if len(sys.argv) > 1:
            context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
            context.load_cert_chain(sys.argv[1])
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
        await site.start()
        print(site._server.sockets[0].getsockname()[1], flush=True)
        await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)

    answers = json.loads(sys.stdin.readline())
    asyncio.run(main())
""")

NODES = [make_node("n1", labels={"disk": "ssd"}), make_node("n2")]
POD = make_pod("p", uid="uid-p", labels={"app": "web"})
BIND = BindPod(PodRef.of(POD), "n1")

ANSWERS = {
    "nodes": {"Nodes": {"items": [{"metadata": {"name": "n2"}}]}, "NodeNames": ["n1"]},
    "names": {"NodeNames": ["n2"], "FailedNodes": {"n1": "busy"}},
    "lower": {"nodeNames": ["n1"], "failedAndUnresolvableNodes": {"N2": "gone"}, "error": None},
    "neither": {"FailedNodes": None},
    "refusing": {"Error": "out of order"},
    "garbage": "<html>",
    "odd": {"NodeNames": "n1"},
    "scores": [{"Host": "n1", "Score": 7}, {"host": "n2", "score": 3}],
    "no-scores": None,
    "victims": {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "v"}], "NumPDBViolations": 2}}},
    "bound": {"Error": ""},
}


def start(*arguments):
    process = subprocess.Popen(
        [sys.executable, "-c", EXTENDER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    texts = {
        verb: answer if isinstance(answer, str) else json.dumps(answer)
        for verb, answer in ANSWERS.items()
    }
    process.stdin.write(json.dumps(texts) + "\n")
    process.stdin.flush()
    return process, int(process.stdout.readline())


def stop(process):
    process.communicate(timeout=60)  # Closes its standard input, and that ends it.


@pytest.fixture(scope="module")
def url():
    process, port = start()
    yield f"http://127.0.0.1:{port}"
    stop(process)


@pytest.fixture
def extender(url):
    opened = []

    def make(**settings):
        settings = {"url_prefix": url, "http_timeout_seconds": 5.0, **settings}
        http_extenders = HttpExtenders([config.Extender(**settings)])
        opened.append(http_extenders)
        return http_extenders.extenders[0]

    yield make
    for http_extenders in opened:
        http_extenders.close()


@pytest.fixture
def asked(extender):
    """The last request to the extender."""

    def last():
        probe = extender()
        return json.loads(probe._calls.wait(probe._post("asked", b"{}")))[-1]

    return last


# What is asked


def test_filter_sends_pod_and_nodes(extender, asked):
    extender(filter_verb="nodes").filter(POD, NODES)
    verb, content_type, body = asked()
    assert (verb, content_type, list(body)) == (
        "nodes",
        "application/json",
        ["Pod", "Nodes", "NodeNames"],
    )
    assert body["NodeNames"] is None
    assert body["Pod"]["metadata"]["labels"] == {"app": "web"}
    assert [node["metadata"]["name"] for node in body["Nodes"]["items"]] == ["n1", "n2"]


def test_filter_sends_names_to_an_extender_with_a_node_cache(extender, asked):
    extender(filter_verb="names", node_cache_capable=True).filter(POD, NODES)
    _, _, body = asked()
    assert (body["Nodes"], body["NodeNames"]) == (None, ["n1", "n2"])


def test_a_slash_at_the_end_of_the_url_does_not_matter(extender, url, asked):
    extender(url_prefix=f"{url}//", filter_verb="names").filter(POD, NODES)
    assert asked()[0] == "names"


def test_a_changed_node_is_sent_as_it_is_now(extender, asked):
    made = extender(filter_verb="nodes")
    made.filter(POD, NODES)
    made.filter(POD, [make_node("n1", labels={"disk": "hdd"})])
    _, _, body = asked()
    assert body["Nodes"]["items"][0]["metadata"]["labels"] == {"disk": "hdd"}


@pytest.mark.parametrize(
    ("names", "full", "meta"),
    [
        pytest.param(False, ["v"], None, id="whole pods"),
        pytest.param(True, None, [{"UID": "v"}], id="by UID"),
    ],
)
def test_preempt_sends_victims(extender, asked, names, full, meta):
    victim = make_pod("victim", uid="v")
    made = extender(preempt_verb="victims", node_cache_capable=names)
    assert made.preempt(POD, {"n1": Candidate("n1", (victim,), 1)}) == {
        "n1": ExtenderVictims(("v",), 2)
    }
    _, _, body = asked()
    by_pod, by_uid = body["NodeNameToVictims"], body["NodeNameToMetaVictims"]
    assert (by_pod and [p["metadata"]["uid"] for p in by_pod["n1"]["Pods"]]) == full
    assert (by_uid and by_uid["n1"]["Pods"]) == meta
    assert (by_pod or by_uid)["n1"]["NumPDBViolations"] == 1


def test_bind_sends_pod_and_node(extender, asked):
    made = extender(bind_verb="bound")
    assert made._calls.wait(made.bind(BIND)) == Done()
    assert asked()[2] == {
        "PodName": "p",
        "PodNamespace": "default",
        "PodUID": "uid-p",
        "Node": "n1",
    }


# What is answered


@pytest.mark.parametrize(
    ("verb", "names", "nodes", "failed", "unresolvable"),
    [
        pytest.param("nodes", False, ["n2"], {}, {}, id="node objects"),
        pytest.param("nodes", True, ["n1"], {}, {}, id="names have precedence if names were sent"),
        pytest.param("names", True, ["n2"], {"n1": "busy"}, {}, id="names and reasons"),
        pytest.param("names", False, [], {"n1": "busy"}, {}, id="names although objects were sent"),
        pytest.param("lower", True, ["n1"], {}, {"N2": "gone"}, id="lower camel case"),
        pytest.param("neither", True, [], {}, {}, id="neither: no node passes"),
    ],
)
def test_filter_answers(extender, verb, names, nodes, failed, unresolvable):
    answer = extender(filter_verb=verb, node_cache_capable=names).filter(POD, NODES)
    assert (list(answer.nodes), answer.failed, answer.unresolvable) == (
        nodes,
        failed,
        unresolvable,
    )


@pytest.mark.parametrize(
    ("verb", "found"),
    [
        pytest.param("scores", [("n1", 7), ("n2", 3)], id="in either case"),
        pytest.param("no-scores", [], id="null"),
    ],
)
def test_prioritize_answers(extender, verb, found):
    assert extender(prioritize_verb=verb).prioritize(POD, NODES) == found


def limit_seconds(verb):
    """Short for the verb that is not answered; a busy machine may take longer for the others."""
    return 0.3 if verb == "slow" else 60.0


@pytest.mark.parametrize(
    ("verb", "text"),
    [
        pytest.param("failing", "failed failing with extender at URL {url}/failing, code 500"),
        pytest.param("slow", 'Post "{url}/slow": no answer within 0.3 s'),
        pytest.param("broken", 'Post "{url}/broken": the connection broke: Server disconnected'),
        pytest.param("refusing", "out of order"),
        pytest.param("garbage", "the answer is not JSON: JSON is malformed"),
        pytest.param("odd", "the answer cannot be read: Expected `array | null`, got `str`"),
    ],
    ids=lambda each: each if " " not in each else "",
)
def test_29_failures(extender, url, verb, text):
    made = extender(filter_verb=verb, http_timeout_seconds=limit_seconds(verb))
    with pytest.raises(ExtenderError) as caught:
        made.filter(POD, NODES)
    assert str(caught.value).startswith(text.format(url=url))


def test_no_connection(extender):
    made = extender(url_prefix="http://127.0.0.1:1", filter_verb="f", bind_verb="b")
    with pytest.raises(ExtenderError, match=r'Post "http://127\.0\.0\.1:1/f"'):
        made.filter(POD, NODES)
    assert isinstance(made._calls.wait(made.bind(BIND)), Failed)


@pytest.mark.parametrize(
    ("verb", "outcome"),
    [
        pytest.param("bound", Done, id="bound"),
        pytest.param("refusing", Failed, id="it refuses"),
        pytest.param("failing", Failed, id="it answers 500"),
        pytest.param("slow", Unknown, id="unknown: no response"),
        pytest.param("broken", Unknown, id="unknown: broken connection"),
    ],
)
def test_bind_outcomes(extender, url, verb, outcome):
    made = extender(bind_verb=verb, http_timeout_seconds=limit_seconds(verb))
    request = replace(BIND, extender=url)
    assert isinstance(asyncio.run(made._calls.run(made.bind(request))), outcome)


def test_scores_that_are_no_list():
    with pytest.raises(ExtenderError, match="a list of hosts is expected"):
        extenders.decode_scores(b'{"Host": "n1"}')


# TLS


@pytest.fixture(scope="module")
def secure(tmp_path_factory):
    certificate, key = self_signed(["localhost"])
    file = tmp_path_factory.mktemp("tls") / "both.pem"
    file.write_bytes(certificate + key)
    process, port = start(str(file))
    yield f"https://localhost:{port}", certificate
    stop(process)


@pytest.mark.parametrize(
    ("settings", "trusted"),
    [
        pytest.param({"enable_https": True}, True, id="HTTPS without authority is not verified"),
        pytest.param({"insecure": True}, True, id="insecure"),
        pytest.param({"ca_data": ...}, True, id="its authority"),
        pytest.param({}, False, id="the system's authorities do not know it"),
        pytest.param({"ca_data": ..., "server_name": "other"}, False, id="another name"),
    ],
)
def test_tls(extender, secure, settings, trusted):
    url, certificate = secure
    tls = {name: certificate if value is ... else value for name, value in settings.items()}
    https = tls.pop("enable_https", False)
    made = extender(
        url_prefix=url,
        filter_verb="names",
        enable_https=https,
        tls_config=config.ExtenderTLSConfig(**tls),
        node_cache_capable=True,
    )
    if trusted:
        assert list(made.filter(POD, NODES).nodes) == ["n2"]
    else:
        with pytest.raises(ExtenderError, match="certificate"):
            made.filter(POD, NODES)


def test_a_certificate_file_that_is_not_there():
    settings = config.Extender(tls_config=config.ExtenderTLSConfig(ca_file="/nowhere"))
    with pytest.raises(InputError, match=r"extenders\[0\].tlsConfig.caFile: cannot read"):
        HttpExtenders([settings])


# Together with the scheduler


@pytest.fixture
def outcome(url):
    """The outcome for a pod with these extenders."""
    opened = []

    def run(*extenders):
        made = [config.Extender(**{"url_prefix": url, "weight": 1, **each}) for each in extenders]
        http_extenders = HttpExtenders(made)
        opened.append(http_extenders)
        scheduler = Scheduler(extenders=http_extenders.extenders, at_once=http_extenders.at_once)
        for obj in (*NODES, POD):
            scheduler.observe(Added(obj), 0.0)
        effects = scheduler.schedule_one(0.0)
        for effect in effects:
            if isinstance(effect.request, BindPod) and effect.request.extender:
                done = asyncio.run(http_extenders.bind(effect.request))
                scheduler.complete(effect.ticket, done, 1.0)
        return scheduler.journal.story("uid-p")[-1]

    yield run
    for http_extenders in opened:
        http_extenders.close()


NAMES = {"filter_verb": "names", "node_cache_capable": True}


@pytest.mark.parametrize(
    ("extenders", "kind", "said"),
    [
        pytest.param([NAMES], Decided, "n2", id="filter"),
        pytest.param(
            [{**NAMES, "filter_verb": "slow", "http_timeout_seconds": 0.2, "ignorable": True}],
            Decided,
            "n",
            id="29: no answer, ignored",
        ),
        pytest.param(
            [{**NAMES, "filter_verb": "failing"}], Erred, "code 500", id="29: code 500, not ignored"
        ),
        pytest.param(
            [{**NAMES, "filter_verb": "neither"}],
            Refused,
            "0/2 nodes are available:",
            id="all refused",
        ),
        pytest.param([{"prioritize_verb": "scores"}], Decided, "n1", id="prioritize"),
        pytest.param(
            [{"prioritize_verb": "failing"}, {"prioritize_verb": "scores"}],
            Decided,
            "n1",
            id="prioritize: a failing extender is ignored",
        ),
        pytest.param([{**NAMES, "bind_verb": "bound"}], Bound, "n2", id="bind"),
        pytest.param(
            [{**NAMES, "bind_verb": "refusing"}], Erred, "out of order", id="bind: it refuses"
        ),
    ],
)
def test_decisions(outcome, extenders, kind, said):
    fact = outcome(*extenders)
    assert type(fact) is kind
    assert said in getattr(fact, "node", "") + getattr(fact, "message", "")
