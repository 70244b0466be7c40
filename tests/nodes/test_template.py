"""Pods that are equal in all fields that plugins read share a template."""

from dataclasses import asdict

import pytest
from msgspec.structs import replace

from moorage.api.meta import Condition, OwnerReference
from moorage.api.pod import (
    ClaimVolume,
    Container,
    ContainerStatus,
    EphemeralVolume,
    ImageVolume,
    ResourceRequirements,
    Volume,
)
from moorage.nodes import template
from moorage.nodes.template import Templates
from moorage.nodes.usage import Usage
from moorage.testing import make_pod


def with_meta(pod, **fields):
    return replace(pod, metadata=replace(pod.metadata, **fields))


def with_status(pod, **fields):
    return replace(pod, status=replace(pod.status, **fields))


def resized(cpu):
    held = ResourceRequirements(requests={"cpu": cpu})
    return ContainerStatus(name="c0", resources=held, allocated_resources={"cpu": cpu})


def volumes(*given):
    return make_pod("a", volumes=given)


OWNER = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name="web", controller=True)
PLAIN = make_pod("a")
SIDECAR = Container(name="c0", restart_policy="Always")
HELPED = make_pod("a", init_containers=(SIDECAR,))


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        pytest.param(PLAIN, make_pod("b", uid="other"), True, id="name and UID"),
        pytest.param(PLAIN, make_pod("a", node="n1"), True, id="node name"),
        pytest.param(
            PLAIN,
            with_meta(PLAIN, resource_version="9", creation_timestamp="x"),
            True,
            id="resource version and creation time",
        ),
        pytest.param(
            PLAIN,
            with_status(PLAIN, conditions=(Condition(type="PodScheduled", status="False"),)),
            True,
            id="conditions",
        ),
        pytest.param(
            PLAIN, with_status(PLAIN, nominated_node_name="n1"), True, id="nominated node"
        ),
        pytest.param(PLAIN, make_pod("a", namespace="other"), False, id="namespace"),
        pytest.param(PLAIN, make_pod("a", labels={"a": "b"}), False, id="labels"),
        pytest.param(PLAIN, with_meta(PLAIN, annotations={"a": "b"}), False, id="annotations"),
        pytest.param(PLAIN, make_pod("a", requests={"cpu": "1"}), False, id="requests"),
        pytest.param(PLAIN, make_pod("a", priority=1), False, id="priority"),
        pytest.param(PLAIN, make_pod("a", scheduler_name="other"), False, id="scheduler"),
        pytest.param(PLAIN, with_meta(PLAIN, owner_references=(OWNER,)), False, id="owner"),
        pytest.param(
            volumes(Volume(name="kube-api-access-x7k2p")),
            volumes(Volume(name="kube-api-access-9q4zz")),
            True,
            id="names of volumes that plugins ignore",
        ),
        pytest.param(
            volumes(Volume(name="config")),
            PLAIN,
            True,
            id="presence of volumes that plugins ignore",
        ),
        pytest.param(
            volumes(Volume(name="x", image=ImageVolume(reference="app:1"))),
            volumes(Volume(name="y", image=ImageVolume(reference="app:1"))),
            True,
            id="the name of a volume that plugins read",
        ),
        pytest.param(
            volumes(Volume(name="x", persistent_volume_claim=ClaimVolume(claim_name="one"))),
            volumes(Volume(name="y", persistent_volume_claim=ClaimVolume(claim_name="two"))),
            True,
            id="another claim",
        ),
        pytest.param(
            volumes(Volume(name="x", persistent_volume_claim=ClaimVolume(claim_name="one"))),
            volumes(Volume(name="x", ephemeral=EphemeralVolume())),
            False,
            id="an ephemeral volume's claim",
        ),
        pytest.param(
            volumes(Volume(persistent_volume_claim=ClaimVolume(claim_name="one"))),
            volumes(Volume(persistent_volume_claim=ClaimVolume(claim_name="one", read_only=True))),
            False,
            id="a read-only claim",
        ),
        pytest.param(
            make_pod("a", volumes=(Volume(name="x", ephemeral=EphemeralVolume()),)),
            make_pod("b", volumes=(Volume(name="x", ephemeral=EphemeralVolume()),)),
            True,
            id="claims that are named after the pod",
        ),
        pytest.param(
            with_status(PLAIN, container_statuses=(resized("1"),)),
            with_status(PLAIN, container_statuses=(resized("2"),)),
            False,
            id="allocated resources of containers during a resize",
        ),
        pytest.param(
            with_status(HELPED, init_container_statuses=(resized("1"),)),
            with_status(HELPED, init_container_statuses=(resized("2"),)),
            False,
            id="allocated resources of sidecars during a resize",
        ),
        pytest.param(
            PLAIN,
            with_status(
                PLAIN, conditions=(Condition(type="PodResizePending", reason="Infeasible"),)
            ),
            False,
            id="an infeasible resize",
        ),
    ],
)
def test_which_pods_share_a_template(one, other, equal):
    if one.namespace == other.namespace and template.are_alike(one, other):
        assert equal
    templates = Templates()
    assert (templates.of(one) is templates.of(other)) is equal
    for pod in (one, other):
        assert asdict(templates.of(pod).usage) == asdict(Usage.of(pod))


@pytest.mark.parametrize(
    ("change", "alike"),
    [
        pytest.param({"phase": "Running"}, True, id="a phase"),
        pytest.param({"conditions": (Condition(type="PodScheduled"),)}, True, id="a condition"),
        pytest.param({"nominated_node_name": "n1"}, True, id="a nominated node"),
        pytest.param({"container_statuses": (resized("2"),)}, False, id="a resize"),
        pytest.param(
            {"conditions": (Condition(type="PodResizePending"),)}, False, id="a resize to come"
        ),
    ],
)
def test_a_changed_status_keeps_the_template_unless_the_pod_is_resized(change, alike):
    pod = make_pod("a")
    assert template.are_alike(with_status(pod, **change), pod) is alike


def test_a_templates_example_is_its_first_pod():
    first = Templates().of(PLAIN)
    assert (first.serial, first.exemplar) == (1, PLAIN)


def test_amounts_beyond_64_bits():
    templates = Templates()
    huge = make_pod("a", requests={"memory": 10**21})
    assert templates.of(huge) is templates.of(make_pod("b", requests={"memory": 10**21}))
    assert templates.of(huge) is not templates.of(make_pod("b", requests={"memory": 10**22}))


def test_serials_are_never_used_twice(monkeypatch):
    monkeypatch.setattr(template, "MOST_TEMPLATES", 4)
    templates = Templates()
    serials = [templates.of(make_pod("a", priority=i)).serial for i in range(20)]
    assert serials == list(range(1, 21))
    assert templates.of(make_pod("b", priority=19)).serial == 20
    assert templates.of(make_pod("b", priority=0)).serial == 21
