"""Queueing hints: which changes may help a pod that waits for devices."""

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import claims
from moorage.plugins.dynamic_resources.claims import Claim, ClaimLookupError, is_allocated

QUEUE, SKIP = mp.Hint.QUEUE, mp.Hint.QUEUE_SKIP


def claim_changed(
    cluster: mp.Cluster, pod: mp.Pod, old: Claim | None, new: Claim | None
) -> mp.Hint:
    """Any claim that gives devices back helps, and a change of the pod's own claims."""
    try:
        own = claims.look_up(cluster, pod)
    except ClaimLookupError:
        return SKIP
    if old is not None and is_allocated(old) and (new is None or not is_allocated(new)):
        return QUEUE
    if new is None:
        # The special claim of an earlier attempt has to go before the next one.
        assert old is not None
        special = mp.resource_claims.is_extended(old) and mp.resource_claims.is_made_for(old, pod)
        return QUEUE if special else SKIP
    if all(each.key != new.key for each in own):
        return SKIP
    return QUEUE if old is None or old.status != new.status else SKIP


def concerned(old: Claim | None, new: Claim | None) -> tuple[str, ...] | None:
    """The pod that a claim was created for, and those that name it; None if it may help any pod.

    Thousands of pods may wait for their claims, and each claim is of use to few of them.
    """
    claim = new or old
    assert claim is not None, "a change has an object"
    gives_back = old is not None and is_allocated(old) and (new is None or not is_allocated(new))
    owner = claim.controller
    if gives_back or owner is None or owner.kind != "Pod":
        return None
    return (f"{claim.namespace}/{owner.name}", f"resourceclaims/{claim.key}")


def named_claims(pod: mp.Pod) -> tuple[str, ...]:
    """The claims that a pod uses by name, as `concerned` names them."""
    named = [each.resource_claim_name for each in pod.spec.resource_claims]
    return tuple([f"resourceclaims/{pod.namespace}/{name}" for name in named if name])


def claims_generated(cluster: mp.Cluster, pod: mp.Pod, old: mp.Pod | None, new: mp.Pod) -> mp.Hint:
    """The pod's claims were created."""
    if new.uid != pod.uid:
        return SKIP
    try:
        claims.look_up(cluster, new)
    except ClaimLookupError:
        return SKIP
    return QUEUE
