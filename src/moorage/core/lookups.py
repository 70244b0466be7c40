"""Lookups: pods whose binding nobody is sure of, and when to ask the world about each."""

from dataclasses import dataclass, field

RETRY_SECONDS = 1.0


@dataclass(slots=True)
class Lookups:
    """UIDs to look up, and those that are being looked up."""

    _due: dict[str, float] = field(default_factory=dict)
    _asked: set[str] = field(default_factory=set)

    def want(self, uid: str, at: float) -> None:
        """Look a pod up at a time, unless that is under way."""
        if uid not in self._asked:
            self._due.setdefault(uid, at)

    def due(self, now: float) -> list[str]:
        """Pods to ask about now; they count as asked from here on."""
        uids = [uid for uid, at in self._due.items() if at <= now]
        for uid in uids:
            del self._due[uid]
            self._asked.add(uid)
        return uids

    def answered(self, uid: str) -> None:
        """The world answered, one way or the other."""
        self._asked.discard(uid)

    def drop(self, uid: str) -> None:
        """Nobody wants to know any more."""
        self._due.pop(uid, None)

    def knows(self, uid: str) -> bool:
        return uid in self._due or uid in self._asked

    @property
    def deadline(self) -> float | None:
        return min(self._due.values(), default=None)
