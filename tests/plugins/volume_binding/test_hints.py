"""Which changes are worth another try."""

import pytest
from msgspec.structs import replace
from tests.storage_builders import (
    DRIVER,
    claimed,
    ephemeral,
    make_capacity,
    make_claim,
    make_class,
    make_csi_node,
    make_driver,
)

from moorage import plugin as mp
from moorage.api import csi_migration
from moorage.api.pod import CSIVolume, Volume
from moorage.api.storage import TopologySelectorTerm
from moorage.plugins.volume_binding import VolumeBinding
from moorage.testing import make_pod

POD = make_pod(volumes=(claimed("data"), ephemeral("scratch")))
INLINE = make_pod(volumes=(Volume(name="v", csi=CSIVolume(driver=DRIVER)),))
SOMEWHERE = replace(make_class(), allowed_topologies=(TopologySelectorTerm(),))
E = mp.ClusterEvent


def migrated(*plugins):
    node = make_csi_node()
    marks = {csi_migration.MIGRATED_PLUGINS: ",".join(plugins)} if plugins else {}
    return replace(node, metadata=replace(node.metadata, annotations=marks))


@pytest.mark.parametrize(
    ("event", "pod", "old", "new", "cured"),
    [
        pytest.param(E.STORAGE_CLASS_ADD, POD, None, make_class(), True, id="a new class"),
        pytest.param(
            E.STORAGE_CLASS_UPDATE, POD, make_class(), SOMEWHERE, True, id="other topologies"
        ),
        pytest.param(
            E.STORAGE_CLASS_UPDATE, POD, SOMEWHERE, SOMEWHERE, False, id="the same topologies"
        ),
        pytest.param(E.CLAIM_ADD, POD, None, make_claim(), True, id="its claim"),
        pytest.param(E.CLAIM_UPDATE, POD, make_claim(), make_claim(), True, id="its claim again"),
        pytest.param(E.CLAIM_ADD, POD, None, make_claim("pod-scratch"), True, id="made for it"),
        pytest.param(E.CLAIM_ADD, POD, None, make_claim("other"), False, id="another claim"),
        pytest.param(
            E.CLAIM_ADD, POD, None, make_claim(namespace="b"), False, id="in another namespace"
        ),
        pytest.param(E.CSI_NODE_ADD, POD, None, migrated(), True, id="a new node"),
        pytest.param(
            E.CSI_NODE_UPDATE, POD, migrated(), migrated("x"), True, id="serves more through CSI"
        ),
        pytest.param(
            E.CSI_NODE_UPDATE, POD, migrated("x"), migrated("x"), False, id="serves the same"
        ),
        pytest.param(
            E.CSI_DRIVER_UPDATE,
            INLINE,
            make_driver(),
            make_driver(storage_capacity=False),
            True,
            id="no accounts any more",
        ),
        pytest.param(
            E.CSI_DRIVER_UPDATE,
            INLINE,
            make_driver(storage_capacity=None),
            make_driver(storage_capacity=False),
            False,
            id="no accounts as before",
        ),
        pytest.param(
            E.CSI_DRIVER_UPDATE,
            POD,
            make_driver(),
            make_driver(storage_capacity=False),
            False,
            id="a pod with claims is not looked at, as in Kubernetes",
        ),
        pytest.param(
            E.CSI_STORAGE_CAPACITY_ADD, POD, None, make_capacity(), True, id="new capacity"
        ),
        pytest.param(
            E.CSI_STORAGE_CAPACITY_UPDATE,
            POD,
            make_capacity(capacity="1Gi"),
            make_capacity(capacity="2Gi"),
            True,
            id="more capacity",
        ),
        pytest.param(
            E.CSI_STORAGE_CAPACITY_UPDATE,
            POD,
            make_capacity(capacity="1Gi", largest="1Gi"),
            make_capacity(capacity="2Gi", largest="1Gi"),
            False,
            id="more, but volumes no larger",
        ),
        pytest.param(
            E.CSI_STORAGE_CAPACITY_UPDATE,
            POD,
            make_capacity(capacity=None),
            make_capacity(capacity="1Gi"),
            True,
            id="said at last",
        ),
        pytest.param(
            E.CSI_STORAGE_CAPACITY_UPDATE,
            POD,
            make_capacity(capacity="2Gi"),
            make_capacity(capacity=None),
            False,
            id="not said any more",
        ),
    ],
)
def test_hints(event, pod, old, new, cured):
    hint = VolumeBinding().events_to_register()[event]
    assert hint(pod, old, new) is (mp.Hint.QUEUE if cured else mp.Hint.QUEUE_SKIP)


@pytest.mark.parametrize("event", [E.VOLUME_ADD, E.VOLUME_UPDATE, E.NODE_ADD, E.UPDATE_NODE_LABEL])
def test_always_worth_it(event):
    assert VolumeBinding().events_to_register()[event] is None
