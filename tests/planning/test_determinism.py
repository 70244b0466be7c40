"""The same input gives the same result, whatever the iteration order of sets."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[2] / "examples" / "planning"

ASK_EVERYTHING = """
import json, sys
from pathlib import Path
from moorage.api import manifests
from moorage.planning.add_nodes import add_nodes
from moorage.planning.capacity import capacity
from moorage.planning.compact import compact
from moorage.planning.compare import compare
from moorage.planning.drain import drain

folder = Path(sys.argv[1])
def load(name):
    return manifests.load([folder / name]).everything
cluster = load("cluster.yaml")
answers = [
    capacity(cluster, load("worker.yaml")[0]),
    drain(cluster, selector="topology.kubernetes.io/zone=eu-1b"),
    add_nodes([*cluster, *load("batch.yaml")], load("new-nodes.yaml")),
    compact(cluster, seeds=range(2)),
    compare(cluster, {"default": None, "packed": folder / "packed.yaml"}),
]
print(json.dumps([answer.to_dict() for answer in answers]))
"""


def answers(hash_seed):
    ran = subprocess.run(
        [sys.executable, "-c", ASK_EVERYTHING, str(EXAMPLES)],
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    return ran.stdout


def test_two_hash_seeds_give_the_same_bytes():
    assert answers("1") == answers("2")
