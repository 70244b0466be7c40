"""A pod that names the claim of another pod is tried as soon as that claim helps it."""

import pytest
from tests import device_builders as devices
from tests import storage_manifests as storage

from moorage import Simulation
from moorage.sim.faults import Faults

# Less than the five minutes after which every unschedulable pod is tried again.
SOON_SECONDS = 60
SLOW_UNTIL_SECONDS = 150


def pod(name, **spec):
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    spec = {"containers": [container], **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def device_claims():
    template = {
        "apiVersion": devices.API,
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "gpus", "namespace": "default"},
        "spec": {"spec": devices.claim("c")["spec"]},
    }
    first = [
        devices.node("n1"),
        devices.resource_slice("n1", devices.devices(1)),
        devices.device_class(),
        template,
    ]
    owner = pod("owner", resourceClaims=[{"name": "g", "resourceClaimTemplateName": "gpus"}])

    def other(sim):
        [made] = sim.read("Pod", "default", "owner")["status"]["resourceClaimStatuses"]
        by_name = {"name": "g", "resourceClaimName": made["resourceClaimName"]}
        return pod("other", resourceClaims=[by_name])

    return first, owner, other


def volume_claims():
    first = [devices.node("n1"), storage.storage_class()]
    template = {"spec": storage.claim_spec()}
    owner = pod("owner", volumes=[{"name": "v", "ephemeral": {"volumeClaimTemplate": template}}])
    by_name = {"name": "v", "persistentVolumeClaim": {"claimName": "owner-v"}}
    return first, owner, lambda sim: pod("other", volumes=[by_name])


@pytest.mark.parametrize(
    ("of", "other_first"),
    [
        pytest.param(device_claims, False, id="devices"),  # Only the claim shows its name.
        pytest.param(volume_claims, False, id="volumes"),
        pytest.param(volume_claims, True, id="volumes, before the claim exists"),
    ],
)
def test_a_claim_of_another_pod(of, other_first):
    first, owner, other = of()
    cordoned = [{**each, "spec": {"unschedulable": True}} for each in first[:1]]
    # While the claim of the first pod is written, the other one is tried in vain.
    slow = Faults(answer_seconds=10, until_seconds=SLOW_UNTIL_SECONDS)
    sim = Simulation([*cordoned, *first[1:]], check=True, faults=slow)
    if other_first:
        sim.create([other(sim)])
        sim.run(until=10)
    sim.create([owner])
    sim.run(until=20)
    if not other_first:
        sim.create([other(sim)])
    sim.run(until=100)
    assert set(sim.pending) == {"default/owner", "default/other"}
    sim.update(first[0])
    sim.run(until=100 + SOON_SECONDS)
    assert sim.placements == {"default/owner": "n1", "default/other": "n1"}
