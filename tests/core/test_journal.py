"""The journal: facts of a pod, the latest fact of a kind, and reproducible lines."""

import json

import pytest

from moorage.core.journal import Bound, Decided, Journal, Popped, Queued, ScoredNode
from moorage.framework.status import SUCCESS, unschedulable
from moorage.testing import make_pod


def queued(uid, at=0.0):
    return Queued(at=at, pod=f"default/{uid}", uid=uid, queue="active", event="UnschedulablePodAdd")


def test_a_story_is_what_happened_to_one_pod():
    journal = Journal()
    for fact in (queued("a"), queued("b"), Popped(at=1.0, uid="a", attempt=1)):
        journal.add(fact)
    assert [type(fact) for fact in journal.story("a")] == [Queued, Popped]
    assert len(journal) == 3
    assert journal.last(Queued, "b") == queued("b")
    assert journal.last(Bound, "a") is None


def test_the_latest_of_a_kind():
    journal = Journal()
    for attempt in (1, 2):
        journal.add(Popped(at=float(attempt), uid="a", attempt=attempt))
    assert journal.last(Popped, "a").attempt == 2


def test_with_a_limit_only_the_latest_are_kept():
    journal = Journal(limit=2)
    for number in range(5):
        journal.add(queued("a", at=float(number)))
    assert [fact.at for fact in journal] == [3.0, 4.0]


def test_the_facts_since_one_of_them():
    journal, facts = Journal(limit=3), [queued("a", at=float(number)) for number in range(4)]
    assert journal.since(None) == []
    for fact in facts:
        journal.add(fact)
    assert journal.since(facts[2]) == facts[3:]
    assert journal.since(facts[0]) == facts[1:]  # Which is not kept any more.


def test_lines_are_json_with_the_kind_of_fact():
    journal = Journal()
    journal.add(
        Decided(at=1.5, uid="a", node="n1", nodes=3, feasible=1, best=(ScoredNode("n1", 7, {}),))
    )
    (line,) = journal.lines()
    assert json.loads(line) == {
        "fact": "Decided",
        "at": 1.5,
        "uid": "a",
        "node": "n1",
        "nodes": 3,
        "feasible": 1,
        "best": [{"node": "n1", "total": 7, "scores": {}}],
    }


# What the machine tells it


class Ranks:
    """Nodes score by their number; n0 is refused."""

    name = "Ranks"

    def filter(self, state, pod, node):
        return unschedulable("zero") if node.name == "n0" else SUCCESS

    def score(self, state, pod, node):
        return 10 * int(node.name[1:])


class Ones:
    name = "Ones"

    def score(self, state, pod, node):
        return 1


def test_the_best_nodes_are_not_kept_unless_asked_for(machine):
    run = machine(Ranks, Ones, nodes=["n0", "n1", "n2"])
    pod = make_pod("p")
    run.schedule(pod)
    (decided,) = run.facts(pod, Decided)
    assert (decided.node, decided.best) == ("n2", ())


@pytest.mark.usefixtures("best_nodes")
def test_a_decision_has_counts_and_the_best_three_with_their_scores(machine):
    run = machine(Ranks, Ones, nodes=[f"n{i}" for i in range(6)])
    pod = make_pod("p")
    run.schedule(pod)
    (decided,) = run.facts(pod, Decided)
    assert (decided.node, decided.nodes, decided.feasible) == ("n5", 6, 5)
    assert decided.rejected_by == {"Ranks": 1}
    assert decided.best == (
        ScoredNode("n5", 51, {"Ranks": 50, "Ones": 1}),
        ScoredNode("n4", 41, {"Ranks": 40, "Ones": 1}),
        ScoredNode("n3", 31, {"Ranks": 30, "Ones": 1}),
    )


@pytest.mark.usefixtures("best_nodes")
@pytest.mark.parametrize("nodes", [2, 3, 4])
def test_as_many_of_the_best_as_there_are(machine, nodes):
    run = machine(Ones, nodes=[f"n{i}" for i in range(nodes)])
    pod = make_pod("p")
    run.schedule(pod)
    (decided,) = run.facts(pod, Decided)
    names = [considered.node for considered in decided.best]
    assert names[0] == decided.node
    assert len(set(names)) == len(names) == min(nodes, 3)


def test_the_story_of_a_pod_that_is_bound(machine):
    run = machine(Ranks)
    pod = make_pod("p")
    run.schedule(pod)
    assert run.story(pod) == ["Queued", "Popped", "Decided"]
