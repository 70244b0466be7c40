"""The runs behind `moorage bench`: every shape places what it should, in any size."""

import gc
from itertools import count

import pytest

from moorage.bench import timing
from moorage.bench.measuring import Size, measure
from moorage.bench.shapes import SHAPES
from moorage.bench.timing import Clocks

TICKS = Clocks(wall=count().__next__, cpu=count(step=2).__next__)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
@pytest.mark.parametrize("nodes", [1, 50])
def test_every_shape(shape, nodes):
    workload = Size(nodes).workload(shape)
    run = timing.measure(workload, TICKS)
    assert run.pods == len(workload.pods)
    assert run.bound == run.pods - workload.unschedulable
    assert (run.wall_seconds, run.cpu_seconds) == (1, 2)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=lambda shape: shape.name)
def test_names_are_unique(shape):
    workload = Size(30).workload(shape)
    names = [pod.name for pod in (*workload.initial, *workload.pods)]
    assert len(set(names)) == len(names)
    assert len({node.name for node in workload.nodes}) == 30


@pytest.mark.parametrize(
    ("size", "counts"),
    [
        pytest.param(Size(5_000), (5_000, 1_000, 10_000), id="as the shape has it"),
        pytest.param(Size(10_000), (10_000, 1_000, 10_000), id="no more for more nodes"),
        pytest.param(Size(50), (50, 10, 100), id="fewer for fewer nodes"),
        pytest.param(Size(1), (1, 0, 2), id="a single node"),
        pytest.param(Size(50, initial=0, pods=7), (50, 0, 7), id="as given"),
    ],
)
def test_size(size, counts):
    workload = size.workload(SHAPES["basic"])
    assert (len(workload.nodes), len(workload.initial), len(workload.pods)) == counts


def test_after_the_run_the_scheduler_is_at_rest():
    cluster = timing.prepare(Size(20).workload(SHAPES["unschedulable"]))
    cluster.schedule_all()
    assert not cluster.scheduler.has_work
    cluster.scheduler.check_invariants()


def test_figures():
    done = []
    (measured,) = measure(
        [SHAPES["basic"]], Size(20), 3, TICKS, lambda *progress: done.append(progress)
    )
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert measured.pods_per_second == 40
    assert measured.wall_microseconds == 1e6 / 40
    assert measured.pods_per_calibration == 40
    assert gc.get_freeze_count() == 0
