"""Timeline: the cluster of a recording at any time, and what to look at.

Observations of the recording are passed to a scheduler that schedules nothing; so the node table is
that of the recorded cluster. To go forward, only the changes since then are observed. To go back,
a new scheduler observes all changes from the start.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import msgspec

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.core.observations import Added, Deleted, Updated
from moorage.core.preemption import BY_SCHEDULER, DISRUPTION_TARGET
from moorage.core.scheduler import Scheduler
from moorage.explaining.dry_run import DryRun
from moorage.planning.prices import PriceList
from moorage.planning.recording import Recording
from moorage.planning.replay import without_template
from moorage.sim.trace import Line
from moorage.ui.history import PodHistories
from moorage.ui.snapshot import NOT_READY, ClusterSnapshot, state_of

PREEMPTION, REJECTION, NODE_LOSS = "preemption", "rejection", "nodeLoss"
# How many marks are sent, of each kind, and how many points of the course.
MOST_MARKS = 2_000
MOST_POINTS = 300


class ObjectChange(NamedTuple):
    """An object before and after; None if it did not exist, or is gone."""

    at: float
    before: KubeObject | None
    after: KubeObject | None


class Mark(NamedTuple):
    """A moment to jump to."""

    at: float
    kind: str
    name: str
    text: str


class Timeline:
    """A recorded cluster."""

    def __init__(
        self, recording: Recording, title: str = "", prices: PriceList | None = None
    ) -> None:
        self.recording = recording
        self.title = title
        self.prices = prices
        self.histories = PodHistories(recording)
        self.changes = list(object_changes(recording.lines))
        self.end = max((line.at for line in recording.lines), default=0.0)
        self.marks = [mark for change in self.changes if (mark := _mark(change)) is not None]
        self._times = [change.at for change in self.changes]
        self._scheduler, self._objects = self._start()
        self._applied = 0
        self._snapshot: ClusterSnapshot | None = None

    def _start(self) -> tuple[Scheduler, dict[tuple[str, str], KubeObject]]:
        return Scheduler(self.recording.config, seed=self.recording.seed), {}

    def snapshot(self, at: float) -> ClusterSnapshot:
        """The cluster after all changes up to a time."""
        position = bisect_right(self._times, at)
        if position < self._applied:
            self._scheduler, self._objects = self._start()
            self._applied = 0
        if position != self._applied or self._snapshot is None:
            for change in self.changes[self._applied : position]:
                self._apply(change)
            self._applied = position
            config = self.recording.config
            objects = list(self._objects.values())
            run = DryRun.observed(objects, self._scheduler, config)
            self._snapshot = ClusterSnapshot(
                objects, config, title=self.title, options=(), prices=self.prices, run=run
            )
        self._snapshot.at = min(at, self.end)
        return self._snapshot

    def _apply(self, change: ObjectChange) -> None:
        obj = change.after or change.before
        assert obj is not None
        key = (type(obj).__name__, obj.key)
        observation: Added | Updated | Deleted
        if change.after is None:
            self._objects.pop(key, None)
            observation = Deleted(obj)
        else:
            self._objects[key] = without_template(obj)
            observation = Added(obj) if change.before is None else Updated(obj)
        self._scheduler.observe(observation, change.at)

    def document(self) -> dict[str, Any]:
        """Duration, marks, and the course of the numbers of nodes and pods."""
        kinds = {kind: [m for m in self.marks if m.kind == kind] for kind in KINDS_OF_MARKS}
        return {
            "end": self.end,
            "live": self.recording.is_live,
            "counts": {kind: len(marks) for kind, marks in kinds.items()},
            "marks": {
                kind: [{"at": m.at, "name": m.name, "text": m.text} for m in marks[:MOST_MARKS]]
                for kind, marks in kinds.items()
            },
            "course": self._course(),
        }

    def _course(self) -> dict[str, list[float]]:
        """The numbers of nodes, pods on nodes and pending pods, at regular times."""
        step = self.end / MOST_POINTS
        found: dict[str, list[float]] = {"at": [], "nodes": [], "running": [], "pending": []}
        nodes = running = pending = applied = 0
        for index in range(MOST_POINTS + 1):
            at = step * index if index < MOST_POINTS else self.end
            while applied < len(self.changes) and self.changes[applied].at <= at:
                for obj, sign in (
                    (self.changes[applied].before, -1),
                    (self.changes[applied].after, 1),
                ):
                    if isinstance(obj, Node):
                        nodes += sign
                    elif isinstance(obj, Pod) and not obj.is_terminal:
                        running += sign * bool(obj.node_name)
                        pending += sign * (not obj.node_name)
                applied += 1
            for name, number in (
                ("at", at),
                ("nodes", nodes),
                ("running", running),
                ("pending", pending),
            ):
                found[name].append(number)
        return found


KINDS_OF_MARKS = (PREEMPTION, REJECTION, NODE_LOSS)


def object_changes(lines: Iterable[Line]) -> Iterator[ObjectChange]:
    """The changes of all objects, in order; what is observed late or twice is left out."""
    known: dict[tuple[str, str], KubeObject] = {}
    gone: set[str] = set()
    for line in lines:
        if line.call != "observe":
            continue
        struct = KINDS[line.kind].struct
        objects: list[KubeObject] = [msgspec.json.decode(raw, type=struct) for raw in line.objects]
        if line.news == "Listed":
            listed = {obj.key for obj in objects}
            missing = [k for k in known if k[0] == line.kind and k[1] not in listed]
            for key in missing:
                yield ObjectChange(line.at, known.pop(key), None)
        for obj in objects:
            key = (line.kind, obj.key)
            before = known.get(key)
            if line.news == "Deleted":
                gone.add(obj.uid)
                if before is not None and before.uid == obj.uid:
                    yield ObjectChange(line.at, known.pop(key), None)
            elif obj.uid not in gone or not obj.uid:
                if before is not None and (_version(obj) < _version(before) or obj == before):
                    continue
                known[key] = obj
                yield ObjectChange(line.at, before, obj)


def _version(obj: KubeObject) -> int:
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _mark(change: ObjectChange) -> Mark | None:
    before, after = change.before, change.after
    if isinstance(before, Node) and after is None:
        return Mark(change.at, NODE_LOSS, before.name, f"node {before.name} is gone")
    if isinstance(before, Node) and isinstance(after, Node):
        if state_of(after) & NOT_READY and not state_of(before) & NOT_READY:
            return Mark(change.at, NODE_LOSS, after.name, f"node {after.name} is not ready")
        return None
    if not isinstance(after, Pod):
        return None
    old = before if isinstance(before, Pod) else None
    if _is_preempted(after) and (old is None or not _is_preempted(old)):
        return Mark(change.at, PREEMPTION, after.key, f"{after.key} is preempted")
    message = _rejection(after)
    if message and (old is None or message != _rejection(old)):
        return Mark(change.at, REJECTION, after.key, f"{after.key}: {message}")
    return None


def _is_preempted(pod: Pod) -> bool:
    condition = pod.condition(DISRUPTION_TARGET)
    return condition is not None and condition.reason == BY_SCHEDULER


def _rejection(pod: Pod) -> str:
    condition = pod.condition("PodScheduled")
    if condition is None or condition.status != "False" or pod.node_name:
        return ""
    return condition.message or condition.reason
