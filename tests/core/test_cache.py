"""The cache of assumed and confirmed pods. Numbers are rows of the specification."""

import pytest
from msgspec.structs import replace

from moorage.api.pod import Container, ContainerStatus, ResourceRequirements
from moorage.core.cache import Cache, CacheError
from moorage.nodes.template import Templates
from moorage.testing import make_node, make_pod, make_table

POD = make_pod("p", requests={"cpu": "1"})


class Rig:
    """A cache over a table of two nodes."""

    def __init__(self):
        self.table = make_table([make_node("n1"), make_node("n2")])
        self.templates = Templates()
        self.cache = Cache(self.table, self.templates)

    def assume(self, pod=POD, node="n1"):
        return self.cache.assume(pod, node, self.templates.of(pod))

    def cpu(self):
        rows = self.table.row_of
        return {n: int(self.table.requested("cpu")[r]) for n, r in rows.items()}

    @property
    def state(self):
        cached = self.cache.get(POD.uid)
        return None if cached is None else (cached.node, cached.assumed)


@pytest.fixture
def rig():
    return Rig()


def on(node, pod=POD):
    return replace(pod, spec=replace(pod.spec, node_name=node))


# The table of states: from unknown, assumed and added.


def test_assume_updates_the_nodes_usage_at_once(rig):
    placed = rig.assume()
    assert placed == on("n1")
    assert (rig.state, rig.cpu()) == (("n1", True), {"n1": 1000, "n2": 0})
    assert (rig.cache.assumed_count, len(rig.cache), rig.cache.is_assumed(POD.uid)) == (1, 1, True)


@pytest.mark.parametrize("added", [False, True], ids=["assumed", "added"])
def test_a_known_pod_cannot_be_assumed(rig, added):
    rig.assume()
    if added:
        rig.cache.add(on("n1"))
    with pytest.raises(CacheError, match=r"default/p\) is in the cache, so can't be assumed"):
        rig.assume(node="n2")
    assert rig.cpu() == {"n1": 1000, "n2": 0}


def test_31_forget_twice(rig):
    rig.assume()
    assert rig.cache.forget(POD.uid).node == "n1"
    assert rig.cache.forget(POD.uid) is None
    assert (rig.state, rig.cpu(), rig.cache.assumed_count) == (None, {"n1": 0, "n2": 0}, 0)


def test_31_an_added_pod_cannot_be_forgotten(rig):
    rig.cache.add(on("n1"))
    with pytest.raises(CacheError, match=r"default/p\) wasn't assumed so cannot be forgotten"):
        rig.cache.forget(POD.uid)


def test_a_confirmed_pod_is_added(rig):
    rig.assume()
    assert rig.cache.add(on("n1")) == on("n1")
    assert (rig.state, rig.cpu()) == (("n1", False), {"n1": 1000, "n2": 0})
    assert rig.cache.assumed_count == 0


def test_a_confirmation_that_changes_nothing_is_no_change(rig):
    rig.assume()
    position = rig.table.changes.position
    rig.cache.add(on("n1"))
    assert rig.table.changes.position == position


def test_30_a_pod_is_observed_on_another_node_than_assumed(rig):
    rig.assume(node="n1")
    assert rig.cache.add(on("n2")) == on("n1")
    assert (rig.state, rig.cpu()) == (("n2", False), {"n1": 0, "n2": 1000})
    assert rig.cache.assumed_count == 0


def test_an_unknown_pod_is_added(rig):
    assert rig.cache.add(on("n1")) is None
    assert (rig.state, rig.cpu()) == (("n1", False), {"n1": 1000, "n2": 0})


def test_an_added_pod_is_not_added_again(rig):
    rig.cache.add(on("n1"))
    with pytest.raises(CacheError, match=r"default/p\) was already in added state"):
        rig.cache.add(on("n1"))


@pytest.mark.parametrize("second", [on("n2"), make_pod("q", uid=POD.uid, node="n2")])
def test_no_pod_is_added_if_a_uid_is_there_twice(rig, second):
    with pytest.raises(CacheError, match=r" was already in added state"):
        rig.cache.add_all([make_pod("first", node="n1"), on("n1"), second])
    assert not rig.cache.pods
    assert rig.table.pod_counts.sum() == 0


def test_a_pod_on_an_unknown_node(rig):
    rig.cache.add(on("late"))
    assert rig.cpu() == {"n1": 0, "n2": 0, "late": 1000}
    assert not rig.table.active[rig.table.row_of["late"]]
    rig.cache.remove(POD.uid)
    assert rig.cpu() == {"n1": 0, "n2": 0}


def test_an_added_pod_is_updated(rig):
    rig.cache.add(on("n1"))
    rig.cache.update(on("n1", make_pod("p", requests={"cpu": "2"})))
    assert (rig.state, rig.cpu()) == (("n1", False), {"n1": 2000, "n2": 0})


TERMINATING = replace(POD, metadata=replace(POD.metadata, deletion_timestamp="2026-01-01T00:00Z"))


@pytest.mark.parametrize(
    ("changed", "is_equal"),
    [
        pytest.param(POD, True, id="nothing"),
        pytest.param(replace(POD, status=replace(POD.status, phase="Running")), True, id="phase"),
        pytest.param(TERMINATING, True, id="deletion timestamp"),
        pytest.param(make_pod("p", requests={"cpu": "2"}), False, id="requests"),
        pytest.param(make_pod("p", requests={"cpu": "1"}, labels={"a": "b"}), False, id="labels"),
    ],
)
def test_an_update_reports_whether_the_pod_is_equal_in_what_templates_read(rig, changed, is_equal):
    rig.cache.add(on("n1"))
    assert rig.cache.update(on("n1", changed)) is is_equal
    assert rig.cache.update(on("n2", changed)) is False


def test_unknown_and_assumed_pods_cannot_be_updated(rig):
    with pytest.raises(CacheError, match="is not added to scheduler cache, so cannot be updated"):
        rig.cache.update(on("n1"))
    rig.assume()
    with pytest.raises(CacheError, match=r"assumed pod .*default/p\) should not be updated"):
        rig.cache.update(on("n1"))


@pytest.mark.parametrize("assumed", [True, False], ids=["assumed", "added"])
def test_a_pod_is_removed(rig, assumed):
    if assumed:
        rig.assume()
    else:
        rig.cache.add(on("n1"))
    assert rig.cache.remove(POD.uid).node == "n1"
    assert (rig.state, rig.cpu(), rig.cache.assumed_count) == (None, {"n1": 0, "n2": 0}, 0)
    assert rig.cache.remove(POD.uid) is None


# The usage of a pod follows its observed status.


def resized(cpu):
    held = ResourceRequirements(requests={"cpu": cpu})
    return ContainerStatus(name="c0", resources=held, allocated_resources={"cpu": cpu})


SIDECAR = make_pod("p", init_containers=(Container(name="c0", restart_policy="Always"),))


@pytest.mark.parametrize(
    ("pod", "status"),
    [
        pytest.param(POD, {"container_statuses": (resized("3"),)}, id="a container"),
        pytest.param(SIDECAR, {"init_container_statuses": (resized("3"),)}, id="a sidecar"),
    ],
)
def test_allocated_resources_count_during_a_resize(rig, pod, status):
    rig.cache.add(on("n1", pod))
    rig.cache.update(on("n1", replace(pod, status=replace(pod.status, **status))))
    assert rig.cpu()["n1"] == 3000
    rig.cache.update(on("n1", pod))
    assert rig.cpu()["n1"] == (1000 if pod is POD else 0)


def test_pod_level_allocated_resources_count(rig):
    asked = ResourceRequirements(requests={"cpu": "1"})
    pod = make_pod("p", resources=asked)
    rig.cache.add(on("n1", pod))
    growing = replace(pod.status, resources=asked, allocated_resources={"cpu": "2"})
    rig.cache.update(on("n1", replace(pod, status=growing)))
    assert rig.cpu()["n1"] == 2000
    grown = replace(growing, allocated_resources={"cpu": "3"})
    rig.cache.update(on("n1", replace(pod, status=grown)))
    assert rig.cpu()["n1"] == 3000


# Unconfirmed bindings


def test_32_an_unconfirmed_pod_stays_assumed(rig):
    rig.assume()
    assert list(rig.cache.unconfirmed(now=600.0)) == []
    assert rig.state == ("n1", True)


def test_finished_bindings_have_a_timestamp(rig):
    second = make_pod("q")
    rig.assume()
    rig.assume(second, "n2")
    rig.cache.finish_binding(POD.uid, 10.0)
    rig.cache.finish_binding(second.uid, 20.0)
    assert [c.pod.name for c in rig.cache.unconfirmed(39.9, after_seconds=30.0)] == []
    assert [c.pod.name for c in rig.cache.unconfirmed(40.0, after_seconds=30.0)] == ["p"]
    assert [c.pod.name for c in rig.cache.unconfirmed(60.0, after_seconds=30.0)] == ["p", "q"]


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda cache: cache.add(on("n1")), id="confirmed"),
        pytest.param(lambda cache: cache.add(on("n2")), id="elsewhere"),
        pytest.param(lambda cache: cache.forget(POD.uid), id="forgotten"),
        pytest.param(lambda cache: cache.remove(POD.uid), id="removed"),
    ],
)
def test_a_confirmed_or_removed_pod_is_not_late(rig, end):
    rig.assume()
    rig.cache.finish_binding(POD.uid, 10.0)
    end(rig.cache)
    assert list(rig.cache.unconfirmed(now=600.0)) == []


def test_a_confirmation_may_come_before_the_binding_is_reported_done(rig):
    rig.assume()
    rig.cache.add(on("n1"))
    rig.cache.finish_binding(POD.uid, 10.0)
    assert list(rig.cache.unconfirmed(now=600.0)) == []
    assert rig.state == ("n1", False)
