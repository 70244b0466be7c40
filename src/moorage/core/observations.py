"""Observations: changes of objects, the input of the core.

The core keeps its own last version of every object, so an observation has only the new one. It may
come late, twice, or not at all: an `Added` of a known object counts as an update, an `Updated` of
an unknown one as an addition, and an object under a known name with another UID as a deletion
followed by an addition. `Listed` has all objects of a kind, after a gap; any other is gone.
"""

from typing import Any

from msgspec import Struct

from moorage.api.meta import KubeObject


class Added(Struct, frozen=True, gc=False):
    """An object exists."""

    obj: KubeObject


class Updated(Struct, frozen=True, gc=False):
    """An object changed."""

    obj: KubeObject


class Deleted(Struct, frozen=True, gc=False):
    """An object is gone; with its last known version."""

    obj: KubeObject


class Listed(Struct, frozen=True, gc=False):
    """All objects of a kind as they are now."""

    kind: type[Any]
    objects: tuple[KubeObject, ...]


Observation = Added | Updated | Deleted | Listed
