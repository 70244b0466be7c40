"""Counting how many members fit in each placement gives what trying them in all placements gives.

A permit plugin that does not say that it depends on counts only makes the scheduler try all.
"""

from random import Random

import pytest
from tests.group_builders import group, node, pod, settings
from tests.saying import make
from tests.storm_seeds import seeds

from moorage.api import config, defaults, manifests
from moorage.api.server_requests import BindPod, PatchPodGroupStatus, PatchPodStatus
from moorage.core.journal import GroupDecided
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry
from moorage.framework.status import SUCCESS

RACK = "rack"
NEUTRAL = make("Neutral", permit=SUCCESS)
TAINT = {"taints": [{"key": "no", "effect": "NoSchedule"}]}


class RackCluster:
    """Nodes in racks with some pods, and a gang that must be in one rack."""

    def __init__(self, seed):
        draw = self.draw = Random(f"racks {seed}")
        self.seed = seed
        self.nodes = []
        for i in range(draw.randint(4, 40)):
            labels = {RACK: f"r{draw.randint(0, 7)}"} if draw.random() < 0.95 else {}
            made = node(f"node-{i}", cpu=draw.randint(1, 8), **labels)
            made["spec"] = TAINT if draw.random() < 0.1 else {}
            made["status"]["allocatable"]["pods"] = str(draw.choice((2, 5, 110)))
            self.nodes.append(made)
        self.others = [
            pod(f"other-{i}", nodeName=draw.choice(self.nodes)["metadata"]["name"])
            for i in range(draw.randint(0, 20))
        ]
        count = draw.randint(1, 24)
        least = draw.randint(1, count)
        constraint = {"schedulingConstraints": {"topology": [{"key": RACK}]}}
        self.group = group("g", draw.choice((least, least, None)), **constraint)
        sizes = ("1",) if draw.random() < 0.8 else ("1", "2", "500m")
        self.members = [pod(f"p-{i:02}", "g", draw.choice(sizes)) for i in range(count)]
        if draw.random() < 0.2:
            rack = next((n["metadata"]["labels"].get(RACK) for n in self.nodes), None)
            there = [n for n in self.nodes if n["metadata"]["labels"].get(RACK) == rack is not None]
            if there:
                self.members[0]["spec"]["nodeName"] = there[0]["metadata"]["name"]

    def outcome(self, *, tries_all, percentage=None):
        """What is bound where, what is reported, and which plugins rejected members."""
        chosen = settings(TopologyAwareWorkloadScheduling=True)
        if percentage is not None:
            chosen["percentageOfNodesToScore"] = percentage
        if tries_all:
            plugins = {"permit": {"enabled": [{"name": "Neutral"}]}}
            chosen["profiles"] = [{"plugins": plugins}]
        registry = Registry({"Neutral": NEUTRAL})
        scheduler = Scheduler(config.load(chosen), seed=self.seed, registry=registry)
        objects = [*self.nodes, *self.others, self.group, *self.members]
        for obj in defaults.complete(manifests.from_dicts(objects)):
            scheduler.observe(Added(obj), 0.0)
        found = []
        while scheduler.has_work:
            found += [_shown(effect.request) for effect in scheduler.schedule_one(0.0)]
        scheduler.check_invariants()
        decided = [f.message for f in scheduler.journal if isinstance(f, GroupDecided)]
        waiting = {
            entry.key: sorted(entry.unschedulable_plugins)
            for entry in scheduler.queue.dump()["unschedulable"]
        }
        return sorted(filter(None, found)), decided, waiting


def _shown(request):
    match request:
        case BindPod(pod=ref, node=at):
            return f"{ref.name} on {at}"
        case PatchPodStatus(pod=ref, condition=condition) if condition is not None:
            return f"{ref.name}: {condition.message}"
        case PatchPodGroupStatus(condition=condition):
            return f"group: {condition.status} {condition.message}"
    return ""


@pytest.mark.parametrize("seed", seeds(60))
def test_counting_equals_trying(seed):
    cluster = RackCluster(seed)
    percentage = 60 if seed % 3 == 0 else None
    options = {"percentage": percentage}
    assert cluster.outcome(tries_all=False, **options) == cluster.outcome(tries_all=True, **options)


def test_some_groups_fit_and_some_do_not():
    results = [RackCluster(seed).outcome(tries_all=False)[0] for seed in range(20)]
    assert any(" on " in line for each in results for line in each)
    assert any("placements are available" in line for each in results for line in each)
