"""Stock: objects of a kind by group, found by the labels of a node, and counted for all nodes.

What is in stock follows the cluster's log of changes, so a question costs what has changed since
the last one, not what there is. Objects count as they will be once what was decided is done.
"""

from collections.abc import Callable, Hashable, Mapping
from typing import Generic, NamedTuple, TypeVar

from moorage import plugin as mp
from moorage.plugins.volume_binding.coverage import Coverage, Ints
from moorage.plugins.volume_binding.reach import Reach, Slot

T = TypeVar("T", bound=mp.KubeObject)

MOST_SHELVES = 64


class Place(NamedTuple):
    """Where an object is listed."""

    group: Hashable
    reach: Reach
    slots: tuple[Slot | None, ...]


class Shelf:
    """The objects of a group that suit a question, and how many of them reach each node."""

    def __init__(self, cluster: mp.Cluster, kind: type[mp.KubeObject]) -> None:
        self.coverage = Coverage(cluster)
        self.cursor = mp.Cursor(cluster.changes_of(kind))


class Stock(Generic[T]):
    """See the module."""

    def __init__(
        self,
        cluster: mp.Cluster,
        kind: type[T],
        group_of: Callable[[T], Hashable],
        reach_of: Callable[[T], Reach],
    ) -> None:
        self._cluster = cluster
        self._kind = kind
        self._group_of = group_of
        self._reach_of = reach_of
        self._cursor = mp.Cursor(cluster.changes_of(kind))
        self._places: dict[str, Place] = {}
        # Group -> a label of the node, or None -> keys.
        self._listed: dict[Hashable, dict[Slot | None, dict[str, None]]] = {}
        self._shelves: dict[Hashable, Shelf] = {}

    def near(self, group: Hashable, labels: Mapping[str, str]) -> list[T]:
        """Those of a group that may reach a node with these labels; each is to be asked."""
        self._refresh()
        listed = self._listed.get(group, {})
        keys = dict(listed.get(None, {}))
        if len(listed) > (None in listed):
            for slot in labels.items():
                keys.update(listed.get(slot, {}))
        return self._objects(keys)

    def all_of(self, group: Hashable) -> list[T]:
        """All of a group, by name."""
        self._refresh()
        listed = self._listed.get(group, {})
        return self._objects({key: None for keys in listed.values() for key in keys})

    def counts(self, group: Hashable, question: Hashable, suits: Callable[[T], bool]) -> Ints:
        """For every row, how many of a group suit a question and reach the node."""
        self._refresh()
        shelf = self._shelves.pop((group, question), None) or Shelf(self._cluster, self._kind)
        if len(self._shelves) >= MOST_SHELVES:
            del self._shelves[next(iter(self._shelves))]
        self._shelves[group, question] = shelf  # The latest used is the last to go.
        changed = shelf.cursor.changed()
        if changed is None:
            shelf.coverage = Coverage(self._cluster)
            changed = [key for keys in self._listed.get(group, {}).values() for key in keys]
        for key in dict.fromkeys(changed):
            place, obj = self._places.get(key), self._cluster.latest(self._kind, key)
            if place is not None and obj is not None and place.group == group and suits(obj):
                shelf.coverage.put(key, place.reach)
            else:
                shelf.coverage.drop(key)
        shelf.cursor.commit()
        return shelf.coverage.counts()

    def _objects(self, keys: Mapping[str, None]) -> list[T]:
        found = (self._cluster.latest(self._kind, key) for key in sorted(keys))
        return [obj for obj in found if obj is not None]

    def _refresh(self) -> None:
        if self._cursor.is_current:
            return
        changed = self._cursor.changed()
        if changed is None:
            self._places, self._listed, self._shelves = {}, {}, {}
            changed = [obj.key for obj in self._cluster.all(self._kind)]
        for key in dict.fromkeys(changed):
            self._list(key, self._cluster.latest(self._kind, key))
        self._cursor.commit()

    def _list(self, key: str, obj: T | None) -> None:
        before = self._places.pop(key, None)
        if before is not None:
            listed = self._listed[before.group]
            for slot in before.slots:
                listed[slot].pop(key, None)
                if not listed[slot]:
                    del listed[slot]
            if not listed:
                del self._listed[before.group]
        if obj is None:
            return
        reach = self._reach_of(obj)
        place = self._places[key] = Place(self._group_of(obj), reach, reach.slots or (None,))
        listed = self._listed.setdefault(place.group, {})
        for slot in place.slots:
            listed.setdefault(slot, {})[key] = None
