"""Reserve and pre_bind: hold the claims with their allocations, write them, wait for devices.

The claims of a pod are held in the cluster from reserve on, so that no other pod gets their
devices. pre_bind creates the special claim, if there is one, reserves all claims for the pod, and
waits for binding conditions. If the binding fails, `undo` returns requests that release the claims;
they stay held until that is done.

Creations of special claims and waits for binding conditions are counted under Kubernetes' metrics.
"""

from dataclasses import dataclass
from enum import IntEnum

from msgspec import structs

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import conditions, extended
from moorage.plugins.dynamic_resources.claims import Claim, is_allocated
from moorage.plugins.dynamic_resources.extended import ExtendedRequest

CREATES = "scheduler_resourceclaim_creates_total"
ALLOCATIONS = "scheduler_dra_bindingconditions_allocations_total"
WAIT_SECONDS = "scheduler_dra_bindingconditions_wait_duration_seconds"

PreBindResult = mp.Status | mp.Awaiting | tuple[mp.Request, ...]


class Step(IntEnum):
    """What pre_bind does next."""

    CREATE = 0
    RESERVE = 1
    PATCH = 2
    ANNOUNCE = 3
    WAIT = 4


@dataclass(slots=True)
class ClaimBinding:
    """A claim of the pod, with the allocation that has to be written, if it has none yet."""

    claim: Claim
    allocation: mp.AllocationResult | None
    is_special: bool = False
    is_requested: bool = False  # Whether its creation is requested, with an unknown result.
    is_created: bool = False
    is_sent: bool = False
    is_held: bool = False

    @property
    def future(self) -> Claim:
        """The claim with its allocation."""
        status = structs.replace(self.claim.status, allocation=self.allocation)
        return structs.replace(self.claim, status=status)


@dataclass(slots=True)
class DeviceBinding:
    """The claims of a pod on their way through the binding cycle."""

    claims: list[ClaimBinding]
    request: ExtendedRequest | None = None
    step: Step = Step.CREATE
    # Of the wait for binding conditions, while it lasts.
    began_at: float | None = None
    special: ClaimBinding | None = None

    def add(self, claim: Claim, allocation: mp.AllocationResult) -> None:
        """Add a claim that has to be allocated."""
        each = ClaimBinding(claim, allocation, is_special=extended.is_in_memory(claim))
        self.claims.append(each)
        if each.is_special:
            self.special = each


def hold(cluster: mp.Cluster, binding: DeviceBinding, pod: mp.Pod) -> None:
    """Show the claims with their allocations to all other pods."""
    for each in binding.claims:
        if each.allocation is not None:
            each.is_held = True
            cluster.hold(each.future, pod.uid)


def go_on(
    state: mp.CycleState, binding: DeviceBinding, pod: mp.Pod, node: str, timeout_seconds: float
) -> PreBindResult:
    """The next step of pre_bind, after the requests of the step before succeeded."""
    cluster = state.cluster
    special = binding.special
    if state.written:
        _take_in_special(state, binding)
        _take_in(cluster, binding, state)
    if binding.step is Step.CREATE:
        binding.step = Step.RESERVE
        if special is not None:
            if binding.request is None or not binding.request.mappings:
                text = "nil or empty request mappings, no update of pod"
                raise mp.PluginFailure(f"{text} {pod.key} ExtendedResourceClaimStatus")
            bare = structs.replace(special.claim.metadata, uid="")
            created = structs.replace(special.claim, metadata=bare)
            special.is_requested = True
            return (mp.CreateResourceClaim(mp.PodRef.of(pod), created),)
    if binding.step is Step.RESERVE:
        binding.step = Step.PATCH
        if special is not None and _is_left_over(special.claim):
            # Its devices may be on another node. `undo` deletes it.
            raise mp.PluginFailure(f"claim {special.claim.key} of an earlier attempt still exists")
        requests = [_reserve(each, pod) for each in binding.claims if _is_unreserved(each, pod)]
        if requests:
            return tuple(requests)
    if binding.step is Step.PATCH:
        binding.step = Step.ANNOUNCE
        if special is not None:
            assert binding.request is not None
            status = mp.PodExtendedResourceClaimStatus(
                request_mappings=binding.request.mappings, resource_claim_name=special.claim.name
            )
            ref = mp.PodRef.of(pod)
            return (mp.PatchPodStatus(ref, extended_resource_claim_status=status),)
    return _wait(state, binding, pod, node, timeout_seconds)


def _is_unreserved(each: ClaimBinding, pod: mp.Pod) -> bool:
    return not mp.resource_claims.is_reserved_for(each.claim, pod.uid)


def _reserve(each: ClaimBinding, pod: mp.Pod) -> mp.ReserveResourceClaim:
    each.is_sent = True
    claim = each.claim
    target = (claim.namespace, claim.name, claim.uid)
    return mp.ReserveResourceClaim(mp.PodRef.of(pod), *target, each.allocation, claim)


def _is_left_over(claim: Claim) -> bool:
    return is_allocated(claim) or claim.metadata.deletion_timestamp is not None


def _take_in_special(state: mp.CycleState, binding: DeviceBinding) -> None:
    """Take in the special claim, if it was created."""
    special = binding.special
    if special is None or not special.is_requested:
        return
    for i, written in enumerate(state.written):
        if isinstance(written, mp.ResourceClaim) and written.key == special.claim.key:
            special.is_requested, special.is_created = False, True
            special.claim = structs.replace(written, spec=special.claim.spec)
            state.measure(CREATES, "success")
            del state.written[i]
            return


def _take_in(cluster: mp.Cluster, binding: DeviceBinding, state: mp.CycleState) -> None:
    """Take in the claims that were reserved."""
    for written in state.written:
        if not isinstance(written, mp.ResourceClaim):
            continue
        for each in binding.claims:
            if each.claim.key == written.key:
                each.claim = written
                cluster.written(written)
    state.written.clear()


def _wait(
    state: mp.CycleState, binding: DeviceBinding, pod: mp.Pod, node: str, timeout_seconds: float
) -> PreBindResult:
    """Wait until the binding conditions of all devices are true."""
    waiting = [
        claim for claim in _latest(state.cluster, binding) if conditions.has_conditions(claim)
    ]
    if not waiting:
        return mp.SUCCESS
    if binding.step is Step.ANNOUNCE:
        binding.step = Step.WAIT
        binding.began_at = state.now
        note = f"waiting for binding conditions for device on node {node}"
        event = ("Normal", "BindingConditionsPending", "Scheduling", note)
        return (mp.EmitEvent(mp.PodRef.of(pod), *event, pod.spec.scheduler_name),)
    for each in binding.claims:
        if state.cluster.latest(mp.ResourceClaim, each.claim.key) is None:
            gone = f'resourceclaim.resource.k8s.io "{each.claim.name}" not found'
            raise mp.PluginFailure(f"device binding failed: {gone}")
    unready = []
    for claim in waiting:
        found = conditions.pending(claim)
        if found is None:
            continue
        if found.failed is not None:
            _measure_wait(state, binding, pod, "failure")
            why = f'reason={found.failed.reason}, message="{found.failed.message}"'
            raise mp.PluginFailure(f"device binding failed: claim={claim.key}, {why}")
        unready.append(claim)
    if not unready:
        _measure_wait(state, binding, pod, "success")
        return mp.SUCCESS
    assert binding.began_at is not None
    until = binding.began_at + timeout_seconds
    if state.now >= until:
        _measure_wait(state, binding, pod, "timeout")
        raise mp.PluginFailure("device binding timeout: context deadline exceeded")
    objects = tuple((mp.ResourceClaim, claim.key) for claim in unready)
    return mp.Awaiting(seconds=until - state.now, objects=objects)


def _latest(cluster: mp.Cluster, binding: DeviceBinding) -> list[Claim]:
    return [
        cluster.latest(mp.ResourceClaim, each.claim.key) or each.claim for each in binding.claims
    ]


def _measure_wait(state: mp.CycleState, binding: DeviceBinding, pod: mp.Pod, status: str) -> None:
    """Count the end of a wait: its duration per device, and the devices with conditions."""
    assert binding.began_at is not None
    seconds = state.now - binding.began_at
    binding.began_at = None
    profile = pod.spec.scheduler_name
    for claim in _latest(state.cluster, binding):
        for result in claim.status.allocation.devices.results if claim.status.allocation else ():
            state.measure(WAIT_SECONDS, profile, result.driver, status, value=seconds)
            if result.binding_conditions:
                state.measure(ALLOCATIONS, profile, result.driver, status)


def undo(state: mp.CycleState, binding: DeviceBinding, pod: mp.Pod) -> tuple[mp.Request, ...]:
    """Requests that release what was written, or may have been; other claims are free at once."""
    cluster = state.cluster
    _take_in_special(state, binding)
    if binding.special is not None and binding.special.is_requested:
        state.measure(CREATES, "failure")
    if binding.began_at is not None:
        _measure_wait(state, binding, pod, "error")
    requests: list[mp.Request] = []
    ref = mp.PodRef.of(pod)
    for each in binding.claims:
        claim = each.claim
        target = (claim.namespace, claim.name, claim.uid)
        if each.is_special and each.is_created:
            requests.append(mp.DeleteResourceClaim(ref, *target))
        elif each.is_sent:
            requests.append(mp.ReleaseResourceClaim(ref, *target))
        elif each.is_held:
            cluster.release(mp.ResourceClaim, claim.key)
            continue
        if each.is_held:
            cluster.keep_held(mp.ResourceClaim, claim.key)
    return tuple(requests)
