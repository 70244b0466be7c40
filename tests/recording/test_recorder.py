"""`moorage record` of a cluster at work, and its replay under another configuration."""

import json
import re
import signal
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "live"))

from world import BIN, World, until

from moorage.planning import recording
from moorage.planning.replay import rerun


@pytest.fixture
def world(tmp_path):
    made = World(tmp_path)
    yield made
    made.close()


def record(world, file, *flags):
    world.inject_faults("recorder")
    command = [BIN / "moorage", "record", file, "--kubeconfig", world.kubeconfig("recorder")]
    process = subprocess.Popen([*command, *flags], stderr=subprocess.PIPE, text=True)
    until(lambda: file.exists() and b'"Node"' in lines(file))
    return process


def lines(file):
    data = file.read_bytes()
    # It may still be being written.
    return zlib.decompressobj(wbits=31).decompress(data) if file.suffix == ".gz" else data


def bound(file):
    """The pods that the file shows on a node."""
    decoded = [json.loads(line) for line in lines(file).split(b"\n")[:-1]]
    pods = [line["objects"][0] for line in decoded if line.get("kind") == "Pod"]
    return {pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName")}


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    return process.returncode, error.splitlines()[-1]


def packing(folder):
    """A configuration that fills one node after the other."""
    strategy = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    args = {"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}
    disabled = [{"name": "NodeResourcesBalancedAllocation"}]
    profile = {"pluginConfig": [args], "plugins": {"score": {"disabled": disabled}}}
    file = folder / "packing.json"
    header = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
    }
    file.write_text(json.dumps({**header, "profiles": [profile]}))
    return str(file)


def test_record_and_replay(world):
    for i in range(3):
        world.create_node(f"node-{i}", cpu="8")
    file = world.folder / "day.jsonl"
    process = record(world, file)
    world.run("--leader-elect=false")
    for i in range(6):
        world.create_pod(f"pod-{i}", cpu="1")
    until(lambda: len(world.bound()) == 6)
    world.delete_pod("pod-0")
    until(lambda: b'"Deleted"' in lines(file))
    code, line = stop(process)
    assert code == 0
    assert re.match(rf"{file}: \d+ objects at the start, \d+ changes \(", line)
    seen = world.call("GET", "/seen", base=world.proxies["recorder"])
    assert {verb for _, _, verb in seen} <= {"get", "list", "watch"}

    recorded = recording.read(file)
    assert recorded.is_live
    same = rerun(recorded)
    assert same.recorded_waits.count == same.waits.count == 6
    assert same.placements.keys() == {f"default/pod-{i}" for i in range(6)}
    assert not same.pending
    packed = rerun(recorded, packing(world.folder))
    assert len({now for _, now in packed.placements.values()}) == 1
    assert len({before for before, _ in packed.placements.values()}) > 1

    command = [BIN / "moorage", "simulate", "replay", file, "-o", "json"]
    printed = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    assert printed["waits"]["recorded"]["count"] == 6


def test_faults_are_survived(world):
    world.create_node("node-0", cpu="100")
    world.inject_faults("recorder")
    file = world.folder / "faulty.jsonl.gz"
    process = record(world, file)
    world.inject_faults("recorder", gone=0.2, cut=0.2, drop=0.1)
    world.run("--leader-elect=false")
    for i in range(30):
        world.create_pod(f"pod-{i}", cpu="1")
    until(lambda: len(world.bound()) == 30)
    world.inject_faults("recorder")
    world.create_pod("last", cpu="1")
    until(lambda: len(bound(file)) == 31)
    code, _ = stop(process, signal.SIGINT)
    assert code == 0
    assert rerun(recording.read(file)).pods == 31


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        pytest.param(["no/where.jsonl"], "no/where.jsonl: no such file or directory", id="folder"),
        pytest.param(["x", "--for", "soon"], "Invalid value for '--for'", id="duration"),
        pytest.param(["x", "--for", "-5s"], "'-5s' is not longer than nothing", id="no time"),
    ],
)
def test_bad_input(world, arguments, line):
    command = [BIN / "moorage", "record", "--kubeconfig", world.kubeconfig(), *arguments]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=world.folder)
    assert ran.returncode == 2
    assert line in ran.stderr.splitlines()[-1]


def test_it_stops_by_itself(world):
    world.create_node("node-0")
    file = world.folder / "short.jsonl"
    command = [BIN / "moorage", "record", file, "--kubeconfig", world.kubeconfig(), "--for=1s"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 0
    assert " objects at the start, no change in" in ran.stderr.splitlines()[-1]


def test_a_cluster_that_cannot_be_reached(world):
    kubeconfig, file = world.kubeconfig(), world.folder / "none.jsonl"
    world.close()
    command = [BIN / "moorage", "record", file, "--kubeconfig", kubeconfig, "--for=1s"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert ran.returncode == 2
    expected = f"moorage: {file}: is incomplete: stopped before all objects were listed"
    assert ran.stderr.splitlines()[-1] == expected
    assert "Traceback" not in ran.stderr
