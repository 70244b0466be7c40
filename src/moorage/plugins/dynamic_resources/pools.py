"""Pools: the devices that a node sees, in the order in which the allocator tries them.

A driver publishes a pool as one or more slices. Which slices count for a node depends on their
node selection, and on their generation: only the newest is used, and only if all its slices are
there. A pool with contradictions (device names or counters) is invalid.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import msgspec
from msgspec import structs

from moorage import plugin as mp

INCOMPLETE = "currently being updated"
INVALID = "currently invalid"

PoolKey = tuple[str, str]
CounterKey = tuple[str, str]
Counters = dict[CounterKey, int]

_encode = msgspec.msgpack.Encoder().encode


@dataclass(frozen=True, slots=True, eq=False)
class DeviceModel:
    """Devices that are equal in everything but name and place; compared by identity."""

    driver: str
    device: mp.Device
    # Capacities in nano-units.
    capacity: Mapping[str, int]
    consumes: Counters

    @property
    def is_shared(self) -> bool:
        """Whether several claims can use such a device at the same time."""
        return bool(self.device.allow_multiple_allocations)


class DeviceView(NamedTuple):
    """A device as a node sees it."""

    name: str
    model: DeviceModel
    # Whether the device's own node selection matches, where the slice leaves it to the devices.
    is_here: bool
    # Whether an allocation binds the claim to this node, and else to which nodes.
    is_local: bool
    node_selector: mp.NodeSelector | None


@dataclass(frozen=True, slots=True, eq=False)
class PoolView:
    """A pool as a node sees it."""

    key: PoolKey
    # Why nothing can be allocated from it; empty if it is complete and valid.
    problem: str
    devices: tuple[DeviceView, ...]
    # The counters of the pool, and what each of its devices consumes of them, on any node.
    counters: Counters
    consumption: Mapping[str, Counters]
    is_last: bool

    @property
    def signature(self) -> tuple[object, ...]:
        """Equal for pools that differ in names only."""
        return (
            self.key[0],
            self.problem,
            self.is_last,
            tuple((each.model, each.is_here, each.is_local) for each in self.devices),
            tuple(each.node_selector and _encode(each.node_selector) for each in self.devices),
            tuple(self.counters.items()),
            # Devices of other nodes consume counters under their names.
            tuple((name, tuple(each.items())) for name, each in self.consumption.items()),
        )


class Models:
    """Device models by content: devices of a kind share one, whatever their names.

    Without `have_counters` no device can be a part of another: slices with counters, or with
    devices of several nodes, only count as parts of their pool.
    """

    def __init__(self, *, have_counters: bool) -> None:
        self.have_counters = have_counters
        self._by_content: dict[bytes, DeviceModel] = {}

    def of(self, driver: str, device: mp.Device) -> DeviceModel:
        """The model of a device."""
        bare = structs.replace(
            device, name="", node_name=None, node_selector=None, all_nodes=None, binds_to_node=None
        )
        content = _encode((driver, bare))
        model = self._by_content.get(content)
        if model is None:
            capacity = {name: mp.quantity.nano(c.value) for name, c in device.capacity.items()}
            model = DeviceModel(driver, bare, capacity, consumption_of(device))
            self._by_content[content] = model
        return model


def consumption_of(device: mp.Device) -> Counters:
    """What a device consumes of its pool's counters, in nano-units."""
    return {
        (used.counter_set, name): mp.quantity.nano(counter.value)
        for used in device.consumes_counters
        for name, counter in used.counters.items()
    }


# Which slices a node sees


def _has_parts(published: mp.ResourceSlice) -> bool:
    spec = published.spec
    return spec.per_device_node_selection is not None or bool(spec.shared_counters)


def is_relevant(published: mp.ResourceSlice, node: mp.Node) -> bool:
    """Whether a slice counts for a node; one with counters counts for every node."""
    spec = published.spec
    if spec.shared_counters:
        return True
    if spec.per_device_node_selection:
        return any(_selects(device, node, published.name) for device in spec.devices)
    return _selects(spec, node, published.name)


def _selects(where: mp.ResourceSliceSpec | mp.Device, node: mp.Node, name: str) -> bool:
    if where.node_name is not None:
        return where.node_name == node.name
    if where.all_nodes:
        return True
    return where.node_selector is not None and selects(where.node_selector, node, name)


def selects(selector: mp.NodeSelector, node: mp.Node, name: str) -> bool:
    """Whether a node selector of a slice matches a node; raises if it cannot be parsed."""
    matcher = compiled(_encode(selector))
    if matcher.problems:
        problems = ", ".join(matcher.problems)
        text = f"failed to perform node selection for slice {name}: {problems}"
        raise mp.PluginFailure(f"gather pool information: {text}")
    return matcher.matches(node.labels, node.name)


@lru_cache(maxsize=4096)
def compiled(selector: bytes) -> mp.selectors.NodeSelectorMatcher:
    """A compiled node selector, by its encoding."""
    decoded = msgspec.msgpack.decode(selector, type=mp.NodeSelector)
    return mp.selectors.compile_node_selector(decoded)


def seen_by(node: mp.Node, published: mp.ResourceSlice) -> object:
    """What a node sees of a slice: equal for nodes that see the same."""
    spec = published.spec
    if spec.per_device_node_selection:
        return tuple(_selects(device, node, published.name) for device in spec.devices)
    return is_relevant(published, node)


# From slices to a pool


def view(
    key: PoolKey, slices: Sequence[mp.ResourceSlice], node: mp.Node, models: Models
) -> PoolView | None:
    """A pool as a node sees it, from all slices of the pool; None if it sees nothing of it."""
    used = slices if models.have_counters else [each for each in slices if not _has_parts(each)]
    relevant = [each for each in used if is_relevant(each, node)]
    if not relevant:
        return None
    newest = max(each.spec.pool.generation for each in relevant)
    kept = sorted(
        (each for each in relevant if each.spec.pool.generation == newest), key=lambda s: s.name
    )
    everywhere: Sequence[mp.ResourceSlice] = kept
    problem = ""
    if len(kept) != kept[0].spec.pool.resource_slice_count:
        everywhere = [each for each in slices if each.spec.pool.generation == newest]
        if any(each.spec.pool.generation > newest for each in slices):
            return None
        if len(everywhere) != kept[0].spec.pool.resource_slice_count:
            problem = INCOMPLETE
    devices = tuple(_devices(kept, node, models))
    counters: Counters = {}
    consumption: dict[str, Counters] = {}
    if len({device.name for device in devices}) < len(devices):
        problem = problem or INVALID
    if models.have_counters:
        counters = {
            (counter_set.name, name): mp.quantity.nano(counter.value)
            for each in kept
            for counter_set in each.spec.shared_counters
            for name, counter in counter_set.counters.items()
        }
        problem = problem or _contradiction(kept, everywhere, counters)
        consumption = _consumption_by_name(everywhere)
    is_last = not problem and any(
        device.model.device.binding_conditions is not None for device in devices
    )
    return PoolView(key, problem, devices, counters, consumption, is_last)


def _devices(
    slices: Iterable[mp.ResourceSlice], node: mp.Node, models: Models
) -> Iterable[DeviceView]:
    for published in slices:
        spec = published.spec
        if spec.shared_counters:
            continue  # A slice has counters or devices.
        for device in spec.devices:
            where: mp.ResourceSliceSpec | mp.Device = spec
            is_here = True
            if spec.per_device_node_selection:
                where, is_here = device, _selects(device, node, published.name)
            is_local = where.node_name is not None or bool(device.binds_to_node)
            model = models.of(spec.driver, device)
            yield DeviceView(device.name, model, is_here, is_local, where.node_selector)


def _contradiction(
    kept: Sequence[mp.ResourceSlice], everywhere: Sequence[mp.ResourceSlice], counters: Counters
) -> str:
    """INVALID for sets of counters that occur twice, and for counters that do not exist."""
    sets = [each.name for published in kept for each in published.spec.shared_counters]
    if len(set(sets)) < len(sets):
        return INVALID
    for published in everywhere:
        for device in published.spec.devices:
            for used in device.consumes_counters:
                if used.counter_set not in sets:
                    return INVALID
                if any((used.counter_set, name) not in counters for name in used.counters):
                    return INVALID
    return ""


def _consumption_by_name(slices: Iterable[mp.ResourceSlice]) -> dict[str, Counters]:
    """What devices consume of counters; those of several nodes may have one name."""
    found: dict[str, Counters] = {}
    for published in slices:
        for device in published.spec.devices:
            if device.consumes_counters:
                total = found.setdefault(device.name, {})
                for key, amount in consumption_of(device).items():
                    total[key] = total.get(key, 0) + amount
    return found


def in_order(pools: Iterable[PoolView]) -> list[PoolView]:
    """Pools in the order of the search: by driver and name, those with binding conditions last."""
    return sorted(pools, key=lambda pool: (pool.is_last, pool.key))
