"""Cluster: everything that a decision may look at: the node table and the other objects.

The core writes it as observations come in; plugins read it through their CycleState.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from msgspec import structs

from moorage.api.meta import KubeObject
from moorage.framework.assumed import Assumption, Assumptions
from moorage.framework.waiting import WaitingPod
from moorage.nodes.changes import KeyLog, RowLog
from moorage.nodes.table import NodeTable

T = TypeVar("T", bound=KubeObject)
D = TypeVar("D")


@dataclass(slots=True)
class Cluster:
    """Nodes with their pods as a table, and objects of other kinds by key."""

    table: NodeTable = field(default_factory=NodeTable)
    # Grows with every change of an object that is neither a node nor a pod.
    version: int = 0
    # Pods that wait on permit, by UID.
    waiting: dict[str, WaitingPod] = field(default_factory=dict)
    # Rows whose nominated pods changed.
    nomination_changes: RowLog = field(default_factory=RowLog)
    _objects: dict[type[KubeObject], dict[str, KubeObject]] = field(default_factory=dict)
    _versions: dict[type[KubeObject], int] = field(default_factory=dict)
    # Keys of objects that came, went or changed, for the kinds that somebody keeps track of.
    _logs: dict[type[KubeObject], KeyLog] = field(default_factory=dict)
    _derived: dict[Any, Any] = field(default_factory=dict)
    _assumed: Assumptions = field(default_factory=Assumptions)
    # By namespace, for the kinds that somebody asked for in this way.
    _by_namespace: dict[type[KubeObject], dict[str, dict[str, KubeObject]]] = field(
        default_factory=dict
    )

    def get(self, kind: type[T], key: str) -> T | None:
        """One object by `namespace/name`, or by name if it is cluster-scoped."""
        found = self._objects.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def latest(self, kind: type[T], key: str) -> T | None:
        """One object as it will be once what was decided is done, or else as it is."""
        future = self._assumed.get(kind, key)
        return future if isinstance(future, kind) else self.get(kind, key)

    def all(self, kind: type[T]) -> Iterable[T]:
        """All objects of a kind."""
        return self._objects.get(kind, {}).values()  # type: ignore[return-value]  # keyed by kind

    def in_namespace(self, kind: type[T], namespace: str) -> Iterable[T]:
        """All objects of a kind in one namespace."""
        listed = self._by_namespace.get(kind)
        if listed is None:
            listed = self._by_namespace[kind] = {}
            for obj in self.all(kind):
                listed.setdefault(obj.namespace, {})[obj.key] = obj
        return listed.get(namespace, {}).values()  # type: ignore[return-value]  # keyed by kind

    def version_of(self, kind: type[KubeObject]) -> int:
        """A number that grows when objects of a kind come, go, or change in more than version."""
        return self._versions.get(kind, 0)

    def changes_of(self, kind: type[KubeObject]) -> KeyLog:
        """The keys of objects of a kind that come, go or change, from the first question on."""
        log = self._logs.get(kind)
        if log is None:
            log = self._logs[kind] = KeyLog()
        return log

    def derived(self, make: Callable[["Cluster"], D]) -> D:
        """What somebody works out from the cluster and brings up to date by himself; made once."""
        found: D | None = self._derived.get(make)
        if found is None:
            found = self._derived[make] = make(self)
        return found

    # What is decided and not done yet

    def assume(self, obj: KubeObject, holder: str) -> None:
        """Let everybody see an object as it will be, for the sake of a pod (its UID).

        Raises AssumeError unless it was made from the very version that is known. Any news of the
        object ends it.
        """
        self._assumed.add(self.get(type(obj), obj.key), obj, holder)
        self._changed(type(obj), obj.key)

    def restore(self, obj: KubeObject) -> None:
        """Let everybody see an object as it is; a future made from another version stays."""
        if self._assumed.restore(obj):
            self._changed(type(obj), obj.key)

    def settle(self, obj: KubeObject) -> None:
        """What was assumed has been carried out: it stays until the news of it comes."""
        self._assumed.settle(obj)

    @property
    def assumed(self) -> Iterable[Assumption]:
        """All objects that are seen as they will be."""
        return self._assumed

    # For the core

    def put(self, obj: KubeObject) -> None:
        """Add or replace an object."""
        kind = type(obj)
        objects = self._objects.setdefault(kind, {})
        ended = self._assumed.news(obj)
        if ended or not _is_same(objects.get(obj.key), obj):
            self._changed(kind, obj.key)
        else:
            self.version += 1
        objects[obj.key] = obj
        if kind in self._by_namespace:
            self._by_namespace[kind].setdefault(obj.namespace, {})[obj.key] = obj

    def drop(self, obj: KubeObject) -> None:
        """Remove an object."""
        kind = type(obj)
        self._assumed.news(obj, gone=True)
        self._changed(kind, obj.key)
        self._objects.get(kind, {}).pop(obj.key, None)
        self._by_namespace.get(kind, {}).get(obj.namespace, {}).pop(obj.key, None)

    def _changed(self, kind: type[KubeObject], key: str) -> None:
        self.version += 1
        self._versions[kind] = self.version_of(kind) + 1
        if kind in self._logs:
            self._logs[kind].add(key)


def _is_same(old: KubeObject | None, new: KubeObject) -> bool:
    """Whether nothing changed but what a mere write changes, to fields that nobody here reads."""
    if old is None:
        return False
    before = structs.replace(
        old.metadata,
        resource_version=new.metadata.resource_version,
        generation=new.metadata.generation,
    )
    return structs.replace(old, metadata=before) == new
