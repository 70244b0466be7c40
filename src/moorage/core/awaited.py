"""Awaited: pods whose pre_bind plugins wait for the world, for which objects and until when."""

from dataclasses import dataclass, field

from moorage.api.meta import KubeObject
from moorage.core.observations import Listed, Observation
from moorage.framework.awaiting import Awaiting

Key = tuple[type[KubeObject], str]


@dataclass(slots=True)
class Awaited:
    """Pods by UID; the order is that in which they began to wait."""

    _until: dict[str, float] = field(default_factory=dict)
    _objects: dict[str, tuple[Key, ...]] = field(default_factory=dict)
    _by_object: dict[Key, dict[str, None]] = field(default_factory=dict)

    def __contains__(self, uid: str) -> bool:
        return uid in self._until

    def __len__(self) -> int:
        return len(self._until)

    def add(self, uid: str, awaiting: Awaiting, now: float) -> None:
        """A pod begins to wait."""
        self._until[uid] = now + awaiting.seconds
        self._objects[uid] = awaiting.objects
        for key in awaiting.objects:
            self._by_object.setdefault(key, {})[uid] = None

    def drop(self, uid: str) -> None:
        """A pod waits no more."""
        del self._until[uid]
        for key in self._objects.pop(uid):
            waiting = self._by_object.get(key, {})
            waiting.pop(uid, None)
            if not waiting:
                self._by_object.pop(key, None)

    def concerned(self, observation: Observation) -> list[str]:
        """The pods that wait for what the world just told."""
        if isinstance(observation, Listed):
            kind = observation.kind
            keys = [key for key in self._by_object if key[0] is kind]
            return list(dict.fromkeys(uid for key in keys for uid in self._by_object[key]))
        obj = observation.obj
        return list(self._by_object.get((type(obj), obj.key), ()))

    def due(self, now: float) -> list[str]:
        """The pods that have waited for as long as they were to."""
        return [uid for uid, until in self._until.items() if until <= now]

    @property
    def deadline(self) -> float | None:
        return min(self._until.values(), default=None)
