"""Which members of a group are decided again when pods are put back, or taken away again."""

import pytest
from tests.core.test_pod_group_cycle import member

from moorage.core.group_preemption import NO_ROOM, LiveGroupTrial
from moorage.core.group_results import GroupResult, Member
from moorage.core.queued_pod import QueuedPod
from moorage.framework.status import SUCCESS
from moorage.testing import make_node, make_pod

NODES = ("n1", "n2")


class Trials:
    """The first member fits on the first node, the second on the second, while `fits`."""

    def __init__(self):
        self.tried = []
        self.fits = True

    def try_all(self, members, now):
        for each, node in zip(members, NODES, strict=True):
            each.node, each.binding = node, object()
        return GroupResult(SUCCESS)

    def try_one(self, member, now):
        name = member.entry.pod.name
        self.tried.append(name)
        if self.fits:
            member.node, member.binding = NODES[int(name[1:])], object()

    def assume(self, member, now):
        member.binding = object()

    def withdraw(self, members, now):
        for each in members:
            each.binding = None


@pytest.fixture
def trial(machine):
    """A trial that has succeeded without the pods on two nodes."""
    run = machine(nodes=[make_node(name) for name in NODES])
    run.add(*(make_pod(f"on-{name}", node=name) for name in NODES))
    table = run.scheduler.cluster.table
    members = [Member(QueuedPod(member(f"p{i}"), 0.0)) for i in range(2)]
    trial = LiveGroupTrial(table, set(), members, Trials(), 0.0)
    trial.placed = [[*table.placed[table.row_of[name]].values()] for name in NODES]
    for each in trial.placed:
        trial.remove(each)
    assert trial.status() == SUCCESS
    return trial


def counts(trial):
    return [len(trial._table.placed[trial._table.row_of[name]]) for name in NODES]


def test_only_members_on_nodes_of_restored_pods_are_decided_again(trial):
    trial.restore(trial.placed[1])
    assert trial.status() == SUCCESS
    assert trial._trials.tried == ["p1"]


def test_a_member_stays_where_a_pod_is_restored_and_taken_away_again(trial):
    trials = trial._trials
    trial.restore(trial.placed[0])
    trials.fits = False
    assert (trial.status(), trials.tried) == (NO_ROOM, ["p0"])
    trial.remove(trial.placed[0])
    trial.restore(trial.placed[1])
    trials.fits, trials.tried = True, []
    assert (trial.status(), trials.tried) == (SUCCESS, ["p1"])


def test_at_the_end_all_pods_are_back(trial):
    assert counts(trial) == [0, 0]
    trial.end()
    assert counts(trial) == [1, 1]
    assert all(each.binding is None for each in trial.members)
