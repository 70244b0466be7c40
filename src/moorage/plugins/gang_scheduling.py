"""GangScheduling: the pods of a gang are bound together, or not at all.

A gang is a PodGroup whose policy has a `minCount`. Its pods stay out of the queue until the
PodGroup and so many pods exist. Then the core decides all of them in one cycle, and each waits on
permit until so many are on nodes.
"""

from moorage import plugin as mp

PERMIT_SECONDS = 5 * 60.0
NO_QUORUM = mp.unresolvable("waiting for minCount pods from a gang to appear in scheduling queue")
WAIT = mp.wait(PERMIT_SECONDS, "waiting for minCount pods from a gang to be scheduled")


class GangScheduling:
    name = "GangScheduling"
    reads_kinds = ("PodGroup",)
    # What permit answers depends on the number of members on nodes only.
    permits_by_count = True

    def attach(self, cluster: mp.Cluster) -> None:
        self._cluster = cluster

    def pre_enqueue(self, pod: mp.Pod) -> mp.Status:
        if pod.spec.scheduling_group is None:
            return mp.SUCCESS
        key = mp.group_key(pod)
        group = self._cluster.get(mp.PodGroup, key)
        if group is None:
            name = pod.spec.scheduling_group.pod_group_name
            reason = f'waiting for pods\'s pod group "{name}" to appear in scheduling queue'
            return mp.unresolvable(reason)
        if group.min_count is None:
            return mp.SUCCESS
        members = self._cluster.members(key)
        known = 0 if members is None else len(members)
        return NO_QUORUM if known < group.min_count else mp.SUCCESS

    def permit(self, state: mp.CycleState, pod: mp.Pod, node: mp.NodeName) -> mp.Status:
        if pod.spec.scheduling_group is None:
            return mp.SUCCESS
        key = mp.group_key(pod)
        group = self._cluster.get(mp.PodGroup, key)
        if group is None:
            raise mp.PluginFailure(f"failed to get podGroup {key}: not found")
        if group.min_count is None:
            return mp.SUCCESS
        members = self._cluster.members(key)
        if members is None:
            raise mp.PluginFailure(f"failed to get the state of pod group {key}")
        in_group_cycle = state.get(mp.IN_POD_GROUP_CYCLE, False)
        if len(members.scheduled) < group.min_count:
            if not in_group_cycle:  # There, all members that can be are tried anyway.
                state.to_activate.update(
                    {other.key: other for other in members.unscheduled.values()}
                )
            return WAIT
        if not in_group_cycle:
            for uid, waiting in self._cluster.waiting.items():
                if uid in members.scheduled:
                    waiting.allow(self.name)
        return mp.SUCCESS

    def explain_rejection(self, rejection: mp.Rejection) -> str:
        cluster, key = rejection.cluster, mp.group_key(rejection.pod)
        group = cluster.get(mp.PodGroup, key)
        if group is None:
            return f"The PodGroup {key} does not exist."
        members = cluster.members(key)
        if members is None or group.min_count is None:
            return ""
        return (
            f"The gang {key} needs {mp.texts.count(group.min_count, 'pod')}: "
            f"{mp.texts.count(len(members), 'pod', 'exist')}, {len(members.scheduled):,} on nodes."
        )

    def events_to_register(self) -> mp.Events:
        return {
            # The core reports new pods of a group to the other members only.
            mp.ClusterEvent.UNSCHEDULABLE_POD_ADD: same_group,
            mp.ClusterEvent.POD_GROUP_ADD: mp.TargetedHint(own_group, self._pods_of),
        }

    def _pods_of(self, old: mp.PodGroup | None, new: mp.PodGroup) -> tuple[str, ...]:
        members = self._cluster.members(new.key)
        return () if members is None else tuple(pod.key for pod in members.unscheduled.values())


def same_group(pod: mp.Pod, old: mp.Pod | None, new: mp.Pod) -> mp.Hint:
    same = mp.group_key(pod) == mp.group_key(new)
    return mp.Hint.QUEUE if same else mp.Hint.QUEUE_SKIP


def own_group(pod: mp.Pod, old: mp.PodGroup | None, new: mp.PodGroup) -> mp.Hint:
    return mp.Hint.QUEUE if mp.group_key(pod) == new.key else mp.Hint.QUEUE_SKIP
