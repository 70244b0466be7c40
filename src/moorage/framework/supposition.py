"""Supposition: what if, for many nodes at once.

As far as filters look at nodes and at what their pods take, their whole-cluster form answers it in
a few array operations. A filter that looks further, or has no such form, cannot be asked like this.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from moorage.api.pod import Pod
from moorage.framework import invoke
from moorage.framework.answers import FITS, Filtered
from moorage.framework.invoke import PluginMethod
from moorage.framework.state import CycleState
from moorage.framework.status import Mask, Status, Verdicts
from moorage.nodes.hypothetical import HypotheticalRows, NumberedUsages, Numbers

if TYPE_CHECKING:
    from moorage.framework.profile import Questions

Places = NDArray[np.int64]
Rows = NDArray[np.intp]


class Supposition:
    """One pod's question about many rows, some of which may be promised to others."""

    def __init__(
        self,
        questions: "Questions",
        filtered: Filtered,
        state: CycleState,
        pod: Pod,
        rows: Rows,
    ) -> None:
        self._state = state
        self._pod = pod
        self._filtered = filtered
        self._asked = questions.whole
        self._promised: tuple[Numbers, NumberedUsages] | None = None
        self._rows = HypotheticalRows(state.table, rows)
        # The first filter that refuses a row whoever is there.
        self._settled: Places = np.full(len(rows), FITS, dtype=np.int64)
        for place in reversed(questions.settled):
            self._settled[filtered.codes_at(place)[rows] != 0] = place

    def promise(self, numbers: Numbers, book: NumberedUsages) -> None:
        """The pod must fit beside these pods, too: a list of numbers in a book for every row."""
        self._promised = (numbers, book) if numbers.any() else None

    def shift(self, numbers: Numbers, book: NumberedUsages, sign: int) -> None:
        """Let pods come (1) or leave (-1), one or a list for every row."""
        self._rows.shift(numbers, book, sign)

    def fits(self) -> Mask:
        """Which rows the pod would fit, both beside promised pods and without."""
        fits = self._fit(self._rows)
        if self._promised is not None:
            fits &= self._fit(self._beside())
        return fits

    def refusals(self) -> list[tuple[Status, Rows]]:
        """Why the pod would not fit, with the places of the rows where that is the reason."""
        plain = self._first_refusals(self._rows)
        if self._promised is None:
            return plain.groups()
        beside = self._first_refusals(self._beside())
        # What promised pods lead to comes first.
        plain.first[beside.first != FITS] = FITS
        return beside.groups() + plain.groups()

    def refusals_beside(self) -> list[tuple[Status, Rows]]:
        """The same as far as it follows from promised pods."""
        if self._promised is None:
            return []
        beside = self._first_refusals(self._beside())
        numbers, _ = self._promised
        beside.first[~numbers.any(axis=1)] = FITS
        return beside.groups()

    def _beside(self) -> HypotheticalRows:
        assert self._promised is not None
        rows = self._rows.copy()
        rows.shift(*self._promised, 1)
        return rows

    def _fit(self, rows: HypotheticalRows) -> Mask:
        fits: Mask = self._settled == FITS
        for _, method in self._asked:
            fits &= self._verdicts(method, rows).codes == 0
        return fits

    def _first_refusals(self, rows: HypotheticalRows) -> "_First":
        first = self._settled.copy()
        said: dict[int, Verdicts] = {}
        for place, method in self._asked:
            said[place] = self._verdicts(method, rows)
            np.minimum(first, place, out=first, where=said[place].codes != 0)
        return _First(first, said, self._filtered, rows.rows)

    def _verdicts(self, method: PluginMethod, rows: HypotheticalRows) -> Verdicts:
        return invoke.filter_rows(method, self._state, self._pod, rows)


@dataclass(slots=True)
class _First:
    """The place of the first filter that refuses each row, and what the filters say."""

    first: Places
    said: dict[int, Verdicts]
    filtered: Filtered
    rows: Rows

    def groups(self) -> list[tuple[Status, Rows]]:
        """The distinct statuses, with the places of the rows that have each."""
        found = []
        for place in np.unique(self.first).tolist():
            if place == FITS:
                continue
            here = np.flatnonzero(self.first == place)
            verdicts = self.said.get(place)
            kept = self.filtered.codes_at(place)[self.rows] if verdicts is None else verdicts.codes
            codes, at = np.unique(kept[here], return_inverse=True)
            for number in range(len(codes)):
                places = here[at == number]
                found.append((self._status(place, int(places[0])), places))
        return found

    def _status(self, place: int, i: int) -> Status:
        verdicts = self.said.get(place)
        if verdicts is None:
            return self.filtered.status_at(place, int(self.rows[i]))
        return verdicts.status_of(int(verdicts.codes[i])).by(self.filtered.plugin_at(place))
