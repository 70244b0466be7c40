"""Static matching: which volumes that are there would do for a claim.

A volume that was reserved for the claim by hand is decisive, whether it reaches the node or not.
Otherwise the smallest that is large enough is taken, by name where several are.
"""

from collections.abc import Mapping, Sequence
from functools import partial

from moorage import plugin as mp
from moorage.plugins.volume_binding import reach
from moorage.plugins.volume_binding.coverage import Ints
from moorage.plugins.volume_binding.pod_claims import Claim, VolumeError
from moorage.plugins.volume_binding.stock import Stock

Volume = mp.PersistentVolume
Wanted = mp.volume_matching.VolumeRequirements


def wanted(claim: Claim) -> Wanted:
    """What a claim asks for."""
    try:
        return mp.volume_matching.wanted(claim)
    except mp.selectors.SelectorError as problem:
        text = f"error creating internal label selector for claim: {claim.key}: {problem}"
        raise VolumeError(text) from problem


def in_order(claims: Sequence[Claim]) -> list[Claim]:
    """Small claims choose first, so that they leave large volumes to others."""
    return sorted(claims, key=mp.claims.requested_nano)


def _group(volume: Volume) -> tuple[str, str]:
    """Volumes that nobody has are listed by class, the others by class and claim."""
    given = volume.spec.claim_ref
    return mp.claims.class_of(volume), "" if given is None else f"{given.namespace}/{given.name}"


def _reach(volume: Volume) -> reach.Reach:
    return reach.of_affinity(volume.spec.node_affinity)


def _stock(cluster: mp.Cluster) -> Stock[Volume]:
    return Stock(cluster, Volume, _group, _reach)


def stock(cluster: mp.Cluster) -> Stock[Volume]:
    """The volumes of a cluster."""
    return cluster.derived(_stock)


def reserved(cluster: mp.Cluster, claim: Claim, want: Wanted) -> list[Volume]:
    """The volumes that somebody reserved for this claim by hand, by name."""
    found = stock(cluster).all_of((want.storage_class, claim.key))
    return [volume for volume in found if _is_for(volume, claim) and want.allows(volume)]


def _is_for(volume: Volume, claim: Claim) -> bool:
    given = volume.spec.claim_ref
    return given is not None and mp.claims.refers_to(given, claim)


def match(
    cluster: mp.Cluster, claim: Claim, labels: Mapping[str, str], taken: set[str]
) -> Volume | None:
    """The volume that a claim gets on a node with these labels; `taken` are other claims' own."""
    want = wanted(claim)
    for volume in reserved(cluster, claim, want):
        if volume.name not in taken:
            return volume if _reach(volume).includes(labels) else None
    free = [
        volume
        for volume in stock(cluster).near((want.storage_class, ""), labels)
        if volume.name not in taken and want.suits(volume) and _reach(volume).includes(labels)
    ]
    return min(free, key=mp.claims.capacity_nano, default=None)


def match_counts(cluster: mp.Cluster, want: Wanted) -> Ints:
    """For every row, how many free volumes would do."""
    return stock(cluster).counts((want.storage_class, ""), want, partial(Wanted.suits, want))
