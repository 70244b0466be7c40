"""Counters and histograms as plain numbers; they are put into Prometheus' form when asked for.

Adding to one is on the way of every pod, reading them is not: so a counter is a dict, and a
histogram a list per set of labels, of values that are sorted into buckets by the thousand.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]

# So many values wait in a cell before they are sorted.
FRESH = 1000


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds, each the one before times a factor; multiplied step by step, as in Go."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


class Counter:
    """How often something happened."""

    def __init__(self, name: str, help_: str, labels: Sequence[str] = ()) -> None:
        self.name = name
        self.help = help_
        self.labels = tuple(labels)
        self.counts: dict[Labels, float] = {}

    def add(self, *labels: str, by: float = 1) -> None:
        """Count it."""
        self.counts[labels] = self.counts.get(labels, 0) + by

    def reset(self) -> None:
        self.counts.clear()

    def family(self) -> Metric:
        """Everything counted so far."""
        family = CounterMetricFamily(self.name, self.help, labels=self.labels)
        for labels, count in self.counts.items():
            family.add_metric(labels, count)
        if not self.labels and not self.counts:
            family.add_metric((), 0)
        return family


class Cell:
    """The values of one set of labels; whoever adds often keeps its `observe` at hand."""

    __slots__ = ("_bounds", "_counts", "_total", "fresh", "observe")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0
        self.fresh: list[float] = []
        # Takes in one value. That is all there is to it, so somebody has to `fold` in the end.
        self.observe: Callable[[float], None] = self.fresh.append

    @property
    def counts(self) -> list[int]:
        """How many values are in each bucket; the last one has no bound."""
        self.fold()
        return self._counts

    @property
    def total(self) -> float:
        """The sum of all values."""
        self.fold()
        return self._total

    def fold(self) -> None:
        """Sort what has come into the buckets."""
        if self.fresh:
            places = np.searchsorted(self._bounds, self.fresh)
            for place, count in enumerate(np.bincount(places).tolist()):
                self._counts[place] += count
            self._total += sum(self.fresh)
            self.fresh.clear()

    def add_up(self, cells: "Iterable[Cell]") -> None:
        """Hold what these hold together, and nothing else."""
        self.reset()
        for cell in cells:
            self._counts = [mine + its for mine, its in zip(self._counts, cell.counts, strict=True)]
            self._total += cell.total

    def reset(self) -> None:
        self.fresh.clear()
        self._counts = [0] * len(self._counts)
        self._total = 0.0


class Histogram:
    """How large something was, how often."""

    def __init__(
        self, name: str, help_: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        self.name = name
        self.help = help_
        self.labels = tuple(labels)
        self.bounds = tuple(bounds)
        self._texts = [*map(floatToGoString, bounds), "+Inf"]
        self._cells: dict[Labels, Cell] = {}

    def observe(self, value: float, *labels: str) -> None:
        """Take in one value."""
        cell = self._cells.get(labels) or self.cell(*labels)
        cell.observe(value)
        if len(cell.fresh) >= FRESH:
            cell.fold()

    def cell(self, *labels: str) -> Cell:
        """Where values with these labels go."""
        cell = self._cells.get(labels)
        if cell is None:
            cell = self._cells[labels] = Cell(self.bounds)
        return cell

    def cells(self) -> Iterable[Cell]:
        """Those of all sets of labels that came up."""
        return self._cells.values()

    def fold(self) -> None:
        """Sort what has come into the buckets."""
        for cell in self._cells.values():
            cell.fold()

    def reset(self) -> None:
        for cell in self._cells.values():
            cell.reset()

    def family(self) -> Metric:
        """Everything observed so far."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        for labels, cell in self._cells.items():
            family.add_metric(labels, list(self._cumulative(cell.counts)), cell.total)
        return family

    def _cumulative(self, counts: list[int]) -> Iterator[tuple[str, float]]:
        below = 0
        for text, count in zip(self._texts, counts, strict=True):
            below += count
            yield text, float(below)


Tally = Counter | Histogram
