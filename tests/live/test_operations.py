"""`moorage run` in another process: endpoints, signals, extenders."""

import json
import signal
import socket
import ssl
import subprocess
import sys
import textwrap
import urllib.request

import pytest
from world import until

EXTENDER = textwrap.dedent("""
    import asyncio, json, sys, urllib.request
    from aiohttp import web

    async def bind(request):
        # An extender that binds creates the binding itself.
        asked = await request.json()
        path = f"/api/v1/namespaces/{asked['PodNamespace']}/pods/{asked['PodName']}/binding"
        binding = {
            "metadata": {"name": asked["PodName"], "uid": asked["PodUID"]},
            "target": {"kind": "Node", "name": asked["Node"]},
        }
        call = urllib.request.Request(
            sys.argv[1] + path,
            data=json.dumps(binding).encode(),
            headers={"Content-Type": "application/json"},
        )
        await asyncio.to_thread(urllib.request.urlopen, call, timeout=60)
        return web.json_response({"Error": ""})

    async def filter(request):
        asked = await request.json()
        names = [name for name in asked["NodeNames"] if name == "node-2"]
        failed = {name: "extender says no" for name in asked["NodeNames"] if name not in names}
        return web.json_response({"NodeNames": names, "FailedNodes": failed})

    async def main():
        app = web.Application()
        app.router.add_post("/bind", bind)
        app.router.add_post("/filter", filter)
        runner = web.AppRunner(app)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.to_thread(sys.stdin.read)

    asyncio.run(main())
""")


@pytest.fixture
def extender(world):
    process = subprocess.Popen(
        [sys.executable, "-c", EXTENDER, world.address],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield f"http://127.0.0.1:{int(process.stdout.readline())}"
    process.communicate(timeout=60)


def run_with(world, extender):
    """A scheduler whose configuration, in a file of its own, names an extender."""
    file = world.configuration(extenders=[extender]).rename(world.folder / "extended.json")
    return world.run("--config", file)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(port, path):
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(
            f"https://127.0.0.1:{port}{path}", timeout=60, context=trusting
        ) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def test_endpoints_and_dump_of_a_running_scheduler(world):
    for i in range(3):
        world.create_node(f"node-{i}")
    port = free_port()
    flags = (f"--secure-port={port}", "--bind-address=127.0.0.1", "--trust-loopback", "--ui")
    scheduler = world.run(*flags)
    until(lambda: ask(port, "/readyz") == "ok")
    world.create_pod("a")
    world.create_pod("huge", cpu="99")
    until(lambda: "a" in world.bound() and world.reasons().get("huge"))
    metrics = ask(port, "/metrics")
    assert 'scheduler_pending_pods{queue="unschedulable"} 1.0' in metrics
    assert 'leader_election_master_status{name="kube-scheduler"} 1.0' in metrics
    assert 'rest_client_requests_total{code="201",' in metrics
    (waiting,) = json.loads(ask(port, "/debug/queue"))["unschedulable"]
    assert waiting["pod"] == "default/huge"
    assert json.loads(ask(port, "/debug/cache"))["differences"] == []
    assert "<title>Moorage</title>" in ask(port, "/ui")
    cluster = json.loads(ask(port, "/ui/api/cluster"))
    assert (cluster["nodes"], cluster["pods"], cluster["pending"]) == (3, 1, 1)
    assert "Insufficient cpu" in ask(port, "/ui/api/pods/default/huge")
    assert "rejected" in ask(port, "/ui/api/history?pod=default/huge")
    until(lambda: sum(json.loads(ask(port, "/ui/api/activity"))["bound"]) == 1)
    scheduler.signal(signal.SIGUSR2)
    until(lambda: scheduler.said("cache comparison done mismatches=0"))
    assert scheduler.stop() == 0
    assert ask(port, "/livez") == ""


def test_an_extender_filters_and_binds(world, extender):
    for i in range(3):
        world.create_node(f"node-{i}")
    settings = {
        "urlPrefix": extender,
        "filterVerb": "filter",
        "bindVerb": "bind",
        "nodeCacheCapable": True,
    }
    scheduler = run_with(world, settings)
    for i in range(8):
        world.create_pod(f"p{i}")
    until(lambda: len(world.bound()) == 8)
    assert set(world.bound().values()) == {"node-2"}
    world.create_pod("ninth")
    until(lambda: "extender says no" in world.reasons().get("ninth", ""))
    assert scheduler.stop() == 0


def test_pods_wait_for_an_extender_that_is_not_ignorable(world):
    world.create_node("node-0")
    settings = {"urlPrefix": "http://127.0.0.1:1", "filterVerb": "filter"}
    run_with(world, settings)
    world.create_pod("a")
    until(lambda: "127.0.0.1:1/filter" in world.reasons().get("a", ""))
    assert world.bound() == {}
