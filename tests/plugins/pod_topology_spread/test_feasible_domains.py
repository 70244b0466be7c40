"""The number of domains is the same with and without samples."""

from random import Random

import numpy as np
import pytest

from moorage.nodes.inclusion import Inclusion
from moorage.plugins.pod_topology_spread.views import FeasibleDomains
from moorage.testing import make_node, make_table

ZONES = ("z1", "z1", "z2", "z3", "", None)


@pytest.mark.parametrize("zones", [ZONES, ZONES[:4]], ids=["some nodes lack it", "all have it"])
def test_count(zones):
    rng = Random(7)
    table = make_table([make_node(f"n{i}", labels={"zone": rng.choice(zones)}) for i in range(6)])
    domains = FeasibleDomains(table.placements.nodes(Inclusion(), "zone"))
    feasible = table.active_rows.copy()
    for _ in range(500):
        name = f"n{rng.randrange(8)}"
        match rng.randrange(6):
            case 0:
                table.set_node(make_node(name, labels={"zone": rng.choice(zones)}))
            case 1 if table.node(name) is not None and table.size > 1:
                table.remove_node(name)
            case _:
                row = rng.choice(np.flatnonzero(table.active_rows).tolist())
                feasible[row] = not feasible[row]
        feasible &= table.active_rows
        nodes = [table.info(row) for row in np.flatnonzero(feasible)]
        assert domains.count(feasible) == len({node.labels.get("zone", "") for node in nodes})


def test_samples_are_replaced_only_when_one_is_no_longer_feasible():
    table = make_table([make_node(f"n{i}", labels={"zone": f"z{i % 2}"}) for i in range(6)])
    domains = FeasibleDomains(table.placements.nodes(Inclusion(), "zone"))
    feasible = table.active_rows.copy()
    assert domains.count(feasible) == 2
    before = domains._samples
    feasible[[row for row in np.flatnonzero(feasible) if row not in before]] = False
    assert domains.count(feasible) == 2
    assert domains._samples is before
    feasible[before[0]] = False
    assert domains.count(feasible) == 1
    assert domains._samples is not before
