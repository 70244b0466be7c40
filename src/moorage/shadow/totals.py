"""NodeTotals: the total score of every feasible node in one decision."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from moorage.core.decision import Decision


class NodeTotals:
    """See the module; `keep` copies the totals, which the next decision would overwrite."""

    def __init__(self, decision: Decision, *, keep: bool = False) -> None:
        self._rows: Mapping[str, int] = decision.state.table.row_of
        self._decision = None if keep else decision
        self.feasible = decision.feasible_count
        self._only = decision.node if decision.scored is None else ""
        self._totals: NDArray[np.signedinteger] | None = None
        self.top = 0
        if decision.scored is not None and decision.node:
            totals = decision.scored.totals
            self.top = int(totals[decision.row])
            self._totals = totals.astype(np.int32) if keep else totals

    @property
    def nbytes(self) -> int:
        return 0 if self._totals is None else self._totals.nbytes

    def of(self, node: str) -> int | None:
        """A node's total; None if the node is not feasible, or not known."""
        if self._totals is None:
            return 0 if node and node == self._only else None
        row = self._rows.get(node, -1)
        if not 0 <= row < len(self._totals):
            return None
        total = int(self._totals[row])
        return total if total >= 0 else None

    def better_than(self, total: int, most: int) -> set[str] | None:
        """The nodes with a higher total; None if there are more than `most`."""
        if self._totals is None or self._decision is None:
            return set()
        rows = np.flatnonzero(self._totals > total)
        names = self._decision.state.table.names
        return None if len(rows) > most else {names[row] for row in rows.tolist()}

    def scores(self, node: str) -> dict[str, int]:
        """A feasible node's weighted score per plugin; nothing if the totals were copied."""
        if self._decision is None or self._decision.scored is None or self.of(node) is None:
            return {}
        return self._decision.scored.scores(self._rows[node])
