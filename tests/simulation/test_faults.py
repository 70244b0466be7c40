"""Storms: random clusters with random faults, checked after every step.

MOORAGE_SEED=7 runs one seed, MOORAGE_SEEDS=1000 that many; a seed that once failed stays in
seeds.txt for good.
"""

import os
from pathlib import Path

import pytest
from tests import storm

from moorage.sim.faults import Faults

DEFAULT_SEEDS = 50


def seeds() -> list[int]:
    if "MOORAGE_SEED" in os.environ:
        return [int(os.environ["MOORAGE_SEED"])]
    lines = Path(__file__).with_name("seeds.txt").read_text().splitlines()
    failed_once = [int(line.split()[0]) for line in lines if line and not line.startswith("#")]
    count = int(os.environ.get("MOORAGE_SEEDS", DEFAULT_SEEDS))
    return list(dict.fromkeys([*failed_once, *range(count)]))


@pytest.mark.parametrize("seed", seeds())
def test_storm(seed):
    storm.run(seed)


@pytest.mark.parametrize("seed", range(5))
def test_the_same_script_without_faults(seed):
    storm.run(seed, faults=Faults())


@pytest.mark.parametrize(
    "faults",
    [
        pytest.param({"bind_fails": 0.7}, id="binds fail"),
        pytest.param({"bind_conflicts": 0.7}, id="binds conflict"),
        pytest.param({"bind_unknown": 0.7, "look_up_fails": 0.5}, id="unknown outcomes"),
        pytest.param({"answer_seconds": 20}, id="slow responses"),
        pytest.param({"late_seconds": 20}, id="late observations"),
        pytest.param(
            {"duplicated": 1, "stale": 1, "late_seconds": 2}, id="duplicate and stale observations"
        ),
        pytest.param({"watch_lost": 0.5, "relist_seconds": 10}, id="lost watches"),
        pytest.param({"restarts": 8, "answer_seconds": 5}, id="restarts"),
        pytest.param({"restarts": 5, "overlap_seconds": 40, "late_seconds": 5}, id="two leaders"),
        pytest.param({"patch_fails": 1, "event_lost": 1, "delete_fails": 0.8}, id="all but binds"),
    ],
)
@pytest.mark.parametrize("seed", range(3))
def test_one_fault_alone(seed, faults):
    storm.run(seed, faults=Faults(until_seconds=40, **faults))
