"""Finding volumes: for one node, and for all nodes at once.

Every node gets a sum of what is wrong with it, in which each of Kubernetes' four reasons is a bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from moorage import plugin as mp
from moorage.plugins.volume_binding import matching, migration, provisioning, reach
from moorage.plugins.volume_binding.coverage import Ints
from moorage.plugins.volume_binding.pod_claims import Claim, Delayed, PodClaims

Volume = mp.PersistentVolume

FAR, NOT_FOUND, NO_ROOM, LOST = 1, 2, 4, 8
REASONS = {
    FAR: "node(s) didn't match PersistentVolume's node affinity",
    NOT_FOUND: "node(s) didn't find available persistent volumes to bind",
    NO_ROOM: "node(s) did not have enough free storage",
    LOST: "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)",
}
# What a failed provision means for the node.
_PROVISION = np.array([0, NOT_FOUND, NO_ROOM])


class Provisioned(NamedTuple):
    """A claim for which a volume is to be made, and the capacity that it would come from."""

    claim: Claim
    capacity: mp.CSIStorageCapacity | None


class Found(NamedTuple):
    """What a pod's claims get on a node, and what is wrong there."""

    problems: int = 0
    matched: tuple[tuple[Claim, Volume], ...] = ()
    provisioned: tuple[Provisioned, ...] = ()


_STATUSES = [
    mp.unresolvable(*(text for bit, text in REASONS.items() if bit & problems))
    for problems in range(16)
]


def status(problems: int) -> mp.Status:
    """What is wrong with a node, in Kubernetes' words and order."""
    return _STATUSES[problems] if problems else mp.SUCCESS


# One node


def find(cluster: mp.Cluster, claims: PodClaims, node: mp.Node) -> Found:
    """What a pod's claims get on a node."""
    problems = _reached(cluster, claims, node)
    found = _find_delayed(cluster, claims.delayed, node) if claims.delayed else Found()
    return found._replace(problems=problems | found.problems)


def _reached(cluster: mp.Cluster, claims: PodClaims, node: mp.Node) -> int:
    for claim in claims.bound:
        volume = cluster.latest(Volume, claim.spec.volume_name)
        if volume is None:
            return LOST
        if not migration.reach_from(cluster, volume, node.name).includes(node.labels):
            return FAR
    return 0


def _find_delayed(cluster: mp.Cluster, delayed: tuple[Delayed, ...], node: mp.Node) -> Found:
    classes = {each.claim.key: each for each in delayed}
    selected = [each for each in delayed if each.selected_node is not None]
    if any(each.selected_node != node.name for each in selected):
        return Found(NOT_FOUND)
    matched: list[tuple[Claim, Volume]] = []
    to_provision = selected
    for claim in matching.in_order([each.claim for each in delayed if each.selected_node is None]):
        volume = matching.match(cluster, claim, node.labels, {v.name for _, v in matched})
        if volume is None:
            to_provision = [*to_provision, classes[claim.key]]
        else:
            matched.append((claim, volume))
    provisioned: list[Provisioned] = []
    for each in to_provision:
        provision = provisioning.check(cluster, each, node.labels)
        if provision.problem:
            return Found(int(_PROVISION[provision.problem]), tuple(matched))
        provisioned.append(Provisioned(each.claim, provision.capacity))
    return Found(0, tuple(matched), tuple(provisioned))


# All nodes


def find_all(cluster: mp.Cluster, claims: PodClaims) -> Ints:
    """For every row of the table, what is wrong there."""
    problems = np.zeros(cluster.table.capacity, dtype=np.int64)
    for claim in claims.bound:
        fine = problems == 0  # The first of the bound claims that fails decides.
        volume = cluster.latest(Volume, claim.spec.volume_name)
        if volume is None:
            problems[fine] = LOST
            break
        problems[fine & ~migration.reached_rows(cluster, volume)] = FAR
    if claims.delayed:
        problems |= _find_delayed_all(cluster, claims)
    return problems


def _find_delayed_all(cluster: mp.Cluster, claims: PodClaims) -> Ints:
    table, delayed = cluster.table, claims.delayed
    open_ = np.ones(table.capacity, dtype=np.bool_)
    selected = [each for each in delayed if each.selected_node is not None]
    for each in selected:
        open_ &= table.named([each.selected_node or ""])
    classes = {each.claim.key: each for each in delayed}
    others = matching.in_order([each.claim for each in delayed if each.selected_node is None])
    missing: list[tuple[Delayed, mp.Mask]] = [(each, open_) for each in selected]
    unsure = np.zeros(table.capacity, dtype=np.bool_)
    if (open_ & table.active).any():
        for i, claim in enumerate(others):
            without, doubtful = _unmatched(cluster, claim, others[:i])
            missing.append((classes[claim.key], without & open_))
            unsure |= doubtful & open_
    problems = np.where(open_, 0, NOT_FOUND)
    for each, rows in missing:
        rows = rows & (problems == 0)
        if rows.any():
            problems[rows] = _PROVISION[provisioning.check_all(cluster, each)[rows]]
    for row in np.flatnonzero(unsure & table.active).tolist():
        problems[row] = _find_delayed(cluster, delayed, table.info(row).node).problems
    return problems


def _unmatched(
    cluster: mp.Cluster, claim: Claim, before: list[Claim]
) -> tuple[mp.Mask, NDArray[np.bool_]]:
    """The rows on which a claim finds no volume, and those where that depends on others' choice."""
    want = matching.wanted(claim)
    everywhere = np.ones(cluster.table.capacity, dtype=np.bool_)
    reserved = matching.reserved(cluster, claim, want)
    if reserved and claim in before:
        return everywhere, everywhere  # A claim that is used twice may have taken it already.
    if reserved:
        reached = reach.masks(cluster).of(reach.of_affinity(reserved[0].spec.node_affinity))
        return ~reached, ~everywhere
    counts = matching.match_counts(cluster, want)
    rivals = sum(mp.claims.class_of(each) == want.storage_class for each in before)
    # With more volumes than others before it, one is left whatever they take.
    return counts == 0, (counts > 0) & (counts <= rivals)
