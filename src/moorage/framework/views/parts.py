"""Parts: what each score plugin gave, in the order of the configuration.

CycleParts: the same with scores that are not cached.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct

from moorage.framework.status import Scores

# A score plugin's name, its weight, and its scores: one number if all rows have the same.
Part = tuple[str, int, int | Scores]


class KnownScores(Struct, frozen=True, gc=False):
    """What follows from the resources of a feasible row; scores by node are still to be added."""

    total: int
    # Weighted, per plugin; with a slot for each plugin whose scores follow from the node object.
    scores: dict[str, int]


class Parts:
    """What each score plugin gave, in the order of the configuration."""

    # Scores of rows that the columns do not have yet, and the parts that add to them.
    _ahead: Mapping[int, dict[str, int]] = MappingProxyType({})
    _by_node: Sequence[Part] = ()

    def __init__(self, parts: Sequence[Part], order: Mapping[str, int]) -> None:
        self._parts = parts
        self._order = order
        # The weighted scores that all rows share, with a slot for each of the others, in order.
        self._constant = self._in_order(parts)
        self.varying = [part for part in parts if not isinstance(part[2], int)]
        # The same together with parts of other plugins, by their names.
        self._merged: dict[tuple[str, ...], dict[str, int]] = {}
        # What a reader derived from these parts by the number of a row's resources.
        self.known: dict[int, Any] = {}

    def _in_order(self, parts: Sequence[Part]) -> dict[str, int]:
        order = self._order
        ordered = sorted(parts, key=lambda part: order.get(part[0], len(order)))
        return {name: w * given if isinstance(given, int) else 0 for name, w, given in ordered}

    def of(self, row: int) -> dict[str, int]:
        """A row's weighted score per plugin; read only."""
        found: dict[str, int] = self._constant
        varying: Sequence[Part] = self.varying
        if row in self._ahead:
            found, varying = self._ahead[row], self._by_node
            if not varying:
                return found
        return _filled(found, varying, row)

    def read_ahead(self, ahead: dict[int, dict[str, int]], by_node: set[str]) -> None:
        """Read the scores of rows there first, except those of plugins that read nodes only."""
        self._ahead = ahead
        self._by_node = [part for part in self.varying if part[0] in by_node]

    def with_scores(self, weighted: Mapping[str, int]) -> dict[str, int]:
        """The weighted scores that all rows share, together with some of other plugins."""
        return {**self._constant, **weighted}

    def with_parts(self, more: Sequence[Part]) -> "CycleParts":
        """These parts and those of other plugins, which differ between rows."""
        return CycleParts(self, more)

    def slots(self, names: tuple[str, ...]) -> dict[str, int]:
        """The weighted scores that all rows share, also with slots for other plugins."""
        slots = self._merged.get(names)
        if slots is None:
            slots = self._in_order([*self._parts, *[(name, 0, 0) for name in names]])
            self._merged[names] = slots
        return slots

    def of_with(self, row: int, weighted: Mapping[str, int]) -> dict[str, int]:
        """A row's weighted score per plugin, together with those of other plugins."""
        return {**self.slots((*weighted,)), **self.of(row), **weighted}

    def replaced(self, part: Part) -> "Parts":
        """These parts with another one of the same plugin."""
        return Parts([part if each[0] == part[0] else each for each in self._parts], self._order)


class CycleParts:
    """What each plugin gave in one cycle: cached parts, and those of this cycle only."""

    def __init__(self, cached: Parts, more: Sequence[Part]) -> None:
        self._cached = cached
        self._more = more

    def of(self, row: int) -> dict[str, int]:
        """A row's weighted score per plugin."""
        slots = self._cached.slots(tuple([name for name, _, _ in self._more]))
        return _filled(slots, [*self._cached.varying, *self._more], row)

    def with_parts(self, more: Sequence[Part]) -> "CycleParts":
        """These parts and those of other plugins."""
        return CycleParts(self._cached, [*self._more, *more])


def _filled(slots: dict[str, int], varying: Sequence[Part], row: int) -> dict[str, int]:
    """A copy of the slots, with the scores of a row."""
    found = slots.copy()
    for name, weight, scores in varying:
        found[name] = weight * scores.item(row)  # type: ignore[union-attr]  # no int
    return found
