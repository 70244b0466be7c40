"""The ways in which raw scores become 0..100."""

from typing import Any

import numpy as np
from msgspec import Struct

from moorage.framework.status import Scores

BEST = 100


class ByMax(Struct, frozen=True):
    """In proportion to the largest raw score; reversed, the largest gets 0.

    Where all raw scores are 0 they stay 0, or all become 100 when reversed.
    """

    reverse: bool = False

    def summarize(self, feasible: Scores) -> int:
        """The largest raw score, at least 0."""
        return max(int(feasible.max(initial=0)), 0)

    def apply(self, raw: Any, summary: int) -> Any:
        """One score or an array of them."""
        if summary == 0:
            if not self.reverse:
                return raw
            return np.full_like(raw, BEST) if isinstance(raw, np.ndarray) else BEST
        scaled = BEST * raw // summary
        return BEST - scaled if self.reverse else scaled
