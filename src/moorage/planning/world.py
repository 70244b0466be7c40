"""World: what happened around the scheduler in a recorded run, without what it did itself.

A recording shows a scheduler's own deeds too: pods it bound, victims it deleted, conditions it
wrote, and what kubelets and controllers made of them. Those are left out, because another
configuration would act otherwise and a simulation brings them about by itself. What remains is
what came from outside: objects made, changed and deleted, and when.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod, PodSpec
from moorage.expansion import children
from moorage.expansion.children import Key
from moorage.framework.effects import DeletePod, PodRef
from moorage.sim.kubelet import RUN_SECONDS
from moorage.sim.trace import Line

# A pod that is deleted winds down first; one that is at its end is gone at once.
CREATE, UPDATE, DELETE, END = "create", "update", "delete", "end"


class Deed(Struct, frozen=True):
    """Something that somebody else than the scheduler did."""

    at: float
    verb: str
    obj: KubeObject


class World:
    """Follows a recording line by line."""

    def __init__(self, lines: Iterable[Line]) -> None:
        self.deeds: list[Deed] = []
        # The last that was seen of every object, by kind and key.
        self.known: dict[tuple[str, str], KubeObject] = {}
        self.bound_at: dict[str, float] = {}
        self.victims: list[str] = []
        # Pods on their way out, and how many of their owners' pods are to be made anew.
        self._leaving: set[str] = set()
        self._owed: Counter[Key] = Counter()
        self._gone: set[str] = set()
        self._started_at: float | None = None
        for line in lines:
            self._follow(line)

    @property
    def beginning(self) -> list[KubeObject]:
        """The objects that were there when the first scheduler started."""
        return [deed.obj for deed in self.deeds if self._is_beginning(deed)]

    @property
    def later(self) -> list[Deed]:
        """What was done after that."""
        return [deed for deed in self.deeds if not self._is_beginning(deed)]

    @property
    def placements(self) -> dict[str, str | None]:
        """Every pod that was left in the end, with its node."""
        return {
            obj.key: obj.node_name or None for obj in self.known.values() if isinstance(obj, Pod)
        }

    def _is_beginning(self, deed: Deed) -> bool:
        return deed.verb == CREATE and deed.at == self._started_at

    def _follow(self, line: Line) -> None:
        if self._started_at is None:
            self._started_at = line.at
        for effect in line.effects:
            if isinstance(effect.request, DeletePod):
                self._sent_away(effect.request.pod)
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

    def _sent_away(self, ref: PodRef) -> None:
        self.victims.append(ref.key)
        pod = self.known.get((Pod.__name__, ref.key))
        if isinstance(pod, Pod) and ref.uid not in self._leaving:
            self._lose(pod)
        self._leaving.add(ref.uid)

    def _lose(self, pod: Pod) -> None:
        """A pod goes by what a simulation brings about itself; so does its replacement."""
        self._leaving.add(pod.uid)
        owner = children.owner_key(pod)
        if owner is not None and self.keeps_up(pod):
            self._owed[owner] += 1

    def _listed(self, line: Line, objects: Iterable[KubeObject]) -> None:
        """What a list does not show any more is gone."""
        there = {obj.key for obj in objects}
        for kind, key in list(self.known):
            if kind == line.kind and key not in there:
                self._deleted(line, self.known[kind, key])

    def _seen(self, line: Line, obj: KubeObject) -> None:
        place = (line.kind, obj.key)
        before = self.known.get(place)
        if obj.uid in self._gone or (before is not None and _version(obj) < _version(before)):
            return
        self.known[place] = obj
        if before is None or before.uid != obj.uid:
            if not (isinstance(obj, Pod) and self._is_replacement(obj)):
                self.deeds.append(Deed(line.at, CREATE, obj))
        elif not isinstance(obj, Pod):
            if _content(obj) != _content(before):
                self.deeds.append(Deed(line.at, UPDATE, obj))
        else:
            self._pod_changed(line, obj, before)

    def _pod_changed(self, line: Line, pod: Pod, before: KubeObject) -> None:
        assert isinstance(before, Pod)
        if pod.node_name and not before.node_name:
            self.bound_at[pod.key] = line.at
        if pod.is_terminating and not before.is_terminating:
            self._leave(line, pod)
        elif _wanted(pod) != _wanted(before):
            self.deeds.append(Deed(line.at, UPDATE, pod))

    def _deleted(self, line: Line, obj: KubeObject) -> None:
        if obj.uid in self._gone:
            return
        self._gone.add(obj.uid)
        self.known.pop((line.kind, obj.key), None)
        if isinstance(obj, Pod):
            self._leave(line, obj)
        else:
            self.deeds.append(Deed(line.at, DELETE, obj))

    def _leave(self, line: Line, pod: Pod) -> None:
        """A pod goes; unless its scheduler, node or own end is the reason, somebody deleted it."""
        ends_itself = RUN_SECONDS in pod.metadata.annotations and pod.node_name
        if pod.uid in self._leaving or ends_itself:
            return
        if pod.node_name and (Node.__name__, pod.node_name) not in self.known:
            self._lose(pod)
            return
        self._leaving.add(pod.uid)
        verb = DELETE if pod.is_terminating or not pod.node_name else END
        self.deeds.append(Deed(line.at, verb, pod))

    def _is_replacement(self, pod: KubeObject) -> bool:
        """Whether a controller made a pod only because another was sent away or lost."""
        owner = children.owner_key(pod)
        if owner is None or not self._owed[owner]:
            return False
        self._owed[owner] -= 1
        return True

    def keeps_up(self, pod: Pod) -> bool:
        """Whether a pod's controller was there to make it anew."""
        owner = children.owner_key(pod)
        if owner is None:
            return False
        kind, namespace, name = owner
        spec = getattr(self.known.get((kind, f"{namespace}/{name}")), "spec", None)
        return getattr(spec, "template", None) is not None


def _version(obj: KubeObject) -> int:
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _content(obj: KubeObject) -> KubeObject:
    return replace(obj, metadata=replace(obj.metadata, resource_version="", generation=0))


def _wanted(pod: Pod) -> tuple[PodSpec, Any, Any]:
    """What others than schedulers and kubelets may change of a pod."""
    return replace(pod.spec, node_name=""), pod.labels, pod.metadata.annotations


def deeds_by_time(deeds: Iterable[Deed]) -> Iterator[tuple[float, list[Deed]]]:
    """What was done at the same moment belongs together."""
    batch: list[Deed] = []
    for deed in deeds:
        if batch and deed.at != batch[0].at:
            yield batch[0].at, batch
            batch = []
        batch.append(deed)
    if batch:
        yield batch[0].at, batch
