"""Objects that are held: shown with their future whatever versions are observed."""

import pytest
from msgspec.structs import replace

from moorage.api.devices import AllocationResult, ResourceClaim, ResourceClaimStatus
from moorage.api.meta import ObjectMeta
from moorage.framework.cluster import Cluster

FUTURE = ResourceClaimStatus(allocation=AllocationResult())


def claim(version, status=None, uid="u"):
    meta = ObjectMeta(name="c", namespace="default", uid=uid, resource_version=str(version))
    return ResourceClaim(metadata=meta, status=status or ResourceClaimStatus())


@pytest.fixture
def cluster():
    found = Cluster()
    found.put(claim(1))
    found.hold(claim(1, FUTURE), "pod")
    return found


def allocated(cluster):
    latest = cluster.latest(ResourceClaim, "default/c")
    return latest is not None and latest.status.allocation is not None


def test_newer_versions_do_not_end_it(cluster):
    cluster.put(claim(2))
    assert allocated(cluster)
    assert cluster.is_held(ResourceClaim, "default/c")


def test_a_written_object_is_shown_until_it_is_observed(cluster):
    cluster.written(claim(5, FUTURE))
    assert not cluster.is_held(ResourceClaim, "default/c")
    cluster.put(claim(4))
    assert allocated(cluster)
    cluster.put(claim(6))
    assert not allocated(cluster)


def test_a_written_object_that_was_observed_before(cluster):
    cluster.put(claim(5, FUTURE))
    cluster.written(claim(5, FUTURE))
    assert not list(cluster.assumed)
    assert allocated(cluster)


def test_a_released_object_is_reported_once(cluster):
    cluster.release(ResourceClaim, "default/c")
    assert not allocated(cluster)
    [(held, known)] = cluster.take_released()
    assert (held.status, known.status) == (FUTURE, ResourceClaimStatus())
    assert cluster.take_released() == []


@pytest.mark.parametrize("replaced", [True, False])
def test_an_object_that_is_gone_is_not_held(cluster, replaced):
    if replaced:
        cluster.put(claim(3, uid="another"))
    else:
        cluster.drop(claim(2))
    assert not cluster.is_held(ResourceClaim, "default/c")
    cluster.written(claim(5, FUTURE))
    assert not allocated(cluster)


def test_an_object_that_does_not_exist_yet():
    cluster = Cluster()
    cluster.hold(replace(claim(""), status=FUTURE), "pod")
    assert allocated(cluster)
    cluster.put(claim(1))
    assert allocated(cluster)


@pytest.mark.parametrize("written", [True, False])
def test_a_late_observation_of_an_object_that_had_the_name_before(written):
    cluster = Cluster()
    cluster.hold(claim("" if not written else 6, FUTURE, uid="new"), "pod")
    if written:
        cluster.written(claim(7, FUTURE, uid="new"))
    cluster.put(claim(3, uid="old"))
    cluster.drop(claim(3, uid="old"))
    cluster.put(claim(6, uid="new"))
    assert allocated(cluster)
    cluster.written(claim(7, FUTURE, uid="new"))
    cluster.put(claim(7, FUTURE, uid="new"))
    assert (allocated(cluster), list(cluster.assumed)) == (True, [])
