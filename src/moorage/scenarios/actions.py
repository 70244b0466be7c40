"""What an event does to the cluster. Each is data; `play` carries it out."""

from typing import Any

from msgspec import Struct

from moorage.api.node import NodePool
from moorage.api.selectors import Selector


class Scale(Struct, frozen=True):
    """A workload gets another number of replicas."""

    kind: str
    namespace: str
    name: str
    replicas: int


class Nodes(Struct, frozen=True):
    """Nodes by name, or those that a selector matches; with a count, so many by lot."""

    names: tuple[str, ...] | None
    selector: Selector | None
    count: int | None


class Drain(Struct, frozen=True):
    """Nodes are cordoned and their pods evicted; after a while they are uncordoned."""

    nodes: Nodes
    seconds: float | None


class Fail(Struct, frozen=True):
    """Nodes are lost with all their pods; after a while they come back empty."""

    nodes: Nodes
    seconds: float | None


class AddNodes(Struct, frozen=True):
    """More nodes of a pool."""

    pool: NodePool


class Create(Struct, frozen=True):
    """Objects are created."""

    objects: tuple[dict[str, Any], ...]


class Delete(Struct, frozen=True):
    """An object is deleted."""

    kind: str
    namespace: str
    name: str


Action = Scale | Drain | Fail | AddNodes | Create | Delete
