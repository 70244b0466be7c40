"""What the plugins of one cycle said together: PreFiltered, Filtered, Scored."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from moorage.framework.leaders import Leaders
from moorage.framework.status import Codes, Mask, Scores, SparseScores, Status, error, unresolvable

if TYPE_CHECKING:
    from moorage.framework.fitting import Fitting

Places = NDArray[np.int16]

# A score plugin's name, its weight, and the scores that it gave: one number if all are the same.
Part = tuple[str, int, int | Scores | SparseScores]

# Filters with their places.
Asked = tuple[tuple[int, Any], ...]

# In `first`: the place of the first plugin that refuses a row, or one of these.
FITS = 32_000
NO_NODE = -1


class PreFiltered(Struct, eq=False):
    """What the pre_filter plugins said together; kept for other pods, so it stays as it is."""

    rejected: Status | None = None
    names: frozenset[str] | None = None
    narrowed_by: list[str] = []
    skipped: set[str] = set()
    # Filters that have to be asked in this cycle; those that only have to be asked for news.
    volatile: Asked = ()
    followed: Asked = ()

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


class Volatile(NamedTuple):
    """What a filter said in this cycle only."""

    place: int
    codes: Codes
    status_of: Callable[[int], Status]
    has_erred: bool
    # How many rows were left to choose from.
    left: int


class Filtered:
    """Which rows fit, and the first plugin that refuses each of the others."""

    __slots__ = ("_filters", "_first", "_fitting", "_rejected_by", "_volatile", "fits")

    def __init__(
        self, filters: Sequence[Any], fitting: "Fitting", fits: Mask, volatile: Sequence[Volatile]
    ) -> None:
        self._filters = filters
        self._fitting = fitting
        self._volatile = volatile
        self.fits = fits
        self._first: Places | None = None
        self._rejected_by: list[int] | None = None

    @property
    def count(self) -> int:
        """How many rows fit."""
        return self._volatile[-1].left if self._volatile else self._fitting.count

    @property
    def first(self) -> Places:
        """The place of the first filter that refuses a row; put together if somebody asks."""
        if not self._volatile:
            return self._fitting.first
        if self._first is None:
            self._first = first_refusals(self._fitting.first, self._volatile)
        return self._first

    @property
    def rejected_by(self) -> list[int]:
        """How many rows each place refuses."""
        kept = self._fitting.rejected_by
        if not self._volatile:
            return kept
        if self._rejected_by is None:
            self._rejected_by = tally(self.first) if any(kept) else self._counted()
        return self._rejected_by

    def _counted(self) -> list[int]:
        """The same where no other filter refuses any row."""
        counted = [0] * (self._volatile[-1].place + 1)
        before = self._fitting.count
        for each in self._volatile:
            counted[each.place] = before - each.left
            before = each.left
        return counted

    def status(self, row: int) -> Status:
        """Why a row does not fit."""
        return self.status_at(int(self.first[row]), row)

    def plugin_at(self, place: int) -> str:
        """The name of the filter at a place."""
        name: str = self._filters[place].name
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
        for each in self._volatile:
            if each.place == place:
                return each.status_of(int(each.codes[row])).by(self.plugin_at(place))
        memo = self._fitting.memo_at[place]
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
        for each in self._volatile:
            if each.place == place:
                return each.codes
        return self._fitting.memo_at[place].codes

    @property
    def has_erred(self) -> bool:
        """Whether any verdict stands for trouble."""
        if self._fitting.has_erred or not self._volatile:
            return self._fitting.has_erred
        return any(each.has_erred for each in self._volatile)

    def failure(self, rows: NDArray[np.intp]) -> Status | None:
        """The first error among some rows, if a plugin raised where no other refused."""
        for status, _ in self.histogram(rows):
            if not status.is_rejected:
                text = f'running "{status.plugin}" filter plugin: {status.message}'
                return error(text, status.plugin)
        return None


def first_refusals(kept: Places, volatile: Sequence[Volatile]) -> Places:
    """The first place that refuses each row, of those that are kept and these, in order."""
    first = kept.copy()
    for each in volatile:
        # Rows without a node are below every place.
        first[(each.codes != 0) & (first > each.place)] = each.place
    return first


def tally(first: Places) -> list[int]:
    """How many rows each place refuses."""
    refused = first[(first != FITS) & (first != NO_NODE)]
    return np.bincount(refused).tolist() if len(refused) else []


class Parts:
    """What each score plugin gave, in the order in which people see them."""

    __slots__ = ("_beside", "_given", "_same", "_varying", "notes")

    def __init__(self, parts: Sequence[Part], same: dict[str, int] | None = None) -> None:
        self._given = parts
        # What somebody made of single rows; dropped when a row gets other scores.
        self.notes: dict[int, Any] = {}
        # The scores that all rows share, weighted, and a place for each of the others.
        if same is None:
            same = {n: w * s if isinstance(s, int) else 0 for n, w, s in parts}
        self._same = same
        self._varying = [(n, w, s) for n, w, s in parts if not isinstance(s, int)]
        # The same beside what others give, by their names.
        self._beside: dict[tuple[str, ...], dict[str, int]] = {}

    @property
    def all(self) -> list[Part]:
        """The parts, one by one."""
        order = list(self._same)
        return sorted(self._given, key=lambda part: order.index(part[0]))

    def beside(self, others: Sequence[Part], places: Mapping[str, int]) -> "Parts":
        """These parts and others, which differ between rows, in the order of their places."""
        names = tuple([part[0] for part in others])
        same = self._beside.get(names)
        if same is None:
            order = sorted([*self._same, *names], key=places.__getitem__)
            same = self._beside[names] = {name: self._same.get(name, 0) for name in order}
        return Parts([*self._given, *others], same)

    def of(self, row: int) -> dict[str, int]:
        """A row's weighted score per plugin."""
        scores = self._same.copy()
        for name, weight, given in self._varying:
            scores[name] = weight * given.item(row)
        return scores


class Scored(Struct, gc=False):
    """Weighted totals of the feasible rows (-1 elsewhere) and what each plugin gave."""

    totals: Scores
    parts: Parts
    leaders: Leaders

    @property
    def best(self) -> Sequence[int] | NDArray[np.intp]:
        """The rows that share the highest total, ascending."""
        return self.leaders.rows(self.totals)

    def of(self, row: int) -> dict[str, int]:
        """A row's weighted score per plugin."""
        return self.parts.of(row)
