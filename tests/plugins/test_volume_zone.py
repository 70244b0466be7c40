"""A pod goes where its volumes are, as far as their labels say so."""

import pytest
from tests.storage_builders import claimed, ephemeral, make_claim, make_class, make_volume

from moorage import plugin as mp
from moorage.plugins import claim_advice, volume_zone
from moorage.plugins.volume_zone import ELSEWHERE, NO_CLASS, NO_VOLUME, VolumeZone
from moorage.testing import (
    check_plugin,
    check_twins,
    make_cluster,
    make_node,
    make_pod,
    make_state,
)

ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
OLD_REGION = "failure-domain.beta.kubernetes.io/region"
QUEUE, QUEUE_SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP
POD = make_pod(volumes=(claimed("data"),))
BOUND = make_claim(volume="pv")


def cluster_of(node_labels, volume_labels):
    objects = [BOUND, make_volume(labels=volume_labels)]
    return make_cluster([make_node(labels=node_labels)], objects=objects)


def status_of(cluster):
    state = make_state(POD, cluster)
    found = VolumeZone().pre_filter(state, POD)
    if not found.is_success:
        return found
    check_twins(VolumeZone(), POD, cluster)
    return VolumeZone().filter(state, POD, cluster.table.info(cluster.table.row_of["node"]))


@pytest.mark.parametrize(
    ("volume", "node", "status"),
    [
        pytest.param({OLD_ZONE: "a"}, {ZONE: "a"}, mp.SUCCESS, id="32: old volume, new node"),
        pytest.param({ZONE: "a"}, {OLD_ZONE: "a"}, ELSEWHERE, id="32: new volume, old node"),
        pytest.param({OLD_ZONE: "a"}, {OLD_ZONE: "a", ZONE: "b"}, mp.SUCCESS, id="old label first"),
        pytest.param({OLD_ZONE: "b"}, {OLD_ZONE: "a", ZONE: "b"}, ELSEWHERE, id="old label only"),
        pytest.param({ZONE: "c__a"}, {ZONE: "a"}, mp.SUCCESS, id="33: one of several zones"),
        pytest.param({ZONE: " c __ a "}, {ZONE: "a"}, mp.SUCCESS, id="spaces between zones"),
        pytest.param({ZONE: "c__b"}, {ZONE: "a"}, ELSEWHERE, id="none of several zones"),
        pytest.param({ZONE: "a", REGION: "r"}, {ZONE: "a"}, ELSEWHERE, id="34: no region"),
        pytest.param({ZONE: "a", REGION: "r"}, {}, mp.SUCCESS, id="34: a node without zones"),
        pytest.param({ZONE: "a"}, {REGION: "r"}, ELSEWHERE, id="a node with a region alone"),
        pytest.param({OLD_REGION: "r"}, {REGION: "r"}, mp.SUCCESS, id="old region, new node"),
        pytest.param({ZONE: "a__"}, {ZONE: "b"}, mp.SKIP, id="an empty part: the label is ignored"),
        pytest.param({ZONE: ""}, {ZONE: "b"}, mp.SKIP, id="an empty label"),
        pytest.param({"rack": "a"}, {ZONE: "b"}, mp.SKIP, id="a volume without zones"),
    ],
)
def test_where(volume, node, status):
    assert status_of(cluster_of(node, volume)) == status


def unresolvable(text):
    return mp.unresolvable(text)


@pytest.mark.parametrize(
    ("objects", "found"),
    [
        pytest.param(
            [], unresolvable('persistentvolumeclaim "data" not found'), id="no such claim"
        ),
        pytest.param([BOUND], unresolvable('persistentvolume "pv" not found'), id="no such volume"),
        pytest.param([make_claim()], NO_CLASS, id="35: unbound, no class"),
        pytest.param(
            [make_claim(storage_class="fast")],
            unresolvable('storageclass.storage.k8s.io "fast" not found'),
            id="35: unbound, no such class",
        ),
        pytest.param(
            [make_claim(storage_class="fast"), make_class(mode=None)],
            unresolvable('VolumeBindingMode not set for StorageClass "fast"'),
            id="35: unbound, no mode",
        ),
        pytest.param(
            [make_claim(storage_class="fast"), make_class()],
            mp.SKIP,
            id="35: made where the pod is",
        ),
        pytest.param(
            [make_claim(storage_class="fast"), make_class(mode="Immediate")],
            NO_VOLUME,
            id="35: unbound, though made at once",
        ),
    ],
)
def test_claims_without_a_volume(objects, found):
    state = make_state(POD, make_cluster([make_node()], objects=objects))
    assert VolumeZone().pre_filter(state, POD) == found


@pytest.mark.parametrize(
    ("volume", "found"),
    [
        pytest.param(
            claimed(""), unresolvable("PersistentVolumeClaim had no name"), id="a nameless claim"
        ),
        pytest.param(ephemeral("tmp"), mp.SKIP, id="a claim made for the pod"),
    ],
)
def test_volumes(volume, found):
    pod = make_pod(volumes=(volume,))
    assert VolumeZone().pre_filter(make_state(pod, make_cluster([make_node()])), pod) == found


def test_every_volume_has_to_be_in_reach():
    pod = make_pod(volumes=(claimed("data"), claimed("more")))
    objects = [
        BOUND,
        make_claim("more", volume="pv-2"),
        make_volume(labels={ZONE: "a"}),
        make_volume("pv-2", labels={ZONE: "a__b"}),
    ]
    nodes = [make_node(zone, labels={ZONE: zone}) for zone in "abc"]
    cluster = make_cluster(nodes, objects=objects)
    state = make_state(pod, cluster)
    assert VolumeZone().pre_filter(state, pod) == mp.SUCCESS
    verdicts = VolumeZone().filter_all(state, pod, cluster.table)
    fits = [name for name in "abc" if not verdicts.codes[cluster.table.row_of[name]]]
    assert fits == ["a"]


@pytest.mark.parametrize(
    ("hint", "old", "new", "answer"),
    [
        pytest.param(volume_zone.binds_late, None, make_class(), QUEUE, id="a class that waits"),
        pytest.param(
            volume_zone.binds_late,
            None,
            make_class(mode="Immediate"),
            QUEUE_SKIP,
            id="one that not",
        ),
        pytest.param(claim_advice.names_claim, None, BOUND, QUEUE, id="the pod's claim"),
        pytest.param(
            claim_advice.names_claim, BOUND, BOUND, QUEUE, id="its claim, whatever changed"
        ),
        pytest.param(
            claim_advice.names_claim, None, make_claim("x"), QUEUE_SKIP, id="another claim"
        ),
        pytest.param(
            claim_advice.names_claim, None, make_claim(namespace="x"), QUEUE_SKIP, id="elsewhere"
        ),
        pytest.param(
            volume_zone.moves,
            make_volume(labels={ZONE: "a__b"}),
            make_volume(labels={ZONE: "b__a", "x": "y"}),
            QUEUE_SKIP,
            id="a volume that stays in its zones",
        ),
        pytest.param(
            volume_zone.moves,
            make_volume(labels={ZONE: "a"}),
            make_volume(labels={ZONE: "b"}),
            QUEUE,
            id="a volume that moves",
        ),
    ],
)
def test_hints(hint, old, new, answer):
    assert hint(POD, old, new) is answer


def test_conforms():
    check_plugin(VolumeZone())
