"""Assumed objects: as they will be once the world has done what was decided.

Between the decision to give a volume to a claim and the news that it was done, everybody else has
to see the volume as taken. So its future version lies on top of the known one, for as long as the
known one is the very version from which it was made: any news of the object ends the assumption.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from moorage.api.kinds import KINDS
from moorage.api.meta import KubeObject
from moorage.errors import MoorageError


class AssumeError(MoorageError):
    """An object that is not there, or not in the version from which the future was made."""


@dataclass(slots=True)
class Assumption:
    """An object's future, and the pod for whose sake; empty once the world has accepted it."""

    obj: KubeObject
    holder: str


@dataclass(slots=True)
class Assumptions:
    """At most one future per object."""

    _futures: dict[type[KubeObject], dict[str, Assumption]] = field(default_factory=dict)

    def get(self, kind: type[KubeObject], key: str) -> KubeObject | None:
        """The future of an object, if one is assumed."""
        futures = self._futures.get(kind)
        found = None if futures is None else futures.get(key)
        return None if found is None else found.obj

    def add(self, known: KubeObject | None, obj: KubeObject, holder: str) -> None:
        """Assume an object's future; raises AssumeError if the known one is another version."""
        kind = type(obj)
        if known is None:
            raise AssumeError(f'{KINDS[kind.__name__].plural} "{obj.key}" not found')
        stored, assumed = _version(known), _version(obj)
        if stored != assumed:
            text = f'"{obj.key}" is out of sync (stored: {stored}, assume: {assumed})'
            raise AssumeError(text)
        self._futures.setdefault(kind, {})[obj.key] = Assumption(obj, holder)

    def restore(self, obj: KubeObject) -> bool:
        """Give a future up, if it was made from that version; whether there was one."""
        futures = self._futures.get(type(obj), {})
        found = futures.get(obj.key)
        if found is None or _version(found.obj) != _version(obj):
            return False
        del futures[obj.key]
        return True

    def settle(self, obj: KubeObject) -> None:
        """The world accepted a future, so its news is on the way and nobody need hold it."""
        found = self._futures.get(type(obj), {}).get(obj.key)
        if found is not None and _version(found.obj) == _version(obj):
            found.holder = ""

    def news(self, obj: KubeObject, *, gone: bool = False) -> bool:
        """The world speaks of an object; whether that ends an assumption."""
        futures = self._futures.get(type(obj), {})
        found = futures.get(obj.key)
        # Without versions nobody can tell news from a repetition.
        if found is None or (not gone and _version(found.obj) == _version(obj) != ""):
            return False
        del futures[obj.key]
        return True

    def __iter__(self) -> Iterator[Assumption]:
        """All that is assumed."""
        for futures in self._futures.values():
            yield from futures.values()


def _version(obj: KubeObject) -> str:
    return obj.metadata.resource_version
