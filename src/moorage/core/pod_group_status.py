"""PodGroupConditions: the condition PodGroupScheduled of pod groups."""

from moorage.api.meta import Condition
from moorage.api.pod import Pod
from moorage.api.pod_groups import POD_GROUP_SCHEDULED, PodGroup
from moorage.api.server_requests import PatchPodGroupStatus, PodRef
from moorage.core.effects import Done, Outcome, Purpose
from moorage.core.state import SchedulerState
from moorage.framework.status import Status

# The number of groups whose last patch is remembered, until it is observed.
MOST_PATCHED = 10_000


class PodGroupConditions:
    """Patches the condition of a group when it changes. One that is True stays True."""

    def __init__(self, state: SchedulerState) -> None:
        self._state = state
        # What the last patch wrote, by the group's UID: the observed status may be older.
        self._patched: dict[str, Condition] = {}

    def report(self, key: str, member: Pod, status: Status) -> None:
        """Patch the condition after an attempt for a group, if it has changed."""
        group = self._state.cluster.get(PodGroup, key)
        if group is None:
            return
        observed = group.condition(POD_GROUP_SCHEDULED)
        shown = self._patched.get(group.uid) or observed
        new = _condition(group, status, observed)
        if shown is not None and (shown.status == "True" or _content(shown) == _content(new)):
            return
        if len(self._patched) >= MOST_PATCHED:
            self._patched.clear()
        self._patched[group.uid] = new
        request = PatchPodGroupStatus(PodRef.of(member), group.name, group.uid, new)
        self._state.outbox.add(request, Purpose.POD_GROUP, group.uid)

    def completed(self, uid: str, outcome: Outcome, now: float) -> None:
        """Take the outcome of a patch; after a failure the next attempt patches again."""
        if not isinstance(outcome, Done):
            self._patched.pop(uid, None)


def _condition(group: PodGroup, status: Status, shown: Condition | None) -> Condition:
    if status.is_success:
        value, reason, message = "True", "Scheduled", ""
    else:
        reason = "Unschedulable" if status.is_rejected else "SchedulerError"
        value, message = "False", status.message
    lasts = shown is not None and shown.status == value
    return Condition(
        type=POD_GROUP_SCHEDULED,
        status=value,
        reason=reason,
        message=message,
        # None stands for the time at which the patch is carried out.
        last_transition_time=shown.last_transition_time if shown and lasts else None,
        observed_generation=group.metadata.generation or None,
    )


def _content(condition: Condition) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message
