"""Children: which objects belong to which controller, as their owner references say.

An owner is told by kind, namespace and name. Its UID is not asked for: a manifest has none, and
the dump beside it that shows its pods has.
"""

from collections.abc import Container, Iterable
from typing import TypeVar

from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.selectors import Selector

T = TypeVar("T", bound=KubeObject)
Key = tuple[str, str, str]


def key_of(owner: KubeObject) -> Key:
    """How children name an owner: kind, namespace, name."""
    return type(owner).__name__, owner.namespace or "default", owner.name


def owner_key(obj: KubeObject) -> Key | None:
    """The owner that an object names; None for an orphan."""
    owner = obj.controller
    return None if owner is None else (owner.kind, obj.namespace or "default", owner.name)


class Children:
    """Objects by owner, and the pods that nobody owns."""

    def __init__(self, objects: Iterable[KubeObject] = ()) -> None:
        self._by_owner: dict[Key, dict[Key, KubeObject]] = {}
        self._orphans: dict[str, dict[Key, Pod]] = {}
        for obj in objects:
            self.put(obj)

    def put(self, obj: KubeObject) -> None:
        """Take in an object, or its newer version."""
        owner = owner_key(obj)
        if owner is not None:
            self._by_owner.setdefault(owner, {})[key_of(obj)] = obj
        elif isinstance(obj, Pod):
            self._orphans.setdefault(obj.namespace or "default", {})[key_of(obj)] = obj

    def drop(self, obj: KubeObject) -> None:
        """An object is gone."""
        owner = owner_key(obj)
        if owner is not None:
            self._by_owner.get(owner, {}).pop(key_of(obj), None)
        elif isinstance(obj, Pod):
            self._orphans.get(obj.namespace or "default", {}).pop(key_of(obj), None)

    def of(self, owner: KubeObject, kind: type[T]) -> list[T]:
        """The children of that kind, oldest first."""
        found = self._by_owner.get(key_of(owner), {}).values()
        return [obj for obj in found if isinstance(obj, kind)]

    def adoptable(self, owner: KubeObject, selector: Selector) -> list[Pod]:
        """Pods without an owner that a controller would take for its own."""
        orphans = self._orphans.get(owner.namespace or "default", {}).values()
        return [pod for pod in orphans if selector.matches(pod.labels)]

    def named(self, owner: KubeObject, names: Container[str]) -> list[Pod]:
        """Pods without an owner, in an owner's namespace, that have one of these names."""
        orphans = self._orphans.get(owner.namespace or "default", {}).values()
        return [pod for pod in orphans if pod.name in names]

    def of_replica_sets(self, deployment: KubeObject, selector: Selector) -> list[Pod]:
        """Pods of a deployment whose replica sets a dump left out."""
        _, namespace, name = key_of(deployment)
        found: list[Pod] = []
        for (kind, place, owner), children in self._by_owner.items():
            if kind == "ReplicaSet" and place == namespace and owner.rpartition("-")[0] == name:
                found += (
                    pod
                    for pod in children.values()
                    if isinstance(pod, Pod) and selector.matches(pod.labels)
                )
        return found


def live(pods: Iterable[Pod]) -> list[Pod]:
    """Those that count: neither ended nor on their way out."""
    return [pod for pod in pods if not pod.is_terminal and not pod.is_terminating]
