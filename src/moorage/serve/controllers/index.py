"""ObjectIndex: all objects of the store by kind, namespace, owner and node.

It is updated from changes and keeps the dicts of the store, so it costs little more than its keys.
"""

from collections.abc import Iterator
from typing import Any

from moorage.serve.controllers import objects, ownership, pods
from moorage.serve.controllers.objects import Object

Key = tuple[str, str, str]  # kind, namespace, name
KeysBy = dict[Any, dict[Key, None]]


def key_of(obj: Object) -> Key:
    return objects.kind_of(obj), objects.namespace(obj), objects.name(obj)


class ObjectIndex:
    """See the module."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._kinds: KeysBy = {}
        self._namespaces: KeysBy = {}
        self._uids: dict[str, Key] = {}
        self._dependents: KeysBy = {}
        self._controlled: KeysBy = {}
        self._orphans: KeysBy = {}
        self._on_node: KeysBy = {}

    # What happens to objects

    def put(self, obj: Object) -> Object | None:
        """An object is there, or has changed; returns what it was before."""
        key = key_of(obj)
        old = self._objects.get(key)
        if old is not None:
            self._unlink(key, old)
        self._objects[key] = obj
        self._link(key, obj)
        return old

    def drop(self, obj: Object) -> None:
        """An object is gone."""
        key = key_of(obj)
        old = self._objects.pop(key, None)
        if old is not None:
            self._unlink(key, old)

    def _link(self, key: Key, obj: Object) -> None:
        for index, place in self._places(key, obj):
            index.setdefault(place, {})[key] = None
        self._uids[objects.uid(obj)] = key

    def _unlink(self, key: Key, obj: Object) -> None:
        for index, place in self._places(key, obj):
            members = index.get(place, {})
            members.pop(key, None)
            if not members:
                index.pop(place, None)
        self._uids.pop(objects.uid(obj), None)

    def _places(self, key: Key, obj: Object) -> Iterator[tuple[KeysBy, Any]]:
        kind, namespace, _ = key
        yield self._kinds, kind
        if namespace:
            yield self._namespaces, namespace
        for owner in ownership.owners(obj):
            yield self._dependents, owner.get("uid", "")
        controller = ownership.controller(obj)
        if controller is None:
            yield self._orphans, (kind, namespace)
        else:
            yield self._controlled, (kind, controller.get("uid", ""))
        if kind == "Pod":
            yield self._on_node, pods.node_name(obj)

    # What may be asked

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._objects.get((kind, namespace, name))

    def by_uid(self, uid: str) -> Object | None:
        key = self._uids.get(uid)
        return None if key is None else self._objects[key]

    def all(self, kind: str, namespace: str = "") -> list[Object]:
        """All objects of a kind, in the order in which they came; of one namespace if given."""
        found = [self._objects[key] for key in self._kinds.get(kind, ())]
        return [obj for obj in found if objects.namespace(obj) == namespace] if namespace else found

    def count(self, kind: str) -> int:
        return len(self._kinds.get(kind, ()))

    def within(self, namespace: str) -> list[Object]:
        """Everything that lives in a namespace."""
        return [self._objects[key] for key in self._namespaces.get(namespace, ())]

    def dependents(self, uid: str) -> list[Object]:
        """Objects that name this one among their owners."""
        return [self._objects[key] for key in self._dependents.get(uid, ())]

    def controlled(self, kind: str, uid: str) -> list[Object]:
        """Objects of a kind whose controller this is."""
        return [self._objects[key] for key in self._controlled.get((kind, uid), ())]

    def orphans(self, kind: str, namespace: str) -> list[Object]:
        """Objects of a kind that nobody controls."""
        return [self._objects[key] for key in self._orphans.get((kind, namespace), ())]

    def pods_on(self, node: str) -> list[Object]:
        """The pods of a node; of no node, those that wait for one."""
        return [self._objects[key] for key in self._on_node.get(node, ())]
