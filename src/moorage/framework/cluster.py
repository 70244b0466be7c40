"""Cluster: everything that a decision may look at: the node table and the other objects.

The core writes it as observations come in; plugins read it through their CycleState.

Between the decision to give a volume to a claim and the confirmation, all others have to see the
volume as taken. So an object's future version can be assumed: it hides the known one for as long as
that is the version from which it was made.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple, TypeVar

from msgspec import structs

from moorage.api.config import durations
from moorage.api.devices import DeviceClass
from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.api.node import Node
from moorage.api.pod import Pod
from moorage.errors import MoorageError
from moorage.framework.status import SUCCESS, Status, error, unschedulable
from moorage.nodes.changes import KeyLog, RowLog
from moorage.nodes.info import NodeInfo
from moorage.nodes.table import NodeTable

T = TypeVar("T", bound=KubeObject)
D = TypeVar("D")


class AssumeError(MoorageError):
    """An object that is not there, or not in the version from which its future was made."""


class AssumedUntil(Enum):
    """What ends the assumption of an object's future."""

    CHANGED = "the object has another version than the one from which the future was made"
    RELEASED = "it is released, whatever versions of the object come: it takes several writes"
    OBSERVED = "the version that was written is observed, or a later one"


@dataclass(slots=True)
class Assumption:
    """An object's future, and the pod for which it is assumed; empty once it was carried out."""

    obj: KubeObject
    holder: str
    until: AssumedUntil = AssumedUntil.CHANGED


@dataclass(slots=True)
class WaitingPod:
    """A pod for which permit plugins returned `wait`, with the deadline of each of them.

    Plugins allow or reject it; the first signal wins, and the core acts on it in its next step.
    """

    pod: Pod
    node: str
    until: dict[str, float]
    signal: Status | None = None

    @property
    def plugins(self) -> list[str]:
        """The plugins that have not allowed it yet."""
        return list(self.until)

    @property
    def deadline(self) -> float:
        """When the first of them times out."""
        return min(self.until.values())

    def allow(self, plugin: str) -> None:
        """One plugin allows the pod; binding continues when all have."""
        if self.signal is None:
            self.until.pop(plugin, None)
            if not self.until:
                self.signal = SUCCESS

    def reject(self, plugin: str, reason: str) -> bool:
        """Reject the pod; False if it was already allowed or rejected."""
        return self._signal(unschedulable(reason).by(plugin))

    def preempt(self, reason: str) -> bool:
        """Reject the pod for a preempting one; False if it was already allowed or rejected."""
        return self._signal(error(f"waiting on permit for pod: {reason}"))

    def expire(self, now: float, started_at: float) -> None:
        """Reject the pod if a plugin's timeout is over."""
        plugin, until = min(self.until.items(), key=lambda item: item[1], default=("", now))
        if plugin and until <= now:
            # Whole microseconds: the resolution of a float clock that counts from 1970.
            waited = durations.text(round(until - started_at, 6))
            reason = f"rejected due to timeout after waiting {waited} at plugin {plugin}"
            self.reject(plugin, reason)

    def _signal(self, status: Status) -> bool:
        if self.signal is not None:
            return False
        self.signal = status
        return True


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
    # Keys of objects that came, went or changed, for the kinds that are tracked.
    _logs: dict[type[KubeObject], KeyLog] = field(default_factory=dict)
    _derived: dict[Any, Any] = field(default_factory=dict)
    _assumed: dict[tuple[type[KubeObject], str], Assumption] = field(default_factory=dict)
    # Objects that were held and no longer are: as they were assumed, and as they are.
    _released: list[tuple[KubeObject, KubeObject | None]] = field(default_factory=list)
    # By namespace, for the kinds that were read in this way.
    _by_namespace: dict[type[KubeObject], dict[str, dict[str, KubeObject]]] = field(
        default_factory=dict
    )

    def get(self, kind: type[T], key: str) -> T | None:
        """One object by `namespace/name`, or by name if it is cluster-scoped."""
        found = self._objects.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def latest(self, kind: type[T], key: str) -> T | None:
        """One object as it will be once what was decided is done, or else as it is."""
        future = self._assumed.get((kind, key))
        return future.obj if future is not None else self.get(kind, key)  # type: ignore[return-value]

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
        """A structure derived from the cluster, which keeps itself up to date; made once."""
        found: D | None = self._derived.get(make)
        if found is None:
            found = self._derived[make] = make(self)
        return found

    # Decided and not done yet

    def assume(self, obj: KubeObject, holder: str) -> None:
        """Show an object as it will be, on behalf of a pod (its UID).

        Raises AssumeError unless it was made from the version that is known. A newer version of the
        object ends the assumption.
        """
        kind = type(obj)
        known = self.get(kind, obj.key)
        if known is None:
            raise AssumeError(f'{KINDS[kind.__name__].plural} "{obj.key}" not found')
        stored, assumed = _version(known), _version(obj)
        if stored != assumed:
            text = f'"{obj.key}" is out of sync (stored: {stored}, assume: {assumed})'
            raise AssumeError(text)
        self._assumed[kind, obj.key] = Assumption(obj, holder)
        self._changed(kind, obj.key)

    def hold(self, obj: KubeObject, holder: str) -> None:
        """Show an object as it will be until `written` or `release`, on behalf of a pod (its UID).

        Unlike an assumed object, it may not exist yet, and other versions of it may be observed.
        """
        self._assumed[type(obj), obj.key] = Assumption(obj, holder, AssumedUntil.RELEASED)
        self._changed(type(obj), obj.key)

    def is_held(self, kind: type[KubeObject], key: str) -> bool:
        """Whether an object is held."""
        found = self._assumed.get((kind, key))
        return found is not None and found.until is AssumedUntil.RELEASED

    def keep_held(self, kind: type[KubeObject], key: str) -> None:
        """The pod for which an object is held failed; what it wrote is being undone."""
        if self.is_held(kind, key):
            self._assumed[kind, key].holder = ""

    def written(self, obj: KubeObject) -> None:
        """A held object was written: show this version until it, or a later one, is observed."""
        kind, key = type(obj), obj.key
        if not self.is_held(kind, key):
            return  # It was deleted meanwhile.
        known = self.get(kind, key)
        if known is not None and _number(known) >= _number(obj):
            self.release(kind, key)
            return
        held = self._assumed[kind, key]
        self._assumed[kind, key] = Assumption(obj, "", AssumedUntil.OBSERVED)
        self._changed(kind, key)
        self._released.append((held.obj, obj))

    def release(self, kind: type[KubeObject], key: str) -> None:
        """Show a held object as it is."""
        if self.is_held(kind, key):
            held = self._assumed.pop((kind, key))
            self._changed(kind, key)
            self._released.append((held.obj, self.get(kind, key)))

    def take_released(self) -> list[tuple[KubeObject, KubeObject | None]]:
        """The objects that are no longer held since the last call."""
        released, self._released = self._released, []
        return released

    def restore(self, obj: KubeObject) -> None:
        """Show an object as it is; what is assumed from another version stays."""
        if self._assumption(obj) is not None:
            del self._assumed[type(obj), obj.key]
            self._changed(type(obj), obj.key)

    def settle(self, obj: KubeObject) -> None:
        """What was assumed has been carried out: it stays until the object's new version comes."""
        found = self._assumption(obj)
        if found is not None:
            found.holder = ""

    def _assumption(self, obj: KubeObject) -> Assumption | None:
        """What is assumed of an object, if it was made from the same version."""
        found = self._assumed.get((type(obj), obj.key))
        return found if found is not None and _version(found.obj) == _version(obj) else None

    @property
    def assumed(self) -> Iterable[Assumption]:
        """All objects that are shown as they will be."""
        return self._assumed.values()

    # For the core

    def put(self, obj: KubeObject) -> None:
        """Add or replace an object."""
        kind = type(obj)
        objects = self._objects.setdefault(kind, {})
        ended = None
        if self._ends_assumption(obj):
            ended = self._assumed.pop((kind, obj.key), None)
        if ended is not None or not _is_same(objects.get(obj.key), obj):
            self._changed(kind, obj.key)
        else:
            self.version += 1
        if isinstance(obj, DeviceClass):
            self._serve_resources(objects.get(obj.key), obj)
        objects[obj.key] = obj
        if kind in self._by_namespace:
            self._by_namespace[kind].setdefault(obj.namespace, {})[obj.key] = obj

    def drop(self, obj: KubeObject) -> None:
        """Remove an object."""
        kind = type(obj)
        self._assumed.pop((kind, obj.key), None)
        self._changed(kind, obj.key)
        old = self._objects.get(kind, {}).pop(obj.key, None)
        if isinstance(old, DeviceClass):
            self._serve_resources(old, None)
        self._by_namespace.get(kind, {}).get(obj.namespace, {}).pop(obj.key, None)

    def _ends_assumption(self, obj: KubeObject) -> bool:
        """Whether an observed version ends what is assumed of an object."""
        assumed = self._assumed.get((type(obj), obj.key))
        if assumed is None:
            return False
        known = self.get(type(obj), obj.key)
        if known is not None and known.uid != obj.uid:
            return True
        match assumed.until:
            case AssumedUntil.CHANGED:
                # Without versions an update looks the same as a repetition.
                return _version(assumed.obj) != _version(obj) or not _version(obj)
            case AssumedUntil.OBSERVED:
                return _number(obj) >= _number(assumed.obj)
        return False

    def _serve_resources(self, old: KubeObject | None, new: DeviceClass | None) -> None:
        """Device classes decide which extended resources devices serve; that concerns all rows."""
        resources, known = (
            self.table.device_resources,
            old if isinstance(old, DeviceClass) else None,
        )
        if new is not None:
            changed = resources.put(known, new)
        else:
            changed = known is not None and resources.drop(known)
        if changed:
            self.table.restart_readers()

    def _changed(self, kind: type[KubeObject], key: str) -> None:
        self.version += 1
        self._versions[kind] = self.version_of(kind) + 1
        if kind in self._logs:
            self._logs[kind].add(key)


def _version(obj: KubeObject) -> str:
    return obj.metadata.resource_version


def _number(obj: KubeObject) -> int:
    """The version as a number; 0 if it is none."""
    text = obj.metadata.resource_version
    return int(text) if text.isdecimal() else 0


def _is_same(old: KubeObject | None, new: KubeObject) -> bool:
    """Whether nothing changed but what a mere write changes, to fields that are not read here."""
    if old is None:
        return False
    before = structs.replace(
        old.metadata,
        resource_version=new.metadata.resource_version,
        generation=new.metadata.generation,
    )
    return structs.replace(old, metadata=before) == new


class Rejection(NamedTuple):
    """A reason that a plugin gave, the pod, and the nodes that it was given for."""

    reason: str
    pod: Pod
    nodes: list[NodeInfo]
    cluster: Cluster

    @property
    def all_nodes(self) -> list[Node]:
        """Every node of the cluster, whether it was rejected or not."""
        return [node for node in self.cluster.table.nodes if node is not None]

    def placed(self) -> Iterator[tuple[str, Pod]]:
        """Every pod that is on a node, with the node's name."""
        table = self.cluster.table
        for node in self.all_nodes:
            for placed in table.info(table.row_of[node.name]).placed().values():
                yield node.name, placed.pod
