"""The volumes of claims that controllers bind at once, for questions that have no controller."""

from collections.abc import Iterable
from typing import TypeVar

from moorage.api import claims, defaults
from moorage.api.meta import KubeObject
from moorage.api.pod import Pod
from moorage.api.storage import PersistentVolumeClaim, StorageClass
from moorage.controllers import volume_binder
from moorage.controllers.volume_binder import (
    BeginProvisioning,
    CreateStorage,
    Decision,
    UpdateStorage,
)

T = TypeVar("T", bound=KubeObject)

_READ = (Pod, PersistentVolumeClaim)


def with_volumes(objects: list[KubeObject], given: Iterable[KubeObject]) -> list[KubeObject]:
    """The objects, with new claims bound that need not wait for a pod; they have their defaults.

    New pods get the claims of their ephemeral volumes. What an API server has stored, as `given`
    shows, stays as it is: its own controllers have not done that yet.
    """
    waiting = [obj for obj in objects if _needs_controller(obj)]
    if not waiting:
        return objects
    stored = {(type(obj), obj.key) for obj in given if isinstance(obj, _READ) and obj.uid}
    cluster = _ObjectsByKind(objects)
    for obj in waiting:
        if (type(obj), obj.key) in stored:
            continue
        if isinstance(obj, Pod):
            cluster.perform(volume_binder.for_pod(obj, cluster))
        else:
            assert isinstance(obj, PersistentVolumeClaim)
            cluster.bind(obj)
    return cluster.all_objects()


def _needs_controller(obj: KubeObject) -> bool:
    if isinstance(obj, PersistentVolumeClaim):
        return not claims.is_fully_bound(obj)
    if not isinstance(obj, Pod) or obj.node_name:
        return False
    return any(volume.ephemeral is not None for volume in obj.spec.volumes)


class _ObjectsByKind:
    """Objects by type and key, which the decisions of controllers change."""

    def __init__(self, objects: Iterable[KubeObject]) -> None:
        self._objects: dict[type[KubeObject], dict[str, KubeObject]] = {}
        for obj in objects:
            self._put(obj)

    def get(self, kind: type[T], key: str) -> T | None:
        found = self._objects.get(kind, {}).get(key)
        return found if isinstance(found, kind) else None

    def all(self, kind: type[T]) -> Iterable[T]:
        return self._objects.get(kind, {}).values()  # type: ignore[return-value]  # keyed by kind

    def all_objects(self) -> list[KubeObject]:
        return [obj for found in self._objects.values() for obj in found.values()]

    def bind(self, claim: PersistentVolumeClaim) -> None:
        """Bind a claim, to a new volume if its class provisions one without a pod."""
        self.perform(volume_binder.for_claim(claim, self))

    def perform(self, decisions: Iterable[Decision]) -> None:
        for decision in decisions:
            match decision:
                case UpdateStorage(new=new):
                    self._put(new)
                case CreateStorage(obj=obj):
                    self._create(obj)
                case BeginProvisioning(claim=claim, node=None):
                    self.perform(volume_binder.provisioned(claim, None, self))
                    self.bind(claim)

    def _create(self, obj: KubeObject) -> None:
        [new] = defaults.complete([obj], known=self.all(StorageClass))
        self._put(new)
        if isinstance(new, PersistentVolumeClaim):
            self.bind(new)

    def _put(self, obj: KubeObject) -> None:
        self._objects.setdefault(type(obj), {})[obj.key] = obj
