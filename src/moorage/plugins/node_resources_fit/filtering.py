"""The filter: does a node have what the pod requests?

What a node lacks is an integer with one bit per reason. So the result for the whole cluster is one
array, and a Status is made only for the combinations that occur.
"""

from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage import plugin as mp

PODS = mp.requests.PODS
INSUFFICIENT = "Insufficient "
TOO_MANY_PODS = 1  # bit 0; the resources follow
UNRESOLVABLE = 1 << 62  # the highest bit that leaves an int64 positive
MOST_RESOURCES = 61
# As long as no node offers more, floats tell whether an amount is left as integers do.
EXACT = 1 << 52


class ShortageStatuses(Struct, frozen=True):
    """From the bits of what a node lacks, in the order of the resources, to a Status."""

    resources: tuple[str, ...]

    def __call__(self, lacking: int) -> mp.Status:
        return _status(self.resources, lacking) if lacking else mp.SUCCESS


@lru_cache(maxsize=4096)
def _status(resources: tuple[str, ...], lacking: int) -> mp.Status:
    reasons = [
        "Too many pods" if name == PODS else f"{INSUFFICIENT}{name}"
        for position, name in enumerate(resources)
        if lacking & (1 << position)
    ]
    return _worded(tuple(reasons), resolvable=not lacking & UNRESOLVABLE)


@lru_cache(maxsize=4096)
def _worded(reasons: tuple[str, ...], *, resolvable: bool) -> mp.Status:
    """One object for all templates that are rejected with the same reasons."""
    return mp.unschedulable(*reasons) if resolvable else mp.unresolvable(*reasons)


@lru_cache(maxsize=16)
def all_fit(rows: int) -> mp.Verdicts:
    """The verdicts if all of so many rows fit; one object for all pods."""
    return mp.Verdicts(all_fit=rows)


class RequestedResources(Struct, frozen=True, eq=False):
    """The same for all pods that request the same resources."""

    resources: tuple[str, ...]
    # Arguments for `table.free_floats` and `table.has_room`; the latter includes one more pod.
    counted: tuple[tuple[str, bool], ...]
    with_pod: tuple[tuple[str, bool], ...]
    bits: tuple[int, ...]
    statuses: ShortageStatuses


@lru_cache(maxsize=4096)
def _requested(resources: tuple[str, ...]) -> RequestedResources:
    if len(resources) > MOST_RESOURCES:
        most = f"a pod may request {MOST_RESOURCES} different resources"
        raise mp.PluginFailure(f"{most}, this one requests {len(resources)}")
    counted = tuple((name, False) for name in resources)
    bits = tuple(1 << position for position in range(1, len(resources) + 1))
    statuses = ShortageStatuses((PODS, *resources))
    return RequestedResources(resources, counted, ((PODS, False), *counted), bits, statuses)


class FilterRequest(Struct, frozen=True, eq=False):
    """What the filter compares with the free resources of a node."""

    resources: RequestedResources
    amounts: tuple[int, ...]
    # One by one: bit, resource, amount.
    each: tuple[tuple[int, str, int], ...]

    @classmethod
    def of(cls, needed: tuple[tuple[str, int], ...]) -> "FilterRequest":
        """The requests of a pod; shortages are reported in this order."""
        resources = _requested(tuple(name for name, _ in needed))
        amounts = tuple(amount for _, amount in needed)
        each = tuple(zip(resources.bits, resources.resources, amounts, strict=True))
        return cls(resources, amounts, each)

    def lacking(self, node: mp.NodeInfo) -> int:
        """What one node lacks, as bits; 0 if the pod fits.

        A node that could not hold the pod even if it were empty is marked UNRESOLVABLE. How full
        it is of a resource that the pod does not request does not matter.
        """
        lacking = TOO_MANY_PODS if len(node.placed()) >= node.allocatable("pods") else 0
        served = node.table.device_resources.classes
        for bit, resource, amount in self.each:
            allocatable, requested = node.amounts(resource)
            # A difference above 64 bits overflows, to less than any amount.
            if not amount <= allocatable - requested <= mp.quantity.INT64_MAX:
                if allocatable <= 0 and resource in served:
                    continue  # DynamicResources looks for devices.
                lacking |= bit
                if amount > allocatable:
                    lacking |= UNRESOLVABLE
        return lacking

    def lacking_all(self, table: mp.Rows) -> NDArray[np.int64] | None:
        """The same for many rows; None if the pod fits everywhere."""
        resources, amounts = self.resources, self.amounts
        if table.has_room(resources.with_pod, (1, *amounts)):
            return None
        active = table.active
        full = table.pod_count >= table.allocatable(PODS)
        full &= active
        short = self._short(table)
        short &= active
        if served := table.served_by_devices:
            for line, (_, resource, _) in zip(short, self.each, strict=True):
                if resource in served:  # DynamicResources looks for devices where there are none.
                    line &= table.allocatable(resource) > 0
        if not (np.count_nonzero(full) or np.count_nonzero(short)):
            return None
        lacking: NDArray[np.int64] = full * np.int64(TOO_MANY_PODS)
        for line, (bit, resource, amount) in zip(short, self.each, strict=True):
            if np.count_nonzero(line):
                lacking |= line * bit
                lacking |= (line & (table.allocatable(resource) < amount)) * UNRESOLVABLE
        return lacking

    def copies_all(self, table: mp.Rows) -> NDArray[np.int64]:
        """How many such pods there is room for on each row."""
        room: NDArray[np.int64] = table.allocatable(PODS) - table.pod_count
        for _, resource, amount in self.each:
            left = table.allocatable(resource) - table.requested(resource)
            np.minimum(room, left // amount, out=room)
        return np.maximum(room, 0)

    def _short(self, table: mp.Rows) -> mp.Mask:
        """Which nodes have too little left, a line for each resource."""
        resources, amounts = self.resources.resources, self.amounts
        if not resources:
            return np.zeros((0, len(table)), dtype=np.bool_)
        if table.allocatable_floats(resources).largest <= EXACT:
            wanted = np.array(amounts, dtype=np.float64)[:, None]
            return table.free_floats(self.resources.counted) < wanted
        left = [table.allocatable(name) - table.requested(name) for name in resources]
        return np.stack([line < amount for line, amount in zip(left, amounts, strict=True)])


def explain_shortage(rejection: mp.Rejection) -> str:
    """How much the pod requests, and how much the nodes have free."""
    nodes = rejection.nodes
    is_one = len(nodes) == 1
    these = nodes[0].name if is_one else f"these {mp.texts.count(len(nodes), 'node')}"
    if not rejection.reason.startswith(INSUFFICIENT):
        limit = mp.texts.count(max(node.allocatable("pods") for node in nodes), "pod")
        return f"{these} {'has' if is_one else 'have'} a limit of {limit} and no room for another."
    resource = rejection.reason.removeprefix(INSUFFICIENT)
    requested = mp.requests.filter_request(rejection.pod).get(resource, 0)
    best = max(nodes, key=lambda node: _free(node, resource))
    request, free = mp.texts.two_amounts(requested, max(_free(best, resource), 0), resource)
    largest = max(node.allocatable(resource) for node in nodes)
    line = f"the pod requests {request}"
    if largest <= 0:
        return f"{line}; {these} {'offers' if is_one else 'offer'} none."
    _, most = mp.texts.two_amounts(requested, largest, resource)
    if is_one:
        return f"{line}; {best.name} has {free} free of {most}."
    # Other nodes may have more free: they were rejected for something else.
    line += (
        f"; of the {len(nodes):,} nodes with this reason, {best.name} has the most free: {free}."
    )
    enough = [node.name for node in nodes if node.allocatable(resource) >= requested]
    if enough:
        return f"{line} Large enough if other pods left: {mp.texts.listed(enough, 60)}."
    return f"{line} None of them is large enough when empty; the largest has {most}."


def _free(node: mp.NodeInfo, resource: str) -> int:
    return node.allocatable(resource) - node.requested(resource)
