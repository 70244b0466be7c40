"""Storms with gangs: random faults while gangs arrive in a cluster that is too small for all.

All invariants are checked after every step. When the faults have ended, a gang is bound in part
only if a binding failed, or the scheduler ended, and the missing members fit nowhere: the node of a
member whose binding fails stays nominated to it, and torn gangs are tried first. When there is room
for all, all gangs are complete. The script deletes no member and no node, and no other pod is more
important than a gang.
MOORAGE_SEEDS=1000 runs that many seeds, MOORAGE_SEED=7 that one.
"""

from random import Random

import pytest
from random_faults import random_faults
from tests import storm
from tests.group_builders import group, node, pod, settings
from tests.storm_seeds import seeds

from moorage.api.pod import Pod
from moorage.core.journal import GroupDecided

# Seeds that failed once stay.
SEEDS = sorted({*seeds(20), 25, 51, 75})
FLUSHED_SECONDS = 700.0
GATES = {"TopologyAwareWorkloadScheduling": True}


class GangCluster:
    """Nodes in racks, pods of low priority, and gangs that arrive in between."""

    def __init__(self, seed):
        self.draw = draw = Random(f"gangs {seed}")
        self.nodes = [
            node(f"node-{i}", draw.choice((2, 4)), rack=draw.choice("ab"))
            for i in range(draw.randint(2, 6))
        ]
        self.low = [
            pod(f"low-{i}", cpu=draw.choice(("500m", "1")), **self._grace())
            for i in range(draw.randint(0, 8))
        ]
        self.gangs = {
            f"gang-{i}": (draw.randint(1, 5), draw.randint(0, 2)) for i in range(draw.randint(1, 6))
        }

    def _grace(self):
        return {"terminationGracePeriodSeconds": self.draw.choice((0, 1, 10))}

    def objects(self):
        return [*self.nodes, *self.low]

    def script(self):
        draw, changes = self.draw, []
        for name, (count, more) in self.gangs.items():
            spec = {"cpu": draw.choice(("500m", "1")), "priority": 100}
            members = [pod(f"{name}-{i}", name, **spec) for i in range(count + more)]
            at = draw.uniform(0, storm.LASTS_SECONDS - 20)
            constraint = {"topology": [{"key": "rack"}]} if draw.random() < 0.3 else None
            fields = {} if constraint is None else {"schedulingConstraints": constraint}
            for i, each in enumerate([group(name, count, priority=100, **fields), *members]):
                late = draw.uniform(0, 10) if draw.random() < 0.3 else 0.0
                changes.append((at + late + i / 1000, lambda sim, each=each: sim.create([each])))
        for i in range(draw.randint(0, 5)):
            name = f"late-{i}"
            low = pod(name, cpu="1", **self._grace())
            changes.append((draw.uniform(0, 40), lambda sim, low=low: sim.create([low])))
            if draw.random() < 0.5:
                late = draw.uniform(40, 50)
                changes.append((late, lambda sim, name=name: sim.delete("Pod", "default", name)))
        return sorted(changes, key=lambda change: change[0])


def bound(sim, name):
    pods = sim.cluster.all(Pod)
    return sum(
        bool(each.node_name) and each.name.startswith(f"{name}-") and not each.is_terminating
        for each in pods
    )


def torn(sim, cluster):
    """The gangs that are bound in part."""
    return [name for name, (count, _) in cluster.gangs.items() if 0 < bound(sim, name) < count]


def can_tear(faults):
    return faults.bind_fails or faults.bind_conflicts or faults.bind_unknown or faults.restarts


@pytest.mark.parametrize("seed", SEEDS)
def test_gangs_are_bound_together_whatever_fails(seed):
    cluster, faults = GangCluster(seed), random_faults(seed)
    gates = {**GATES, "WorkloadAwarePreemption": seed % 2 == 1}
    sim = storm.run(seed, settings(**gates), faults=faults, cluster=cluster)
    sim.run(until=FLUSHED_SECONDS)
    assert can_tear(faults) or not torn(sim, cluster)
    for name in torn(sim, cluster):
        last = [fact for fact in sim.journal if isinstance(fact, GroupDecided)]
        results = [fact.result for fact in last if fact.group == f"default/{name}"]
        assert results[-1] == "unschedulable", name
    sim.create([node(f"more-{i}", 16, rack="ab"[i % 2]) for i in range(8)])
    sim.run(until=2 * FLUSHED_SECONDS)
    counts = {name: bound(sim, name) for name in cluster.gangs}
    assert counts == {name: count + more for name, (count, more) in cluster.gangs.items()}


def test_the_storms_have_gangs_that_fit_and_gangs_that_do_not():
    results = set()
    for seed in range(6):
        sim = storm.run(seed, settings(**GATES), cluster=GangCluster(seed))
        results |= {fact.result for fact in sim.journal if isinstance(fact, GroupDecided)}
    assert {"scheduled", "unschedulable", "waiting_on_preemption"} <= results
