"""MemberTrials: members of a pod group are decided, and assumed on their nodes, one by one.

They are assumed in the live table: nothing else runs meanwhile, so undoing is forgetting them in
reverse order.
"""

from collections.abc import Callable, Sequence

from moorage.api.meta import NodeName
from moorage.core import binding_points
from moorage.core.bindings import Bindings
from moorage.core.cycle import SchedulingCycle
from moorage.core.decision import Decision
from moorage.core.group_results import NOWHERE, GroupResult, Member, Trial
from moorage.core.pod_group_placements import PlacementError
from moorage.core.queued_pod import QueuedPod
from moorage.core.state import SchedulerState
from moorage.framework.state import IN_POD_GROUP_CYCLE
from moorage.framework.status import SUCCESS, error, unschedulable
from moorage.nodes.pod_groups import GroupPlacement

UNSCHEDULABLE = "pod group is unschedulable"
WAITING = unschedulable("pod group is waiting for preemption to complete")

Record = Callable[[QueuedPod, Decision, float], None]


class MemberTrials:
    """See the module. In a trial of the cycle (`is_trial`) nothing is recorded."""

    def __init__(
        self, state: SchedulerState, cycle: SchedulingCycle, bindings: Bindings, record: Record
    ) -> None:
        self._state = state
        self._cycle = cycle
        self._bindings = bindings
        self._record = record

    def try_in(self, placement: GroupPlacement, members: Sequence[Member], now: float) -> Trial:
        """Try members in one placement, and withdraw them; raises PlacementError."""
        fresh = [Member(member.entry) for member in members]
        self._cycle.placement = placement.rows
        try:
            result = self.try_all(fresh, now)
        finally:
            self._cycle.placement = None
        self.withdraw(fresh, now)
        if not (result.status.is_success or result.status.is_rejected):
            raise PlacementError(result.status.message)
        return Trial(placement, fresh, result)

    def try_all(self, members: Sequence[Member], now: float) -> GroupResult:
        """Try members in order; those that have a node afterwards are assumed on it."""
        result = GroupResult(unschedulable(UNSCHEDULABLE))
        preempts = False
        for member in members:
            self.try_one(member, now)
            if member.is_error:
                text = f"failed to schedule other pod from a pod group: {member.status.message}"
                return GroupResult(error(text))
            if member.binding is None:
                continue
            preempts = preempts or member.preempts
            if member.permit is SUCCESS:
                result = (
                    GroupResult(WAITING, waits_for_preemption=True)
                    if preempts
                    else GroupResult(SUCCESS)
                )
        return result

    def try_one(self, member: Member, now: float) -> None:
        """Decide one member, and assume it on its node."""
        entry = member.entry
        pod, profile = entry.pod, self._state.profiles[entry.pod.spec.scheduler_name]
        template = entry.template or self._state.templates.of(pod)
        decision = member.decision = self._cycle.decide(profile, pod, template, now)
        decision.state[IN_POD_GROUP_CYCLE] = True
        node = decision.node
        if node:
            if not self._cycle.is_trial:
                self._record(entry, decision, now)
        else:
            member.status, member.diagnosis = decision.status, decision.diagnosis
            if member.is_error or not decision.nominated:
                return
            node, member.preempts = NodeName(decision.nominated), True
        member.node = node
        self.assume(member, now)

    def assume(self, member: Member, now: float) -> None:
        """Assume a decided member on its node, and call reserve and permit.

        If a plugin rejects it, the member has no node and no binding afterwards.
        """
        entry, decision, node = member.entry, member.decision, member.node
        assert decision is not None
        profile = decision.profile
        member.permit, member.waits_for = SUCCESS, ()
        member.nominated_before = self._state.nominator.node_of(entry.uid) or ""
        binding = member.binding = self._bindings.assume(entry, decision, node, now)
        active = profile.active_points(decision.state.idle)
        status = SUCCESS
        # For one that preempts nothing is reserved: it is not bound in this cycle.
        if "reserve" in active and not member.preempts:
            status = self._bindings.reserve(binding)
        if "permit" in active and status is SUCCESS:
            status, waits = binding_points.permit(profile, decision.state, binding.pod, node)
            if waits:
                member.permit, member.waits_for = status, tuple(waits)
                return
        if status is not SUCCESS:
            binding.fail(status)
            member.status, member.diagnosis = binding.failure
            self.withdraw([member], now)
            member.node, member.preempts = NOWHERE, False

    def withdraw(self, members: Sequence[Member], now: float) -> None:
        """Undo the assumption of members, the last one first."""
        for member in reversed(members):
            if member.binding is None:
                continue
            self._bindings.withdraw(member.binding, now, is_reserved=not member.preempts)
            member.binding = None
            if member.nominated_before:
                self._state.nominator.nominate(member.entry.pod, member.nominated_before)
