"""Dynamic provisioning: can a volume be made for a claim, so that a node reaches it?"""

from collections.abc import Mapping
from functools import partial
from typing import NamedTuple

import numpy as np

from moorage import plugin as mp
from moorage.plugins.volume_binding import reach
from moorage.plugins.volume_binding.pod_claims import Delayed
from moorage.plugins.volume_binding.stock import Stock

Capacity = mp.CSIStorageCapacity

# What keeps a volume from being made on a node.
NOTHING, TOPOLOGY, ROOM = 0, 1, 2


class Provision(NamedTuple):
    """Whether a volume can be made on a node, and out of which capacity, if that was looked at."""

    problem: int = NOTHING
    capacity: Capacity | None = None


def _stock(cluster: mp.Cluster) -> Stock[Capacity]:
    return Stock(cluster, Capacity, _group, _reach)


def _group(capacity: Capacity) -> str:
    return capacity.storage_class_name


def _reach(capacity: Capacity) -> reach.Reach:
    return reach.of_selector(capacity.node_topology)


def stock(cluster: mp.Cluster) -> Stock[Capacity]:
    """The storage capacities of a cluster."""
    return cluster.derived(_stock)


def limit(capacity: Capacity) -> int | None:
    """The largest volume that fits; None if the driver does not say."""
    stated = capacity.maximum_volume_size
    stated = capacity.capacity if stated is None else stated
    return None if stated is None else mp.quantity.value(stated)


def can_hold(size: int, capacity: Capacity) -> bool:
    """Whether a volume of that size fits. Every claim is asked for alone, as in Kubernetes."""
    most = limit(capacity)
    return most is not None and most >= size


def needed(cluster: mp.Cluster, delayed: Delayed) -> int | None:
    """The size for which there has to be capacity; None if the driver does not keep accounts."""
    request = delayed.claim.spec.resources.requests.get("storage")
    driver = cluster.get(mp.CSIDriver, delayed.storage_class.provisioner)
    if request is None or driver is None or not driver.spec.storage_capacity:
        return None
    return mp.quantity.value(request)


def has_provisioner(storage_class: mp.StorageClass) -> bool:
    return storage_class.provisioner not in ("", mp.claims.NO_PROVISIONER)


def check(cluster: mp.Cluster, delayed: Delayed, labels: Mapping[str, str]) -> Provision:
    """Whether a volume can be made for a claim on a node with these labels."""
    storage_class = delayed.storage_class
    within = has_provisioner(storage_class) and reach.of_topologies(storage_class).includes(labels)
    if not within:
        return Provision(TOPOLOGY)
    size = needed(cluster, delayed)
    if size is None:
        return Provision()
    for capacity in stock(cluster).near(storage_class.name, labels):
        if can_hold(size, capacity) and _reach(capacity).includes(labels):
            return Provision(NOTHING, capacity)
    return Provision(ROOM)


def check_all(cluster: mp.Cluster, delayed: Delayed) -> mp.Mask:
    """For every row, what keeps a volume from being made there."""
    storage_class = delayed.storage_class
    if not has_provisioner(storage_class):
        return np.full(cluster.table.capacity, TOPOLOGY, dtype=np.int64)
    within = reach.masks(cluster).of(reach.of_topologies(storage_class))
    problems = np.where(within, NOTHING, TOPOLOGY)
    size = needed(cluster, delayed)
    if size is not None:
        holds = partial(can_hold, size)
        counts = stock(cluster).counts(storage_class.name, size, holds)
        problems[within & (counts == 0)] = ROOM
    return problems
