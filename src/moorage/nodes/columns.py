"""Column: one value per node, read off the node object, kept in an array.

A plugin declares the columns that it reads; the table builds each when it is first asked for and
reads a row again only when that row's node object changes.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from moorage.api.node import Node


@dataclass(frozen=True, slots=True, eq=False)
class Column:
    """How one value is read off a node; rows without a node hold `default`."""

    name: str
    dtype: DTypeLike
    read: Callable[[Node], Any]
    default: Any = 0

    def empty(self, capacity: int) -> np.ndarray[Any, Any]:
        """An array of that many rows, none of them read yet."""
        return np.full(capacity, self.default, dtype=self.dtype)
