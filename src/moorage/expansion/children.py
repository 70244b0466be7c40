"""Children: the objects of each controller, by owner references; ControllerActions.

An owner is identified by kind, namespace and name, not by UID: a manifest has no UIDs, while its
pods in a dump refer to one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.selectors import Selector

T = TypeVar("T", bound=KubeObject)
Key = tuple[str, str, str]


def key_of(owner: KubeObject) -> Key:
    """The key of an owner: kind, namespace, name."""
    return type(owner).__name__, owner.namespace or "default", owner.name


def owner_key(obj: KubeObject) -> Key | None:
    """The key of an object's owner; None for an orphan."""
    owner = obj.controller
    return None if owner is None else (owner.kind, obj.namespace or "default", owner.name)


class Children:
    """Objects by owner, and the pods without an owner."""

    def __init__(self, objects: Iterable[KubeObject] = ()) -> None:
        self._by_owner: dict[Key, dict[Key, KubeObject]] = {}
        self._orphans: dict[str, dict[Key, Pod]] = {}
        for obj in objects:
            self.put(obj)

    def put(self, obj: KubeObject) -> None:
        """Add an object, or its newer version."""
        owner = owner_key(obj)
        if owner is not None:
            self._by_owner.setdefault(owner, {})[key_of(obj)] = obj
        elif isinstance(obj, Pod):
            self._orphans.setdefault(obj.namespace or "default", {})[key_of(obj)] = obj

    def drop(self, obj: KubeObject) -> None:
        """Remove an object."""
        owner = owner_key(obj)
        if owner is not None:
            self._by_owner.get(owner, {}).pop(key_of(obj), None)
        elif isinstance(obj, Pod):
            self._orphans.get(obj.namespace or "default", {}).pop(key_of(obj), None)

    def of(self, owner: KubeObject, kind: type[T]) -> list[T]:
        """The children of a kind, oldest first."""
        found = self._by_owner.get(key_of(owner), {}).values()
        return [obj for obj in found if isinstance(obj, kind)]

    def orphans_near(self, owner: KubeObject) -> Iterable[Pod]:
        """The pods without an owner in the namespace of an owner."""
        return self._orphans.get(owner.namespace or "default", {}).values()

    def adoptable(self, owner: KubeObject, selector: Selector) -> list[Pod]:
        """Pods without an owner that a controller would adopt."""
        return [pod for pod in self.orphans_near(owner) if selector.matches(pod.labels)]

    def of_replica_sets(self, deployment: KubeObject, selector: Selector) -> list[Pod]:
        """Pods of a deployment whose replica sets are not in the dump."""
        _, namespace, name = key_of(deployment)
        return [
            pod
            for (kind, where, owner), children in self._by_owner.items()
            if kind == "ReplicaSet" and where == namespace and owner.rpartition("-")[0] == name
            for pod in children.values()
            if isinstance(pod, Pod) and selector.matches(pod.labels)
        ]


def live(pods: Iterable[Pod]) -> list[Pod]:
    """The pods that are neither terminal nor terminating."""
    return [pod for pod in pods if not pod.is_terminal and not pod.is_terminating]


@dataclass(slots=True)
class ControllerActions:
    """What a controller does now: the objects to create, the pods to delete."""

    create: Sequence[KubeObject] = ()
    delete: list[Pod] = field(default_factory=list)
