"""An API server in memory: versions, conflicts, graceful deletion, ordered watches.

Every write takes the next resourceVersion of one counter and calls all watchers in order before it
returns. Delays and kubelets, which remove terminating pods, are not known here. Of finalizers only
those of device claims and jobs count: a simulation has no controllers that remove others.
"""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from moorage.api.kinds import KINDS, Kind
from moorage.api.meta import Condition, KubeObject, ObjectMeta
from moorage.api.pod import Pod, PodStatus
from moorage.api.policy import PriorityClass
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.sim import api_rules, refusals
from moorage.sim.clock import timestamp
from moorage.sim.refusals import AlreadyExists

T = TypeVar("T", bound=KubeObject)
Watcher = Callable[[Observation], None]

KIND_OF: dict[type[KubeObject], Kind] = {kind.struct: kind for kind in KINDS.values()}
DEFAULT_NAMESPACE = "default"
MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


class MemoryCluster:
    """Objects by kind and key, as an API server keeps them."""

    def __init__(self) -> None:
        self.version = 0
        self._created = 0
        self._uids: set[str] = set()
        self._objects: dict[type[KubeObject], dict[str, KubeObject]] = {k: {} for k in KIND_OF}
        self._watchers: list[Watcher] = []
        self._active_watchers: list[Watcher] = []
        self._refusal: Callable[[KubeObject], str] = lambda _: ""

    def admit_by(self, refusal: Callable[[KubeObject], str]) -> None:
        """Call a function with every new object; a text that it returns refuses the object."""
        self._refusal = refusal

    def watch(self, watcher: Watcher, *, active_pods_only: bool = False) -> None:
        """Call a watcher with every change from now on.

        With `active_pods_only` it sees what a scheduler's field selector shows: a pod that has
        Succeeded or Failed is gone for it.
        """
        (self._active_watchers if active_pods_only else self._watchers).append(watcher)

    def get(self, kind: type[T], key: str) -> T | None:
        """One object by `namespace/name`, or by name if it is cluster-scoped."""
        found = self._objects[kind].get(key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T]) -> Iterable[T]:
        """All objects of a kind, oldest first."""
        return self._objects[kind].values()  # type: ignore[return-value]  # keyed by kind

    def count(self, kind: type[KubeObject]) -> int:
        """How many objects of a kind there are."""
        return len(self._objects[kind])

    def active(self, kind: type[T]) -> tuple[T, ...]:
        """All objects of a kind that a scheduler observes."""
        return tuple(obj for obj in self.all(kind) if _is_active(obj))

    def existing(self, kind: type[T], key: str, uid: str) -> T:
        """The object with that name and UID; refused if there is none."""
        obj, plural = self.get(kind, key), KIND_OF[kind].plural
        if obj is None:
            raise refusals.not_found(plural, _name_of(key))
        refusals.check_uid(plural, obj, uid)
        return obj

    def create(self, obj: T, now: float) -> T:
        """Store an object; a missing name, UID and creation time are filled in."""
        kind = KIND_OF[type(obj)]
        obj = replace(obj, metadata=self._new_meta(obj.metadata, kind, now))
        if obj.key in self._objects[type(obj)]:
            raise AlreadyExists(f'{kind.plural} "{obj.name}" already exists')
        if why := self._refusal(obj):
            raise refusals.forbidden(kind, obj.name, why)
        self._uids.add(obj.uid)
        return self._put(None, api_rules.initialized(obj, now))

    def merged(self, obj: T) -> T:
        """The object as an update would store it, with the fields that only the server sets.

        An empty status keeps the old one, so that a manifest can be applied again. Refused for a
        resourceVersion or UID that is not the latest.
        """
        kind = KIND_OF[type(obj)]
        if kind.namespaced and not obj.namespace:
            obj = replace(obj, metadata=replace(obj.metadata, namespace=DEFAULT_NAMESPACE))
        old = self.get(type(obj), obj.key)
        if old is None:
            raise refusals.not_found(kind.plural, obj.name)
        if obj.metadata.resource_version not in ("", old.metadata.resource_version):
            raise refusals.cannot_be_fulfilled(kind.plural, obj.name, MODIFIED)
        refusals.check_uid(kind.plural, old, obj.uid or old.uid)
        if isinstance(old, Pod) and isinstance(obj, Pod):
            api_rules.check_pod_update(old, obj)
        if isinstance(old, PriorityClass) and isinstance(obj, PriorityClass):
            api_rules.check_class_update(old, obj)
        return _merged(old, obj)

    def update(self, obj: T) -> T:
        """Replace an object; see `merged`."""
        new = self.merged(obj)
        old = self._objects[type(new)][new.key]
        meta = replace(
            new.metadata,
            resource_version=old.metadata.resource_version,
            generation=old.metadata.generation + (_spec(old) != _spec(new)),
        )
        new = replace(new, metadata=meta)
        return new if new == old else self._store(old, new)

    def write(self, obj: T) -> T:
        """Replace an object as a whole, with its status; an equal one is not written.

        An object that is being deleted, and has no finalizer any more, is removed.
        """
        old = self._objects[type(obj)][obj.key]
        if api_rules.is_protected(old) and api_rules.is_finished(obj):
            self.remove(obj)
            return obj
        return obj if obj == old else self._store(old, obj)

    def delete(
        self, kind: type[KubeObject], key: str, now: float, grace_seconds: int | None = None
    ) -> None:
        """Delete an object; a pod on a node becomes terminating, its kubelet removes it.

        So does an allocated device claim; its controller removes it when no pod uses it.
        """
        old = self.get(kind, key)
        if old is None:
            raise refusals.not_found(KIND_OF[kind].plural, _name_of(key))
        if isinstance(old, Pod) and (grace := api_rules.grace_seconds(old, grace_seconds)) > 0:
            if not old.is_terminating:
                self._store(old, api_rules.terminating(old, grace, now))
        elif api_rules.is_protected(old):
            meta = old.metadata
            if meta.deletion_timestamp is None or meta.deletion_grace_period_seconds:
                self._store(old, api_rules.terminating(old, 0, now))
        else:
            self.remove(old)

    def remove(self, obj: KubeObject) -> None:
        """Remove an object at once."""
        self.version += 1
        last = self._objects[type(obj)].pop(obj.key)
        self._notify(Deleted(last), visible=_is_active(last))

    def bind(self, key: str, uid: str, node: str, now: float) -> Pod:
        """Bind a pod to a node. As in Kubernetes, the node need not exist."""
        pod = self.existing(Pod, key, uid)
        if why := api_rules.bind_problem(pod):
            raise refusals.cannot_be_fulfilled("pods/binding", pod.name, why)
        return self._store(pod, api_rules.bound(pod, node, now))

    def patch_status(
        self,
        key: str,
        uid: str,
        now: float,
        condition: Condition | None = None,
        nominated_node_name: str | UnsetType = UNSET,
    ) -> Pod:
        """Set a condition, a nominated node, or both."""
        pod = self.existing(Pod, key, uid)
        status = pod.status
        if condition is not None:
            conditions = api_rules.with_condition(status.conditions, condition, now)
            status = replace(status, conditions=conditions)
        if nominated_node_name is not UNSET:
            status = replace(status, nominated_node_name=nominated_node_name)
        return self.write_status(pod, status)

    def write_status(self, pod: Pod, status: PodStatus) -> Pod:
        """Replace a pod's status; an equal one is not written."""
        return pod if status == pod.status else self._store(pod, replace(pod, status=status))

    def _new_meta(self, meta: ObjectMeta, kind: Kind, now: float) -> ObjectMeta:
        self._created += 1
        return replace(
            meta,
            name=meta.name or f"{meta.generate_name}{self._created:05x}",
            namespace=(meta.namespace or DEFAULT_NAMESPACE) if kind.namespaced else "",
            uid=self._fresh_uid(meta.uid),
            creation_timestamp=meta.creation_timestamp or timestamp(now),
            generation=meta.generation or 1,
            resource_version=str(self.version + 1),
        )

    def _fresh_uid(self, requested: str) -> str:
        """The requested UID, unless an object has or had it."""
        number = self._created
        while not requested or requested in self._uids:
            requested = f"00000000-0000-4000-8000-{number:012x}"
            number += 1
        return requested

    def _store(self, old: KubeObject | None, new: T) -> T:
        meta = replace(new.metadata, resource_version=str(self.version + 1))
        return self._put(old, replace(new, metadata=meta))

    def _put(self, old: KubeObject | None, new: T) -> T:
        """Store an object that has the next version."""
        self.version += 1
        self._objects[type(new)][new.key] = new
        self._notify(Added(new) if old is None else Updated(new), visible=_is_active(new))
        if old is not None and _is_active(old) and not _is_active(new):
            self._notify_active(Deleted(old))
        return new

    def _notify(self, observation: Observation, *, visible: bool) -> None:
        for watcher in self._watchers:
            watcher(observation)
        if visible:
            self._notify_active(observation)

    def _notify_active(self, observation: Observation) -> None:
        for watcher in self._active_watchers:
            watcher(observation)


def _name_of(key: str) -> str:
    return key.rpartition("/")[2]


def _is_active(obj: KubeObject) -> bool:
    return not (isinstance(obj, Pod) and obj.is_terminal)


def _spec(obj: KubeObject) -> Any:
    return getattr(obj, "spec", None)


def _merged(old: T, new: T) -> T:
    before = old.metadata
    changes: dict[str, Any] = {
        "metadata": replace(
            new.metadata,
            uid=before.uid,
            creation_timestamp=before.creation_timestamp,
            deletion_timestamp=before.deletion_timestamp,
            deletion_grace_period_seconds=before.deletion_grace_period_seconds,
        )
    }
    if isinstance(old, Pod):
        changes["spec"] = replace(_spec(new), node_name=old.node_name)
    status = getattr(new, "status", None)
    if status is not None and status == type(status)():
        changes["status"] = getattr(old, "status", status)
    return replace(new, **changes)
