"""StatefulSets: in which order their pods come and go."""

import pytest

from moorage import Simulation
from moorage.controllers import objects
from moorage.controllers import stateful_set as stateful_set_controller
from moorage.controllers.index import ObjectIndex
from moorage.controllers.writes import Create, Delete

OWNER = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "u"}
OWNER["controller"] = True
LABELS = {"app": "db"}
PENDING, RUNNING, ENDED, LEAVING = "Pending", "Running", "Failed", "leaving"


def stateful_set(replicas, **spec):
    container = {"name": "c", "resources": {"requests": {"cpu": "1"}}}
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [container]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db", "namespace": "default", "uid": "u"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": LABELS},
            "template": template,
            **spec,
        },
    }


def pod(name, state=RUNNING, owners=(OWNER,), **spec):
    labels = LABELS | {"controller-revision-hash": REVISION}
    meta = {"name": name, "namespace": "default", "uid": name, "labels": labels}
    meta["ownerReferences"] = list(owners)
    ready = {"type": "Ready", "status": "True" if state in (RUNNING, LEAVING) else "False"}
    if state == LEAVING:
        meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": {"containers": [{"name": "c"}], **spec},
        "status": {"phase": RUNNING if state == LEAVING else state, "conditions": [ready]},
    }


REVISION = f"db-{objects.template_hash(stateful_set(1)['spec']['template'])}"


def nodes(count, cpu="1"):
    template = {"status": {"allocatable": {"cpu": cpu}}}
    return {
        "apiVersion": "moorage.dev/v1",
        "kind": "NodePool",
        "metadata": {"name": "n"},
        "spec": {"count": count, "template": template},
    }


def reconciled(owner, pods):
    """The names of the pods that a set creates and deletes."""
    index = ObjectIndex()
    for each in (owner, *pods):
        index.put(each)
    writes = list(stateful_set_controller.reconcile(owner, index, 0.0))
    return tuple(
        [
            write.obj["metadata"]["name"]
            for write in writes
            if isinstance(write, kind) and write.obj["kind"] == "Pod"
        ]
        for kind in (Create, Delete)
    )


@pytest.mark.parametrize(
    ("replicas", "states", "made", "surplus"),
    [
        pytest.param(3, [], ["db-0"], [], id="the first"),
        pytest.param(3, [PENDING], [], [], id="the second waits while the first does"),
        pytest.param(3, [RUNNING], ["db-1"], [], id="the second when the first runs"),
        pytest.param(3, [LEAVING], [], [], id="not while the first is leaving"),
        pytest.param(3, [RUNNING, ENDED, RUNNING], [], ["db-1"], id="one that has ended goes"),
        pytest.param(3, [RUNNING, None, RUNNING], ["db-1"], [], id="and is made anew"),
        pytest.param(3, [None, None, RUNNING], ["db-0"], [], id="the lowest gap first"),
        pytest.param(1, [RUNNING] * 3, [], ["db-2"], id="the highest leaves first"),
        pytest.param(1, [RUNNING, RUNNING, LEAVING], [], [], id="the next when it is gone"),
        pytest.param(1, [RUNNING, PENDING], [], ["db-1"], id="one that never ran may leave"),
        pytest.param(1, [PENDING, RUNNING], [], [], id="nobody leaves while others wait"),
        pytest.param(0, [RUNNING] * 2, [], ["db-1"], id="down to none"),
    ],
)
def test_one_step_at_a_time(replicas, states, made, surplus):
    there = [pod(f"db-{i}", state) for i, state in enumerate(states) if state]
    assert reconciled(stateful_set(replicas), there) == (made, surplus)


def test_all_at_once():
    there = [
        pod("db-1", PENDING),
        pod("db-2", ENDED),
        pod("db-4"),
        pod("db-5"),
        pod("db-6", LEAVING),
    ]
    asked = stateful_set(4, podManagementPolicy="Parallel")
    assert reconciled(asked, there) == (["db-0", "db-3"], ["db-2", "db-5", "db-4"])


def test_each_comes_when_the_one_before_it_runs():
    sim = Simulation([nodes(3), stateful_set(3)], check=True)
    seen = []
    for _ in range(4):
        sim.run(until=sim.now + 1)
        seen.append(len(sim.placements))
    assert seen == [2, 3, 3, 3]
    assert set(sim.placements.values()) == {"n-0", "n-1", "n-2"}


def test_a_parallel_set_comes_at_once():
    sim = Simulation([nodes(3), stateful_set(3, podManagementPolicy="Parallel")], check=True)
    sim.run()
    assert (len(sim.placements), sim.now) == (3, 1.0)


def test_one_that_fits_nowhere_holds_back_the_others_until_there_is_room():
    sim = Simulation([nodes(1), stateful_set(4)], check=True)
    sim.run()
    assert sim.placements == {"default/db-0": "n-0", "default/db-1": None}
    assert sim.held_back == {"default/db": ("db-1", 2)}
    assert sim.now < 10  # Nobody waits for the rest to be made.
    room = {"allocatable": {"cpu": "3", "pods": "10"}}
    sim.create([{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "big"}, "status": room}])
    sim.run()
    assert set(sim.placements.values()) == {"n-0", "big"}
    assert (len(sim.placements), sim.held_back) == (4, {})


def test_scaled_down_one_by_one():
    asked = stateful_set(3)
    asked["spec"]["template"]["spec"]["terminationGracePeriodSeconds"] = 10
    sim = Simulation([nodes(3), asked], check=True)
    sim.run()
    sim.scale("StatefulSet", "default", "db", 1)
    counts = []
    for _ in range(3):
        counts.append(len(sim.placements))
        sim.run(until=sim.now + 10.5)
    assert counts == [3, 2, 1]
    assert list(sim.placements) == ["default/db-0"]


@pytest.mark.parametrize("owners", [(OWNER,), ()], ids=["owned", "by name"])
def test_a_dump_goes_on_where_it_was(owners):
    ended = pod("db-0", ENDED, owners, nodeName="n-0")
    starting = pod("db-1", PENDING, owners, nodeName="n-1")
    sim = Simulation([nodes(3), ended, starting, stateful_set(3)], check=True)
    sim.run()
    assert len(sim.placements) == 3
    assert None not in sim.placements.values()
    phases = [sim.read("Pod", "default", f"db-{i}")["status"]["phase"] for i in range(3)]
    assert phases == [RUNNING] * 3
