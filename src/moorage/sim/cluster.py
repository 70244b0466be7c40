"""An API server in memory: versions, conflicts, graceful deletion, ordered watches.

It keeps structs, for speed; the rules are those of `moorage.cluster.verbs`. Every write takes the
next resourceVersion of one counter and calls all watchers in order before it returns. Delays and
kubelets, which remove terminating pods, are not known here. Of finalizers only those of device
claims, jobs and storage count: a simulation has no controllers that remove others.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Protocol, TypeVar

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from moorage.api.kinds import KINDS, READ, Kind
from moorage.api.meta import Condition, KubeObject, ObjectMeta
from moorage.api.pod import Pod, PodStatus
from moorage.api.resource_claims import FINALIZER
from moorage.cluster import status_errors
from moorage.cluster.verbs import binding, delete, update
from moorage.controllers import job, storage_protection
from moorage.core.observations import Added, Deleted, Observation, Updated
from moorage.expansion.documents import RESOURCES
from moorage.sim import pod_states
from moorage.sim.clock import timestamp
from moorage.sim.pod_states import SCHEDULED, with_condition

T = TypeVar("T", bound=KubeObject)
Watcher = Callable[[Observation], None]
# Called with pods by key.
PodsWatcher = Callable[[Mapping[str, Pod]], None]

KIND_OF: dict[type[KubeObject], Kind] = {kind.struct: kind for kind in KINDS.values()}
RESOURCE_OF = {
    kind.struct: resource
    for kind in READ.values()
    if (resource := RESOURCES.get((kind.api_version, kind.name))) is not None
}
DEFAULT_NAMESPACE = "default"


class Admission(Protocol):
    """What may refuse new objects; false while it refuses none."""

    def __bool__(self) -> bool: ...

    def refusal(self, obj: KubeObject) -> str:
        """Why a new object is refused; empty if it is not."""


class MemoryCluster:
    """Objects by kind and key, as an API server keeps them."""

    def __init__(self) -> None:
        self.version = 0
        self._created = 0
        self._uids: set[str] = set()
        self._objects: dict[type[KubeObject], dict[str, KubeObject]] = {k: {} for k in KIND_OF}
        self._watchers: dict[type[KubeObject], list[Watcher]] = {k: [] for k in KIND_OF}
        # The same for many pods that run.
        self._pods_watchers: list[PodsWatcher] = []
        self._active_watchers: list[Watcher] = []
        self._quotas: Admission | None = None

    def admit_by(self, quotas: Admission) -> None:
        """Let quotas refuse new objects, while there are any.

        A resource version that the object was given with shows that another server admitted it.
        """
        self._quotas = quotas

    def watch(
        self, watcher: Watcher, *kinds: type[KubeObject], running: PodsWatcher | None = None
    ) -> None:
        """Call a watcher with every change from now on, of these kinds if any are given.

        `running` is called instead with pods that `create_all` adds and that are settled: there may
        be a million of them, and they need only be counted.
        """
        for kind in kinds or KIND_OF:
            self._watchers[kind].append(watcher)
            if kind is Pod:
                self._pods_watchers.append(running or _each_to(watcher))

    def watch_active(self, watcher: Watcher) -> None:
        """The same for what the field selector of a scheduler shows.

        A pod that has Succeeded or Failed is gone for it.
        """
        self._active_watchers.append(watcher)

    def get(self, kind: type[T], key: str) -> T | None:
        """One object by `namespace/name`, or by name if it is cluster-scoped."""
        found = self._objects[kind].get(key)
        return found if isinstance(found, kind) else None

    def by_key(self, kind: type[T]) -> Mapping[str, T]:
        """All objects of a kind by key, oldest first."""
        return self._objects[kind]  # type: ignore[return-value]  # keyed by kind

    def all(self, kind: type[T]) -> Iterable[T]:
        """All objects of a kind, oldest first."""
        return self.by_key(kind).values()

    def count(self, kind: type[KubeObject]) -> int:
        """How many objects of a kind there are."""
        return len(self._objects[kind])

    def active(self, kind: type[T]) -> tuple[T, ...]:
        """All objects of a kind that a scheduler observes."""
        if kind is not Pod:
            return tuple(self.all(kind))
        return tuple([obj for obj in self.all(kind) if _is_active(obj)])

    def existing(self, kind: type[T], key: str, uid: str | None = None) -> T:
        """The object with that name, and UID if one is given; refused if there is none."""
        obj = self.get(kind, key)
        if obj is None:
            raise status_errors.not_found(RESOURCE_OF[kind], key.rpartition("/")[2])
        status_errors.check_uid(RESOURCE_OF[kind], obj.name, uid, obj.uid)
        return obj

    def create(self, obj: T, now: float) -> T:
        """Store an object; a missing name, UID and creation time are filled in."""
        _, new = self._add(obj, now)
        self._notify(Added(new))
        return new

    def create_all(self, objects: Iterable[KubeObject], now: float) -> list[KubeObject]:
        """The same for objects in order; settled pods that follow each other are one change."""
        created: list[KubeObject] = []
        settled: dict[str, Pod] = {}
        counts_each = bool(self._quotas)  # Then a pod may be refused because of the one before.
        try:
            for obj in objects:
                key, new = self._add(obj, now)
                created.append(new)
                if not counts_each and isinstance(new, Pod) and pod_states.is_settled(new):
                    settled[key] = new
                    continue
                if settled:
                    self._notify_running(settled)
                    settled = {}
                self._notify(Added(new))
                counts_each = bool(self._quotas)
        finally:
            if settled:
                self._notify_running(settled)
        return created

    def _add(self, obj: T, now: float) -> tuple[str, T]:
        """Store a new object, without a call of the watchers; returns it with its key."""
        kind = KIND_OF[type(obj)]
        meta = self._new_meta(obj.metadata, kind, now)
        # One copy with all changes: a dump may have a million objects.
        new = replace(pod_states.initialized(obj, now), metadata=meta)
        stored = self._objects[kind.struct]
        key = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
        if key in stored:
            raise status_errors.already_exists(RESOURCE_OF[kind.struct], meta.name)
        if self._quotas and (why := self._quotas.refusal(_as_given(obj, meta))):
            raise status_errors.forbidden(RESOURCE_OF[kind.struct], meta.name, why)
        self._uids.add(meta.uid)
        self.version += 1
        stored[key] = new
        return key, new

    def merged(self, obj: T) -> T:
        """The object as an update would store it, with the fields that only the server sets.

        An empty status keeps the old one, and so do finalizers, so that a manifest can be applied
        again. Refused for a resourceVersion or UID that is not the latest.
        """
        kind = KIND_OF[type(obj)]
        if kind.namespaced and not obj.namespace:
            obj = replace(obj, metadata=replace(obj.metadata, namespace=DEFAULT_NAMESPACE))
        old = self.existing(type(obj), obj.key)
        meta, found, resource = obj.metadata, old.metadata, RESOURCE_OF[type(obj)]
        update.check_version(resource, obj.name, meta.resource_version, found.resource_version)
        status_errors.check_uid(resource, obj.name, meta.uid or None, found.uid)
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
        if is_protected(old) and _is_finished(obj):
            self.remove(obj)
            return obj
        return obj if obj == old else self._store(old, obj)

    def delete(
        self, kind: type[KubeObject], key: str, now: float, grace_seconds: int | None = None
    ) -> None:
        """Delete an object; a pod on a node becomes terminating, its kubelet removes it.

        So does a claim or a bound volume; its controller removes it when nothing uses it.
        """
        old = self.existing(kind, key)
        meta, grace = old.metadata, 0
        if isinstance(old, Pod):
            own = old.spec.termination_grace_period_seconds
            grace = delete.pod_grace_seconds(grace_seconds, own, old.node_name, old.status.phase)
        before = None
        if meta.deletion_timestamp is not None:
            before = meta.deletion_grace_period_seconds
            before = grace if before is None else before
        decision = delete.decide(grace, before, is_kept=is_protected(old))
        if decision.is_removed:
            self.remove(old)
        elif decision.grace_seconds != before:
            self._store(old, pod_states.terminating(old, decision.grace_seconds, now))

    def remove(self, obj: KubeObject) -> None:
        """Remove an object at once."""
        self.version += 1
        last = self._objects[type(obj)].pop(obj.key)
        self._notify(Deleted(last))

    def bind(self, key: str, uid: str, node: str, now: float) -> Pod:
        """Bind a pod to a node. As in Kubernetes, the node need not exist."""
        pod = self.existing(Pod, key, uid)
        spec = pod.spec
        binding.check_unassigned(
            pod.name,
            spec.node_name,
            is_terminating=pod.is_terminating,
            is_gated=bool(spec.scheduling_gates),
        )
        conditions = with_condition(pod.status.conditions, SCHEDULED, now)
        status = replace(pod.status, conditions=conditions, nominated_node_name="")
        return self._store(pod, replace(pod, spec=replace(spec, node_name=node), status=status))

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
            conditions = with_condition(status.conditions, condition, now)
            status = replace(status, conditions=conditions)
        if nominated_node_name is not UNSET:
            status = replace(status, nominated_node_name=nominated_node_name)
        return self.write_status(pod, status)

    def write_status(self, pod: Pod, status: PodStatus) -> Pod:
        """Replace a pod's status; an equal one is not written."""
        return pod if status == pod.status else self._store(pod, replace(pod, status=status))

    def _new_meta(self, meta: ObjectMeta, kind: Kind, now: float) -> ObjectMeta:
        """The metadata of an object that is stored next."""
        self._created += 1
        uid = meta.uid
        return replace(
            meta,
            name=meta.name or f"{meta.generate_name}{self._created:05x}",
            namespace=(meta.namespace or DEFAULT_NAMESPACE) if kind.namespaced else "",
            uid=uid if uid and uid not in self._uids else self._fresh_uid(uid),
            creation_timestamp=meta.creation_timestamp or timestamp(now),
            generation=meta.generation or 1,
            finalizers=storage_protection.with_finalizer(meta.finalizers, kind.name),
            resource_version=str(self.version + 1),
        )

    def _fresh_uid(self, requested: str) -> str:
        """The requested UID, unless an object has or had it."""
        number = self._created
        while not requested or requested in self._uids:
            requested = f"00000000-0000-4000-8000-{number:012x}"
            number += 1
        return requested

    def _store(self, old: KubeObject, new: T) -> T:
        """Store a change of an object with the next version."""
        self.version += 1
        meta = replace(new.metadata, resource_version=str(self.version))
        new = replace(new, metadata=meta)
        self._objects[type(new)][new.key] = new
        self._notify(Updated(new))
        if _is_active(old) and not _is_active(new):
            self._notify_active(Deleted(old))
        return new

    def _notify(self, observation: Added | Updated | Deleted) -> None:
        obj = observation.obj
        for watcher in self._watchers[type(obj)]:
            watcher(observation)
        if self._active_watchers and _is_active(obj):
            self._notify_active(observation)

    def _notify_running(self, pods: Mapping[str, Pod]) -> None:
        for watcher in self._pods_watchers:
            watcher(pods)
        if self._active_watchers:
            for pod in pods.values():
                self._notify_active(Added(pod))

    def _notify_active(self, observation: Observation) -> None:
        for watcher in self._active_watchers:
            watcher(observation)


def _each_to(watcher: Watcher) -> PodsWatcher:
    return partial(_call_for_each, watcher)  # Not a closure: a simulation can be pickled.


def _call_for_each(watcher: Watcher, pods: Mapping[str, Pod]) -> None:
    for pod in pods.values():
        watcher(Added(pod))


def _is_active(obj: KubeObject) -> bool:
    return not (isinstance(obj, Pod) and obj.is_terminal)


def _as_given(obj: KubeObject, meta: ObjectMeta) -> KubeObject:
    """The new object with the version that it was given with."""
    return replace(obj, metadata=replace(meta, resource_version=obj.metadata.resource_version))


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
            finalizers=new.metadata.finalizers or before.finalizers,
        )
    }
    if isinstance(old, Pod):
        # Only a binding sets the node.
        changes["spec"] = replace(_spec(new), node_name=_spec(new).node_name or old.node_name)
    status = getattr(new, "status", None)
    if status is not None and status == type(status)():
        changes["status"] = getattr(old, "status", status)
    return replace(new, **changes)


def is_protected(obj: KubeObject) -> bool:
    """Whether a finalizer keeps the object that a controller of a simulation removes."""
    finalizers = obj.metadata.finalizers
    return bool(finalizers) and not _FINALIZERS.isdisjoint(finalizers)


_FINALIZERS = frozenset((FINALIZER, job.FINALIZER, *storage_protection.FINALIZERS.values()))


def _is_finished(obj: KubeObject) -> bool:
    """Whether the object is being deleted, and nothing keeps it any more."""
    meta = obj.metadata
    ended = meta.deletion_timestamp is not None and not meta.deletion_grace_period_seconds
    return ended and not is_protected(obj)
