"""A group that is decided in one cycle gets the nodes that its pods would get one by one.

Undoing is exact, too: after a gang that does not fit, the next decision is as if it had not been
tried.
"""

from random import Random

import pytest
from tests.group_builders import group, node, pod, settings
from tests.storm_seeds import seeds

from moorage.api import config, defaults, manifests
from moorage.api.server_requests import BindPod
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler

ZONE = "topology.kubernetes.io/zone"
SEEDS = seeds(25)


def spreading(key, when):
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": when}
    return {**constraint, "labelSelector": {"matchLabels": {"app": "a"}}}


def near(key):
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": "a"}}}


REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
SPECS = (
    {},
    {"topologySpreadConstraints": [spreading(ZONE, "DoNotSchedule")]},
    {"topologySpreadConstraints": [spreading("kubernetes.io/hostname", "ScheduleAnyway")]},
    {"affinity": {"podAffinity": {REQUIRED: [near(ZONE)]}}},
    {"affinity": {"podAntiAffinity": {REQUIRED: [near("kubernetes.io/hostname")]}}},
    {"priority": 10, "preemptionPolicy": "Never"},
)


class RandomGang:
    """Nodes with some pods, and the pods of a gang."""

    def __init__(self, seed):
        draw = Random(f"gang {seed}")
        self.seed = seed
        zones = {ZONE: draw.choice("xyz")}
        self.nodes = [
            node(f"node-{i}", cpu=draw.randint(1, 6), **{**zones, ZONE: draw.choice("xyz")})
            for i in range(draw.randint(3, 12))
        ]
        self.others = [
            self._pod(draw, f"other-{i}", nodeName=draw.choice(self.nodes)["metadata"]["name"])
            for i in range(draw.randint(0, 5))
        ]
        spec = draw.choice(SPECS)
        self.members = [
            self._pod(draw, f"p-{i:02}", **(spec if draw.random() < 0.7 else draw.choice(SPECS)))
            for i in range(draw.randint(1, 20))
        ]

    def _pod(self, draw, name, **spec):
        made = pod(name, cpu=draw.choice(("100m", "1", "2")), **spec)
        made["metadata"]["labels"] = {"app": draw.choice("ab")}
        return made

    def placements(self, *, before=(), grouped):
        """Where the members go."""
        members = [{**each, "spec": dict(each["spec"])} for each in self.members]
        for each in members:
            if grouped:
                each["spec"]["schedulingGroup"] = {"podGroupName": "g"}
        scheduler = Scheduler(config.load(settings()), seed=self.seed)
        found = {}
        for batch in ([*self.nodes, *self.others, group("g")], before, members):
            for obj in defaults.complete(manifests.from_dicts(batch)):
                scheduler.observe(Added(obj), 0.0)
            for _ in batch:
                for effect in scheduler.schedule_one(0.0):
                    if isinstance(effect.request, BindPod):
                        found[effect.request.pod.name] = effect.request.node
            scheduler.check_invariants()
        return found


@pytest.mark.parametrize("seed", SEEDS)
def test_one_cycle_equals_one_by_one(seed):
    random = RandomGang(seed)
    assert random.placements(grouped=True) == random.placements(grouped=False)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_gang_that_does_not_fit_leaves_no_trace(seed):
    random = RandomGang(seed)
    # The last member never fits. The others have one feasible node at most, and no member preempts,
    # so no random number is drawn.
    only = {"kubernetes.io/hostname": random.nodes[0]["metadata"]["name"]}
    spec = {"nodeSelector": only, "preemptionPolicy": "Never"}
    futile = [pod(f"f-{i}", "futile", cpu="100m", **spec) for i in range(3)]
    futile.append(pod("f-9", "futile", cpu=1000, **spec))
    gang = [group("futile", 4), *futile]
    assert random.placements(before=gang, grouped=True) == random.placements(grouped=True)
