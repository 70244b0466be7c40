"""PodGroupCycle: all members of a pod group are decided, then all that fit are bound, or none.

Members are tried one after the other, each assumed on its node before the next is decided (see
`member_trials.py`). If permit plugins agree in the end, the bindings go on from there.

    group                        member                  what happens to it
    placed                       has a node              binding continues
    placed                       has none                rejected with its own reasons
    waits for preemption         has a node              rejected; the node is nominated
    waits for preemption         has victims             they are evicted; the node is nominated
    unschedulable                has a node, or victims  rejected for the group; no eviction
    unschedulable                has none                rejected with its own reasons
    error                        any                     fails with its own error, or the group's
"""

from collections.abc import Sequence

from moorage.api.config import feature_gates
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup, group_key
from moorage.core import placement_counts
from moorage.core.bindings import Bindings
from moorage.core.cycle import SchedulingCycle
from moorage.core.decision import Decision
from moorage.core.diagnosis import Diagnosis
from moorage.core.failures import Failures
from moorage.core.group_preemption import LiveGroupTrial
from moorage.core.group_results import GroupResult, Member, Trial, in_placements, with_reason
from moorage.core.journal import GroupDecided, GroupEnded, GroupPopped
from moorage.core.member_trials import UNSCHEDULABLE, MemberTrials, Record
from moorage.core.placement_counts import PlacementCounts
from moorage.core.placement_search import PlacementSearch
from moorage.core.pod_group_placements import GroupPlacements, PlacementError
from moorage.core.pod_group_status import PodGroupConditions
from moorage.core.preemption import Preemptions
from moorage.core.queued_pod import QueuedPod
from moorage.core.state import SchedulerState
from moorage.core.torn_gangs import TornGangs
from moorage.core.undoing import Undoing
from moorage.errors import PluginError
from moorage.framework.profile import Profile
from moorage.framework.state import IN_POD_GROUP_CYCLE
from moorage.framework.status import Status, error, unschedulable
from moorage.nodes.pod_groups import GroupPlacement

NO_PLACEMENTS = "no feasible placements found"
# The node in the Events of victims of a group.
CLUSTER = "cluster"
NO_PREEMPTION = unschedulable(
    "default preemption plugin is not registered, workload aware preemption is disabled"
)


class PodGroupCycle:
    """See the module."""

    def __init__(
        self,
        state: SchedulerState,
        cycle: SchedulingCycle,
        failures: Failures,
        undoing: Undoing,
        bindings: Bindings,
        preemptions: Preemptions,
        record: Record,
    ) -> None:
        self._state = state
        self._cycle = cycle
        self._failures = failures
        self._undoing = undoing
        self._bindings = bindings
        self._preemptions = preemptions
        self._trials = MemberTrials(state, cycle, bindings, record)
        self.conditions = PodGroupConditions(state)
        self.torn = TornGangs(state)
        self._placements = GroupPlacements(state.cluster, cycle.random)
        self._preempts = state.cluster.has_feature(feature_gates.WORKLOAD_AWARE_PREEMPTION)
        self._has_gangs = state.cluster.has_feature(feature_gates.GANG_SCHEDULING)
        self._has_placements = state.cluster.has_feature(feature_gates.TOPOLOGY_AWARE)

    def attempt(self, popped: QueuedPod, now: float) -> None:
        """Schedule the group of a popped pod."""
        key = group_key(popped.pod)
        entries = self._entries(popped, key, now)
        if not entries:
            return
        members = [Member(entry) for entry in entries]
        journal, count = self._state.journal, len(members)
        journal.add(GroupPopped(at=now, group=key, members=count))
        result = self._same_scheduler(members)
        has_one_profile = result is None
        if result is None:
            members, result = self._decide(members, key, now)
            if self._preempts and result.label == "unschedulable":
                result = self._preempt(members, key, result, now)
        placed = sum(bool(member.node) for member in members)
        journal.add(
            GroupDecided(
                at=now,
                group=key,
                members=count,
                placed=placed,
                result=result.label,
                message=result.status.message,
            )
        )
        self._submit(members, result, now)
        if has_one_profile:
            self.conditions.report(key, members[0].entry.pod, result.status)
        self._follow_up(key, result, now)
        profile = members[0].entry.pod.spec.scheduler_name
        journal.add(GroupEnded(at=now, group=key, profile=profile, result=result.label))

    def _follow_up(self, key: str, result: GroupResult, now: float) -> None:
        """Note whether a gang that is bound in part is complete now, or does not fit."""
        if not self._has_gangs:
            return
        if result.goes_on:
            self.torn.goes_on(key)
        elif result.label == "unschedulable":
            self.torn.rejected(key, now)

    def trials(self, key: str, now: float) -> list[Trial]:
        """What would be found for a group's pending members in each placement; for explanations.

        Raises PlacementError.
        """
        known, profiles = self._state.cluster.members(key), self._state.profiles
        pods = () if known is None else known.unscheduled.values()
        entries = sorted(
            (
                QueuedPod(pod, now)
                for pod in pods
                if profiles[pod.spec.scheduler_name].run_pre_enqueue(pod) is None
            ),
            key=_order,
        )
        if not entries:
            return []
        members = [Member(entry) for entry in entries]
        profile, placements = profiles[entries[0].pod.spec.scheduler_name], None
        if self._has_placements:
            placements = self._placements.generate(profile, key)
        if placements is None:
            placements = [GroupPlacement("", self._state.cluster.table.active_rows)]
        self._cycle.is_trial = True
        try:
            return [self._trials.try_in(placement, members, now) for placement in placements]
        finally:
            self._cycle.is_trial = False

    # The members

    def _entries(self, popped: QueuedPod, key: str, now: float) -> list[QueuedPod]:
        """The members that can be tried, in order; all others are left in the queue."""
        queue, known = self._state.queue, self._state.cluster.members(key)
        entries = [popped]
        for uid, pod in list(known.unscheduled.items()) if known is not None else ():
            if uid != popped.uid and (entry := queue.pop_pod(pod, now)) is not None:
                entries.append(entry)
        for entry in entries:
            self._state.nominator.reread(entry.pod)
        entries.sort(key=_order)
        return [entry for entry in entries if self._can_be_tried(entry)]

    def _can_be_tried(self, entry: QueuedPod) -> bool:
        pod = entry.pod
        if pod.is_terminating:
            text = f"skip schedule deleting pod: {pod.key}"
            self._state.outbox.emit(pod, "Warning", "FailedScheduling", "Scheduling", text)
        elif entry.uid not in self._state.cache:
            return True
        self._state.queue.done(entry.uid)
        return False

    def _same_scheduler(self, members: Sequence[Member]) -> GroupResult | None:
        """An error if members have different schedulers."""
        first = members[0].entry.pod.spec.scheduler_name
        for member in members:
            other = member.entry.pod.spec.scheduler_name
            if other != first:
                text = "all pods in a single pod group should have the same .spec.schedulerName set"
                return GroupResult(error(f'{text}, got: "{other}" and "{first}"'))
        return None

    # Deciding

    def _decide(
        self, members: list[Member], key: str, now: float
    ) -> tuple[list[Member], GroupResult]:
        """Try the members, in all placements if the group is restricted to one of several."""
        if not self._has_placements:
            return members, self._trials.try_all(members, now)
        profile = self._state.profiles[members[0].entry.pod.spec.scheduler_name]
        try:
            placements = self._placements.generate(profile, key)
            if placements is None:
                result = self._trials.try_all(members, now)
                return members, in_placements(result, 1)
            if not placements:
                names = {plugin.name for plugin in (profile.placement_generator,) if plugin}
                for member in members:
                    member.diagnosis = Diagnosis(NO_PLACEMENTS, set(names))
                return members, GroupResult(unschedulable(NO_PLACEMENTS))
            return self._decide_in(profile, key, placements, members, now)
        except PlacementError as failure:
            return members, GroupResult(error(str(failure)))

    def _decide_in(
        self,
        profile: Profile,
        key: str,
        placements: list[GroupPlacement],
        members: list[Member],
        now: float,
    ) -> tuple[list[Member], GroupResult]:
        """The best of the placements in which the group fits, with the members assumed there."""
        choices = self._cycle.choices
        search = PlacementSearch(
            placements, lambda placement: self._trials.try_in(placement, members, now), self._cycle
        )
        try:
            search.counts = self._count(members, placements, now)
            good = search.good()
            if not good:
                first = search.trial(0)
                # Another placement may need other changes than the first.
                rejectors = search.rejectors()
                for member in first.members:
                    if member.diagnosis is not None:
                        member.diagnosis.unschedulable_plugins.update(rejectors)
                return first.members, in_placements(first.result, len(placements))
            best = 0
            if len(good) > 1:
                pods = [member.entry.pod for member in members]
                proposed = [search.proposed(index, pods) for index in good]
                there = [placements[index] for index in good]
                best = self._placements.best(profile, key, there, proposed)
            trial, choices = search.trial(good[best]), search.choices_after(good[best], choices)
        finally:
            self._cycle.choices = choices
        for member in trial.members:
            if member.node:
                self._trials.assume(member, now)
        return trial.members, trial.result

    def _count(
        self, members: Sequence[Member], placements: list[GroupPlacement], now: float
    ) -> PlacementCounts | None:
        """How many members fit in each placement, if that is known without trying them."""
        state, first = self._state, members[0].entry
        templates = [each.entry.template or state.templates.of(each.entry.pod) for each in members]
        is_uniform = len({id(template) for template in templates}) == 1
        if not is_uniform or state.extenders is not None or state.nominator.by_node:
            return None
        profile = state.profiles[first.pod.spec.scheduler_name]
        before, self._cycle.is_trial = self._cycle.is_trial, True
        try:
            decision = self._cycle.decide(profile, first.pod, templates[0], now)
            return placement_counts.count(decision, len(members), placements)
        except PluginError:
            return None  # Trying the members reports it.
        finally:
            self._cycle.is_trial = before

    # Preemption for the group as a whole

    def _preempt(
        self, members: Sequence[Member], key: str, result: GroupResult, now: float
    ) -> GroupResult:
        """Look for pods that can be evicted so that the group fits, and evict them."""
        self._trials.withdraw(members, now)
        pods = [member.entry.pod for member in members]
        profile = self._state.profiles[pods[0].spec.scheduler_name]
        methods = profile.methods("post_filter", "post_filter_group")
        if not methods:
            return with_reason(result, NO_PREEMPTION)
        group = self._state.cluster.get(PodGroup, key)
        if group is None:
            return GroupResult(error(f"failed to get pod group object: {key} not found"))
        nodes = {node for pod in pods if (node := self._state.nominator.node_for(pod))}
        trial = LiveGroupTrial(self._state.cluster.table, nodes, members, self._trials, now)
        self._cycle.is_trial = True
        try:
            found = methods[0].call(self._state.cluster, group, pods, trial)
            if not isinstance(found, Status) and not _are_pods(found):
                raise methods[0].returned(found, "a Status or a tuple of Pods")
        except PluginError as failure:
            return GroupResult(error(str(failure)))
        finally:
            self._cycle.is_trial = False
            trial.end()
        if isinstance(found, Status):
            return with_reason(result, found) if found.is_rejected else GroupResult(found)
        chosen = {member.entry.uid: member.node for member in trial.members}
        for member, pod in zip(members, pods, strict=True):
            member.nominated = chosen.get(pod.uid) or self._state.nominator.node_for(pod)
        name = methods[0].name
        self._preemptions.begin(pods[0], CLUSTER, found, name, profile, now, group_uid=group.uid)
        return GroupResult(result.status, waits_for_preemption=True)

    # What follows from it

    def _submit(self, members: Sequence[Member], result: GroupResult, now: float) -> None:
        """Bind the members, or return them to the queue."""
        is_placed = result.status.is_success
        leaving = [member for member in members if member.preempts or not is_placed]
        self._trials.withdraw(leaving, now)
        rejectors = set[str]().union(*(member.rejectors for member in members))
        for member in members:
            if member.binding is not None:
                pod, nominated = member.entry.pod, member.nominated_before
                self._state.queue.placed(pod, nominated, member.node, now)
                member.binding.state[IN_POD_GROUP_CYCLE] = False
                self._bindings.permit(member.binding, now)
        for member in members:
            if member.binding is None:
                self._fail(member, result, rejectors, now)
        if is_placed and self._preempts:
            # No preemption was tried for those that are left; without the others it may be.
            left = [member.entry.pod for member in members if member.diagnosis is not None]
            self._state.queue.activate(left, now)

    def _fail(self, member: Member, result: GroupResult, rejectors: set[str], now: float) -> None:
        """Return a member to the queue."""
        decision = member.decision
        if not (result.status.is_success or result.status.is_rejected):
            status = member.status if member.is_error else result.status
            self._put_back(member, status, None, "", now)
            return
        if decision is None:
            self._put_back(member, result.status, member.diagnosis, "", now)
            return
        if decision.post_filter is not None:
            self._undoing.carry_out(decision.post_filter.requests)
        if member.nominated and result.waits_for_preemption:
            status = result.status if member.node else member.status
            found = member.diagnosis or Diagnosis(
                status.message, set(member.waits_for) or rejectors
            )
            self._put_back(member, status, found, member.nominated, now)
            return
        if member.preempts and result.goes_on:
            self._evict(decision, now)
        if not member.node or (member.preempts and result.goes_on):
            # Nodes that an earlier preemption made room on are no use to a group without a way out.
            nominated = "" if self._preempts and not result.goes_on else decision.nominated
            self._put_back(member, member.status, member.diagnosis, nominated, now)
        elif result.waits_for_preemption:
            # It is pulled in by the members for which it waits; an attempt without them is futile.
            plugins = set(member.waits_for) or rejectors
            found = Diagnosis(result.status.message, plugins)
            self._put_back(member, result.status, found, member.node, now)
        else:
            message = ", ".join((UNSCHEDULABLE, *member.permit.reasons))
            # A change that helps another member may also let this one make room for it.
            found = Diagnosis(message, {*rejectors, *member.waits_for})
            self._put_back(member, unschedulable(message), found, "", now)

    def _evict(self, decision: Decision, now: float) -> None:
        found = decision.post_filter
        if found is not None and found.nominated:
            self._preemptions.begin(
                decision.pod,
                found.nominated,
                found.victims,
                found.status.plugin,
                decision.profile,
                now,
            )

    def _put_back(
        self,
        member: Member,
        status: Status,
        found: Diagnosis | None,
        nominated: str | None,
        now: float,
    ) -> None:
        decision = member.decision
        rejected_by = {} if decision is None else decision.rejected_by()
        self._failures.put_back(
            member.entry, status, found, now, nominated=nominated, rejected_by=rejected_by
        )


def _are_pods(values: object) -> bool:
    return isinstance(values, tuple) and all(isinstance(each, Pod) for each in values)


def _order(entry: QueuedPod) -> tuple[int, float, str, str]:
    """By priority, then by when a pod was first ready to be tried."""
    first = entry.first_tried_at
    return -entry.pod.priority, float("-inf") if first is None else first, entry.key, entry.uid
