"""UnschedulablePool: pods that wait for a change, findable by the plugins that could be cured.

Most changes concern few plugins, and a pool may hold tens of thousands of pods; so pods are listed
under each plugin that refused them, and a change only visits the lists of those it may interest.
"""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from moorage.core.heap import Heap
from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError

# The list of pods that nobody speaks for: any change at all may concern them.
ANYTHING = ""


@dataclass(frozen=True, slots=True)
class _Slot:
    """Where a pod is listed; kept, because its entry may have changed before it is taken out."""

    serial: int
    gated: bool
    plugins: tuple[str, ...]


class UnschedulablePool:
    """Pods in the order in which they came, refused and gated ones apart."""

    def __init__(self, schedulers: Collection[str]) -> None:
        self._schedulers = frozenset(schedulers)
        self._entries: dict[str, QueuedPod] = {}
        self._slots: dict[str, _Slot] = {}
        # Plugin -> serial -> pod; a gated pod is listed once, under the plugin that holds it.
        self._refused: dict[str, dict[int, QueuedPod]] = {}
        self._gated: dict[str, dict[int, QueuedPod]] = {}
        self._by_age: Heap[QueuedPod] = Heap()
        self._serial = 0

    def put(self, entry: QueuedPod) -> bool:
        """Put in a pod, or list it anew after a change; it keeps its place if it has one.

        Says whether that is news: the pod was not here, or not on this side of the gate.
        """
        slot = self._slots.get(entry.key)
        if slot is None:
            self._serial += 1
            serial = self._serial
            self._by_age.push(entry.key, entry, entry.resting_since)
        else:
            serial = slot.serial
            self._unlist(slot)
            self._by_age.update(entry.key, entry, entry.resting_since)
        self._entries[entry.key] = entry
        self._list(entry, _Slot(serial, entry.is_gated, self._concerned(entry)))
        return slot is None or slot.gated != entry.is_gated

    def discard(self, key: str) -> None:
        """Take a pod out, if it is in."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._unlist(slot)
            self._by_age.remove(key)
            del self._entries[key]

    def waiting_for(self, plugins: Iterable[str]) -> list[QueuedPod]:
        """The pods that these plugins refused or hold, in the order in which they came."""
        if not self._entries:
            return []
        found = dict(self._refused.get(ANYTHING, {}))
        for plugin in plugins:
            found.update(self._refused.get(plugin, {}))
            found.update(self._gated.get(plugin, {}))
        return [found[serial] for serial in sorted(found)]

    @property
    def oldest(self) -> QueuedPod | None:
        """The pod that has rested longest."""
        return self._by_age.peek() if self._by_age else None

    def resting_longer(self, max_seconds: float, now: float) -> list[QueuedPod]:
        """The pods that have rested too long, in the order in which they came."""
        oldest = self.oldest
        if oldest is None or not is_over(oldest, max_seconds, now):
            return []
        return [entry for entry in self if is_over(entry, max_seconds, now)]

    def get(self, key: str) -> QueuedPod | None:
        """The pod of that name, if it is in the pool."""
        return self._entries.get(key)

    @property
    def gated_count(self) -> int:
        return sum(map(len, self._gated.values()))

    def __contains__(self, key: str) -> bool:
        return key in self._entries

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self._entries.values()))

    def by_plugin(self) -> Iterator[tuple[str, Collection[QueuedPod]]]:
        """Who is refused or held by which plugin; a pod that several refuse comes several times."""
        for lists in (self._refused, self._gated):
            for plugin, entries in lists.items():
                if plugin != ANYTHING and entries:
                    yield plugin, entries.values()

    def _concerned(self, entry: QueuedPod) -> tuple[str, ...]:
        if entry.is_gated:
            return (entry.gating_plugin,)
        if entry.pod.spec.scheduler_name not in self._schedulers:
            return (ANYTHING,)
        return tuple(sorted(entry.unschedulable_plugins | entry.pending_plugins)) or (ANYTHING,)

    def _list(self, entry: QueuedPod, slot: _Slot) -> None:
        self._slots[entry.key] = slot
        lists = self._gated if slot.gated else self._refused
        for plugin in slot.plugins:
            lists.setdefault(plugin, {})[slot.serial] = entry

    def _unlist(self, slot: _Slot) -> None:
        lists = self._gated if slot.gated else self._refused
        for plugin in slot.plugins:
            del lists[plugin][slot.serial]

    def check(self) -> None:
        """Raise InvariantError if a list does not say what the pods say."""
        refused: dict[str, dict[int, QueuedPod]] = {plugin: {} for plugin in self._refused}
        gated: dict[str, dict[int, QueuedPod]] = {plugin: {} for plugin in self._gated}
        for key, entry in self._entries.items():
            for plugin in self._concerned(entry):
                lists = gated if entry.is_gated else refused
                lists.setdefault(plugin, {})[self._slots[key].serial] = entry
        if (refused, gated) != (self._refused, self._gated):
            raise InvariantError("the unschedulable pool lists pods under the wrong plugins")
        serials = [self._slots[key].serial for key in self._entries]
        if serials != sorted(serials) or len(serials) != len(self._slots):
            raise InvariantError("the unschedulable pool has lost the order of its pods")
        by_age = sorted(self._entries.values(), key=lambda entry: entry.resting_since)
        if [e.resting_since for e in self._by_age] != [e.resting_since for e in by_age]:
            raise InvariantError("the unschedulable pool has lost the age of its pods")


def is_over(entry: QueuedPod, max_seconds: float, now: float) -> bool:
    """Whether a pod has rested longer than that."""
    return entry.resting_since + max_seconds < now
