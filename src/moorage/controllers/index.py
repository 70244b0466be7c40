"""ObjectIndex: all objects of the store by kind, namespace, owner and node.

It is updated from changes and keeps the dicts of the store, so it costs little more than its keys.
"""

from collections.abc import Iterable, Iterator
from typing import Any, Protocol, TypeVar

import msgspec

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.selectors import Selector
from moorage.controllers import objects, pods
from moorage.controllers.objects import Object

Key = tuple[str, str, str]  # kind, namespace, name
Task = tuple[str, Key]  # the name of a controller, and the object that it reconciles
WORKLOAD = "workload"
KeysBy = dict[Any, dict[Key, None]]  # ordered sets of keys
T = TypeVar("T", bound=KubeObject)

# The kinds of controllers, which have a group, and the structs of those that are read as structs.
STRUCTS: dict[str, type[KubeObject]] = {
    f"{kind.group}/{kind.name}" if kind.group else kind.name: kind.struct for kind in KINDS.values()
}
KIND_OF = {struct: kind for kind, struct in STRUCTS.items()}


def key_of(obj: Object) -> Key:
    meta = obj["metadata"]
    return objects.kind_of(obj), str(meta.get("namespace", "")), str(meta.get("name", ""))


def _place(obj: Object) -> tuple[Any, ...]:
    """What decides which sets an object of a key belongs to."""
    meta = obj["metadata"]
    return meta.get("uid"), meta.get("ownerReferences"), objects.spec(obj).get("nodeName")


class StructReader(Protocol):
    """Objects as structs, by type and key."""

    def get(self, kind: type[T], key: str) -> T | None: ...
    def all(self, kind: type[T]) -> Iterable[T]: ...


class ObjectIndex:
    """See the module."""

    def __init__(self) -> None:
        self._objects: dict[Key, Object] = {}
        self._kinds: KeysBy = {}
        self._namespaces: KeysBy = {}
        self._uids: dict[str, Key] = {}
        self._sets: dict[Key, list[dict[Key, None]]] = {}  # the sets that contain a key
        self._dependents: KeysBy = {}
        self._controlled: KeysBy = {}
        self._orphans: KeysBy = {}
        self._on_node: KeysBy = {}
        self._structs: dict[Key, KubeObject] = {}
        # Why an object could not be created, by the task that wanted to.
        self.failures: dict[Task, str] = {}

    def failure(self, workload: Object) -> str:
        """Why an object of a workload could not be created; empty if all could."""
        return self.failures.get((WORKLOAD, key_of(workload)), "")

    def put(self, obj: Object) -> Object | None:
        """Add or replace an object; returns the object before."""
        key = key_of(obj)
        old = self._objects.get(key)
        self._structs.pop(key, None)
        if old is not None and _place(old) == _place(obj):
            for members in self._sets[key]:
                del members[key]  # The order is that of changes.
                members[key] = None
        else:
            self._drop(key)
            sets = self._sets[key] = []
            for keys, value in self._entries(key, obj):
                members = keys.setdefault(value, {})
                members[key] = None
                sets.append(members)
            self._uids[objects.uid(obj)] = key
        self._objects[key] = obj
        return old

    def drop(self, obj: Object) -> Object | None:
        """Remove the object of that key; returns it."""
        return self._drop(key_of(obj))

    def _drop(self, key: Key) -> Object | None:
        old = self._objects.pop(key, None)
        if old is not None:
            self._structs.pop(key, None)
            del self._sets[key]
            for keys, value in self._entries(key, old):
                members = keys.get(value, {})
                members.pop(key, None)
                if not members:
                    keys.pop(value, None)
            self._uids.pop(objects.uid(old), None)
        return old

    def _entries(self, key: Key, obj: Object) -> Iterator[tuple[KeysBy, Any]]:
        """The sets of keys that the object belongs to."""
        kind, namespace, _ = key
        yield self._kinds, kind
        if namespace:
            yield self._kinds, (kind, namespace)
            yield self._namespaces, namespace
        for owner in objects.owners(obj):
            yield self._dependents, owner.get("uid", "")
        controller = objects.controller(obj)
        if controller is None:
            yield self._orphans, (kind, namespace)
        else:
            yield self._controlled, (kind, controller.get("uid", ""))
        if kind == "Pod":
            yield self._on_node, pods.node_name(obj)

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return self._objects.get((kind, namespace, name))

    def by_uid(self, uid: str) -> Object | None:
        key = self._uids.get(uid)
        return None if key is None else self._objects[key]

    def all(self, kind: str, namespace: str = "") -> list[Object]:
        """All objects of a kind, oldest change first; of one namespace if given."""
        return self._members(self._kinds, (kind, namespace) if namespace else kind)

    def count(self, kind: str) -> int:
        return len(self._kinds.get(kind, ()))

    def in_namespace(self, namespace: str) -> list[Object]:
        """All objects of a namespace."""
        return self._members(self._namespaces, namespace)

    def dependents(self, uid: str) -> list[Object]:
        """The objects with an owner reference to this UID."""
        return self._members(self._dependents, uid)

    def controlled(self, kind: str, uid: str) -> list[Object]:
        """The objects of a kind whose controller has this UID."""
        return self._members(self._controlled, (kind, uid))

    def orphans(self, kind: str, namespace: str, selector: Selector) -> list[Object]:
        """The objects of a kind without a controller that a selector matches."""
        found = self._members(self._orphans, (kind, namespace))
        return [obj for obj in found if selector.matches(objects.labels(obj))]

    def selected_pods(self, namespace: str, selector: Selector) -> list[Object]:
        """The pods of a namespace that a selector matches."""
        found = self.all("Pod", namespace)
        return [obj for obj in found if selector.matches(objects.labels(obj))]

    def pods_on(self, node: str) -> list[Object]:
        """The pods of a node; of "", the pods without a node."""
        return self._members(self._on_node, node)

    def _members(self, keys: KeysBy, value: Any) -> list[Object]:
        return [self._objects[key] for key in keys.get(value, ())]

    def struct(self, kind: type[T], obj: Object) -> T:
        """An object of the index as a struct; it is read once."""
        key = key_of(obj)
        known = self._structs.get(key)
        if known is None:
            known = self._structs[key] = msgspec.convert(obj, kind)
        assert isinstance(known, kind)
        return known


class StoredStructs:
    """The objects of an index as structs."""

    def __init__(self, index: ObjectIndex) -> None:
        self._index = index

    def get(self, kind: type[T], key: str) -> T | None:
        namespace, _, name = key.rpartition("/")
        found = self._index.get(KIND_OF[kind], namespace, name)
        return None if found is None else self._index.struct(kind, found)

    def all(self, kind: type[T]) -> list[T]:
        return [self._index.struct(kind, each) for each in self._index.all(KIND_OF[kind])]
