"""What the plugins of one cycle said together: PreFiltered, Filtered, Scored."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from moorage.framework import calls
from moorage.framework.leaders import Leaders
from moorage.framework.status import Codes, Mask, Scores, Status, error, unresolvable

if TYPE_CHECKING:
    from moorage.framework.sheet import Sheet

Places = NDArray[np.int16]

# In `first`: the place of the first plugin that refuses a row, or one of these.
FITS = 32_000
NO_NODE = -1


@dataclass(slots=True)
class PreFiltered:
    """What the pre_filter plugins said together."""

    rejected: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: list[str] = field(default_factory=list)
    skipped: set[str] = field(default_factory=set)

    def narrow(self, plugin: str, names: frozenset[str]) -> None:
        """Look only at nodes that this plugin names, too."""
        self.narrowed_by.append(plugin)
        self.names = names if self.names is None else self.names & names
        if not self.names:
            by = self.narrowed_by
            reason = (
                f"node(s) didn't satisfy plugin {plugin}"
                if len(by) == 1
                else f"node(s) didn't satisfy plugin(s) [{' '.join(sorted(by))}] simultaneously"
            )
            self.rejected = unresolvable(reason)

    @property
    def absent(self) -> Status:
        """The status of nodes that narrowing left out."""
        by = " ".join(sorted(self.narrowed_by))
        return unresolvable(f"node(s) didn't satisfy plugin(s) [{by}]")


@dataclass(slots=True)
class Filtered:
    """Which rows fit, and the first plugin that refuses each of the others."""

    fits: Mask
    first: Places
    rejected_by: list[int]
    _sheet: "Sheet"
    _volatile: dict[int, tuple[Any, Codes, calls.Book | None]]

    def status(self, row: int) -> Status:
        """Why a row does not fit."""
        return self.status_at(int(self.first[row]), row)

    def plugin_at(self, place: int) -> str:
        """The name of the filter at a place."""
        name: str = self._sheet.profile.filters[place].name
        return name

    def is_refused(self, row: int) -> bool:
        """Whether somebody refuses a row."""
        return int(self.first[row]) not in (FITS, NO_NODE)

    @property
    def is_kept(self) -> bool:
        """Whether verdicts were only brought up to date where something changed."""
        return not self._volatile

    def status_at(self, place: int, row: int) -> Status:
        """What the filter at a place says of a row that it refuses."""
        if place in self._volatile:
            status_of, codes, _ = self._volatile[place]
            status: Status = status_of(int(codes[row]))
            return status.by(self._sheet.profile.filters[place].name)
        memo = self._sheet.memo_at(place)
        return memo.status(int(memo.codes[row]))

    def histogram(self, rows: NDArray[np.intp]) -> list[tuple[Status, int]]:
        """The distinct statuses of some refused rows, with how many rows have each."""
        counted: list[tuple[Status, int]] = []
        places = self.first[rows]
        for place in np.unique(places):
            if place in (FITS, NO_NODE):
                continue
            chosen = rows[places == place]
            codes = self.codes_at(int(place))[chosen]
            distinct, at, counts = np.unique(codes, return_index=True, return_counts=True)
            counted += [
                (self.status(int(chosen[i])), int(n))
                for _, i, n in zip(distinct, at, counts, strict=True)
            ]
        return counted

    def codes_at(self, place: int) -> Codes:
        """What the filter at a place says of every row; 0 fits."""
        if place in self._volatile:
            return self._volatile[place][1]
        return self._sheet.memo_at(place).codes

    @property
    def has_erred(self) -> bool:
        """Whether any verdict stands for trouble."""
        books = (book for _, _, book in self._volatile.values() if book is not None)
        return self._sheet.has_erred or any(book.erred for book in books)

    def failure(self, rows: NDArray[np.intp]) -> Status | None:
        """The first error among some rows, if a plugin raised where no other refused."""
        for status, _ in self.histogram(rows):
            if not status.is_rejected:
                text = f'running "{status.plugin}" filter plugin: {status.message}'
                return error(text, status.plugin)
        return None


@dataclass(slots=True)
class Scored:
    """Weighted totals of the feasible rows (-1 elsewhere) and what each plugin gave."""

    totals: Scores
    parts: list[tuple[str, int, Scores]]
    leaders: Leaders = field(default_factory=Leaders)

    @property
    def best(self) -> Sequence[int] | NDArray[np.intp]:
        """The rows that share the highest total, ascending."""
        return self.leaders.rows(self.totals)

    def of(self, row: int) -> dict[str, int]:
        """A row's weighted score per plugin."""
        return {name: weight * scores.item(row) for name, weight, scores in self.parts}
