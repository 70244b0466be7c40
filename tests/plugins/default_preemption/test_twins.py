"""Cached, in columns or node by node: all ways to find victims give the same result.

A small cluster changes step by step while pods of a few templates preempt. The plugin's cached
results must equal those of a simple loop that checks one node at a time.
MOORAGE_SEEDS=1000 runs that many clusters.
"""

import random
from collections import Counter

import pytest
from msgspec.structs import replace
from tests.storm_seeds import seeds

from moorage.api.meta import LabelSelector, ObjectMeta
from moorage.api.pod import Affinity, PodAffinity, PodAffinityTerm, TopologySpreadConstraint
from moorage.api.policy import (
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.scheduler import Scheduler
from moorage.framework.status import Code, summarize
from moorage.framework.views.pre_filters import PreFiltered
from moorage.framework.what_if import HypotheticalNode, WhatIf
from moorage.nodes.nominated import NominatedPods
from moorage.nodes.template import Templates
from moorage.nodes.usage import Placed
from moorage.plugins.default_preemption import candidates, victims
from moorage.plugins.default_preemption.plugin import NOT_HELPFUL
from moorage.plugins.default_preemption.victims import Budgets
from moorage.testing import make_node, make_pod

NODES = [f"n{i}" for i in range(9)]
ZONES = ("a", "b", "c")
APPS = ("web", "db", "job")
GREEN = LabelSelector(match_labels={"app": "web"})
APART = Affinity(
    pod_anti_affinity=PodAffinity(
        required_during_scheduling_ignored_during_execution=(
            PodAffinityTerm(label_selector=GREEN, topology_key="zone"),
        )
    )
)
EVENLY = TopologySpreadConstraint(
    max_skew=1, topology_key="zone", when_unsatisfiable="DoNotSchedule", label_selector=GREEN
)


class Cluster:
    """The objects of a cluster, and a scheduler that observes every change."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.scheduler = Scheduler(seed=seed)
        self.pods, self.budgets, self.made = {}, {}, 0
        for name in NODES:
            self.set_node(name)
        for _ in range(40):
            self.run_pod()

    def observe(self, observation):
        self.scheduler.observe(observation, 0.0)

    def set_node(self, name=None):
        rng = self.rng
        name = name or rng.choice(NODES)
        room = {"cpu": rng.choice("234"), "memory": "4Gi", "pods": rng.choice("4689")}
        labels = {"zone": rng.choice(ZONES)} if rng.random() < 0.9 else {}
        node = make_node(name, labels=labels, allocatable=room, unschedulable=rng.random() < 0.1)
        self.observe(Updated(node))

    def new_pod(self, **fields):
        rng = self.rng
        self.made += 1
        fields = {
            "labels": {"app": rng.choice(APPS)},
            "requests": {
                "cpu": f"{rng.choice((100, 400, 900))}m",
                "memory": rng.choice(("0", "1Gi")),
            },
            "priority": rng.choice((-5, 0, 0, 5)),
            "host_ports": rng.choice(((), (), (80,), (80, 81))),
            **fields,
        }
        pod = make_pod(f"p{self.made}", **fields)
        started = rng.choice(
            (None, "2026-01-01T00:00:00Z", f"2026-01-01T00:{rng.randrange(60):02}:00Z")
        )
        return replace(pod, status=replace(pod.status, start_time=started))

    def run_pod(self):
        node = self.rng.choice(NODES)
        repels = self.rng.random() < 0.15
        pod = self.new_pod(node=node, affinity=APART if repels else None)
        self.pods[pod.key] = pod
        self.observe(Added(pod))

    def end_pod(self):
        if self.pods:
            pod = self.pods.pop(self.rng.choice(sorted(self.pods)))
            self.observe(Deleted(pod))

    def start_pod(self):
        if self.pods:
            key = self.rng.choice(sorted(self.pods))
            pod = self.pods[key]
            status = replace(
                pod.status, start_time=f"2026-01-01T01:{self.rng.randrange(60):02}:00Z"
            )
            self.pods[key] = replace(pod, status=status)
            self.observe(Updated(self.pods[key]))

    def nominate(self):
        """A pending pod with a nominated node."""
        self.wait(self.new_pod(priority=self.rng.choice((0, 10, 20))))

    def wait(self, pod):
        status = replace(pod.status, nominated_node_name=self.rng.choice([*NODES, "unheard"]))
        pod = self.pods[pod.key] = replace(pod, status=status)
        self.observe(Added(pod))
        return pod

    def set_budget(self):
        rng = self.rng
        name = rng.choice(APPS)
        known = self.budgets.pop(name, None)
        if known is not None and rng.random() < 0.2:
            self.observe(Deleted(known))
            return
        selected = {"app": name if rng.random() < 0.8 else rng.choice(APPS)}
        disrupted = rng.sample(sorted(pod.name for pod in self.pods.values()), 2)
        budget = self.budgets[name] = PodDisruptionBudget(
            metadata=ObjectMeta(name=name, namespace="default"),
            spec=PodDisruptionBudgetSpec(selector=LabelSelector(match_labels=selected)),
            status=PodDisruptionBudgetStatus(
                disruptions_allowed=rng.randrange(3),
                disrupted_pods=dict.fromkeys(disrupted, "") if rng.random() < 0.3 else {},
            ),
        )
        self.observe(Updated(budget))

    def step(self):
        steps = [self.run_pod] * 4 + [self.end_pod] * 4 + [self.set_budget] * 2
        self.rng.choice([*steps, self.start_pod, self.nominate, self.set_node])()

    def preemptor(self):
        rng = self.rng
        own = rng.choice(
            ({}, {}, {}, {"affinity": APART}, {"topology_spread_constraints": (EVENLY,)})
        )
        return self.new_pod(
            labels={"app": rng.choice(("web", "other"))},
            requests={"cpu": f"{rng.choice((1, 2, 3))}"},
            priority=rng.choice((2, 10, 10)),
            host_ports=rng.choice(((), (80,))),
            **own,
        )

    # Two ways to find the victims

    def decide(self, pod):
        scheduler = self.scheduler
        profile = scheduler.profiles["default-scheduler"]
        return scheduler.cycle.decide(profile, pod, scheduler.templates.of(pod), 0.0)

    def by_hand(self, pod, decision):
        """The victims on every potential node, found by a simple loop."""
        scheduler, table = self.scheduler, self.scheduler.cluster.table
        budgets = Budgets(scheduler.cluster)
        found = {}
        for row in table.zone_order.rows().tolist():
            if decision.verdict(row).code is Code.UNSCHEDULABLE:
                nominated_pods = [
                    Placed(other, scheduler.templates.of(other).usage)
                    for other in scheduler.queue.nominated_pods(table.name(row))
                    if other.priority >= pod.priority and other.uid != pod.uid
                ]
                state = decision.state.clone()
                pre = PreFiltered(skipped=decision.pre.skipped)
                nominated = NominatedPods(
                    state.cluster.table, state.cluster.nomination_changes, Templates()
                )
                what_if = WhatIf(decision.profile, state, pod, pre, None, nominated, None)
                question = HypotheticalNode(what_if, row, nominated_pods)
                found[table.name(row)] = victims.on_node(pod, question, budgets)
        return found


@pytest.fixture(params=[0, 100], ids=["in columns", "one by one"])
def few(request, monkeypatch):
    monkeypatch.setattr(candidates, "FEW", request.param)


@pytest.mark.parametrize("seed", seeds(12))
def test_victims_are_the_same(seed, few):
    cluster = Cluster(seed)
    kinds = [cluster.preemptor() for _ in range(4)]
    helped = 0
    for number in range(1000):
        if number >= 60 and helped:  # In a few seeds it takes longer until a victim helps.
            break
        cluster.step()
        kind = cluster.rng.choice(kinds)
        pod = replace(
            kind, metadata=replace(kind.metadata, name=f"new{number}", uid=f"new{number}")
        )
        if cluster.rng.random() < 0.3:
            pod = cluster.wait(pod)
        decision = cluster.decide(pod)
        if decision.post_filter is None:
            continue
        expected = cluster.by_hand(pod, decision)
        result = decision.post_filter
        helps = {node: found for node, found in expected.items() if not hasattr(found, "code")}
        assert {each.node: each for each in result.candidates} == helps, result.status
        assert (result.nominated or "") in (helps or [""])
        helped += bool(helps)
        if not helps:
            nodes, counts = len(NODES), Counter(expected.values())
            text = summarize(nodes, rejected=counts.items(), absent=NOT_HELPFUL)
            assert result.status.message == f"preemption: {text}"
    assert helped, "a test that never finds victims says nothing"
