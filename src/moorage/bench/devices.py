"""Shapes with devices: a claim per pod, as scheduler_perf's SchedulingWithResourceClaimTemplate."""

from typing import Any

from moorage.api import devices
from moorage.api.meta import KubeObject, ObjectMeta, OwnerReference
from moorage.api.pod import Pod, PodResourceClaim, PodResourceClaimStatus, PodStatus
from moorage.bench.workload import NAMESPACE, BenchLoad, nodes_of, pod, shape

DRIVER = "gpu.example.com"
# Nodes have two to eight devices each; on average five.
SIZES = (2, 4, 6, 8)
CLASS = "gpu"
MODELS = ("a100", "h100")
SELECTOR = (
    f'device.attributes["{DRIVER}"].model == "{MODELS[1]}" && '
    f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
)


@shape(pods=5_000)
def dra(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a claim for one device each; nodes have two to eight."""
    return _claiming(nodes, initial, pods, [_claim(_request("gpu"))])


@shape(pods=5_000)
def dra_selector(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a claim whose CEL selector accepts every other device."""
    return _claiming(nodes, initial, pods, [_claim(_request("gpu", SELECTOR))])


@shape(pods=2_000)
def dra_constraint(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a claim for two devices of one NUMA node."""
    same = devices.DeviceConstraint(match_attribute=f"{DRIVER}/numa")
    wanted = _claim(_request("first"), _request("second"), constraints=(same,))
    return _claiming(nodes, initial, pods, [wanted])


@shape(pods=5_000)
def dra_capacity(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a claim for a quarter of a shared device."""
    quarter = devices.CapacityRequirements(requests={"memory": "20Gi"})
    wanted = _claim(_request("gpu", capacity=quarter))
    return _claiming(nodes, initial, pods, [wanted], allow_multiple_allocations=True)


@shape(pods=2_000)
def dra_shapes(nodes: int, initial: int, pods: int) -> BenchLoad:
    """Pods with a plain claim, a selector or a constraint."""
    same = devices.DeviceConstraint(match_attribute=f"{DRIVER}/numa")
    kinds = [
        _claim(_request("gpu")),
        _claim(_request("gpu", SELECTOR)),
        _claim(_request("first"), _request("second"), constraints=(same,)),
    ]
    return _claiming(nodes, initial, pods, kinds)


def _claiming(
    nodes: int, initial: int, pods: int, kinds: list[devices.DeviceClaim], **device: Any
) -> BenchLoad:
    """Pods with a claim each, of these kinds by turns."""
    names = [f"initial-{i}" for i in range(initial)] + [f"pod-{i}" for i in range(pods)]
    others: list[KubeObject] = [_device_class()]
    others += [_slice(f"node-{i}", SIZES[i % len(SIZES)], **device) for i in range(nodes)]
    others += [_made_for(name, kinds[i % len(kinds)]) for i, name in enumerate(names)]
    made = [_pod(name, i % len(kinds)) for i, name in enumerate(names)]
    return BenchLoad(nodes_of(nodes), made[:initial], made[initial:], others=others)


def _pod(name: str, kind: int) -> Pod:
    uses = PodResourceClaim(name="gpu", resource_claim_template_name=f"gpu-{kind}")
    created = PodResourceClaimStatus(name="gpu", resource_claim_name=f"{name}-gpu")
    plain = pod(name, resource_claims=(uses,))
    status = PodStatus(resource_claim_statuses=(created,))
    return Pod(metadata=plain.metadata, spec=plain.spec, status=status)


def _made_for(name: str, wanted: devices.DeviceClaim) -> devices.ResourceClaim:
    owner = OwnerReference(api_version="v1", kind="Pod", name=name, uid=name, controller=True)
    meta = _meta(f"{name}-gpu", namespace=NAMESPACE, owner_references=(owner,))
    return devices.ResourceClaim(metadata=meta, spec=devices.ResourceClaimSpec(devices=wanted))


def _claim(*requests: devices.DeviceRequest, **fields: Any) -> devices.DeviceClaim:
    return devices.DeviceClaim(requests=requests, **fields)


def _request(name: str, expression: str = "", **fields: Any) -> devices.DeviceRequest:
    selector = devices.DeviceSelector(cel=devices.CELSelector(expression=expression))
    exactly = devices.ExactDeviceRequest(
        device_class_name=CLASS,
        selectors=(selector,) if expression else (),
        allocation_mode=devices.EXACT_COUNT,
        count=1,
        **fields,
    )
    return devices.DeviceRequest(name=name, exactly=exactly)


def _device_class() -> devices.DeviceClass:
    ours = devices.CELSelector(expression=f'device.driver == "{DRIVER}"')
    spec = devices.DeviceClassSpec(selectors=(devices.DeviceSelector(cel=ours),))
    return devices.DeviceClass(metadata=_meta(CLASS), spec=spec)


def _slice(node: str, count: int, **device: Any) -> devices.ResourceSlice:
    spec = devices.ResourceSliceSpec(
        driver=DRIVER,
        pool=devices.ResourcePool(name=node, generation=1, resource_slice_count=1),
        node_name=node,
        devices=tuple(_device(i, **device) for i in range(count)),
    )
    return devices.ResourceSlice(metadata=_meta(f"{node}-gpu"), spec=spec)


def _device(number: int, **fields: Any) -> devices.Device:
    attributes = {
        "model": devices.DeviceAttribute(string=MODELS[number % 2]),
        "index": devices.DeviceAttribute(int_=number),
        "numa": devices.DeviceAttribute(int_=number // 2 % 2),
    }
    memory = devices.DeviceCapacity(value="80Gi")
    name = f"gpu-{number}"
    return devices.Device(name=name, attributes=attributes, capacity={"memory": memory}, **fields)


def _meta(name: str, **more: Any) -> ObjectMeta:
    return ObjectMeta(name=name, uid=name, resource_version="1", **more)
