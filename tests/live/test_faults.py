"""Under network faults every pod that fits is bound, and others are pending with a reason.

`simulated/` has many more faults; here they are on real connections between processes.
"""

import signal

import pytest
from world import until

PODS = 60
FITTING = 40  # five nodes of four CPUs, for pods of half a CPU
GONE = 8

FAULTS = {
    "answers lost, refused and late": {
        "drop": 0.1,
        "drop_after": 0.15,
        "busy": 0.1,
        "error": 0.1,
        "error_after": 0.1,
        "slow": 0.2,
    },
    "watches that break": {
        "gone": 0.03,
        "cut": 0.05,
        "garble": 0.03,
        "double": 0.3,
        "delay": 0.1,
        "delay_seconds": 0.05,
    },
}


@pytest.mark.parametrize("faults", FAULTS.values(), ids=FAULTS.keys())
def test_bound_or_pending_with_a_reason(world, faults):
    world.inject_faults(**faults)
    for i in range(5):
        world.create_node(f"node-{i}")
    for i in range(PODS // 2):
        world.create_pod(f"pod-{i}")
    scheduler = world.run()
    until(lambda: len(world.bound()) >= 10)
    for i in range(PODS // 2, PODS):
        world.create_pod(f"pod-{i}")
    until(lambda: len(world.bound()) == FITTING, 120)
    # Room that becomes free is found, and nothing of what was promised is still held.
    for name in list(world.bound())[:GONE]:
        world.delete_pod(name)
        until(lambda: len(world.bound()) == FITTING)
        world.check_room()
    made = world.inject_faults()
    # A pod whose binding failed is tried once more, after its back-off.
    until(lambda: all("5 Insufficient cpu" in text for text in world.reasons().values()))
    assert len(world.reasons()) == PODS - FITTING - GONE
    assert scheduler.stop() == 0
    assert sum(made.get(name, 0) for name in faults) > 10, "too few faults were injected"


def test_scheduler_that_restarts(world):
    for i in range(5):
        world.create_node(f"node-{i}")
    for i in range(FITTING):
        world.create_pod(f"pod-{i}")
    first = world.run()
    until(lambda: len(world.bound()) >= 5)
    first.signal(signal.SIGKILL)
    first.wait()
    world.run("--leader-elect=false")
    until(lambda: len(world.bound()) == FITTING)
    world.check_room()
