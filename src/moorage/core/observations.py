"""What the world may tell us.

The core keeps its own last version of every object, so an observation carries the new one only.
Observations may come late, twice, or not at all: an `Added` of something known counts as an
update, an `Updated` of something unknown as an addition, and an object under a known name with
another UID as a deletion followed by an addition. `Listed` is the full truth about one kind after
a gap; what it does not contain is gone.
"""

from typing import Any

from msgspec import Struct

from moorage.api.meta import KubeObject


class Added(Struct, frozen=True, gc=False):
    """An object is there."""

    obj: KubeObject


class Updated(Struct, frozen=True, gc=False):
    """An object changed."""

    obj: KubeObject


class Deleted(Struct, frozen=True, gc=False):
    """An object is gone; carries its last known version."""

    obj: KubeObject


class Listed(Struct, frozen=True, gc=False):
    """All objects of a kind as they are now."""

    kind: type[Any]
    objects: tuple[KubeObject, ...]


Observation = Added | Updated | Deleted | Listed
