"""ZoneOrder: the order in which nodes are visited when only a sample of them is scored.

Zones alternate: the first node of each, then the second of each that has one, and so on. As in
kube-scheduler the order is computed again only when a node appears or disappears, so a node that
moves to another zone keeps its position until then.
"""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from moorage.api.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE
from moorage.api.node import Node


def zone_of(node: Node) -> tuple[str, str]:
    """Region and zone of a node; the deprecated labels override the others."""
    labels = node.labels
    zone, region = labels.get(ZONE, ""), labels.get(REGION, "")
    return labels.get(BETA_REGION, region), labels.get(BETA_ZONE, zone)


@dataclass(slots=True)
class ZoneOrder:
    """Nodes by zone; zones in order of their first appearance."""

    _zones: dict[tuple[str, str], dict[str, int]] = field(default_factory=dict)
    _zone_of: dict[str, tuple[str, str]] = field(default_factory=dict)
    _rows: NDArray[np.intp] | None = None

    def add(self, node: Node, row: int) -> None:
        """Add a node."""
        self._insert(node.name, zone_of(node), row)
        self._rows = None

    def update(self, node: Node, row: int) -> None:
        """Update a node, which may be in another zone."""
        zone = zone_of(node)
        if zone != self._zone_of[node.name]:
            self._remove(node.name)
            self._insert(node.name, zone, row)

    def remove(self, name: str) -> None:
        """Remove a node."""
        self._remove(name)
        self._rows = None

    def _insert(self, name: str, zone: tuple[str, str], row: int) -> None:
        self._zones.setdefault(zone, {})[name] = row
        self._zone_of[name] = zone

    def _remove(self, name: str) -> None:
        zone = self._zone_of.pop(name)
        members = self._zones[zone]
        del members[name]
        if not members:
            del self._zones[zone]

    def rows(self) -> NDArray[np.intp]:
        """All rows, zone by zone."""
        if self._rows is None:
            turns = [list(members.values()) for members in self._zones.values()]
            longest = max(map(len, turns), default=0)
            order = [rows[i] for i in range(longest) for rows in turns if i < len(rows)]
            self._rows = np.array(order, dtype=np.intp)
        return self._rows
