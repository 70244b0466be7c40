"""Assumed objects: they hide the observed object until a newer one is observed."""

import pytest
from msgspec.structs import replace
from tests.storage_builders import make_free_volume

from moorage.api.storage import PersistentVolume
from moorage.framework.cluster import Cluster
from moorage.nodes.objects import AssumeError

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


def test_an_assumed_object_hides_the_observed_one(cluster):
    assert seen(cluster) is FUTURE
    assert cluster.get(PersistentVolume, "pv") is KNOWN
    assert [(each.obj, each.holder) for each in cluster.assumed] == [(FUTURE, "pod")]


@pytest.mark.parametrize(
    ("change", "stays"),
    [
        pytest.param(lambda c: c.put(make_free_volume(version="5")), False, id="a newer version"),
        pytest.param(lambda c: c.put(KNOWN), True, id="the same version"),
        pytest.param(lambda c: c.drop(KNOWN), False, id="deleted"),
        pytest.param(lambda c: c.put(make_free_volume("other")), True, id="another object"),
        pytest.param(
            lambda c: c.restore(make_free_volume(version="3")),
            True,
            id="restore of another version",
        ),
        pytest.param(lambda c: c.restore(KNOWN), False, id="restore"),
    ],
)
def test_what_ends_an_assumption(cluster, change, stays):
    change(cluster)
    assert (seen(cluster) is FUTURE) is stays
    assert bool(list(cluster.assumed)) is stays


def test_without_versions_any_update_ends_an_assumption():
    cluster = Cluster()
    cluster.put(make_free_volume(version=""))
    cluster.assume(make_free_volume(version="", phase="Bound"), "pod")
    cluster.put(make_free_volume(version=""))
    assert list(cluster.assumed) == []


def test_a_settled_assumption_has_no_holder(cluster):
    cluster.settle(KNOWN)
    assert [each.holder for each in cluster.assumed] == [""]


def test_an_object_of_another_version_cannot_be_assumed(cluster):
    with pytest.raises(AssumeError, match=r'"pv" is out of sync \(stored: 4, assume: 5\)'):
        cluster.assume(make_free_volume(version="5"), "pod")
    assert seen(cluster) is FUTURE


def test_assuming_and_restoring_are_recorded_in_the_change_log(cluster):
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
    # A second restore is no change. An update with the same content ends the assumption, so it
    # is a change.
    assert noted == [(1, True), (0, False), (1, True), (1, True)]
