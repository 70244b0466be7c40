"""Find volumes for a pod's claims: on one node, and on all nodes at once.

A claim that has a volume needs a node that can access it. For any other claim an existing volume is
matched: a volume that an administrator reserved for the claim decides, whether the node can access
it or not; otherwise the smallest that is large enough, by name where several are. If no volume
matches, the storage class must be able to provision one for the node.

What is wrong with a node is an integer, in which each of Kubernetes' four reasons is a bit.
"""

from collections.abc import Mapping, Sequence
from functools import partial, reduce
from operator import and_, attrgetter
from typing import NamedTuple

import numpy as np

from moorage import plugin as mp
from moorage.plugins.volume_binding import accessible_nodes
from moorage.plugins.volume_binding.accessible_nodes import AccessibleNodes
from moorage.plugins.volume_binding.pod_claims import Claim, Delayed, PodClaims, VolumeError
from moorage.plugins.volume_binding.storage_index import Ints, StorageIndex

Volume = mp.PersistentVolume
Capacity = mp.CSIStorageCapacity
VolumeRequirements = mp.volume_matching.VolumeRequirements

# What is wrong with a node, as bits.
FAR, NOT_FOUND, NO_ROOM, LOST = 1, 2, 4, 8
REASONS = {
    FAR: "node(s) didn't match PersistentVolume's node affinity",
    NOT_FOUND: "node(s) didn't find available persistent volumes to bind",
    NO_ROOM: "node(s) did not have enough free storage",
    LOST: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}


class Provisioned(NamedTuple):
    """A claim for which a volume is to be provisioned, and the capacity that it uses."""

    claim: Claim
    capacity: mp.CSIStorageCapacity | None


class Found(NamedTuple):
    """What a pod's claims get on a node, and what is wrong there."""

    problems: int = 0
    matched: tuple[tuple[Claim, Volume], ...] = ()
    provisioned: tuple[Provisioned, ...] = ()


# The status for what is wrong with a node, with reasons in Kubernetes' order.
STATUSES = [
    mp.unresolvable(*(text for bit, text in REASONS.items() if bit & problems))
    if problems
    else mp.SUCCESS
    for problems in range(16)
]


# One node: volumes that claims have, existing volumes, provisioning


def find(cluster: mp.Cluster, claims: PodClaims, node: mp.Node) -> Found:
    """What a pod's claims get on a node."""
    problems = _check_bound(cluster, claims, node)
    found = _find_delayed(cluster, claims.delayed, node) if claims.delayed else Found()
    return found._replace(problems=problems | found.problems)


def _check_bound(cluster: mp.Cluster, claims: PodClaims, node: mp.Node) -> int:
    for claim in claims.bound:
        volume = cluster.latest(Volume, claim.spec.volume_name)
        if volume is None:
            return LOST
        if not accessible_nodes.of_volume(cluster, volume, node.name).includes(node.labels):
            return FAR
    return 0


def _find_delayed(cluster: mp.Cluster, delayed: tuple[Delayed, ...], node: mp.Node) -> Found:
    classes = {each.claim.key: each for each in delayed}
    selected = [each for each in delayed if each.selected_node is not None]
    if any(each.selected_node != node.name for each in selected):
        return Found(NOT_FOUND)
    matched: list[tuple[Claim, Volume]] = []
    to_provision = selected
    for claim in in_order([each.claim for each in delayed if each.selected_node is None]):
        volume = match(cluster, claim, node.labels, {v.name for _, v in matched})
        if volume is None:
            to_provision = [*to_provision, classes[claim.key]]
        else:
            matched.append((claim, volume))
    provisioned: list[Provisioned] = []
    for each in to_provision:
        provision = can_provision(cluster, each, node.labels)
        if isinstance(provision, int):
            return Found(provision, tuple(matched))
        provisioned.append(provision)
    return Found(0, tuple(matched), tuple(provisioned))


# All nodes


def fit_everywhere(cluster: mp.Cluster, claims: PodClaims) -> bool:
    """Whether all claims have volumes that every node can access, without a look at any node."""
    if claims.delayed:
        return False
    for claim in claims.bound:
        volume = cluster.latest(Volume, claim.spec.volume_name)
        if volume is None or not accessible_nodes.are_all(volume):
            return False
    return True


def find_all(cluster: mp.Cluster, claims: PodClaims) -> tuple[Ints, dict[int, str]]:
    """For every row of the table, what is wrong there; and the errors by their codes."""
    errors: dict[int, str] = {}
    if claims.delayed and not claims.bound:
        return _find_delayed_all(cluster, claims), errors
    problems = np.zeros(cluster.table.capacity, dtype=np.int64)
    for claim in claims.bound:
        fine = problems == 0  # The first bound claim that fails decides.
        volume = cluster.latest(Volume, claim.spec.volume_name)
        if volume is None:
            problems[fine] = LOST
            break
        found = accessible_nodes.rows_of_volume(cluster, volume)
        problems[fine & ~found.reached] = FAR
        if found.failed is not None:
            code = len(STATUSES) + len(errors)
            problems[fine & found.failed] = code
            errors[code] = found.error
    if claims.delayed:
        more = _find_delayed_all(cluster, claims)
        problems = np.where(problems < len(STATUSES), problems | more, problems)
    return problems, errors


def _find_delayed_all(cluster: mp.Cluster, claims: PodClaims) -> Ints:
    table, delayed = cluster.table, claims.delayed
    selected = [each for each in delayed if each.selected_node is not None]
    if len(delayed) == 1 and not selected:  # The usual case, in fewer steps.
        unmatched, _ = _unmatched(cluster, delayed[0].claim, [])
        if not np.count_nonzero(unmatched):
            return np.zeros(table.capacity, dtype=np.int64)
        return np.where(unmatched, can_provision_all(cluster, delayed[0]), 0)
    classes = {each.claim.key: each for each in delayed}
    others = in_order([each.claim for each in delayed if each.selected_node is None])
    problems = np.zeros(table.capacity, dtype=np.int64)
    unsure: mp.Mask | None = None
    if selected:
        open_ = reduce(and_, [table.named([each.selected_node or ""]) for each in selected])
        problems[~open_] = NOT_FOUND
        if not (open_ & table.active).any():
            others = []
    # The claims that may need a new volume, and the rows where they do; None stands for all.
    missing: list[tuple[Delayed, mp.Mask | None]] = [(each, None) for each in selected]
    for i, claim in enumerate(others):
        unmatched, doubtful = _unmatched(cluster, claim, others[:i])
        missing.append((classes[claim.key], unmatched))
        if doubtful is not None:
            unsure = doubtful if unsure is None else unsure | doubtful
    if unsure is not None:
        unsure &= problems == 0
    for each, without in missing:
        rows = problems == 0
        if without is not None:
            rows &= without
        if rows.any():
            lacking = can_provision_all(cluster, each)
            problems[rows] = lacking if isinstance(lacking, int) else lacking[rows]
    if unsure is not None:
        for row in np.flatnonzero(unsure & table.active).tolist():
            problems[row] = _find_delayed(cluster, delayed, table.info(row).node).problems
    return problems


def _unmatched(
    cluster: mp.Cluster, claim: Claim, before: list[Claim]
) -> tuple[mp.Mask, mp.Mask | None]:
    """The rows without a volume for a claim, and those where it depends on the other claims.

    None: it depends on them nowhere.
    """
    required = requirements_of(claim)
    by_hand = reserved(cluster, claim, required)
    if by_hand and claim in before:
        everywhere = np.ones(cluster.table.capacity, dtype=np.bool_)
        return everywhere, everywhere.copy()  # A claim that is used twice may have it already.
    if by_hand:
        reached = accessible_nodes.masks(cluster).of(
            accessible_nodes.of_affinity(by_hand[0].spec.node_affinity)
        )
        return ~reached, None
    suits = partial(VolumeRequirements.suits, required)
    free = (required.storage_class, "")
    counts = cluster.derived(volume_index).counts(free, required, suits)
    rivals = sum(mp.claims.class_of(each) == required.storage_class for each in before)
    # With more volumes than earlier claims, one is left whatever these take.
    return counts == 0, (counts > 0) & (counts <= rivals) if rivals else None


# Existing volumes


def requirements_of(claim: Claim) -> VolumeRequirements:
    """What a claim asks for."""
    try:
        return mp.volume_matching.wanted(claim)
    except mp.selectors.SelectorError as problem:
        text = f"error creating internal label selector for claim: {claim.key}: {problem}"
        raise VolumeError(text) from problem


def in_order(claims: Sequence[Claim]) -> list[Claim]:
    """Small claims choose first, which leaves large volumes to others."""
    return sorted(claims, key=mp.claims.requested_nano)


def _volume_group(volume: Volume) -> tuple[str, str]:
    """Free volumes are listed by class, others by class and claim."""
    given = volume.spec.claim_ref
    return mp.claims.class_of(volume), "" if given is None else f"{given.namespace}/{given.name}"


def _volume_nodes(volume: Volume) -> AccessibleNodes:
    return accessible_nodes.of_affinity(volume.spec.node_affinity)


def volume_index(cluster: mp.Cluster) -> StorageIndex[Volume]:
    """The volumes of a cluster; for `cluster.derived`, which makes it once."""
    return StorageIndex(cluster, Volume, _volume_group, _volume_nodes)


def reserved(cluster: mp.Cluster, claim: Claim, required: VolumeRequirements) -> list[Volume]:
    """The volumes whose claimRef an administrator set to this claim, by name."""
    found = cluster.derived(volume_index).all_of((required.storage_class, claim.key))
    given = [(volume.spec.claim_ref, volume) for volume in found if required.allows(volume)]
    return [v for ref, v in given if ref is not None and mp.claims.refers_to(ref, claim)]


def match(
    cluster: mp.Cluster, claim: Claim, labels: Mapping[str, str], taken: set[str]
) -> Volume | None:
    """The volume that a claim gets on a node with these labels; `taken` belong to other claims."""
    required = requirements_of(claim)
    for volume in reserved(cluster, claim, required):
        if volume.name not in taken:
            return volume if _volume_nodes(volume).includes(labels) else None
    free = [
        volume
        for volume in cluster.derived(volume_index).near((required.storage_class, ""), labels)
        if volume.name not in taken
        and required.suits(volume)
        and _volume_nodes(volume).includes(labels)
    ]
    return min(free, key=mp.claims.capacity_nano, default=None)


# Provisioning


def _capacity_nodes(capacity: Capacity) -> AccessibleNodes:
    return accessible_nodes.of_selector(capacity.node_topology)


def capacity_index(cluster: mp.Cluster) -> StorageIndex[Capacity]:
    """The storage capacities of a cluster; for `cluster.derived`, which makes it once."""
    return StorageIndex(cluster, Capacity, attrgetter("storage_class_name"), _capacity_nodes)


def limit(capacity: Capacity) -> int | None:
    """The largest volume that fits; None if the driver does not say."""
    stated = capacity.maximum_volume_size
    stated = capacity.capacity if stated is None else stated
    return None if stated is None else mp.quantity.value(stated)


def can_hold(size: int, capacity: Capacity) -> bool:
    """Whether a volume of that size fits; claims are not added up, as in Kubernetes."""
    most = limit(capacity)
    return most is not None and most >= size


def _required_size(cluster: mp.Cluster, delayed: Delayed) -> int | None:
    """The size for which there has to be capacity; None if the driver does not publish any."""
    request = delayed.claim.spec.resources.requests.get("storage")
    driver = cluster.get(mp.CSIDriver, delayed.storage_class.provisioner)
    if request is None or driver is None or not driver.spec.storage_capacity:
        return None
    return mp.quantity.value(request)


def _has_provisioner(storage_class: mp.StorageClass) -> bool:
    return storage_class.provisioner not in ("", mp.claims.NO_PROVISIONER)


def can_provision(
    cluster: mp.Cluster, delayed: Delayed, labels: Mapping[str, str]
) -> Provisioned | int:
    """The capacity for a claim on a node with these labels, or what is wrong there."""
    storage_class = delayed.storage_class
    within = _has_provisioner(storage_class) and accessible_nodes.of_topologies(
        storage_class
    ).includes(labels)
    if not within:
        return NOT_FOUND
    size = _required_size(cluster, delayed)
    if size is None:
        return Provisioned(delayed.claim, None)
    for capacity in cluster.derived(capacity_index).near(storage_class.name, labels):
        if can_hold(size, capacity) and _capacity_nodes(capacity).includes(labels):
            return Provisioned(delayed.claim, capacity)
    return NO_ROOM


def can_provision_all(cluster: mp.Cluster, delayed: Delayed) -> Ints | int:
    """For every row, what keeps a volume from being provisioned there; a number for all rows."""
    storage_class = delayed.storage_class
    if not _has_provisioner(storage_class):
        return NOT_FOUND
    within = accessible_nodes.masks(cluster).of(accessible_nodes.of_topologies(storage_class))
    problems = np.where(within, 0, NOT_FOUND)
    size = _required_size(cluster, delayed)
    if size is not None:
        holds = partial(can_hold, size)
        counts = cluster.derived(capacity_index).counts(storage_class.name, size, holds)
        problems[within & (counts == 0)] = NO_ROOM
    return problems
