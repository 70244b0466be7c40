"""The same seed gives the same run, byte for byte, in this process and in any other."""

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests import storm

from moorage.framework.views.template import TemplateViews
from moorage.sim import trace
from moorage.sim.run import Simulation

SEEDS = (1, 2, 3, 5, 8)

# Prints a digest of the trace, the journal and the placements per seed.
SCRIPT = """
import hashlib, sys
sys.path.append("tools")
from tests import storm
for seed in map(int, sys.argv[1:]):
    sim = storm.run(seed)
    record = "\\n".join([*sim.trace.lines(), *sim.journal.lines(), repr(sim.placements)])
    print(hashlib.sha256(record.encode()).hexdigest())
"""


def record(sim: Simulation) -> str:
    assert sim.trace is not None
    return "\n".join([*sim.trace.lines(), *sim.journal.lines(), repr(sim.placements)])


@pytest.mark.parametrize("seed", SEEDS)
def test_the_same_seed_gives_the_same_run(seed):
    assert record(storm.run(seed)) == record(storm.run(seed))


def test_another_seed_gives_another_run():
    assert record(storm.run(1)) != record(storm.run(2))


def test_repeated_decisions_change_nothing(monkeypatch):
    """Equal pods that are decided from the last decision leave the same journal as anew."""
    repeats, repeat = [], TemplateViews.repeat

    def counted(views):
        repeats.append(repeat(views))
        return repeats[-1]

    monkeypatch.setattr(TemplateViews, "repeat", counted)
    with_repeats = [record(deploy(seed)) for seed in range(3)]
    with_repeats += [record(storm.run(seed)) for seed in range(12)]
    assert sum(each is not None for each in repeats) > 500
    monkeypatch.setattr(TemplateViews, "repeat", lambda views: None)
    anew = [record(deploy(seed)) for seed in range(3)]
    anew += [record(storm.run(seed)) for seed in range(12)]
    assert with_repeats == anew


def deploy(seed):
    """Pods of two sizes, each many times, on nodes of two sizes; all of them are placed."""
    nodes = [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": f"n{i}", "labels": {"topology.kubernetes.io/zone": f"z{i % 3}"}},
            "status": {"allocatable": {"cpu": ("4", "8")[i % 2], "memory": "32Gi", "pods": "110"}},
        }
        for i in range(20)
    ]
    pods = [
        pod(f"{cpu}-{i}", cpu)
        for cpu, count in (("100m", 200), ("300m", 150))
        for i in range(count)
    ]
    sim = Simulation([*nodes, *pods], seed=seed, trace=True)
    sim.run()
    assert len(sim.placements) == len(pods)
    return sim


def pod(name, cpu):
    container = {"name": "c", "image": "c", "resources": {"requests": {"cpu": cpu}}}
    return {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"containers": [container]},
    }


def test_the_hash_seed_does_not_matter():
    here = [hashlib.sha256(record(storm.run(seed)).encode()).hexdigest() for seed in SEEDS]
    for hash_seed in ("1", "4242"):
        there = subprocess.run(
            [sys.executable, "-c", SCRIPT, *map(str, SEEDS)],
            env=os.environ | {"PYTHONHASHSEED": hash_seed},
            cwd=Path(__file__).parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        assert there.stdout.split() == here


@pytest.mark.parametrize("seed", SEEDS)
def test_a_trace_can_be_replayed(seed):
    recorded = storm.run(seed).trace
    assert recorded is not None
    assert list(trace.replay(recorded.lines())) == list(recorded.lines())
