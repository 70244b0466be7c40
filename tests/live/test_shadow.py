"""`moorage run --shadow` next to a scheduler at work, in other processes."""

import asyncio
import contextlib
import json
import os
import pty
import signal
import subprocess

import pytest
from test_operations import ask, free_port
from world import BIN, Scheduler, until

from moorage.live.client import Client
from moorage.live.connection import Connection
from moorage.live.read_only import ReadOnlyError

READS = {"get", "list", "watch"}


def shadow(world, *flags):
    """A shadow behind a proxy of its own, which notes its requests."""
    world.inject_faults("shadow")
    log = world.folder / "shadow.log"
    made = Scheduler("shadow", world.kubeconfig("shadow"), log, "--shadow", *flags)
    world.schedulers.append(made)
    until(lambda: made.said("scheduling"))
    return made


def test_it_only_reads_and_compares(world):
    for i in range(4):
        world.create_node(f"node-{i}", cpu="4")
    world.create_node("big", cpu="8", memory="16Gi")
    report = world.folder / "report.json"
    port = free_port()
    shadowing = shadow(
        world, f"--report={report}", "--bind-address=127.0.0.1", f"--secure-port={port}"
    )
    world.run("--leader-elect=false")
    for i in range(12):
        world.create_pod(f"pod-{i}", cpu="1")
    world.create_pod("too-big", cpu="99")
    until(lambda: len(world.bound()) == 12)
    compared = "moorage_shadow_pods_total{"
    until(lambda: total(ask(port, "/metrics"), compared) == 12)
    assert 'other="rejected"' in until(
        lambda: (text := ask(port, "/metrics")) and 'other="rejected"' in text and text
    )
    assert shadowing.stop() == 0
    seen = world.call("GET", "/seen", base=world.proxies["shadow"])
    assert ["", "pods", "watch"] in seen
    assert {verb for _, _, verb in seen} <= READS
    found = json.loads(report.read_text())
    assert found["compared"] == 12
    assert found["verdicts"]["worse"] == 0
    assert found["pending"] == [{"moorage": "rejected", "other": "rejected", "pods": 1}]


def total(text, prefix):
    return sum(float(line.split()[-1]) for line in text.splitlines() if line.startswith(prefix))


def test_another_configuration_against_real_traffic(world):
    # The other scheduler spreads pods, the shadow's configuration packs them.
    for i in range(3):
        world.create_node(f"node-{i}", cpu="8")
    packing = {
        "type": "MostAllocated",
        "resources": [{"name": "cpu", "weight": 1}],
    }
    profile = {
        "schedulerName": "packing",
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": packing}}],
        "plugins": {"score": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]}},
    }
    file = world.configuration(profiles=[profile]).rename(world.folder / "packing.json")
    report = world.folder / "report.html"
    shadowing = shadow(world, "--config", file, f"--report={report}")
    world.run("--leader-elect=false")
    for i in range(9):
        world.create_pod(f"pod-{i}", cpu="1")
        until(lambda count=i + 1: len(world.bound()) == count)
    assert shadowing.stop() == 0
    text = report.read_text()
    assert "configuration" in text
    assert "NodeResourcesFit" in text


@pytest.mark.parametrize(
    ("term", "figures", "draws"),
    [
        pytest.param("xterm-256color", b"time to decide", True, id="a table"),
        pytest.param("dumb", b"compared 0: ", False, id="lines where nothing can be drawn"),
        pytest.param(None, b"compared 0: ", False, id="lines where nothing is known"),
    ],
)
def test_figures_on_a_terminal(world, term, figures, draws):
    world.create_node("node-0")
    environment = {**os.environ, "TERM": term}
    if term is None:
        del environment["TERM"]
    ours, theirs = pty.openpty()
    command = [BIN / "moorage", "run", "--shadow", "--kubeconfig", world.kubeconfig()]
    process = subprocess.Popen(
        [*command, "--secure-port=0"],
        stdout=theirs,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    os.close(theirs)
    shown = b""
    while figures not in shown:
        shown += os.read(ours, 4096)
    process.send_signal(signal.SIGINT)
    with contextlib.suppress(OSError):  # The other side is closed.
        while chunk := os.read(ours, 4096):
            shown += chunk
    os.close(ours)
    assert process.wait(60) == 0
    assert (b"\x1b[" in shown) is draws
    assert (b"0 pods compared, 0 pending" in shown) is draws
    assert b"No pod was bound by the other scheduler meanwhile." in shown


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_the_transport_refuses_all_but_get(method):
    async def send():
        async with Client(Connection(server="http://127.0.0.1:9"), read_only=True) as client:
            for each in (client, client.with_own_bucket()):
                with pytest.raises(ReadOnlyError, match=f"{method} /api is refused"):
                    await each.request(method, "/api", b"{}")

    asyncio.run(send())


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        pytest.param(["--report", "x.html"], "--report requires --shadow", id="report alone"),
        pytest.param(
            ["--scheduler-name", "x"], "--scheduler-name requires --shadow", id="name alone"
        ),
        pytest.param(
            ["--shadow", "--report", "x.txt"], "must end in .html or .json", id="other format"
        ),
        pytest.param(
            ["--shadow", "--report", "no/x.html"], "there is no folder no", id="missing folder"
        ),
    ],
)
def test_bad_options(flags, line):
    ran = subprocess.run(
        [BIN / "moorage", "run", *flags], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 2
    assert line in ran.stderr.splitlines()[-1]
