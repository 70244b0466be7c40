"""Live schedulers, network and cluster in virtual time: see simulated/system.py.

MOORAGE_SEED=7 runs one seed, MOORAGE_SEEDS=1000 that many.
"""

import pytest
from simulated import system
from tests.storm_seeds import seeds


@pytest.mark.parametrize("seed", seeds(8))
def test_whole_system(seed):
    system.run(seed)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(224, id="expired credentials, and a clock that was set back"),
        pytest.param(266, id="an earlier list with another pod of the same name"),
    ],
)
def test_seeds_that_failed(seed):
    system.run(seed)


def test_same_seed_same_run():
    first, second = (system.journal(system.run(1)) for _ in range(2))
    assert first == second
