"""A change of a device claim is shown to every pod that it may help, and to few others.

DynamicResources names the pods that a change of a claim concerns, by their keys and by the claims
that they use by name; only these are asked. So every pod that the hint would queue has to be among
them, also one that names the claim of another pod.
"""

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage import plugin as mp
from moorage.api.devices import AllocationResult, ResourceClaim, ResourceClaimStatus
from moorage.api.meta import ObjectMeta, OwnerReference
from moorage.api.pod import PodResourceClaim, PodResourceClaimStatus, PodStatus
from moorage.plugins.dynamic_resources import hints
from moorage.testing import make_cluster, make_pod

PODS, NAMES = ("p0", "p1"), ("shared", "p0-gpu")
SPACES = ("default", "default", "default", "team")


@st.composite
def pods(draw):
    """A pod with claims that it names, or that were made for it."""
    name, space = draw(st.sampled_from(PODS)), draw(st.sampled_from(SPACES))
    entries, statuses = [], []
    for i in range(draw(st.integers(0, 2))):
        if draw(st.booleans()):
            named = draw(st.sampled_from(NAMES))
            entries.append(PodResourceClaim(name=f"c{i}", resource_claim_name=named))
        else:
            entries.append(PodResourceClaim(name=f"c{i}", resource_claim_template_name="t"))
            made = draw(st.sampled_from((*NAMES, None)))
            statuses.append(PodResourceClaimStatus(name=f"c{i}", resource_claim_name=made))
    pod = make_pod(name, namespace=space, resource_claims=tuple(entries))
    return replace(pod, status=PodStatus(resource_claim_statuses=tuple(statuses)))


@st.composite
def claims(draw, name=None, space=None):
    """A claim of a pod, or without an owner, with devices or without."""
    space = space or draw(st.sampled_from(SPACES))
    owner = draw(st.sampled_from((None, *PODS)))
    reference = OwnerReference(kind="Pod", name=owner, uid=f"{space}/{owner}", controller=True)
    meta = ObjectMeta(
        name=name or draw(st.sampled_from(NAMES)),
        namespace=space,
        uid="claim",
        owner_references=() if owner is None else (reference,),
        annotations=draw(
            st.sampled_from(({}, {mp.resource_claims.EXTENDED_RESOURCE_CLAIM: "true"}))
        ),
    )
    allocation = draw(st.sampled_from((None, AllocationResult())))
    return ResourceClaim(metadata=meta, status=ResourceClaimStatus(allocation=allocation))


@given(st.lists(pods(), max_size=4), claims(), st.lists(claims(), max_size=3), st.data())
def test_the_pods_that_a_claim_concerns(waiting, claim, others, data):
    owner = claim.metadata
    again = data.draw(claims(owner.name, owner.namespace))
    again = replace(
        again, metadata=replace(again.metadata, owner_references=owner.owner_references)
    )
    for old, new in ((None, claim), (claim, again), (claim, None)):
        known = {each.key: each for each in (*others, claim)}
        if new is None:
            del known[claim.key]
        else:
            known[new.key] = new
        cluster = make_cluster([], objects=[*known.values()])
        concerned = hints.concerned(old, new)
        for pod in waiting:
            if hints.claim_changed(cluster, pod, old, new) is mp.Hint.QUEUE:
                names = {pod.key, *hints.named_claims(pod)}
                assert concerned is None or not names.isdisjoint(concerned)
