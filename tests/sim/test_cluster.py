import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition, ObjectMeta
from moorage.api.node import Node, NodeSpec, NodeStatus
from moorage.api.pod import Pod, PodSchedulingGate, PodSpec, PodStatus
from moorage.cluster.status_errors import StatusError
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim.cluster import MemoryCluster

KEY = "default/web"


def make_pod(name="web", *, uid="", phase="", **spec) -> Pod:
    meta = ObjectMeta(name=name, uid=uid)
    return Pod(metadata=meta, spec=PodSpec(**spec), status=PodStatus(phase=phase))


def make_node(name="n1", *, cpu="4", **spec) -> Node:
    status = NodeStatus(allocatable={"cpu": cpu})
    return Node(metadata=ObjectMeta(name=name), spec=NodeSpec(**spec), status=status)


class RecordingWatcher:
    """Records the observations of a watcher, as short texts."""

    def __init__(self, cluster: MemoryCluster, *, active_pods_only: bool = True) -> None:
        self.observations: list[Observation] = []
        (cluster.watch_active if active_pods_only else cluster.watch)(self.observations.append)

    def words(self) -> list[str]:
        return [f"{type(each).__name__} {each.obj.name}" for each in self.observations]


def refusal(call, *args) -> str:
    with pytest.raises(StatusError) as caught:
        call(*args)
    return str(caught.value)


# Creation


def test_create_gives_what_only_a_server_gives():
    pod = MemoryCluster().create(make_pod(), now=61.5)
    meta = pod.metadata
    assert (pod.key, meta.resource_version, meta.generation) == (KEY, "1", 1)
    assert meta.creation_timestamp == "2026-01-01T00:01:01Z"
    assert meta.uid
    assert pod.status.phase == "Pending"


def test_versions_grow_over_all_kinds():
    cluster = MemoryCluster()
    made = [cluster.create(obj, 0) for obj in (make_node(), make_pod(), make_node("n2"))]
    assert [obj.metadata.resource_version for obj in made] == ["1", "2", "3"]


def test_create_refuses_a_name_that_is_taken():
    cluster = MemoryCluster()
    cluster.create(make_pod(), 0)
    assert refusal(cluster.create, make_pod(), 0) == 'pods "web" already exists'


class RefuseGivenVersion:
    """Refuses objects by the resource version that they were given with."""

    def __init__(self) -> None:
        self.is_on = False

    def __bool__(self) -> bool:
        return self.is_on

    def refusal(self, obj):
        return f"{obj.key} has version {obj.metadata.resource_version}"


def test_quotas_see_the_version_that_an_object_was_given_with():
    cluster, quotas = MemoryCluster(), RefuseGivenVersion()
    cluster.admit_by(quotas)
    cluster.create(Pod(metadata=ObjectMeta(name="a", resource_version="70")), now=0.0)
    quotas.is_on = True
    with pytest.raises(StatusError, match="default/b has version 71"):
        cluster.create(Pod(metadata=ObjectMeta(name="b", resource_version="71")), now=0.0)
    quotas.is_on = False
    last = cluster.create(Pod(metadata=ObjectMeta(name="b")), now=0.0)
    assert last.metadata.resource_version == "2", "a refused object takes no version"
    assert cluster.version == 2


def test_a_uid_is_kept_but_never_given_twice():
    cluster = MemoryCluster()
    first = cluster.create(make_pod(uid="u"), 0)
    cluster.delete(Pod, KEY, 0)
    second = cluster.create(make_pod(uid="u"), 0)
    assert first.uid == "u"
    assert second.uid != "u"


def test_a_generated_name():
    meta = ObjectMeta(generate_name="web-")
    assert MemoryCluster().create(Pod(metadata=meta), 0).name == "web-00001"


def test_a_gated_pod_says_so_from_the_start():
    pod = MemoryCluster().create(make_pod(scheduling_gates=(PodSchedulingGate(name="g"),)), 0)
    condition = pod.condition("PodScheduled")
    assert condition is not None
    assert (condition.status, condition.reason) == ("False", "SchedulingGated")


# Update


def test_update_replaces_spec_and_counts_generations():
    cluster = MemoryCluster()
    cluster.create(make_node(), 0)
    node = cluster.update(make_node(unschedulable=True))
    assert node.spec.unschedulable
    assert (node.metadata.generation, node.metadata.resource_version) == (2, "2")


def test_a_manifest_without_status_leaves_the_status():
    cluster = MemoryCluster()
    cluster.create(make_node(cpu="4"), 0)
    bare = Node(metadata=ObjectMeta(name="n1", labels={"a": "b"}))
    assert cluster.update(bare).status.allocatable == {"cpu": "4"}


def test_an_update_that_changes_nothing_is_not_written():
    cluster = MemoryCluster()
    cluster.create(make_node(), 0)
    watcher = RecordingWatcher(cluster)
    cluster.update(make_node())
    assert watcher.words() == []


@pytest.mark.parametrize(
    ("meta", "text"),
    [
        pytest.param({"resource_version": "99"}, "the object has been modified", id="stale"),
        pytest.param({"uid": "x"}, "UID in precondition: x", id="a namesake"),
        pytest.param({"name": "n9"}, 'nodes "n9" not found', id="unknown"),
    ],
)
def test_update_refuses(meta, text):
    cluster = MemoryCluster()
    cluster.create(make_node(), 0)
    node = make_node()
    assert text in refusal(cluster.update, replace(node, metadata=replace(node.metadata, **meta)))


# Bind


def test_bind_sets_node_and_condition_and_clears_the_nomination():
    cluster = MemoryCluster()
    uid = cluster.create(make_pod(), 0).uid
    cluster.patch_status(KEY, uid, 0, nominated_node_name="n2")
    pod = cluster.bind(KEY, uid, "n1", now=7)
    condition = pod.condition("PodScheduled")
    assert condition is not None
    assert (pod.node_name, pod.status.nominated_node_name) == ("n1", "")
    assert (condition.status, condition.last_transition_time) == ("True", "2026-01-01T00:00:07Z")


@pytest.mark.parametrize(
    ("pod", "uid", "text"),
    [
        pytest.param(None, "u", 'pods "web" not found', id="unknown"),
        pytest.param(make_pod(uid="u"), "v", "UID in precondition: v", id="another UID"),
        pytest.param(
            make_pod(uid="u", node_name="n1"), "u", 'assigned to node "n1"', id="already bound"
        ),
        pytest.param(
            make_pod(uid="u", scheduling_gates=(PodSchedulingGate(name="g"),)),
            "u",
            "pod web has non-empty .spec.schedulingGates",
            id="gated",
        ),
        pytest.param(
            Pod(metadata=ObjectMeta(name="web", uid="u", deletion_timestamp="2026")),
            "u",
            "pod web is being deleted, cannot be assigned to a host",
            id="being deleted",
        ),
    ],
)
def test_bind_refuses(pod, uid, text):
    cluster = MemoryCluster()
    if pod is not None:
        cluster.create(pod, 0)
    assert text in refusal(cluster.bind, KEY, uid, "n2", 0)


# Status


def test_a_condition_keeps_its_transition_time_until_its_status_changes():
    cluster = MemoryCluster()
    uid = cluster.create(make_pod(), 0).uid
    times = []
    for now, status in ((1, "False"), (2, "False"), (3, "True")):
        condition = Condition(type="PodScheduled", status=status, message=str(now))
        pod = cluster.patch_status(KEY, uid, now, condition)
        times += [each.last_transition_time for each in pod.status.conditions]
    assert [time[-3:-1] for time in times] == ["01", "01", "03"]


def test_a_status_that_says_nothing_new_is_not_written():
    cluster = MemoryCluster()
    uid = cluster.create(make_pod(), 0).uid
    condition = Condition(type="PodScheduled", status="False", message="no")
    cluster.patch_status(KEY, uid, 1, condition)
    watcher = RecordingWatcher(cluster)
    cluster.patch_status(KEY, uid, 2, condition)
    assert watcher.words() == []


# Deletion


@pytest.mark.parametrize(
    ("pod", "gone"),
    [
        pytest.param(make_pod(), True, id="unbound: at once"),
        pytest.param(make_pod(node_name="n1"), False, id="bound: when its kubelet is through"),
        pytest.param(make_pod(node_name="n1", phase="Failed"), True, id="ended: at once"),
        pytest.param(
            make_pod(node_name="n1", termination_grace_period_seconds=0), True, id="without grace"
        ),
    ],
)
def test_delete_a_pod(pod, gone):
    cluster = MemoryCluster()
    cluster.create(pod, 0)
    cluster.delete(Pod, KEY, 0)
    assert (cluster.get(Pod, KEY) is None) == gone


def test_a_terminating_pod_says_until_when():
    cluster = MemoryCluster()
    cluster.create(make_pod(node_name="n1", termination_grace_period_seconds=5), 0)
    cluster.delete(Pod, KEY, now=10)
    cluster.delete(Pod, KEY, now=12)  # Asking again changes nothing.
    pod = cluster.get(Pod, KEY)
    assert pod is not None
    meta = pod.metadata
    assert meta.deletion_timestamp == "2026-01-01T00:00:15Z"
    assert meta.deletion_grace_period_seconds == 5


def test_delete_refuses_what_is_not_there():
    assert refusal(MemoryCluster().delete, Pod, KEY, 0) == 'pods "web" not found'


# Watches


def test_watchers_hear_everything_in_order():
    cluster = MemoryCluster()
    watcher = RecordingWatcher(cluster)
    cluster.create(make_node(), 0)
    uid = cluster.create(make_pod(), 0).uid
    cluster.bind(KEY, uid, "n1", 0)
    cluster.delete(Node, "n1", 0)
    assert watcher.words() == ["Added n1", "Added web", "Updated web", "Deleted n1"]


def test_a_pod_that_has_ended_is_gone_for_schedulers_and_there_for_others():
    cluster = MemoryCluster()
    scheduler, other = RecordingWatcher(cluster), RecordingWatcher(cluster, active_pods_only=False)
    pod = cluster.create(make_pod(node_name="n1"), 0)
    ended = cluster.write_status(pod, replace(pod.status, phase="Succeeded"))
    cluster.write_status(ended, replace(ended.status, message="bye"))
    cluster.delete(Pod, KEY, 0)
    assert [type(each) for each in scheduler.observations] == [Added, Deleted]
    assert [type(each) for each in other.observations] == [Added, Updated, Updated, Deleted]
    assert cluster.active(Pod) == ()


def test_a_watcher_of_some_kinds():
    cluster = MemoryCluster()
    seen: list[Observation] = []
    cluster.watch(seen.append, Node)
    cluster.create(make_pod(), now=0)
    node = cluster.create(make_node(), now=0)
    assert seen == [Added(node)]
