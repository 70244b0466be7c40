"""Objects as they will be: seen by all, ended by any news."""

import pytest
from msgspec.structs import replace
from tests.storage_builders import make_free_volume

from moorage.api.storage import PersistentVolume
from moorage.framework.cluster import AssumeError, Cluster

KNOWN = make_free_volume(version="4")
FUTURE = make_free_volume(version="4", phase="Bound")


def seen(cluster):
    return cluster.latest(PersistentVolume, "pv")


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.put(KNOWN)
    cluster.assume(FUTURE, "pod")
    return cluster


def test_the_future_lies_on_top(cluster):
    assert seen(cluster) is FUTURE
    assert cluster.get(PersistentVolume, "pv") is KNOWN
    assert [(each.obj, each.holder) for each in cluster.assumed] == [(FUTURE, "pod")]


@pytest.mark.parametrize(
    ("news", "stays"),
    [
        pytest.param(lambda c: c.put(make_free_volume(version="5")), False, id="newer"),
        pytest.param(lambda c: c.put(KNOWN), True, id="a repetition"),
        pytest.param(lambda c: c.drop(KNOWN), False, id="gone"),
        pytest.param(lambda c: c.put(make_free_volume("other")), True, id="of another"),
        pytest.param(lambda c: c.restore(make_free_volume(version="3")), True, id="restore older"),
        pytest.param(lambda c: c.restore(KNOWN), False, id="restore"),
    ],
)
def test_what_ends_it(cluster, news, stays):
    news(cluster)
    assert (seen(cluster) is FUTURE) is stays
    assert bool(list(cluster.assumed)) is stays


def test_without_versions_any_news_ends_it():
    cluster = Cluster()
    cluster.put(make_free_volume(version=""))
    cluster.assume(make_free_volume(version="", phase="Bound"), "pod")
    cluster.put(make_free_volume(version=""))
    assert list(cluster.assumed) == []


def test_one_that_was_carried_out_is_held_by_nobody(cluster):
    cluster.settle(KNOWN)
    assert [each.holder for each in cluster.assumed] == [""]


def test_it_cannot_be_made_from_another_version(cluster):
    with pytest.raises(AssumeError, match=r'"pv" is out of sync \(stored: 4, assume: 5\)'):
        cluster.assume(make_free_volume(version="5"), "pod")
    assert seen(cluster) is FUTURE


def test_whoever_keeps_track_of_changes_learns_of_it(cluster):
    log = cluster.changes_of(PersistentVolume)
    steps = [
        lambda: cluster.restore(FUTURE),
        lambda: cluster.restore(FUTURE),
        lambda: cluster.assume(FUTURE, "pod"),
        lambda: cluster.put(replace(KNOWN, metadata=replace(KNOWN.metadata, resource_version="5"))),
    ]
    noted = []
    for step in steps:
        before, version = log.position, cluster.version
        step()
        noted.append((log.position - before, cluster.version > version))
    # Giving up what was given up before is no change; news that says nothing new ends it all the
    # same, so that is one.
    assert noted == [(1, True), (0, False), (1, True), (1, True)]
