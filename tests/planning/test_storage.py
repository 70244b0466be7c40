"""Questions about pods with volumes: claims are bound and volumes made as in a simulation."""

import pytest
from tests.planning.conftest import HOST, ZONE, node, pod
from tests.storage_manifests import BY_HAND, claim_spec, csi_node, local_disk, storage_class

from moorage.planning.add_nodes import add_nodes
from moorage.planning.capacity import capacity
from moorage.planning.compact import compact
from moorage.planning.drain import drain


def database(replicas=3, cpu="1"):
    template = pod("x", labels={"app": "db"})["spec"]
    template["containers"][0]["resources"]["requests"] = {"cpu": cpu}
    return {
        "apiVersion": "apps/v1",
        "kind": "StatefulSet",
        "metadata": {"name": "db"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "db"}},
            "template": {"metadata": {"labels": {"app": "db"}}, "spec": template},
            "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim_spec()}],
        },
    }


def ephemeral(name, cpu=1000):
    template = {"volumeClaimTemplate": {"spec": claim_spec()}}
    volumes = [{"name": "scratch", "ephemeral": template}]
    return pod(name, cpu, owner="ReplicaSet/cache", volumes=volumes)


NODES = [node("a", zone="z1"), node("b", zone="z2")]
LOCAL = storage_class(provisioner=BY_HAND)


@pytest.mark.parametrize(
    ("objects", "asked", "fits", "first"),
    [
        pytest.param(
            [storage_class()], database(), 8, "Insufficient cpu", id="made where the pod goes"
        ),
        pytest.param(
            [storage_class(mode="Immediate")],
            database(),
            8,
            "Insufficient cpu",
            id="made before the pod comes",
        ),
        pytest.param(
            [storage_class(), csi_node("a", 2), csi_node("b", 1)],
            database(),
            3,
            "node(s) exceed max volume count",
            id="as many as can be attached",
        ),
        pytest.param(
            [LOCAL, *(local_disk(f"v{number}", HOST, "a") for number in range(3))],
            database(),
            3,
            "node(s) didn't find available persistent volumes to bind",
            id="as many as there are local disks",
        ),
        pytest.param(
            [
                storage_class(mode="Immediate", provisioner=BY_HAND),
                local_disk("v0", HOST, "a"),
                local_disk("v1", HOST, "b"),
            ],
            database(),
            2,
            "pod has unbound immediate PersistentVolumeClaims",
            id="as many as there are disks, bound before the pod comes",
        ),
        pytest.param(
            [storage_class()], ephemeral("cache"), 8, "Insufficient cpu", id="ephemeral volumes"
        ),
        pytest.param(
            [
                storage_class(
                    allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["z2"]}]}]
                )
            ],
            database(),
            4,
            "Insufficient cpu",
            id="only where the class makes volumes",
        ),
    ],
)
def test_each_copy_has_claims_of_its_own(objects, asked, fits, first):
    answer = capacity([*NODES, *objects], asked)
    assert (answer.fits, answer.first) == (fits, first)


def test_most_is_heard_and_not_taken_for_the_end():
    answer = capacity([*NODES, storage_class()], database(), most=3)
    assert (answer.fits, answer.is_limited) == (3, True)


def test_copies_keep_clear_of_the_pods_and_claims_that_are_there():
    answer = capacity([*NODES, storage_class(), database(3)], database())
    assert (answer.placed_before, answer.fits) == (3, 5)


def test_a_drained_pod_stays_in_the_zone_of_its_volume():
    nodes = [node("a", zone="z1"), node("b", zone="z2"), node("c", zone="z1")]
    drivers = [csi_node(each["metadata"]["name"], keys=[ZONE]) for each in nodes]
    before = capacity([*nodes, *drivers, storage_class()], database(1), most=1)
    (home,) = before.nodes
    answer = drain([*nodes, *drivers, storage_class(), database(1)], [home])
    (move,) = answer.moves
    expected = {"a": "c", "c": "a", "b": ""}[home]
    assert move.to == expected
    if not expected:
        assert "didn't match PersistentVolume's node affinity" in move.message


def test_a_local_volume_holds_its_pod():
    objects = [*NODES, LOCAL, local_disk("v0", HOST, "a"), database(1)]
    (move,) = drain(objects, ["a"]).moves
    assert (move.pod, move.source, move.to) == ("default/db-0", "a", "")


def test_an_ephemeral_volume_is_made_again_elsewhere():
    nodes = [node("a", zone="z1"), node("b", zone="z2", unschedulable=True)]
    drivers = [csi_node("a", keys=[ZONE]), csi_node("b", keys=[ZONE])]
    open_b = node("b", zone="z2")
    assert capacity([*nodes, *drivers, storage_class()], ephemeral("cache")).fits == 4
    tied = ephemeral("cache-0") | {}
    tied["spec"]["nodeName"] = "a"
    (move,) = drain([nodes[0], open_b, *drivers, storage_class(), tied], ["a"]).moves
    assert (move.pod, move.to) == ("default/cache-0", "b")


def test_new_nodes_for_pods_with_volumes():
    objects = [node("a"), storage_class(), database(10)]
    answer = add_nodes(objects, [node("new")])
    assert (answer.total, answer.lower_bound, dict(answer.impossible)) == (2, 2, {})


def test_a_database_can_be_packed_on_fewer_nodes():
    nodes = [node(f"n{number}") for number in range(5)]
    answer = compact([*nodes, storage_class(), database(6)], seeds=range(3))
    assert set(answer.kept.values()) == {2}
