"""Objects: what is known of the kinds that are neither nodes nor pods, by kind and key.

Between the decision to give a volume to a claim and the confirmation, all others have to see the
volume as taken. So an object's future version can be assumed: it hides the known one for as long as
that is the version from which it was made.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeVar

from msgspec import structs

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.errors import MoorageError
from moorage.nodes.changes import KeyLog

T = TypeVar("T", bound=KubeObject)


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


@dataclass(slots=True, kw_only=True)
class Objects:
    """See the module."""

    # Grows with every change of an object.
    version: int = 0
    _objects: dict[type[KubeObject], dict[str, KubeObject]] = field(default_factory=dict)
    _versions: dict[type[KubeObject], int] = field(default_factory=dict)
    # Keys of objects that came, went or changed, for the kinds that are tracked.
    _logs: dict[type[KubeObject], KeyLog] = field(default_factory=dict)
    _assumed: dict[tuple[type[KubeObject], str], Assumption] = field(default_factory=dict)
    # Objects whose assumption or hold ended, until `take_released`: the version that was assumed or
    # held, and the observed one, None if the object is gone.
    released: list[tuple[KubeObject, KubeObject | None]] = field(default_factory=list)
    # By namespace, for the kinds that were read in this way.
    _by_namespace: dict[type[KubeObject], dict[str, dict[str, KubeObject]]] = field(
        default_factory=dict
    )

    def get(self, kind: type[T], key: str) -> T | None:
        """One object by `namespace/name`, or by name if it is cluster-scoped."""
        objects = self._objects.get(kind)
        return None if objects is None else objects.get(key)  # type: ignore[return-value]  # keyed by kind

    def latest(self, kind: type[T], key: str) -> T | None:
        """One object as it will be once what was decided is done, or else as it is."""
        future = self._assumed.get((kind, key))
        if future is not None:
            return future.obj  # type: ignore[return-value]  # keyed by kind
        objects = self._objects.get(kind)  # As `get`.
        return None if objects is None else objects.get(key)  # type: ignore[return-value]

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

    def is_being_undone(self, kind: type[KubeObject], key: str) -> bool:
        """Whether an object is held only because what was written is being undone."""
        return self.is_held(kind, key) and not self._assumed[kind, key].holder

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
        self.released.append((held.obj, obj))

    def release(self, kind: type[KubeObject], key: str) -> None:
        """Show a held object as it is."""
        if self.is_held(kind, key):
            held = self._assumed.pop((kind, key))
            self._changed(kind, key)
            self.released.append((held.obj, self.get(kind, key)))

    def take_released(self) -> list[tuple[KubeObject, KubeObject | None]]:
        """The objects that are no longer held since the last call."""
        released, self.released = self.released, []
        return released

    def restore(self, obj: KubeObject) -> None:
        """Show an object as it is; what is assumed from another version stays."""
        if (found := self._assumption(obj)) is not None:
            kind, key = type(obj), obj.key
            del self._assumed[kind, key]
            self._changed(kind, key)
            self.released.append((found.obj, self.get(kind, key)))

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
        objects[obj.key] = obj
        if kind in self._by_namespace:
            self._by_namespace[kind].setdefault(obj.namespace, {})[obj.key] = obj

    def drop(self, obj: KubeObject) -> None:
        """Remove an object."""
        kind = type(obj)
        assumed = self._assumed.get((kind, obj.key))
        # It may be of a new object of that name, of which no version was observed yet.
        if assumed is not None and assumed.obj.uid == obj.uid:
            del self._assumed[kind, obj.key]
        self._changed(kind, obj.key)
        self._objects.get(kind, {}).pop(obj.key, None)
        self._by_namespace.get(kind, {}).get(obj.namespace, {}).pop(obj.key, None)

    def _ends_assumption(self, obj: KubeObject) -> bool:
        """Whether an observed version ends what is assumed of an object."""
        assumed = self._assumed.get((type(obj), obj.key))
        if assumed is None:
            return False
        known = self.get(type(obj), obj.key)
        if known is not None and known.uid != obj.uid and known.uid == assumed.obj.uid:
            return True
        match assumed.until:
            case AssumedUntil.CHANGED:
                # Without versions an update looks the same as a repetition.
                return _version(assumed.obj) != _version(obj) or not _version(obj)
            case AssumedUntil.OBSERVED:
                return _number(obj) >= _number(assumed.obj)
        return False

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
