"""UnschedulablePods: pods that wait for a cluster event, indexed by the plugins that rejected them.

Most events concern few plugins, and there may be tens of thousands of such pods. So an event visits
only the pods that a plugin rejected which registered for it.
"""

from collections.abc import Callable, Collection, Iterable, Iterator

from msgspec import Struct

from moorage.api.pod import Pod
from moorage.core.heap import Heap
from moorage.core.queued_pod import QueuedPod
from moorage.errors import InvariantError

# The list of pods that no plugin rejected: any event may help them.
ANY_EVENT = ""


class _Slot(Struct, frozen=True, gc=False):
    """Where a pod is listed; kept, because the entry may change before it is removed."""

    serial: int
    gated: bool
    plugins: tuple[str, ...]
    aliases: frozenset[str]


class UnschedulablePods:
    """Pods in the order in which they came, rejected and gated ones apart."""

    def __init__(
        self, schedulers: Collection[str], aliases: Callable[[Pod], frozenset[str]]
    ) -> None:
        self._schedulers = frozenset(schedulers)
        self._aliases = aliases
        self.entries: dict[str, QueuedPod] = {}
        self._slots: dict[str, _Slot] = {}
        # Plugin -> serial -> pod, if there is any; a gated pod is listed once, under its gating
        # plugin.
        self._rejected: dict[str, dict[int, QueuedPod]] = {}
        self._gated: dict[str, dict[int, QueuedPod]] = {}
        # Alias -> the keys of the pods that have it.
        self._by_alias: dict[str, set[str]] = {}
        self._by_age: Heap[QueuedPod] = Heap()
        self._serial = 0

    def put(self, entry: QueuedPod) -> bool:
        """Add a pod, or list it again after a change; it keeps its position.

        Returns whether the pod is new here, or changed between rejected and gated.
        """
        key, gated, plugins = entry.key, entry.gating_plugin != "", self._plugins_of(entry)
        slot = self._slots.get(key)
        if slot is None:
            serial = self._serial = self._serial + 1
            self._by_age.push(key, entry, entry.unschedulable_since)
        else:
            serial = slot.serial
            self._unlist(key, slot)
            self._by_age.update(key, entry, entry.unschedulable_since)
        self.entries[key] = entry
        aliases = self._aliases(entry.pod)
        self._slots[key] = _Slot(serial, gated, plugins, aliases)
        for alias in aliases:
            self._by_alias.setdefault(alias, set()).add(key)
        lists = self._gated if gated else self._rejected
        for plugin in plugins:
            lists.setdefault(plugin, {})[serial] = entry
        return slot is None or slot.gated != gated

    def discard(self, key: str) -> None:
        """Remove a pod, if it is here."""
        slot = self._slots.pop(key, None)
        if slot is not None:
            self._unlist(key, slot)
            self._by_age.remove(key)
            del self.entries[key]

    def has_any(self, plugins: Iterable[str]) -> bool:
        """Whether one of these plugins rejected or gates a pod, or any event may help one."""
        rejected = self._rejected.keys()
        if ANY_EVENT in rejected or not rejected.isdisjoint(plugins):
            return True
        return not self._gated.keys().isdisjoint(plugins)

    def waiting_for(
        self, plugins: Iterable[str], names: Collection[str] | None = None
    ) -> list[QueuedPod]:
        """The pods that these plugins rejected or gate, in the order in which they came.

        With names, only those of them with such a key or alias, and the pods that any event may
        help.
        """
        if not self.entries:
            return []
        rejected, gated = self._rejected, self._gated
        found = dict(rejected.get(ANY_EVENT, {}))
        if names is not None:
            listed = set(plugins)
            keys = set(names).union(*[self._by_alias.get(name, ()) for name in names])
            for key in keys:
                slot = self._slots.get(key)
                if slot is not None and not listed.isdisjoint(slot.plugins):
                    found[slot.serial] = self.entries[key]
            return [found[serial] for serial in sorted(found)]
        for plugin in plugins:
            if plugin in rejected:
                found.update(rejected[plugin])
            if plugin in gated:
                found.update(gated[plugin])
        return [found[serial] for serial in sorted(found)] if found else []

    @property
    def oldest(self) -> QueuedPod | None:
        """The pod that has waited longest."""
        return self._by_age.peek() if self._by_age else None

    def waiting_longer(self, max_seconds: float, now: float) -> list[QueuedPod]:
        """The pods that have waited longer than that, in the order in which they came."""
        oldest = self.oldest
        if oldest is None or oldest.unschedulable_since + max_seconds >= now:
            return []
        return [entry for entry in self if entry.unschedulable_since + max_seconds < now]

    @property
    def gated_count(self) -> int:
        return sum(map(len, self._gated.values()))

    def __len__(self) -> int:
        return len(self.entries)

    def __iter__(self) -> Iterator[QueuedPod]:
        return iter(list(self.entries.values()))

    def by_plugin(self) -> Iterator[tuple[str, Collection[QueuedPod]]]:
        """The pods under each plugin that rejected or gates them."""
        for lists in (self._rejected, self._gated):
            for plugin, entries in lists.items():
                if plugin != ANY_EVENT:
                    yield plugin, entries.values()

    def _plugins_of(self, entry: QueuedPod) -> tuple[str, ...]:
        if entry.is_gated:
            return (entry.gating_plugin,)
        if entry.pod.spec.scheduler_name not in self._schedulers:
            return (ANY_EVENT,)
        return tuple(sorted(entry.unschedulable_plugins | entry.pending_plugins)) or (ANY_EVENT,)

    def _unlist(self, key: str, slot: _Slot) -> None:
        lists = self._gated if slot.gated else self._rejected
        for plugin in slot.plugins:
            del lists[plugin][slot.serial]
            if not lists[plugin]:
                del lists[plugin]
        for alias in slot.aliases:
            self._by_alias[alias].discard(key)
            if not self._by_alias[alias]:
                del self._by_alias[alias]

    def check(self) -> None:
        """Raise InvariantError if an index disagrees with the pods."""
        rejected: dict[str, dict[int, QueuedPod]] = {}
        gated: dict[str, dict[int, QueuedPod]] = {}
        for key, entry in self.entries.items():
            for plugin in self._plugins_of(entry):
                lists = gated if entry.is_gated else rejected
                lists.setdefault(plugin, {})[self._slots[key].serial] = entry
        if (rejected, gated) != (self._rejected, self._gated):
            raise InvariantError("unschedulable pods are listed under the wrong plugins")
        aliases = {(alias, key) for key, slot in self._slots.items() for alias in slot.aliases}
        if aliases != {(alias, key) for alias, keys in self._by_alias.items() for key in keys}:
            raise InvariantError("unschedulable pods are listed under the wrong aliases")
        serials = [self._slots[key].serial for key in self.entries]
        if serials != sorted(serials) or len(serials) != len(self._slots):
            raise InvariantError("unschedulable pods are out of order")
        by_age = sorted(self.entries.values(), key=lambda entry: entry.unschedulable_since)
        if [e.unschedulable_since for e in self._by_age] != [e.unschedulable_since for e in by_age]:
            raise InvariantError("unschedulable pods are out of the order of their age")
