"""Storms on clusters with devices, and single faults: no device is given twice, none is leaked."""

import pytest
from tests import storm
from tests.device_storm import RandomDeviceCluster
from tests.storm_seeds import seeds

from moorage.sim import trace
from moorage.sim.faults import Faults


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"device_write_fails": 0.8}, id="writes fail"),
        pytest.param({"device_write_unknown": 0.8}, id="unknown outcomes"),
        pytest.param({"prepare_fails": 0.8, "prepare_seconds": 10}, id="devices are not prepared"),
        pytest.param({"late_seconds": 20, "answer_seconds": 10}, id="late observations"),
        pytest.param({"duplicated": 0.8, "stale": 0.8}, id="repeated and stale observations"),
        pytest.param({"restarts": 5, "overlap_seconds": 30}, id="two leaders"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_one_fault_alone(seed, faults):
    faults = Faults(until_seconds=40, **faults)
    storm.run(seed, faults=faults, cluster=RandomDeviceCluster(seed))


# Seeds that once failed, and what they showed.
FAILED = {
    33: "usage of a row that was built again in the same update",
    141: "a deleted claim, observed late, hid the allocation of the next one of its name",
    163: "an undone claim released the claim of the pod's next attempt",
    331: "a claim that was created after its pod was deleted",
    800: "a pod was bound with the devices of its earlier attempt, on another node",
}


@pytest.mark.parametrize("seed", sorted({*seeds(20), *FAILED}))
def test_storm(seed):
    storm.run(seed, cluster=RandomDeviceCluster(seed))


def test_a_storm_can_be_replayed():
    sim = storm.run(3, cluster=RandomDeviceCluster(3))
    lines = list(sim.trace.lines())
    assert any("ReserveResourceClaim" in line for line in lines)
    assert list(trace.replay(lines)) == lines
