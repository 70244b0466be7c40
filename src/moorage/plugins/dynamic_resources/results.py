"""From the devices that the allocator found to the allocation of a claim."""

import hashlib
import uuid
from collections.abc import Sequence

from msgspec import structs

from moorage import plugin as mp
from moorage.plugins.dynamic_resources.allocator import Chosen
from moorage.plugins.dynamic_resources.plan import ClaimPlan, RequestPlan
from moorage.plugins.dynamic_resources.pools import DeviceView, PoolKey, PoolView

FROM_CLASS, FROM_CLAIM = "FromClass", "FromClaim"

_SHARES = uuid.UUID("6d6f6f72-6167-5e00-8000-000000000001").bytes


def allocation(
    claim: mp.ResourceClaim,
    plan: ClaimPlan,
    chosen: Sequence[Chosen],
    pools: Sequence[PoolView],
    node: str,
) -> mp.AllocationResult:
    """The allocation of a claim on a node."""
    flat = [(pool.key, device) for pool in pools for device in pool.devices]
    devices = [flat[each.device] for each in chosen]
    results = [
        _result(claim, i, each, *device)
        for i, (each, device) in enumerate(zip(chosen, devices, strict=True))
    ]
    return mp.AllocationResult(
        devices=mp.DeviceAllocationResult(results=tuple(results), config=_config(plan, chosen)),
        node_selector=_node_selector([device for _, device in devices], node),
    )


def _result(
    claim: mp.ResourceClaim, position: int, chosen: Chosen, pool: PoolKey, device: DeviceView
) -> mp.DeviceRequestAllocationResult:
    model = device.model.device
    result = mp.DeviceRequestAllocationResult(
        request=chosen.request.name,
        driver=pool[0],
        pool=pool[1],
        device=device.name,
        admin_access=True if chosen.request.admin_access else None,
        tolerations=chosen.request.spec.tolerations,
        binding_conditions=model.binding_conditions or (),
        binding_failure_conditions=model.binding_failure_conditions,
    )
    if chosen.consumed is None:
        return result
    # Random in Kubernetes; derived from the claim here, so that a simulation can be repeated.
    share = _uuid5(f"{claim.uid}/{position}/{'/'.join(pool)}/{device.name}")
    consumed = chosen.request.consumed(device.model)
    return structs.replace(result, share_id=share, consumed_capacity=consumed)


def _uuid5(name: str) -> str:
    """The text of a UUID of version 5, without the UUID object, which takes as long again."""
    text = hashlib.sha1(_SHARES + name.encode(), usedforsecurity=False).hexdigest()
    variant = "89ab"[int(text[16], 16) & 3]
    return f"{text[:8]}-{text[8:12]}-5{text[13:16]}-{variant}{text[17:20]}-{text[20:32]}"


def _node_selector(devices: Sequence[DeviceView], node: str) -> mp.NodeSelector | None:
    """The nodes where devices can be used: this one, those of network devices, or all (None)."""
    expressions: list[mp.LabelSelectorRequirement] = []
    fields: list[mp.LabelSelectorRequirement] = []
    for device in devices:
        if device.is_local:
            name = mp.LabelSelectorRequirement(
                key=mp.selectors.NODE_NAME_FIELD, operator="In", values=(node,)
            )
            return _one_term(mp.NodeSelectorTerm(match_fields=(name,)))
        selector = device.node_selector
        if selector is None:
            continue
        if len(selector.node_selector_terms) != 1:
            count = len(selector.node_selector_terms)
            text = f"unsupported node selector with {count} terms in a resource slice"
            raise mp.PluginFailure(text)
        [term] = selector.node_selector_terms
        _add_requirements(expressions, term.match_expressions)
        _add_requirements(fields, term.match_fields)
    if not expressions and not fields:
        return None
    return _one_term(
        mp.NodeSelectorTerm(match_expressions=tuple(expressions), match_fields=tuple(fields))
    )


def _add_requirements(
    found: list[mp.LabelSelectorRequirement], more: Sequence[mp.LabelSelectorRequirement]
) -> None:
    """Add requirements that are new; the order of values does not matter."""
    known = {(each.key, each.operator, frozenset(each.values)) for each in found}
    for each in more:
        requirement = (each.key, each.operator, frozenset(each.values))
        if requirement not in known:
            known.add(requirement)
            found.append(each)


def _one_term(term: mp.NodeSelectorTerm) -> mp.NodeSelector:
    return mp.NodeSelector(node_selector_terms=(term,))


def _config(
    plan: ClaimPlan, chosen: Sequence[Chosen]
) -> tuple[mp.DeviceAllocationConfiguration, ...]:
    """The configuration of the classes that were used, then that of the claim."""
    used = list(dict.fromkeys(each.request for each in chosen))
    if not plan.spec.config and not any(_has_config(request) for request in used):
        return ()
    found = []
    for name in dict.fromkeys(request.spec.device_class_name for request in used):
        same = [request for request in used if request.spec.device_class_name == name]
        device_class = same[0].device_class
        assert device_class is not None
        for config in device_class.spec.config:
            requests = tuple(request.name for request in same)
            found.append(_entry(FROM_CLASS, requests, config.opaque))
    for own in plan.spec.config:
        if not own.requests:
            found.append(_entry(FROM_CLAIM, (), own.opaque))
            continue
        named = [r for r in used if r.request in own.requests or r.name in own.requests]
        found += [_entry(FROM_CLAIM, own.requests, own.opaque) for _ in named]
    return tuple(found)


def _has_config(request: RequestPlan) -> bool:
    return request.device_class is not None and bool(request.device_class.spec.config)


def _entry(
    source: str, requests: tuple[str, ...], opaque: mp.OpaqueDeviceConfiguration | None
) -> mp.DeviceAllocationConfiguration:
    return mp.DeviceAllocationConfiguration(source=source, requests=requests, opaque=opaque)
