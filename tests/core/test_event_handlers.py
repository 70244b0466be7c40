"""Effects of observations on cache and queue, including late, repeated and stale ones."""

import pytest
from msgspec.structs import replace

from moorage.api.meta import ObjectMeta
from moorage.api.node import Node
from moorage.api.pod import Pod, PodResourceClaimStatus, PodStatus
from moorage.api.policy import PriorityClass
from moorage.api.server_requests import BindPod
from moorage.api.storage import PersistentVolumeClaim, StorageClass
from moorage.core import event_handlers
from moorage.core.event_handlers import is_older
from moorage.core.journal import Confirmed, Gone
from moorage.core.observations import Listed
from moorage.framework.events import Action, ClusterEvent
from moorage.framework.status import SUCCESS, unschedulable
from moorage.testing import make_node, make_pod


def versioned(obj, version):
    return replace(obj, metadata=replace(obj.metadata, resource_version=str(version)))


def on(pod, node):
    return replace(pod, spec=replace(pod.spec, node_name=node))


def nominated(pod, node):
    return replace(pod, status=PodStatus(nominated_node_name=node))


def ended(pod, phase="Succeeded"):
    return replace(pod, status=PodStatus(phase=phase))


POD = make_pod("p", uid="uid-p", requests={"cpu": "1"})


class Waits:
    """Rejects every pod called `waits`, and registers for the events of the test."""

    name = "Waits"
    events: tuple = ()

    def filter(self, state, pod, node):
        return unschedulable("wait") if pod.name == "waits" else SUCCESS

    def events_to_register(self):
        return dict.fromkeys(self.events)


def waiting_for(machine, *events, priority=0, **options):
    """A machine with one unschedulable pod that waits for one of these events."""
    plugin = type("Waits", (Waits,), {"events": events})
    run = machine(plugin, **options)
    pod = make_pod("waits", uid="uid-w", priority=priority)
    run.schedule(pod)
    assert run.where(pod) == "unschedulable"
    return run, lambda: run.where(pod) != "unschedulable"


# Pods


def test_a_pod_without_a_node_is_queued(machine):
    run = machine()
    run.add(POD)
    assert (run.where(POD), run.cached(POD)) == ("active", None)


def test_a_pod_with_a_node_is_cached(machine):
    run = machine()
    run.add(on(POD, "n1"))
    assert (run.where(POD), run.cached(POD), run.requested("n1")) == (None, "n1", 1000)
    assert run.facts(POD, Confirmed)[0].node == "n1"


def test_a_pod_that_got_a_node_leaves_the_queue(machine):
    run = machine()
    run.add(POD)
    run.update(on(POD, "n1"))
    assert (run.where(POD), run.cached(POD)) == (None, "n1")


@pytest.mark.parametrize(
    ("node", "requeued"),
    [
        pytest.param("n1", False, id="where it was assumed"),
        pytest.param("n2", True, id="another scheduler was faster: the first node is free"),
    ],
)
def test_a_pod_that_was_assumed_is_observed(machine, node, requeued):
    run, is_requeued = waiting_for(machine, ClusterEvent.POD_DELETE, nodes=("n1",))
    run.schedule(POD)
    assert run.cached(POD) == "n1?"
    run.confirm(POD, node)
    assert is_requeued() == requeued


def test_a_pod_before_its_node(machine):
    run = machine(nodes=())
    run.add(on(POD, "late"))
    assert run.cached(POD) == "late"
    run.add(make_node("late"))
    assert run.requested("late") == 1000


@pytest.mark.parametrize("verb", ["add", "update"])
def test_an_observation_with_the_wrong_verb_is_accepted(machine, verb):
    """An addition of something known is an update, an update of something unknown an addition."""
    run = machine()
    if verb == "add":
        run.add(POD)
    getattr(run, verb)(replace(POD, metadata=replace(POD.metadata, labels={"a": "b"})))
    assert (run.where(POD), run.entry(POD).pod.labels) == ("active", {"a": "b"})


def test_a_repeated_observation_changes_nothing(machine):
    run = machine()
    for _ in range(2):
        run.add(POD)
    for _ in range(2):
        run.update(on(POD, "n1"))
    assert (run.cached(POD), run.requested("n1")) == ("n1", 1000)
    for _ in range(2):
        run.delete(POD)
    assert (run.cached(POD), run.requested("n1"), len(run.facts(POD, Gone))) == (None, 0, 1)


@pytest.mark.parametrize("version", ["", "3"], ids=["without versions", "with versions"])
def test_stale_observations_are_dropped(machine, version):
    """A pod that has a node keeps it; a version without one is older."""
    run = machine()
    run.add(versioned(POD, version))
    run.update(versioned(on(POD, "n1"), version and "5"))
    run.update(versioned(POD, version and "4"))
    assert (run.where(POD), run.cached(POD)) == (None, "n1")


def test_a_late_update_does_not_add_a_deleted_pod_again(machine):
    run = machine()
    run.add(versioned(POD, 5))
    run.delete(versioned(POD, 7))
    run.add(versioned(POD, 6))
    assert (run.where(POD), list(run.scheduler.known_pods())) == (None, [])


def test_an_earlier_pod_of_the_same_name_is_dropped(machine):
    """A watch that repeats events shows the end of the earlier pod and the known one again."""
    earlier = make_pod("p", uid="earlier")
    run = machine(nodes=["n1"])
    run.add(versioned(POD, 5))
    run.add(versioned(earlier, 3))
    run.delete(versioned(earlier, 4))
    run.add(versioned(POD, 5))
    assert [pod.uid for pod in run.scheduler.known_pods()] == [POD.uid]


def test_a_deletion_without_a_version_lets_an_older_pod_come_back(machine):
    """A restored API server: the reflector observes the deletion, then the pod as it was."""
    run = machine()
    run.add(versioned(on(POD, "n1"), 9))
    run.delete(versioned(POD, ""))
    run.add(versioned(POD, 5))
    assert (run.where(POD), run.cached(POD), run.requested("n1")) == ("active", None, 0)


def test_a_pod_that_an_earlier_list_hides_keeps_its_binding(machine):
    """It comes back while its binding goes on: it is assumed again, and not tried once more."""
    run = machine(nodes=["n1"])
    run.schedule(versioned(POD, 5))
    run.delete(versioned(POD, ""))
    assert (run.cached(POD), run.requested("n1")) == (None, 0)
    run.add(versioned(POD, 5))
    assert (run.where(POD), run.cached(POD), run.requested("n1")) == (None, "n1?", 1000)
    run.fail(BindPod)
    assert (run.where(POD), run.cached(POD), run.requested("n1")) == ("backoff", None, 0)


def test_a_late_update_of_a_former_pod_does_not_replace_the_present_one(machine):
    run = machine()
    present = make_pod("p", uid="another")
    run.add(versioned(POD, 5), versioned(present, 8))
    run.update(versioned(POD, 5))
    assert (run.where(POD), run.where(present)) == (None, "active")
    run.delete(versioned(present, 9))
    run.update(versioned(POD, 5))
    assert (run.where(POD), run.where(present)) == (None, None)


def test_a_pod_is_deleted_before_it_was_seen(machine):
    run = machine()
    run.delete(versioned(POD, 7))
    run.add(versioned(POD, 5))
    assert run.where(POD) is None


def test_an_update_of_a_pod_that_a_list_missed_adds_it_again(machine):
    """A list from a server that lags may miss a pod; the next update adds it again."""
    run = machine()
    run.add(versioned(POD, 5))
    run._collect(run.scheduler.observe(Listed(Pod, ()), 0.0))
    assert run.where(POD) is None
    run.add(versioned(POD, 6))
    assert run.where(POD) == "active"


def test_the_number_of_remembered_deleted_pods_is_limited(machine, monkeypatch):
    monkeypatch.setattr(event_handlers, "MOST_GONE", 2)
    run = machine()
    pods = [versioned(make_pod(f"p{i}"), 5) for i in range(3)]
    for pod in pods:
        run.delete(pod)
    run.add(*pods)
    assert [run.where(pod) for pod in pods] == ["active", None, None]


def test_a_recreated_pod_replaces_the_old_one(machine):
    run = machine()
    run.add(on(POD, "n1"))
    new = make_pod("p", uid="new")
    run.add(new)
    assert (run.cached(POD), run.where(new), run.requested("n1")) == (None, "active", 0)
    assert run.facts(POD, Gone)
    run.delete(POD)  # late
    assert run.where(new) == "active"


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
@pytest.mark.parametrize("placed", [True, False], ids=["on a node", "without a node"])
def test_a_pod_that_has_ended_is_removed(machine, phase, placed):
    run = machine()
    pod = on(POD, "n1") if placed else POD
    run.add(pod)
    run.update(ended(pod, phase))
    assert (run.where(pod), run.cached(pod), run.requested("n1")) == (None, None, 0)
    assert len(run.facts(pod, Gone)) == 1
    run.delete(ended(pod, phase))
    assert len(run.facts(pod, Gone)) == 1


def test_a_pod_that_had_ended_before_it_was_seen(machine):
    run = machine()
    run.add(ended(on(POD, "n1")))
    assert (run.cached(POD), run.story(POD)) == (None, [])


def test_39_a_deletion_that_carries_an_old_version(machine):
    run = machine()
    run.add(POD)
    run.update(on(POD, "n1"))
    run.delete(POD)
    assert (run.cached(POD), run.where(POD), run.requested("n1")) == (None, None, 0)


def test_a_placed_pod_that_changes(machine):
    run = machine()
    run.add(on(POD, "n1"))
    run.update(on(make_pod("p", uid="uid-p", requests={"cpu": "2"}), "n1"))
    assert run.requested("n1") == 2000


# Requeued pods

CLAIM_STATUS = PodResourceClaimStatus(name="gpu", resource_claim_name="p-gpu")


@pytest.mark.parametrize(
    ("event", "happen"),
    [
        pytest.param(
            ClusterEvent.POD_ADD, lambda run: run.add(on(POD, "n1")), id="a pod is placed"
        ),
        pytest.param(
            ClusterEvent.POD_ADD,
            lambda run: (run.add(POD), run.update(on(POD, "n1"))),
            id="a pod gets its node",
        ),
        pytest.param(
            ClusterEvent.POD_DELETE,
            lambda run: (run.add(on(POD, "n1")), run.delete(POD)),
            id="a placed pod is gone",
        ),
        pytest.param(
            ClusterEvent.POD_DELETE,
            lambda run: (run.add(on(POD, "n1")), run.update(ended(on(POD, "n1")))),
            id="a placed pod has ended",
        ),
        pytest.param(
            ClusterEvent.UPDATE_POD_LABEL,
            lambda run: (
                run.add(on(POD, "n1")),
                run.update(on(make_pod("p", uid="uid-p", labels={"a": "b"}), "n1")),
            ),
            id="a placed pod changes",
        ),
        pytest.param(
            ClusterEvent.POD_UPDATE,
            lambda run: (run.add(on(POD, "n1")), run.update(with_status(phase="Running"))),
            id="the status of a placed pod changes",
        ),
        pytest.param(
            ClusterEvent.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
            lambda run: (
                run.add(on(POD, "n1")),
                run.update(with_status(resource_claim_statuses=(CLAIM_STATUS,))),
            ),
            id="a placed pod gets a claim",
        ),
        pytest.param(ClusterEvent.NODE_ADD, lambda run: run.add(make_node("n9")), id="a node"),
        pytest.param(ClusterEvent.NODE_DELETE, lambda run: run.delete(make_node("n1")), id="gone"),
        pytest.param(
            ClusterEvent.UPDATE_NODE_LABEL,
            lambda run: run.update(make_node("n1", labels={"a": "b"})),
            id="a node changes",
        ),
        pytest.param(
            ClusterEvent("PersistentVolumeClaim", Action.ADD),
            lambda run: run.add(claim()),
            id="another object",
        ),
        pytest.param(
            ClusterEvent("storage.k8s.io/StorageClass", Action.ADD),
            lambda run: run.add(StorageClass(metadata=ObjectMeta(name="fast"))),
            id="an object of a group",
        ),
        pytest.param(
            ClusterEvent("PersistentVolumeClaim", Action.UPDATE),
            lambda run: (run.add(claim()), run.update(claim(labels={"a": "b"}))),
            id="another object changes",
        ),
        pytest.param(
            ClusterEvent("PersistentVolumeClaim", Action.DELETE),
            lambda run: (run.add(claim()), run.delete(claim())),
            id="another object is gone",
        ),
    ],
)
def test_a_change_requeues_the_pods_that_wait_for_it(machine, event, happen):
    run, is_woken = waiting_for(machine, event)
    happen(run)
    assert is_woken()


def with_status(**fields):
    return replace(on(POD, "n1"), status=PodStatus(**fields))


def claim(**fields):
    return PersistentVolumeClaim(metadata=ObjectMeta(name="c", namespace="default", **fields))


@pytest.mark.parametrize(
    "happen",
    [
        pytest.param(lambda run: run.add(POD), id="a pod without a node"),
        pytest.param(lambda run: (run.add(POD), run.delete(POD)), id="such a pod is gone"),
        pytest.param(lambda run: run.update(versioned(make_node("n1"), 7)), id="a heartbeat"),
        pytest.param(lambda run: run.delete(make_node("unheard")), id="an unknown node is gone"),
        pytest.param(lambda run: run.delete(claim()), id="an unknown object is gone"),
        pytest.param(
            lambda run: run.update(make_node("n1", unschedulable=True)), id="a node is cordoned"
        ),
    ],
)
def test_what_requeues_no_pod(machine, happen):
    everything = [ClusterEvent(kind, Action.ALL) for kind in ("Pod", "Node")]
    run, is_woken = waiting_for(machine, *everything)
    happen(run)
    assert not is_woken()


@pytest.mark.parametrize(
    ("mine", "theirs", "woken"),
    [
        pytest.param(0, 5, True, id="a lower priority"),
        pytest.param(5, 5, True, id="an equal priority"),
        pytest.param(9, 5, False, id="a higher priority"),
    ],
)
@pytest.mark.parametrize("how", ["taken back", "moved", "deleted", "bound"])
def test_the_end_of_a_nomination_requeues_no_higher_priority(machine, how, mine, theirs, woken):
    run, is_woken = waiting_for(machine, ClusterEvent.POD_DELETE, priority=mine)
    pod = nominated(make_pod("p", priority=theirs), "n1")
    run.add(pod)
    assert not is_woken()
    if how == "deleted":
        run.delete(pod)
    elif how == "bound":
        run.update(on(pod, "n2"))
    else:
        run.update(nominated(pod, "" if how == "taken back" else "n2"))
    assert is_woken() is woken


def test_a_pod_that_is_bound_to_its_nominated_node_requeues_no_pod(machine):
    run, is_woken = waiting_for(machine, ClusterEvent.POD_DELETE)
    pod = nominated(make_pod("p", priority=5), "n1")
    run.add(pod)
    run.update(on(pod, "n1"))
    assert not is_woken()


def test_a_first_nomination_requeues_no_pod(machine):
    run, is_woken = waiting_for(machine, ClusterEvent.POD_DELETE)
    run.add(POD)
    run.update(nominated(POD, "n1"))
    assert not is_woken()


# Nodes and other objects


def test_33_a_node_that_is_gone_before_its_pods(machine):
    run = machine(nodes=["n1", "n2"])
    run.add(on(POD, "n1"))
    run.delete(make_node("n1"))
    assert (run.scheduler.cluster.table.node_count, run.cached(POD)) == (1, "n1")
    new = make_pod("q")
    (bind,) = run.schedule(new)
    assert bind.node == "n2"
    run.delete(POD)
    assert "n1" not in run.scheduler.cluster.table.row_of


def test_stale_observations_of_a_node_are_dropped(machine):
    run = machine(nodes=[versioned(make_node("n1", labels={"a": "new"}), 10)])
    run.update(versioned(make_node("n1", labels={"a": "old"}), 9))
    assert run.scheduler.cluster.table.node("n1").labels == {"a": "new"}


def identified(node, uid):
    return replace(node, metadata=replace(node.metadata, uid=uid))


def test_a_recreated_node_is_a_new_node(machine):
    """Pods that wait for nodes are requeued, and a late deletion of the old node is ignored."""
    run, is_woken = waiting_for(
        machine, ClusterEvent.NODE_ADD, nodes=[identified(make_node("n1"), "old")]
    )
    new = identified(make_node("n1", labels={"a": "b"}), "new")
    run.add(new)
    assert is_woken()
    run.delete(identified(make_node("n1"), "old"))
    assert run.scheduler.cluster.table.node("n1") == new


def test_other_objects_are_kept_for_plugins(machine):
    run = machine()
    high = PriorityClass(metadata=ObjectMeta(name="high"))
    run.add(high, claim())
    cluster = run.scheduler.cluster
    assert cluster.get(PriorityClass, "high") == high
    run.update(versioned(claim(labels={"a": "b"}), 7))
    run.update(versioned(claim(), 6))
    assert cluster.get(PersistentVolumeClaim, "default/c").labels == {"a": "b"}
    run.delete(claim())
    assert list(cluster.all(PersistentVolumeClaim)) == []


def test_the_end_of_an_earlier_object_of_the_same_name(machine):
    run = machine()
    run.add(versioned(claim(), 5))
    earlier = versioned(claim(), 4)
    run.delete(replace(earlier, metadata=replace(earlier.metadata, uid="earlier")))
    assert len(list(run.scheduler.cluster.all(PersistentVolumeClaim))) == 1


# Lists


def test_objects_missing_from_a_list_are_deleted(machine):
    run = machine(nodes=["n1", "n2"])
    waiting, placed = make_pod("a"), on(make_pod("b", requests={"cpu": "1"}), "n1")
    run.add(waiting, placed, claim())
    new = make_pod("c")
    run._collect(run.scheduler.observe(Listed(Pod, (new,)), 0.0))
    assert [pod.name for pod in run.scheduler.known_pods()] == ["c"]
    assert (run.where(waiting), run.cached(placed), run.requested("n1")) == (None, None, 0)
    run._collect(run.scheduler.observe(Listed(Node, (make_node("n2"),)), 0.0))
    assert list(run.scheduler.cluster.table.row_of) == ["n2"]
    run._collect(run.scheduler.observe(Listed(PersistentVolumeClaim, ()), 0.0))
    assert list(run.scheduler.cluster.all(PersistentVolumeClaim)) == []


def test_a_list_of_nodes_makes_room_at_once(machine):
    run = machine(nodes=())
    nodes = tuple(make_node(f"n{number}") for number in range(1000))
    run._collect(run.scheduler.observe(Listed(Node, nodes), 0.0))
    table = run.scheduler.cluster.table
    assert (table.capacity, table.node_count) == (1000, 1000)
    assert table.names == [node.name for node in nodes]


def test_an_unchanged_list_requeues_no_pod(machine):
    run, is_woken = waiting_for(machine, ClusterEvent("Node", Action.ALL))
    nodes = tuple(make_node(name) for name in ("n1", "n2", "n3"))
    run._collect(run.scheduler.observe(Listed(Node, nodes), 0.0))
    assert not is_woken()


def test_a_list_confirms_an_assumed_pod(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run._collect(run.scheduler.observe(Listed(Pod, (on(POD, "n1"),)), 0.0))
    assert run.cached(POD) == "n1"


def test_a_list_without_an_assumed_pod(machine):
    run = machine(nodes=["n1"])
    run.schedule(POD)
    run._collect(run.scheduler.observe(Listed(Pod, ()), 0.0))
    assert (run.cached(POD), run.requested("n1")) == (None, 0)
    assert run.fail(BindPod) == []


@pytest.mark.parametrize(
    ("new", "old", "older"),
    [
        pytest.param("9", "10", True, id="as numbers, not as text"),
        pytest.param("10", "10", False, id="the same"),
        pytest.param("", "10", False, id="one without a version"),
        pytest.param("abc", "10", False, id="one that is no number"),
    ],
)
def test_which_version_is_older(new, old, older):
    pods = [versioned(POD, version) for version in (new, old)]
    assert is_older(*pods) is older
    assert is_older(versioned(make_pod("p", uid="other"), new), versioned(POD, old)) is older
