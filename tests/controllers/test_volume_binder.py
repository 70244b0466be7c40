"""Decisions of the volume controllers that need an unusual state; `simulation/` has the others."""

import pytest
from tests.storage_manifests import claim, local_disk, storage_class

from moorage.api import claims, manifests
from moorage.api.storage import PersistentVolume, PersistentVolumeClaim
from moorage.controllers import volume_binder
from moorage.controllers.volume_binder import DeleteVolume, UpdateStorage

UID = "uid-of-data"


class Cluster:
    """Objects by kind and key."""

    def __init__(self, *found):
        self._objects = {(type(obj), obj.key): obj for obj in manifests.from_dicts(found)}

    def get(self, kind, key):
        return self._objects.get((kind, key))

    def all(self, kind):
        return [obj for (known, _), obj in self._objects.items() if known is kind]


def data(volume="", **annotations):
    new = claim("data", "disk")
    new["metadata"] |= {"uid": UID, "annotations": annotations}
    new["spec"]["volumeName"] = volume
    return new


def taken(name, policy="Retain", **annotations):
    new = local_disk(name, "zone", "a")
    new["metadata"]["annotations"] = annotations
    reference = {"namespace": "default", "name": "data", "uid": UID}
    new["spec"] |= {"claimRef": reference, "persistentVolumeReclaimPolicy": policy}
    return new


@pytest.mark.parametrize(
    ("policy", "mark", "reference"),
    [
        pytest.param("Retain", claims.BOUND_BY_CONTROLLER, None, id="reserved by the controller"),
        pytest.param("Retain", "", ("data", ""), id="reserved by a user, for a name"),
        pytest.param("Delete", volume_binder.PROVISIONED_BY, "deleted", id="provisioned"),
    ],
)
def test_a_volume_whose_claim_got_another_one_is_free_again(policy, mark, reference):
    marks = {mark: "yes"} if mark else {}
    cluster = Cluster(data(volume="other"), taken("disk", policy, **marks))
    volume = cluster.get(PersistentVolume, "disk")
    (decision,) = volume_binder.for_volume(volume, cluster)
    if reference == "deleted":
        assert decision == DeleteVolume(volume)
        return
    assert isinstance(decision, UpdateStorage)
    found = decision.new.spec.claim_ref
    assert (found and (found.name, found.uid)) == reference
    assert decision.new.status.phase == "Available"
    assert claims.BOUND_BY_CONTROLLER not in decision.new.metadata.annotations


@pytest.mark.parametrize("node", [None, "gone"])
def test_failed_provisioning(node):
    marks = {} if node is None else {claims.SELECTED_NODE: node}
    cluster = Cluster(storage_class("disk"), data(**marks))
    found = cluster.get(PersistentVolumeClaim, "default/data")
    decisions = list(volume_binder.provisioned(found, node, cluster, failed=node is None))
    if node is None:  # The host repeats it later.
        assert decisions == []
    else:  # Its node does not exist any more: the scheduler selects another one.
        (decision,) = decisions
        assert decision.new.metadata.annotations == {}


def test_provisioning_for_a_node_that_is_not_selected_any_more_has_no_result():
    cluster = Cluster(storage_class("disk"), data(**{claims.SELECTED_NODE: "b"}))
    found = cluster.get(PersistentVolumeClaim, "default/data")
    assert list(volume_binder.provisioned(found, "a", cluster)) == []
