"""Two schedulers and one lease: take-over by the standby, and a leader that has lost the lease."""

import os
import signal
import time

import pytest
from world import until

SHORT = (
    "--leader-elect-lease-duration=3s",
    "--leader-elect-renew-deadline=2s",
    "--leader-elect-retry-period=500ms",
)
LONG = pytest.mark.skipif(not os.environ.get("MOORAGE_LONG"), reason="takes half a minute")
# Flags, seconds until a standby has to have bound a pod, seconds to be stopped for. A busy machine
# gets more than the length of a lease, but not so much that leases of another length would do.
SETTINGS = [
    pytest.param(SHORT, 12.0, 4.5, id="short leases"),
    pytest.param((), 30.0, 20.0, id="default leases", marks=[pytest.mark.slow, LONG]),
]


def two_replicas(world, *flags):
    """A leader and a standby, each behind a proxy that counts its bindings."""
    for i in range(4):
        world.create_node(f"node-{i}", cpu="100")
    for name in "ab":
        world.inject_faults(name)
    both = [world.run(*flags, name=name) for name in "ab"]
    until(lambda: all(each.said("synced") for each in both))
    leader = until(lambda: next((each for each in both if each.said("scheduling")), None))
    (standby,) = (each for each in both if each is not leader)
    world.create_pod("first")
    until(lambda: "first" in world.bound())
    return leader, standby


@pytest.mark.parametrize(("flags", "within_seconds", "_"), SETTINGS)
def test_killed_leader(world, flags, within_seconds, _):
    leader, standby = two_replicas(world, *flags)
    leader.signal(signal.SIGKILL)
    world.create_pod("second")
    until(lambda: "second" in world.bound(), within_seconds)
    assert world.lease()["leaseTransitions"] == 1
    assert standby.stop() == 0


@pytest.mark.parametrize(("flags", "within_seconds", "stopped_seconds"), SETTINGS)
def test_leader_that_wakes_up_late(world, flags, within_seconds, stopped_seconds):
    # Few requests a second, so that bindings wait to be sent when the leader is stopped.
    leader, standby = two_replicas(world, *flags, "--kube-api-qps=20", "--kube-api-burst=20")
    for i in range(60):
        world.create_pod(f"pod-{i}")
    until(lambda: len(world.bound()) >= 20)
    leader.signal(signal.SIGSTOP)
    stopped_at = time.monotonic()
    until(lambda: standby.said("scheduling"), within_seconds)
    time.sleep(max(0.0, stopped_at + stopped_seconds - time.monotonic()))
    bindings = world.fault_counts(leader.name)["bindings"]
    leader.signal(signal.SIGCONT)
    assert leader.wait() == 1
    assert leader.said("Leaderelection lost")
    assert world.fault_counts(leader.name)["bindings"] == bindings, "the old leader went on binding"
    until(lambda: len(world.bound()) == 61)
    world.check_room()


def test_take_over_after_a_release(world):
    leader, standby = two_replicas(world)  # default leases: waiting for the end would take long
    holder = world.lease()["holderIdentity"]
    assert leader.stop() == 0
    assert world.lease()["holderIdentity"] != holder
    world.create_pod("second")
    until(lambda: "second" in world.bound(), 12)  # before the lease would be over
    assert standby.said("successfully acquired lease")


def test_new_leader_lists_before_it_binds(world):
    leader, standby = two_replicas(world, *SHORT)
    # The standby's watches are delayed from here on: its cache is outdated.
    world.inject_faults(standby.name, delay=1.0, delay_seconds=30)
    for i in range(4):
        world.create_pod(f"big-{i}", cpu="99")
    until(lambda: len(world.bound()) == 5)
    world.create_pod("one-more", cpu="99")
    assert leader.stop() == 0
    until(lambda: standby.said("scheduling"))
    until(lambda: "4 Insufficient cpu" in world.reasons().get("one-more", ""))
    world.check_room()
