"""A small cluster, and the result of DefaultPreemption for one more pod."""

from random import Random

import pytest
from msgspec.structs import replace

from moorage.api import config
from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from moorage.core.cycle import SchedulingCycle
from moorage.core.observations import Added
from moorage.core.scheduler import Scheduler
from moorage.framework.registry import Registry
from moorage.testing import make_node, make_pod

PRIORITIES = {"neg": -100, "low": 0, "mid": 100, "high": 1000, "vhigh": 10000}
SIZES = {"S": 100, "M": 200, "L": 300, "XL": 500}


class Offset(Random):
    """A random generator that always returns the same offset."""

    def __init__(self, offset):
        super().__init__(0)
        self.offset = offset

    def randrange(self, *limits):
        return self.offset


class Bench:
    """A cluster; by default a node has room for one pod of size XL."""

    def __init__(self, *plugins, **args):
        names = [plugin.name for plugin in plugins]
        multi_point = {"enabled": [{"name": name} for name in names]}
        profile = {"plugins": {"multiPoint": multi_point}}
        if args:
            profile["pluginConfig"] = [{"name": "DefaultPreemption", "args": args}]
        settings = {"apiVersion": config.API_VERSION, "kind": config.KIND, "profiles": [profile]}
        registry = Registry({plugin.name: plugin for plugin in plugins})
        self.scheduler = Scheduler(config.load(settings), registry=registry)

    def add(self, *objects):
        for obj in objects:
            self.scheduler.observe(Added(obj), 0.0)
        return self

    def decide(self, pod, offset=0, nominated_pods=None, reviewers=()):
        scheduler = self.scheduler
        cycle = SchedulingCycle(
            scheduler.cluster,
            scheduler.templates,
            nominated_pods or {},
            Offset(offset),
            reviewers=reviewers,
        )
        profile = scheduler.profiles[pod.spec.scheduler_name]
        return cycle.decide(profile, pod, scheduler.templates.of(pod), 0.0)

    def post_filter(self, pod, offset=0):
        """The post_filter result of a pod that fits on no node."""
        result = self.decide(pod, offset).post_filter
        assert result is not None, f"{pod.key} fits, so post_filter was not called"
        return result

    def victims(self, pod, offset=0):
        """Node -> names of the victims there."""
        return {
            each.node: [victim.name for victim in each.victims]
            for each in self.post_filter(pod, offset).candidates
        }


@pytest.fixture
def bench():
    return Bench


def node(name, size=500, pods=10, **fields):
    """A node that holds one pod of size XL."""
    room = {"cpu": f"{size}m", "memory": size, "pods": pods}
    return make_node(name, allocatable=room, **fields)


def pod(name, priority, size="XL", start=None, **fields):
    """A pod of a priority and a size, by name or number; `start` is the minute of its start."""
    milli = SIZES.get(size, size)
    made = make_pod(
        name,
        requests={"cpu": f"{milli}m", "memory": milli},
        priority=PRIORITIES.get(priority, priority),
        **fields,
    )
    if start is None:
        return made
    return replace(made, status=replace(made.status, start_time=f"2026-01-01T00:{start:02}:00Z"))


def budget(name="budget", allowed=0, selector=None, disrupted=()):
    """A budget for pods with the label app=`name`, unless another selector is given."""
    selector = LabelSelector(match_labels={"app": name}) if selector is None else selector
    return PodDisruptionBudget(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PodDisruptionBudgetSpec(selector=selector or None),
        status=PodDisruptionBudgetStatus(
            disruptions_allowed=allowed, disrupted_pods=dict.fromkeys(disrupted, "")
        ),
    )


@pytest.fixture
def make():
    """The builders above, for test modules that cannot import this one."""

    class Make:
        node = staticmethod(node)
        pod = staticmethod(pod)
        budget = staticmethod(budget)

    return Make
