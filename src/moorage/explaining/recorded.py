"""What a cluster's own scheduler recorded about a pod: its condition, and its last Event."""

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from moorage.api.pod import Pod
from moorage.explaining.explanation import Explanation

SCHEDULED = "PodScheduled"
REASONS = ("FailedScheduling", "Scheduled", "Preempted")


class Recorded(Struct, frozen=True, omit_defaults=True):
    """The recorded outcome; empty texts if there is none."""

    condition: str = ""
    event: str = ""

    def __bool__(self) -> bool:
        return bool(self.condition or self.event)


def read(pod: Pod, events: Iterable[Mapping[str, Any]] = ()) -> Recorded:
    """What a pod's status and its Events, as plain data, say about scheduling."""
    condition = ""
    for each in pod.status.conditions:
        if each.type == SCHEDULED and each.status == "False":
            condition = f"{each.reason}: {each.message}" if each.message else each.reason
    about = [each for each in events if each.get("reason") in REASONS]
    if not about:
        return Recorded(condition)
    last = max(about, key=_time)
    by = last.get("reportingComponent") or (last.get("source") or {}).get("component") or "unknown"
    event = f"{last.get('reason')} at {_time(last)}, by {by}: {last.get('message', '')}"
    return Recorded(condition, event)


def _time(event: Mapping[str, Any]) -> str:
    series = event.get("series") or {}
    times = (series.get("lastObservedTime"), event.get("lastTimestamp"), event.get("eventTime"))
    return next((str(each) for each in times if each), "")


def differs(recorded: Recorded, explained: Explanation) -> bool:
    """Whether the recorded reason is another one than the explanation's."""
    if not recorded.condition or explained.runs_on:
        return False
    ours = explained.message or (explained.gate.message if explained.gate else "")
    # The recorded message continues with the outcome of preemption.
    return bool(explained.picked) or not ours or ours not in recorded.condition
