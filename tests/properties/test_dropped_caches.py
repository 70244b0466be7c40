"""A scheduler with caches behaves like one that drops all caches before every decision.

Random simulations cover queue, hints, preemption, nominations, volumes, affinity, spreading, gates,
added and removed nodes, with and without faults. Both schedulers must request the same effects at
the same times and write the same journals.

MOORAGE_SEEDS=1000 runs that many seeds, MOORAGE_SEED=7 that one.
"""

from collections import Counter
from random import Random

import pytest
from random_faults import random_faults
from tests import storm
from tests.storm import LASTS_SECONDS, ZONES, _spec
from tests.storm_seeds import seeds
from tests.volume_storm import HOSTNAME, RandomVolumeCluster

from moorage import Simulation
from moorage.core.journal import Bound, Preempting, Refused

from .dropped_caches import without_caches

# Journals have the scores of the best nodes, too.
pytestmark = pytest.mark.usefixtures("best_nodes")

SEEDS = seeds(8)


class LargeRandomCluster(RandomVolumeCluster):
    """More nodes, pods, changes and terms about other pods than RandomVolumeCluster."""

    def __init__(self, seed, nodes=7, pods=25, changes=30):
        super().__init__(seed)
        self._more = Random(f"cluster {seed}")
        self._nodes += [self._node(i) for i in range(len(self._nodes), nodes)]
        self._workloads += [self._new_pod() for _ in range(3)]
        self._pods += [self._pod(f"pod-{i}") for i in range(len(self._pods), pods)]
        self._changes = changes

    def objects(self):
        return [*super().objects(), *self._services(), *self._budgets()]

    def script(self):
        draw = self._more
        times = [round(draw.uniform(0, LASTS_SECONDS), 3) for _ in range(self._changes)]
        mine = [(at, self._relabelled(i)) for i, at in enumerate(times[: self._changes // 3])]
        mine += [(draw.uniform(5, LASTS_SECONDS), self._important(i)) for i in range(4)]
        others = [(at, self._change(100 + i)) for i, at in enumerate(times[self._changes // 3 :])]
        return sorted([*super().script(), *mine, *others], key=lambda change: change[0])

    def _relabelled(self, i):
        """Change labels of a pod or node, which affinity and spreading terms read."""
        draw = self._more
        pod, app = draw.choice(self._pods)["metadata"]["name"], draw.choice("abc")
        node, zone = draw.choice(self._nodes)["metadata"]["name"], draw.choice(ZONES)
        return draw.choice(
            (
                lambda sim: sim.update(labelled(sim.read("Pod", "default", pod), app=app)),
                lambda sim: sim.update(labelled(sim.read("Node", "", node), zone=zone)),
                lambda sim: sim.create([service(f"late-{i}", app)]),
                lambda sim: sim.delete("Service", "default", "service-0"),
            )
        )

    def _node(self, i):
        """A larger node: most pods fit at first, and preemption starts later."""
        node = super()._node(i)
        room = {"cpu": self._random.choice("468"), "memory": "8Gi", "pods": "12"}
        spec = node["spec"] if self._random.random() < 0.5 else {}
        return node | {"spec": spec, "status": {"allocatable": room}}

    def _important(self, i):
        """Pods of a high priority, which may preempt others."""
        pods = [self._pod(f"important-{i}-{n}") for n in range(4)]
        urgent = {"priorityClassName": "high", **_spec("1500m")}
        return lambda sim: sim.create([pod | {"spec": pod["spec"] | urgent} for pod in pods])

    def _services(self):
        return [
            service(f"service-{i}", app) for i, app in enumerate("ab") if self._more.random() < 0.5
        ]

    def _budgets(self):
        return [
            {
                "apiVersion": "policy/v1",
                "kind": "PodDisruptionBudget",
                "metadata": {"name": f"budget-{app}", "namespace": "default"},
                "spec": {"selector": {"matchLabels": {"app": app}}},
                "status": {"disruptionsAllowed": self._more.randrange(2)},
            }
            for app in "ab"
            if self._more.random() < 0.5
        ]

    def _additions(self):
        draw = self._random
        term = self._term()
        hard = {
            "maxSkew": draw.choice((1, 2)),
            "whenUnsatisfiable": "DoNotSchedule",
            **self._term(),
        }
        soft = {"maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway", **self._term()}
        liked = {"weight": draw.choice((1, 50)), "podAffinityTerm": self._term()}
        required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
        preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [liked]}
        here = {
            "key": "zone",
            "operator": draw.choice(("In", "NotIn")),
            "values": [draw.choice(ZONES)],
        }
        node = {"weight": 5, "preference": {"matchExpressions": [here]}}
        port = {"containerPort": 80, "hostPort": draw.choice((80, 81))}
        container = {"name": "main", "ports": [port], "resources": {"requests": {"cpu": "100m"}}}
        return [
            *super()._additions(),
            (0.3, {"topologySpreadConstraints": draw.choice(([hard], [soft], [hard, soft]))}),
            (0.1, {"affinity": {"podAffinity": required}}),
            (0.2, {"affinity": {"podAntiAffinity": required | preferred}}),
            (0.2, {"affinity": {draw.choice(("podAffinity", "podAntiAffinity")): preferred}}),
            (
                0.1,
                {
                    "affinity": {
                        "nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [node]}
                    }
                },
            ),
            (0.1, {"containers": [container]}),
        ]

    def _term(self):
        draw = self._random
        selector = {"matchLabels": {"app": draw.choice("ab")}}
        return {"labelSelector": selector, "topologyKey": draw.choice(("zone", HOSTNAME))}


def labelled(obj, **labels):
    meta = obj["metadata"]
    return {**obj, "metadata": {**meta, "labels": {**meta.get("labels", {}), **labels}}}


def service(name, app):
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": app}},
    }


def simulate(seed, faults=None, config=None):
    """Run a simulation without invariant checks, which take longer than all decisions together."""
    cluster = LargeRandomCluster(seed)
    sim = Simulation(cluster.objects(), config, seed, faults=faults, trace=True)
    storm.play(sim, cluster.script())
    return sim


def assert_same(kept, anew):
    """Compare line by line, so that the first difference is shown."""
    for mine, other in zip(kept.trace.lines(), anew.trace.lines(), strict=True):
        assert mine == other
    assert list(kept.journal.lines()) == list(anew.journal.lines())
    assert kept.placements == anew.placements


@pytest.mark.parametrize("seed", SEEDS)
def test_traces_and_journals_equal_those_without_caches(seed, monkeypatch):
    faults = random_faults(seed) if seed % 2 else None
    kept = simulate(seed, faults)
    with without_caches(monkeypatch):
        anew = simulate(seed, faults)
    assert_same(kept, anew)


def test_the_simulations_cover_binding_rejection_and_preemption():
    saw = Counter()
    for seed in range(4):
        sim = simulate(seed)
        saw.update(type(fact) for fact in sim.journal)
        saw.update(plugin for f in sim.journal if isinstance(f, Refused) for plugin in f.plugins)
    assert min(saw[what] for what in (Bound, Refused, Preempting)) > 5
    wanted = {"InterPodAffinity", "PodTopologySpread", "VolumeBinding", "NodeResourcesFit"}
    assert wanted <= saw.keys()


WRONG_DEPENDS = """
from moorage import plugin as mp

class WrongDepends:
    # Declares that its results depend on the node only, but reads the node's pods.
    name = "WrongDepends"
    depends = mp.Depends.NODE

    def filter(self, state, pod, node):
        return mp.unschedulable("too many") if node.pod_count > 2 else mp.SUCCESS
"""


def test_a_plugin_with_wrong_depends_makes_a_difference(monkeypatch, tmp_path):
    (tmp_path / "wrong_depends.py").write_text(WRONG_DEPENDS, encoding="utf-8")
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {
                    "multiPoint": {
                        "enabled": [{"name": f"{tmp_path}/wrong_depends.py:WrongDepends"}]
                    }
                }
            }
        ],
    }
    kept = [list(simulate(seed, config=config).trace.lines()) for seed in (0, 1)]
    with without_caches(monkeypatch):
        anew = [list(simulate(seed, config=config).trace.lines()) for seed in (0, 1)]
    assert kept != anew
