"""Fair shares over virtual time: convergence, borrowing, reclaim, and that no pod starves."""

import random
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st
from tests import queue_builders
from tests.queue_builders import node, pods, queue

from moorage import Simulation
from moorage.api.pod import Pod

WEIGHTS = {"a": 1, "b": 2, "c": 3}
SLOTS = 120


def cluster(*objects, slots=SLOTS, seed=0):
    nodes = [node(f"node-{i}", 24) for i in range(slots // 24)]
    return Simulation([*nodes, *objects], config=queue_builders.settings(), seed=seed)


def on_nodes(sim):
    pods = [each for each in sim.cluster.all(Pod) if each.node_name and not each.is_terminal]
    return Counter(each.labels["moorage.dev/queue"] for each in pods)


class EndlessLoad:
    """Keeps some pods of each team waiting; pods run for 20 to 100 seconds."""

    def __init__(self, sim, teams, waiting=4):
        self._sim, self._teams, self._waiting = sim, teams, waiting
        self._random = random.Random(7)
        self._made = Counter()

    def run(self, until, every=1.0):
        """Run, and return the pods on nodes by team over all steps."""
        total = Counter()
        while self._sim.now < until:
            pending = Counter(name.split("/")[1][0] for name in self._sim.pending)
            for team in self._teams:
                for _ in range(self._waiting - pending[team]):
                    lasts = round(self._random.uniform(20, 100), 3)
                    self._sim.create(pods(team, 1, first=self._made[team], lasts=lasts))
                    self._made[team] += 1
            self._sim.run(until=self._sim.now + every)
            total += on_nodes(self._sim)
        return total


def test_endless_load_converges_to_the_weights():
    sim = cluster(*[queue(name, weight=weight) for name, weight in WEIGHTS.items()])
    load = EndlessLoad(sim, "abc", waiting=8)
    load.run(until=40)
    total = load.run(until=120)
    for team, weight in WEIGHTS.items():
        assert abs(total[team] / total.total() - weight / 6) < 0.01, total


def test_an_idle_team_lends_and_gets_back_within_a_minute():
    guaranteed = {name: {"cpu": str(weight * SLOTS // 6)} for name, weight in WEIGHTS.items()}
    sim = cluster(*[queue(n, weight=w, guaranteed=guaranteed[n]) for n, w in WEIGHTS.items()])
    endless = 10_000
    sim.create([*pods("a", 80, lasts=endless), *pods("b", 80, lasts=endless)])
    sim.run(until=10)
    # Without c, a and b share all of it by 1:2.
    assert on_nodes(sim) == {"a": 40, "b": 80}
    sim.create(pods("c", 80, lasts=endless))
    sim.run(until=70)
    assert on_nodes(sim) == {"a": 20, "b": 40, "c": 60}
    assert len(sim.evictions) == 60


@settings(max_examples=10)
@given(
    st.lists(st.integers(1, 50), min_size=2, max_size=4),
    st.lists(st.integers(0, 2), min_size=20, max_size=40),
    st.integers(0, 2**16),
)
def test_every_pod_is_placed_in_the_end(weights, teams, seed):
    """Whatever the weights and the load of others, no pod starves."""
    names = [f"team{i}" for i in range(len(weights))]
    queues = [queue(name, weight=weight) for name, weight in zip(names, weights, strict=True)]
    made = [
        each
        for i, team in enumerate(teams)
        for each in pods(names[team % len(names)], 1, first=i, lasts=5)
    ]
    sim = Simulation(
        [node("node", 3), *queues, *made], config=queue_builders.settings(), seed=seed, check=True
    )
    sim.run()
    assert not sim.pending
    first = {name: min(_waits(sim, name), default=0) for name in names}
    # Three slots: a team waits for no more than the pods of teams that are before it.
    assert max(first.values()) <= 5 * len(names)


def _waits(sim, name):
    return [at for key, at in sim.scheduled_at.items() if key.startswith(f"default/{name}-")]
