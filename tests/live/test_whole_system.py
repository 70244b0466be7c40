"""Live schedulers, network and cluster in virtual time: see simulated/system.py.

MOORAGE_SEED=7 runs one seed, MOORAGE_SEEDS=1000 that many.
"""

import pytest
from simulated import system
from tests.storm_seeds import seeds


# Seeds that failed once: expired credentials and a clock set back, an earlier list.
KEPT = (105, 224, 266)


@pytest.mark.parametrize("seed", [*seeds(8), *KEPT])
def test_whole_system(seed):
    system.run(seed)


def test_same_seed_same_run():
    first, second = (system.journal(system.run(1)) for _ in range(2))
    assert first == second
