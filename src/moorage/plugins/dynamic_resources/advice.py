"""Details for explanations: what would be allocated, and what is behind a reason."""

from typing import Any

import msgspec

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import extended, shortage
from moorage.plugins.dynamic_resources.devices import (
    NO_SOLUTION,
    STATUSES,
    UNAVAILABLE,
    PodDevices,
)


def reserved(devices: PodDevices, node: mp.Node) -> list[dict[str, Any]]:
    """The claims that would be allocated on a node, with their devices, as plain data."""
    found = []
    for claim, allocation in devices.allocations(node):
        is_special = extended.is_in_memory(claim)
        entry: dict[str, Any] = {
            "claim": extended.name_of(claim),
            "results": [_result(each) for each in allocation.devices.results],
            "nodeSelector": _plain(allocation.node_selector),
            "config": _plain(allocation.devices.config),
        }
        if is_special and (served := devices.served(node)) is not None:
            request = devices.request_for(served)
            entry["requests"] = _plain(request.requests)
            entry["mappings"] = _plain(request.mappings)
        found.append({name: value for name, value in entry.items() if value})
    return found


def _plain(value: Any) -> Any:
    """As JSON has it."""
    return msgspec.json.decode(msgspec.json.encode(value))


def _result(result: mp.DeviceRequestAllocationResult) -> dict[str, Any]:
    plain: dict[str, Any] = _plain(result)
    if plain.pop("shareID", None) is not None:
        plain["shared"] = True  # The identifier says nothing to a reader.
    return plain


def explain(rejection: mp.Rejection) -> str:
    """What keeps nodes from serving the claims of a pod."""
    if rejection.reason in STATUSES[NO_SOLUTION].reasons:
        return shortage.explain(rejection)
    if rejection.reason in STATUSES[UNAVAILABLE].reasons:
        return shortage.elsewhere(rejection)
    return ""
