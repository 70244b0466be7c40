"""Label values and taint sets as small integers.

Most clusters have few distinct values per label key and a handful of distinct taint sets. So a
plugin computes once per distinct value and gathers by code, not once per node.
"""

from collections.abc import Hashable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node, Taint
from moorage.api.selectors import Requirement

# As wide as an index, because codes are used as indices.
Codes = NDArray[np.intp]
Mask = NDArray[np.bool_]

T = TypeVar("T", bound=Hashable)

ABSENT = 0
MOST_LOOKUPS = 1024
# See `LabelColumn.has_few_values`.
FEW_VALUES = 32
MOST_VALUES = 128
ROWS_PER_VALUE = 8


class InternedColumn(Generic[T]):
    """A column of codes; code 0 stands for `absent`, the value of a row without a node."""

    def __init__(self, capacity: int, absent: T) -> None:
        self.values: list[T] = [absent]
        self.code_of: dict[T, int] = {absent: ABSENT}
        self.codes: Codes = np.zeros(capacity, dtype=np.intp)
        # How many rows have each value, and how many values more than one row has.
        self.sizes: list[int] = [capacity]
        self.shared = 0

    def read(self, node: Node) -> T:
        """The value of a node."""
        raise NotImplementedError

    def set(self, row: int, node: Node | None) -> None:
        """Read a row again."""
        before, code = self.codes.item(row), ABSENT
        if node is not None:
            code = self._code(self.read(node))
        self._resize(before, -1, shared_at=1)
        self._resize(code, 1, shared_at=2)
        self.codes[row] = code

    def _resize(self, code: int, change: int, *, shared_at: int) -> None:
        size = self.sizes[code] = self.sizes[code] + change
        if size == shared_at and code != ABSENT:
            self.shared += change

    def _code(self, value: T) -> int:
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
            self.sizes.append(0)
        return code

    def grow(self, capacity: int) -> None:
        """Add rows up to a capacity."""
        more = capacity - len(self.codes)
        self.sizes[ABSENT] += more
        self.codes = np.pad(self.codes, (0, more))


class LabelColumn(InternedColumn[str | None]):
    """The values of one label key; None (code 0) where a node does not have it."""

    def __init__(self, capacity: int, key: str) -> None:
        super().__init__(capacity, absent=None)
        self.key = key
        self._lookups: dict[Requirement, Mask] = {}

    def read(self, node: Node) -> str | None:
        return node.labels.get(self.key)

    @property
    def has_few_values(self) -> bool:
        """Whether the rows with a value are worth a group: values are few, and rows far more."""
        values = len(self.values)
        return values <= FEW_VALUES or (
            values <= MOST_VALUES and values * ROWS_PER_VALUE <= len(self.codes)
        )

    def lookup(self, requirement: Requirement) -> Mask:
        """For every code, whether a node with that value meets the requirement."""
        known = self._lookups.get(requirement)
        if known is None or len(known) != len(self.values):
            if len(self._lookups) >= MOST_LOOKUPS:
                self._lookups.clear()
            known = self._lookups[requirement] = self._look_up(requirement)
        return known

    def _look_up(self, requirement: Requirement) -> Mask:
        met = np.zeros(len(self.values), dtype=np.bool_)
        match requirement.operator:
            case "In" | "NotIn":
                codes = (self.code_of.get(value) for value in requirement.values)
                met[[code for code in codes if code is not None]] = True
                return ~met if requirement.operator == "NotIn" else met
            case "Exists" | "DoesNotExist":
                met[ABSENT] = True
                return ~met if requirement.operator == "Exists" else met
            case _:
                for at, value in enumerate(self.values):
                    met[at] = requirement.accepts(value)
                return met


class TaintColumn(InternedColumn[tuple[Taint, ...]]):
    """The taints of each node; code 0 is "no taints"."""

    def read(self, node: Node) -> tuple[Taint, ...]:
        return node.spec.taints
