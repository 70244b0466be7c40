"""A guard against large regressions that needs no stopwatch: calls per pod are counted.

How many functions are called for a pod, Python's and C's, is nearly the same on any machine. Where
it grows by much, so did the work; where it grows with the nodes, a loop over nodes has crept in.
What one array operation costs is not seen here: `moorage bench --compare` shows that.

After a change that is meant to cost that much more, or that has made it much cheaper, write down
the new figures: `pytest tests/bench/test_call_counts.py -s` prints them.
"""

import cProfile

import pytest

from moorage.bench import plugin_cost, timing
from moorage.bench.measuring import Size
from moorage.bench.shapes import SHAPES

# Calls per pod with 200 nodes, as last written down.
RECORDED = {
    "basic": 149,
    "own-template": 363,
    "anti-affinity": 221,
    "zone-spread": 235,
    "preemption": 844,
}
MORE = 1.15
FEW_NODES, MANY_NODES = 200, 800
FEW_PODS, MANY_PODS = 50, 150


def calls_per_pod(name, nodes, settings=None):
    """Of the later pods only: what is set up with the first is no cost per pod."""
    few, many = (calls(name, nodes, pods, settings) for pods in (FEW_PODS, MANY_PODS))
    return (many - few) / (MANY_PODS - FEW_PODS)


@pytest.fixture(autouse=True, scope="module")
def warm():
    """What Python and NumPy do only once in a process is done before we count."""
    for name in RECORDED:
        calls(name, 10, 10)


def calls(name, nodes, pods, settings=None):
    workload = Size(nodes, initial=20, pods=pods).workload(SHAPES[name])
    cluster = timing.prepare(workload, settings)
    profiler = cProfile.Profile()
    profiler.runcall(cluster.schedule_all)
    return sum(entry.callcount for entry in profiler.getstats())


@pytest.mark.parametrize("name", RECORDED)
def test_calls_per_pod(name):
    few, many = (calls_per_pod(name, nodes) for nodes in (FEW_NODES, MANY_NODES))
    print(f'    "{name}": {few:.0f},  # {many:.0f} with {MANY_NODES} nodes')  # noqa: T201  # for -s
    assert few <= RECORDED[name] * MORE
    assert many <= few * MORE, "the number of calls grows with the number of nodes"


LOOPS = """
class Loops:
    name = "Loops"  # No whole-cluster form, and answers that may not be kept.

    def score(self, state, pod, node):
        return node.pod_count
"""


def test_a_loop_over_nodes_is_found(tmp_path):
    (tmp_path / "loops.py").write_text(LOOPS, encoding="utf-8")
    settings = plugin_cost.configuration(f"{tmp_path}/loops.py:Loops")
    few, many = (calls_per_pod("basic", nodes, settings) for nodes in (FEW_NODES, MANY_NODES))
    assert few > RECORDED["basic"] * MORE
    assert many > few * MORE
