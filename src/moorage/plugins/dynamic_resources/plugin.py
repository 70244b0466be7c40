"""DynamicResources: allocate devices for the claims of a pod.

    pre_enqueue    all claims of the pod exist
    pre_filter     read the claims; reject the pod if one cannot be allocated on any node
    filter         allocated claims are available on the node, and there are devices for others
    post_filter    give up an allocation that no node can use, so that the claim is allocated anew
    score          prefer nodes that serve the first alternatives of requests
    reserve        hold the claims with their allocations
    pre_bind       write them, then wait for devices that need time, up to `binding_timeout_seconds`
    unreserve      release what was written

`filter_timeout_seconds` limits the search for devices of one node. As decisions must not depend on
a clock, it limits the number of steps.
"""

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from moorage import plugin as mp
from moorage.plugins.dynamic_resources import advice, binding, claims, extended, hints
from moorage.plugins.dynamic_resources.allocator import STEPS_PER_SECOND
from moorage.plugins.dynamic_resources.binding import ClaimBinding, DeviceBinding, PreBindResult
from moorage.plugins.dynamic_resources.claims import Claim, ClaimLookupError, Plans, is_allocated
from moorage.plugins.dynamic_resources.devices import (
    STATUSES,
    UNAVAILABLE,
    AllocatedClaim,
    PodDevices,
)
from moorage.plugins.dynamic_resources.extended import SpecialClaims
from moorage.plugins.dynamic_resources.index import index_of

DEVICES = mp.StateKey[PodDevices]("DynamicResources.devices", missing="not found")
BINDING = mp.StateKey[DeviceBinding]("DynamicResources.binding")

# Kubernetes' texts of post_filter.
DEALLOCATED = "deallocation of ResourceClaim completed"
DELETED = "deletion of ResourceClaim completed"
NOT_HELPED = "still not schedulable"
NOTHING_NEW = "no new claims to deallocate"


class Since(NamedTuple):
    """What filter results of a template were computed from."""

    signature: Hashable
    rows: "mp.Cursor[int]"
    wide_version: int


class DynamicResources:
    name = "DynamicResources"
    # Members of a group that is restricted to placements do not preempt.
    preempts_in_placements = False
    depends = mp.Depends.PLACEMENTS
    normalizer = mp.ByMax()
    reads_kinds = ("ResourceClaim", "ResourceSlice", "DeviceClass")
    permissions = (
        mp.Permission("resource.k8s.io", "resourceclaims", ("create", "patch", "delete", "get")),
        mp.Permission("resource.k8s.io", "resourceclaims/status", ("patch",)),
        # The API server asks for this one when allocations and reservations change.
        mp.Permission("resource.k8s.io", "resourceclaims/binding", ("patch",)),
    )

    def __init__(
        self, *, filter_timeout_seconds: float = 10.0, binding_timeout_seconds: float = 600.0
    ) -> None:
        self._most_steps = filter_timeout_seconds * STEPS_PER_SECOND or math.inf
        self._binding_timeout_seconds = binding_timeout_seconds
        self._cluster: mp.Cluster | None = None

    def attach(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster
        if not cluster.has_feature(mp.feature_gates.FILTER_TIMEOUT):
            self._most_steps = math.inf

    # Queue

    def pre_enqueue(self, pod: mp.Pod) -> mp.Status:
        if not pod.spec.resource_claims or self._cluster is None:
            return mp.SUCCESS
        try:
            claims.look_up(self._cluster, pod)
        except ClaimLookupError as error:
            return mp.unresolvable(str(error))
        return mp.SUCCESS

    def events_to_register(self) -> mp.Events:
        changed = mp.TargetedHint(self._claim_changed, hints.concerned, hints.named_claims)
        return {
            mp.ClusterEvent.RESOURCE_CLAIM_ADD: changed,
            mp.ClusterEvent.RESOURCE_CLAIM_UPDATE: changed,
            # kube-scheduler does not register this one: a pod that waits for a device would not
            # notice that a claim was deleted together with its allocation.
            mp.ClusterEvent.RESOURCE_CLAIM_DELETE: changed,
            mp.ClusterEvent.UPDATE_POD_GENERATED_RESOURCE_CLAIM: self._claims_generated,
            mp.ClusterEvent.NODE_ADD: None,
            mp.ClusterEvent.UPDATE_NODE_LABEL: None,
            mp.ClusterEvent.UPDATE_NODE_ALLOCATABLE: None,
            mp.ClusterEvent.DEVICE_CLASS_ADD: None,
            mp.ClusterEvent.DEVICE_CLASS_UPDATE: None,
            mp.ClusterEvent.RESOURCE_SLICE_ADD: None,
            mp.ClusterEvent.RESOURCE_SLICE_UPDATE: None,
        }

    def _claim_changed(self, pod: mp.Pod, old: Claim | None, new: Claim | None) -> mp.Hint:
        assert self._cluster is not None, "a profile attaches its plugins"
        return hints.claim_changed(self._cluster, pod, old, new)

    def _claims_generated(self, pod: mp.Pod, old: mp.Pod | None, new: mp.Pod) -> mp.Hint:
        assert self._cluster is not None, "a profile attaches its plugins"
        return hints.claims_generated(self._cluster, pod, old, new)

    # Filter

    def skip_key(self, state: mp.CycleState, pod: mp.Pod) -> Hashable:
        if pod.spec.resource_claims:
            return None
        resources = _extended_resources(state, pod)
        if not resources:
            return mp.ALWAYS
        serving = state.table.device_resources.classes
        return None if any(name in serving for name in resources) else "no device serves them"

    def pre_filter(self, state: mp.CycleState, pod: mp.Pod) -> mp.Status:
        cluster = state.cluster
        try:
            own = claims.look_up(cluster, pod)
        except ClaimLookupError as error:
            return mp.unresolvable(str(error))
        resources = _extended_resources(state, pod)
        special = None
        if any(name in state.table.device_resources.classes for name in resources):
            special = cluster.derived(SpecialClaims).of(pod) or extended.in_memory_claim(pod)
        if not own and special is None:
            return mp.SKIP
        allocated = []
        for claim in own:
            if claims.is_in_flight(cluster, claim):
                text = f"resource claim {claim.key} is in the process of being allocated"
                return mp.unresolvable(text)
            if is_allocated(claim):
                timeout_seconds = self._binding_timeout_seconds
                allocated.append(AllocatedClaim.of(claim, timeout_seconds, state.now))
            elif (problem := claims.unusable_request(cluster, claim)) is not None:
                return problem
        state[DEVICES] = PodDevices(
            cluster=cluster,
            pod=pod,
            claims=own,
            special=special,
            index=index_of(cluster),
            plans=cluster.derived(Plans),
            allocated=allocated,
            resources=resources if special is not None else (),
            most_steps=self._most_steps,
        )
        return mp.SUCCESS

    def filter(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> mp.Status:
        return STATUSES[state[DEVICES].verdict(node.row, node.node)]

    def filter_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Verdicts:
        verdicts = state[DEVICES].verdicts()
        codes = table.take(verdicts.codes)
        return mp.Verdicts(codes=codes, status_of=STATUSES.__getitem__, errors=verdicts.errors)

    def filter_changes(
        self, state: mp.CycleState, pod: mp.Pod, since: Since | None
    ) -> tuple[Since, mp.RowArray | None]:
        devices = state[DEVICES]
        index, signature = devices.index, devices.signature()
        if since is not None and since[::2] == (signature, index.wide_version):
            rows = since.rows.changed()
            since.rows.commit()
            return since, None if rows is None else np.array(rows, dtype=np.intp)
        cursor = mp.Cursor(index.changes)
        cursor.changed()
        cursor.commit()
        return Since(signature, cursor, index.wide_version), None

    def post_filter(
        self, state: mp.CycleState, pod: mp.Pod, failure: mp.NoFeasibleNode
    ) -> mp.PostFiltered | mp.Status:
        is_called = state.is_called(self.name, "pre_filter")
        if not is_called or self.name in failure.pre.unreached:
            # As in kube-scheduler, whose plugin has not seen such a pod and ends the post_filter
            # plugins. A nomination in the pod's status stays; one whose write was lost would
            # reserve the node for as long as this lasts.
            nominated = None if pod.status.nominated_node_name else ""
            return mp.PostFiltered(mp.unresolvable(), nominated)
        devices = _devices(state)
        if devices is None:
            return mp.unschedulable(*[NOTHING_NEW] if _is_for_devices(state, pod) else [])
        ref = mp.PodRef.of(pod)
        for claim in self._unavailable(devices, failure):
            meta = claim.metadata
            request = mp.DeallocateResourceClaim(
                ref, meta.namespace, meta.name, meta.uid, meta.resource_version
            )
            return mp.PostFiltered(mp.unschedulable(DEALLOCATED), requests=(request,))
        if devices.has_leftover:
            assert devices.special is not None
            if mp.resource_claims.is_going(devices.special):
                return mp.unschedulable(DELETED)
            meta = devices.special.metadata
            delete = mp.DeleteResourceClaim(ref, meta.namespace, meta.name, meta.uid)
            return mp.PostFiltered(mp.unschedulable(DELETED), requests=(delete,))
        return mp.unschedulable(NOT_HELPED)

    def _unavailable(self, devices: PodDevices, failure: mp.NoFeasibleNode) -> list[Claim]:
        """Claims that keep nodes from being used, and that no other pod uses."""
        uid = devices.pod.uid
        candidates = [
            each
            for each in devices.allocated
            if all(user.uid == uid for user in each.claim.status.reserved_for)
        ]
        if not candidates:
            return []
        table, status = devices.cluster.table, STATUSES[UNAVAILABLE].by(self.name)
        found: dict[str, Claim] = {}
        for row, node in enumerate(table.nodes):
            if node is not None and failure.status(row) == status:
                for each in candidates:
                    if not each.is_available(node):
                        found[each.claim.key] = each.claim
        ordered = list(found.values())
        failure.random.shuffle(ordered)
        return ordered

    # Score

    def pre_score(self, state: mp.CycleState, pod: mp.Pod, feasible: mp.Mask) -> mp.Status:
        return mp.SKIP if self._scored(state) is None else mp.SUCCESS

    def score(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo) -> int:
        devices = self._scored(state)
        return 0 if devices is None else devices.score(node.row, node.node)

    def score_all(self, state: mp.CycleState, pod: mp.Pod, table: mp.Rows) -> mp.Scores:
        devices = self._scored(state)
        if devices is None:
            return np.zeros(len(table), dtype=np.int64)
        return table.take(devices.scores())

    def _scored(self, state: mp.CycleState) -> PodDevices | None:
        """The devices that filter found, if nodes may differ in which alternatives they serve."""
        devices = _devices(state)
        if devices is None or not devices.has_alternatives:
            return None
        return devices if state.is_called(self.name, "filter") else None

    # Reserve and bind

    def reserve(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> mp.Status:
        devices = _devices(state)
        there = state.table.node(node)
        if devices is None or there is None:
            return mp.SUCCESS
        plan = DeviceBinding([])
        is_filtered = state.is_called(self.name, "filter")
        if is_filtered and (served := devices.served(there)) and devices.has_special(served):
            plan.request = devices.request_for(served)
        found: set[str] = set()
        for claim, allocation in devices.allocations(there) if is_filtered else ():
            # A pod may name one claim twice: the devices of the first are the ones that count.
            if claim.key not in found:
                found.add(claim.key)
                plan.add(claim, allocation)
        if not found.issuperset(claim.key for claim in devices.unallocated):
            raise mp.PluginFailure("claim allocation not found for node")
        plan.claims += [ClaimBinding(each.claim, None) for each in devices.allocated]
        state[BINDING] = plan
        binding.hold(state.cluster, plan, pod)
        return mp.SUCCESS

    def unreserve(
        self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName
    ) -> tuple[mp.Request, ...]:
        plan = _binding(state)
        return () if plan is None else binding.undo(state, plan, pod)

    def pre_bind_pre_flight(
        self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName
    ) -> mp.Status:
        plan, devices = _binding(state), _devices(state)
        if plan is None and devices is not None:
            # The profile does not call reserve: no claim is given an allocation.
            plan = state[BINDING] = DeviceBinding(
                [ClaimBinding(each.claim, None) for each in devices.allocated]
            )
            if devices.unallocated:
                return mp.SUCCESS
        return mp.SUCCESS if plan is not None and plan.claims else mp.SKIP

    def pre_bind(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> PreBindResult:
        if not state.is_called(self.name, "reserve"):
            for claim in state[DEVICES].unallocated:
                text = f"claim {claim.key} got deallocated elsewhere in the meantime"
                raise mp.PluginFailure(text)
        return binding.go_on(state, state[BINDING], pod, node, self._binding_timeout_seconds)

    def pre_bind_next(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> PreBindResult:
        return binding.go_on(state, state[BINDING], pod, node, self._binding_timeout_seconds)

    def explain_reservation(
        self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeInfo
    ) -> list[dict[str, Any]]:
        if DEVICES not in state or not state.is_called(self.name, "filter"):
            return []
        return advice.reserved(state[DEVICES], node.node)

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        return advice.explain(rejection)


def _extended_resources(state: mp.CycleState, pod: mp.Pod) -> tuple[str, ...]:
    """The resources that a pod requests and that devices might serve, sorted."""
    for name, _ in state.template.usage.requested:
        if "/" in name:
            return extended.requested(pod)
    # Most pods request native resources only, whose names have no slash.
    return ()


def _is_for_devices(state: mp.CycleState, pod: mp.Pod) -> bool:
    """Whether a pod has claims, or a resource that a device class might serve."""
    if pod.spec.resource_claims:
        return True
    return bool(state.cluster.all(mp.DeviceClass)) and bool(_extended_resources(state, pod))


def _devices(state: mp.CycleState) -> PodDevices | None:
    """The devices of a pod; None if pre_filter skipped it.

    Raises if the profile does not call pre_filter.
    """
    if DEVICES not in state and state.is_called(DynamicResources.name, "pre_filter"):
        return None
    return state[DEVICES]


def _binding(state: mp.CycleState) -> DeviceBinding | None:
    if BINDING not in state:
        return None
    return state[BINDING]
