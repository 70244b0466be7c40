"""Label values and taint sets as small integers.

Most clusters have few distinct values per label key and a handful of distinct taint sets. So a
question is answered once per distinct value and gathered by code, never once per node.
"""

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from moorage.api.node import Node, Taint
from moorage.api.selectors import Requirement

Codes = NDArray[np.int32]
Mask = NDArray[np.bool_]

T = TypeVar("T", bound=Hashable)

ABSENT = 0


class InternedColumn(Generic[T]):
    """A column of codes; code 0 stands for `absent`, the value of a row without a node."""

    __slots__ = ("_read", "code_of", "codes", "values")

    def __init__(self, capacity: int, absent: T, read: Callable[[Node], T]) -> None:
        self._read = read
        self.values: list[T] = [absent]
        self.code_of: dict[T, int] = {absent: ABSENT}
        self.codes: Codes = np.zeros(capacity, dtype=np.int32)

    def set(self, row: int, node: Node | None) -> None:
        """Read a row again."""
        self.codes[row] = ABSENT if node is None else self._code(self._read(node))

    def _code(self, value: T) -> int:
        code = self.code_of.get(value)
        if code is None:
            code = self.code_of[value] = len(self.values)
            self.values.append(value)
        return code

    def grow(self, capacity: int) -> None:
        """Make room for more rows."""
        more = np.zeros(capacity - len(self.codes), dtype=np.int32)
        self.codes = np.concatenate([self.codes, more])


class LabelColumn(InternedColumn[str | None]):
    """The values of one label key; None, code 0, where a node does not have it."""

    __slots__ = ("key",)

    def __init__(self, capacity: int, key: str) -> None:
        super().__init__(capacity, absent=None, read=lambda node: node.labels.get(key))
        self.key = key

    def lookup(self, requirement: Requirement) -> Mask:
        """For every code, whether a node with that value meets the requirement."""
        listed = np.zeros(len(self.values), dtype=np.bool_)
        if requirement.operator in ("In", "NotIn"):
            for wanted in requirement.values:
                code = self.code_of.get(wanted)
                if code is not None:
                    listed[code] = True
            return ~listed if requirement.operator == "NotIn" else listed
        for at, value in enumerate(self.values):
            listed[at] = requirement.matches({} if value is None else {self.key: value})
        return listed


class TaintColumn(InternedColumn[tuple[Taint, ...]]):
    """The taints of each node; code 0 is "no taints"."""

    __slots__ = ()

    def __init__(self, capacity: int) -> None:
        super().__init__(capacity, absent=(), read=lambda node: node.spec.taints)
