"""tools/step_cost.py counts every opcode of a run once, for the step that it belongs to."""

import pytest
import step_cost
from step_cost import STEPS, count_opcodes

from moorage.bench.measuring import Size
from moorage.bench.shapes import SHAPES
from moorage.bench.timing import prepare

PODS = 20
PLACED = {"take the pod from the queue", "assume: the columns of the node, the cache"}
REJECTED = {"a rejection: condition, Event, queue", "post_filter: dry runs, the choice of victims"}


@pytest.mark.parametrize(
    ("shape", "present", "absent"), [("basic", PLACED, REJECTED), ("preemption", REJECTED, set())]
)
def test_opcodes_by_step(shape, present, absent):
    cluster = prepare(Size(50, pods=PODS).workload(SHAPES[shape]))
    counts = count_opcodes(cluster)
    assert present <= counts.keys() <= {*STEPS.values()}
    assert absent.isdisjoint(counts)
    assert counts["take the pod from the queue"] > 50 * PODS


def test_steps_are_as_they_were_after_they_are_timed():
    before = [getattr(owner, name) for owner, name in STEPS]
    times = step_cost.microseconds(Size(50, pods=PODS), "basic")
    assert [getattr(owner, name) for owner, name in STEPS] == before
    assert times["take the pod from the queue"] > 0
