"""RecordedChanges: what happened in a recorded run that the scheduler did not cause.

A recording also has the effects of the scheduler: bound pods, deleted victims, patched conditions,
and the reactions of kubelets and controllers. Those are left out, because another configuration has
other effects, and the simulation produces them itself. What remains are the changes from outside:
objects created, updated and deleted, with their times.

In a recording of a live cluster a pod that ends by itself gets the time that it ran as an
annotation, so that it runs as long wherever and whenever it is bound. A pod with the condition of
a preempted pod counts as evicted by the scheduler.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec
from moorage.api.server_requests import DeletePod, PodRef
from moorage.controllers.kubelet import RUN_SECONDS
from moorage.core.preemption import BY_SCHEDULER, DISRUPTION_TARGET
from moorage.expansion import children
from moorage.expansion.children import Key
from moorage.sim.trace import Line

# From the binding of a pod to its start, in simulations of recorded changes.
START_SECONDS = 1.0

# DELETE terminates a pod gracefully first; END removes it at once.
CREATE, UPDATE, DELETE, END = "create", "update", "delete", "end"


class RecordedChange(Struct, frozen=True):
    """A change that the scheduler did not cause."""

    at: float
    verb: str
    obj: KubeObject


class RecordedChanges:
    """Extracts the changes from the lines of a recording."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.changes: list[RecordedChange] = []
        # The latest version of every object, by kind and key.
        self.known: dict[tuple[str, str], KubeObject] = {}
        # Pods that were pending: when each was created or first seen, and bound, and its node.
        self.created_at: dict[str, float] = {}
        self.bound_at: dict[str, float] = {}
        self.nodes: dict[str, str] = {}
        self.victims: list[str] = []
        # Pods that are being deleted, and how many replacements each owner will create.
        self._leaving: set[str] = set()
        self._expected: Counter[Key] = Counter()
        self._gone: set[str] = set()
        self._started_at: float | None = None
        # How long pods ran that ended by themselves, by UID.
        self._ran: dict[str, float] = {}
        for line in lines:
            self._follow(line)
        if self._ran:
            self.changes = [self._with_run_seconds(change) for change in self.changes]

    @property
    def beginning(self) -> list[KubeObject]:
        """The objects that existed when the first scheduler started."""
        return [change.obj for change in self.changes if self._is_beginning(change)]

    @property
    def later(self) -> list[RecordedChange]:
        """The changes after that."""
        return [change for change in self.changes if not self._is_beginning(change)]

    @property
    def placements(self) -> dict[str, str | None]:
        """Every pod that existed at the end, with its node."""
        return {
            obj.key: obj.node_name or None for obj in self.known.values() if isinstance(obj, Pod)
        }

    def _is_beginning(self, change: RecordedChange) -> bool:
        return change.verb == CREATE and change.at == self._started_at

    def _follow(self, line: Line) -> None:
        if self._started_at is None:
            self._started_at = line.at
        for effect in line.effects:
            if isinstance(effect.request, DeletePod):
                self._evicted(effect.request.pod)
        if line.call != "observe":
            return
        objects = [msgspec.json.decode(raw, type=KINDS[line.kind].struct) for raw in line.objects]
        if line.news == "Listed":
            self._listed(line, objects)
        for obj in objects:
            if line.news == "Deleted":
                self._deleted(line, obj)
            else:
                self._seen(line, obj)

    @property
    def waits(self) -> list[float]:
        """Seconds from the creation of each pod to its binding."""
        return [at - self.created_at[pod] for pod, at in self.bound_at.items()]

    def _evicted(self, ref: PodRef) -> None:
        self.victims.append(ref.key)
        pod = self.known.get((Pod.__name__, ref.key))
        if isinstance(pod, Pod) and ref.uid not in self._leaving:
            self._lose(pod)
        self._leaving.add(ref.uid)

    def _lose(self, pod: Pod) -> None:
        """Note a deletion that the simulation repeats by itself, with the replacement."""
        self._leaving.add(pod.uid)
        owner = children.owner_key(pod)
        if owner is not None and self.has_controller(pod):
            self._expected[owner] += 1

    def _listed(self, line: Line, objects: Iterable[KubeObject]) -> None:
        """Treat objects that are missing from a list as deleted."""
        listed = {obj.key for obj in objects}
        for kind, key in list(self.known):
            if kind == line.kind and key not in listed:
                self._deleted(line, self.known[kind, key])

    def _seen(self, line: Line, obj: KubeObject) -> None:
        known_as = (line.kind, obj.key)
        before = self.known.get(known_as)
        if obj.uid in self._gone or (before is not None and _version(obj) < _version(before)):
            return
        self.known[known_as] = obj
        if before is None or before.uid != obj.uid:
            if isinstance(obj, Pod) and not obj.node_name:
                self.created_at[obj.key] = line.at
            if not (isinstance(obj, Pod) and self._is_replacement(obj)):
                self.changes.append(RecordedChange(line.at, CREATE, obj))
        elif not isinstance(obj, Pod):
            if _content(obj) != _content(before):
                self.changes.append(RecordedChange(line.at, UPDATE, obj))
        else:
            self._pod_changed(line, obj, before)

    def _pod_changed(self, line: Line, pod: Pod, before: KubeObject) -> None:
        assert isinstance(before, Pod)
        if pod.node_name and not before.node_name:
            self.bound_at[pod.key], self.nodes[pod.key] = line.at, pod.node_name
        if pod.is_terminating and not before.is_terminating:
            self._leave(line, pod)
        elif _spec_of(pod) != _spec_of(before):
            self.changes.append(RecordedChange(line.at, UPDATE, pod))

    def _deleted(self, line: Line, obj: KubeObject) -> None:
        if obj.uid in self._gone:
            return
        self._gone.add(obj.uid)
        self.known.pop((line.kind, obj.key), None)
        if isinstance(obj, Pod):
            self._leave(line, obj)
        else:
            self.changes.append(RecordedChange(line.at, DELETE, obj))

    def _leave(self, line: Line, pod: Pod) -> None:
        """Note the deletion of a pod, unless the scheduler, the node or its end is the cause."""
        ends_itself = RUN_SECONDS in pod.metadata.annotations and pod.node_name
        if pod.uid in self._leaving or ends_itself:
            return
        if _is_preempted(pod):
            self._evicted(PodRef.of(pod))
            return
        if pod.is_terminal and not pod.is_terminating and pod.key in self.bound_at:
            self._leaving.add(pod.uid)
            self._ran[pod.uid] = line.at - self.bound_at[pod.key]
            return
        if pod.node_name and (Node.__name__, pod.node_name) not in self.known:
            self._lose(pod)
            return
        self._leaving.add(pod.uid)
        verb = DELETE if pod.is_terminating or not pod.node_name else END
        self.changes.append(RecordedChange(line.at, verb, pod))

    def _with_run_seconds(self, change: RecordedChange) -> RecordedChange:
        obj = change.obj
        if not isinstance(obj, Pod) or obj.uid not in self._ran:
            return change
        seconds = max(self._ran[obj.uid] - START_SECONDS, 0.0)
        annotations = {**obj.metadata.annotations, RUN_SECONDS: f"{seconds:.6f}"}
        return replace(
            change, obj=replace(obj, metadata=replace(obj.metadata, annotations=annotations))
        )

    def _is_replacement(self, pod: KubeObject) -> bool:
        """Whether a controller created a pod only to replace an evicted or lost one."""
        owner = children.owner_key(pod)
        if owner is None or not self._expected[owner]:
            return False
        self._expected[owner] -= 1
        return True

    def has_controller(self, pod: Pod) -> bool:
        """Whether the recording has the controller that replaces a pod."""
        owner = children.owner_key(pod)
        if owner is None:
            return False
        kind, namespace, name = owner
        spec = getattr(self.known.get((kind, f"{namespace}/{name}")), "spec", None)
        return getattr(spec, "template", None) is not None


def _is_preempted(pod: Pod) -> bool:
    condition = pod.condition(DISRUPTION_TARGET)
    return condition is not None and condition.reason == BY_SCHEDULER


def _version(obj: KubeObject) -> int:
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _content(obj: KubeObject) -> KubeObject:
    return replace(obj, metadata=replace(obj.metadata, resource_version="", generation=0))


def _spec_of(pod: Pod) -> tuple[PodSpec, Any, Any]:
    """The parts of a pod that only users change."""
    return replace(pod.spec, node_name=""), pod.labels, pod.metadata.annotations
