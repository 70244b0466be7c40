"""TornGangs: gangs of which some members are on nodes, fewer than `minCount`, and the rest waits.

The scheduler ended between two bindings, a binding failed, or a node with members is gone. Such a
gang is *repaired*: its members are tried before all other pods, and those on nodes count. If they
still do not fit after some time, it is *released*: the members on nodes are evicted, so that the
whole gang can be placed elsewhere, and others can use what it holds in vain.

    a try fails for a torn gang       its time begins, unless it has
    it is complete, or not torn, or   its time ends
    waits for victims to leave
    its time is over                  patch, then delete every member on a node
    a request fails                   the gang is looked at again after a second

One gang is released at a time: two that hold half of what each needs are both helped by the end of
one. The time begins anew after a restart.
"""

from math import isfinite

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.api.pod_groups import PodGroup, group_key
from moorage.api.server_requests import DeletePod, PatchPodStatus, PodRef
from moorage.core.cache import ADDED
from moorage.core.effects import Done, Failed, Outcome, Purpose
from moorage.core.journal import Preempted
from moorage.core.preemption import BY_SCHEDULER, DISRUPTION_TARGET
from moorage.core.queue_states import ACTIVE, BACKOFF, IN_FLIGHT
from moorage.core.queued_pod import QueuedPod
from moorage.core.state import SchedulerState
from moorage.nodes.pod_groups import GroupMembers

# As long as members wait on permit for the others.
RELEASE_SECONDS = 5 * 60.0
# An annotation of a PodGroup with another time; 0: never.
RELEASE_ANNOTATION = "moorage.dev/release-after-seconds"
# The time that the other gangs have to use what a released one leaves.
PAUSE_SECONDS = 60.0
RETRY_SECONDS = 1.0
BUSY = frozenset((ACTIVE, BACKOFF, IN_FLIGHT))


class TornGangs:
    """See the module."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        # When gangs that do not fit are released, by `namespace/name`.
        self._due: dict[str, float] = {}
        # Members on nodes whose eviction is in progress, by UID, and whether they are patched.
        self._evicting: dict[str, tuple[Pod, bool]] = {}

    def pop(self, now: float) -> QueuedPod | None:
        """Take a member of a torn gang from the queue: they come before all other pods.

        The nodes of the missing members were free a moment ago; another pod may take them first.
        """
        groups, queue = self._state.cluster.pod_groups, self._state.queue
        assert groups is not None
        for key in groups.divided:
            members = self._torn(key)
            for pod in () if members is None else members.unscheduled.values():
                if queue.where(pod.uid) == ACTIVE:
                    return queue.pop_pod(pod, now)
        return None

    def rejected(self, key: str, now: float) -> None:
        """The pending members of a gang do not fit."""
        seconds = RELEASE_SECONDS
        if self._torn(key) is None:
            self._due.pop(key, None)
            return
        group = self._state.cluster.get(PodGroup, key)
        if group is not None:
            seconds = _release_seconds(group)
        if seconds:
            self._due.setdefault(key, now + seconds)

    def goes_on(self, key: str) -> None:
        """A gang is complete, or will be when its victims are gone."""
        self._due.pop(key, None)

    def advance(self, now: float) -> None:
        """Release a gang whose time is over."""
        due = [key for key, at in self._due.items() if at <= now]
        if not due:
            return
        released = ""
        for key in sorted(due, key=self._importance):
            members = self._torn(key)
            if members is None:
                del self._due[key]
            elif released or self._may_still_fit(members):
                self._due[key] = now + RETRY_SECONDS
            else:
                released = key
                del self._due[key]
                self._release(members)
        if released:
            self._due = {key: max(at, now + PAUSE_SECONDS) for key, at in self._due.items()}

    @property
    def deadline(self) -> float | None:
        return min(self._due.values(), default=None)

    def completed(self, uid: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of a request for a member."""
        pod, is_patched = self._evicting.pop(uid)
        if isinstance(outcome, Done) and not is_patched:
            self._evicting[uid] = pod, True
            self._state.outbox.add(DeletePod(PodRef.of(pod)), Purpose.TORN_GANG, uid)
        elif isinstance(outcome, Done):
            self._report(pod, now)
        elif not (isinstance(outcome, Failed) and outcome.missing):
            self._due[group_key(pod)] = now + RETRY_SECONDS

    def _torn(self, key: str) -> GroupMembers | None:
        """The members of a gang that is bound in part; None for all other groups."""
        group, members = self._state.cluster.get(PodGroup, key), self._state.cluster.members(key)
        if group is None or members is None or not members.unscheduled:
            return None
        return members if 0 < len(members.scheduled) < (group.min_count or 0) else None

    def _may_still_fit(self, members: GroupMembers) -> bool:
        """Whether members are going to be tried, or are being bound or evicted."""
        queue, cache = self._state.queue, self._state.cache
        if any(queue.where(uid) in BUSY for uid in members.unscheduled):
            return True
        cached = [cache.get(uid) for uid in members.scheduled]
        return any(each is None or each.state != ADDED for each in cached) or any(
            uid in self._evicting for uid in members.scheduled
        )

    def _importance(self, key: str) -> tuple[int, float, str]:
        """Gangs of low priority are released first, of equal ones that which waits last."""
        members = self._state.cluster.members(key)
        pods = () if members is None else members.unscheduled.values()
        return max((pod.priority for pod in pods), default=0), -self._due[key], key

    def _release(self, members: GroupMembers) -> None:
        for uid, pod in members.scheduled.items():
            if not pod.is_terminating:
                self._evicting[uid] = pod, False
                patch = PatchPodStatus(PodRef.of(pod), condition=_condition(pod))
                self._state.outbox.add(patch, Purpose.TORN_GANG, uid)

    def _report(self, pod: Pod, now: float) -> None:
        key = group_key(pod)
        group = self._state.cluster.get(PodGroup, key)
        by_uid = "" if group is None else group.uid
        self._state.journal.add(
            Preempted(at=now, pod=pod.key, uid=pod.uid, node=pod.node_name, by=key, by_uid=by_uid)
        )
        note = f"Released by its gang {key}, which cannot be completed"
        self._state.outbox.emit(pod, "Normal", "GangReleased", "Preempting", note)


def _release_seconds(group: PodGroup) -> float:
    """The time until a torn gang is released; 0: never."""
    try:
        seconds = float(group.metadata.annotations[RELEASE_ANNOTATION])
    except (KeyError, ValueError):
        return RELEASE_SECONDS
    return max(seconds, 0.0) if isfinite(seconds) else RELEASE_SECONDS


def _condition(pod: Pod) -> Condition:
    # Controllers know the reason: with it, a Job need not count the pod as failed.
    return Condition(
        type=DISRUPTION_TARGET,
        status="True",
        reason=BY_SCHEDULER,
        message=f"{pod.spec.scheduler_name}: releasing a gang that cannot be completed",
        observed_generation=pod.metadata.generation or None,
    )
