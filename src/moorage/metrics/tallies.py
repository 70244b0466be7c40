"""Counters and histograms as plain numbers; converted to Prometheus' form when they are read.

Values are added for every pod and read rarely: so a counter is a dict, and a histogram a list of
values per set of labels, which are sorted into buckets a thousand at a time.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from itertools import accumulate

import numpy as np
from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]

# The number of unsorted values in a cell.
FRESH = 1000


def exponential(start: float, factor: float, count: int) -> tuple[float, ...]:
    """Bucket bounds, each the one before times a factor; multiplied step by step, as in Go."""
    bounds = []
    for _ in range(count):
        bounds.append(start)
        start *= factor
    return tuple(bounds)


@dataclass(slots=True, eq=False)
class CounterMetric:
    """A number of events."""

    name: str
    help: str
    labels: Labels = ()
    counts: dict[Labels, float] = field(default_factory=dict)

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
    """The values of one set of labels; frequent callers keep a reference to its `observe`."""

    __slots__ = ("_bounds", "_counts", "_total", "fresh", "observe")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0
        self.fresh: list[float] = []
        # Adds one value. The caller has to `fold` from time to time.
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
        """Sort the fresh values into buckets."""
        if self.fresh:
            places = np.searchsorted(self._bounds, self.fresh)
            for place, count in enumerate(np.bincount(places).tolist()):
                self._counts[place] += count
            self._total += sum(self.fresh)
            self.fresh.clear()

    def add_up(self, cells: "Iterable[Cell]") -> None:
        """Replace the content by the sum of other cells."""
        self.reset()
        for cell in cells:
            self._counts = [mine + its for mine, its in zip(self._counts, cell.counts, strict=True)]
            self._total += cell.total

    def reset(self) -> None:
        self.fresh.clear()
        self._counts = [0] * len(self._counts)
        self._total = 0.0


@dataclass(slots=True, eq=False)
class Histogram:
    """A distribution of values."""

    name: str
    help: str
    bounds: tuple[float, ...]
    labels: Labels = ()
    _cells: dict[Labels, Cell] = field(default_factory=dict)

    def observe(self, value: float, *labels: str) -> None:
        """Add one value."""
        cell = self._cells.get(labels) or self.cell(*labels)
        cell.observe(value)
        if len(cell.fresh) >= FRESH:
            cell.fold()

    def cell(self, *labels: str) -> Cell:
        """The cell of a set of labels."""
        cell = self._cells.get(labels)
        if cell is None:
            cell = self._cells[labels] = Cell(self.bounds)
        return cell

    def cells(self) -> Iterable[Cell]:
        """The cells of all sets of labels so far."""
        return self._cells.values()

    def fold(self) -> None:
        """Sort the fresh values into buckets."""
        for cell in self._cells.values():
            cell.fold()

    def reset(self) -> None:
        for cell in self._cells.values():
            cell.reset()

    def family(self) -> Metric:
        """Everything observed so far."""
        family = HistogramMetricFamily(self.name, self.help, labels=self.labels)
        texts = [*map(floatToGoString, self.bounds), "+Inf"]
        for labels, cell in self._cells.items():
            below = map(float, accumulate(cell.counts))
            family.add_metric(labels, list(zip(texts, below, strict=True)), cell.total)
        return family


Tally = CounterMetric | Histogram
