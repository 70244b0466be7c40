"""Cluster: everything that a decision may look at: the node table and the other objects.

The core writes it as observations come in; plugins read it through their CycleState.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from moorage.api.meta import KubeObject
from moorage.framework.waiting import WaitingPod
from moorage.nodes.table import NodeTable

T = TypeVar("T", bound=KubeObject)


@dataclass(slots=True)
class Cluster:
    """Nodes with their pods as a table, and objects of other kinds by key."""

    table: NodeTable = field(default_factory=NodeTable)
    # Grows with every change of an object that is neither a node nor a pod.
    version: int = 0
    # Pods that wait on permit, by UID.
    waiting: dict[str, WaitingPod] = field(default_factory=dict)
    _objects: dict[type[KubeObject], dict[str, KubeObject]] = field(default_factory=dict)

    def get(self, kind: type[T], key: str) -> T | None:
        """One object by `namespace/name`, or by name if it is cluster-scoped."""
        found = self._objects.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T]) -> Iterable[T]:
        """All objects of a kind."""
        return self._objects.get(kind, {}).values()  # type: ignore[return-value]  # keyed by kind

    def put(self, obj: KubeObject) -> None:
        """Add or replace an object."""
        self.version += 1
        self._objects.setdefault(type(obj), {})[obj.key] = obj

    def drop(self, obj: KubeObject) -> None:
        """Remove an object."""
        self.version += 1
        self._objects.get(type(obj), {}).pop(obj.key, None)
