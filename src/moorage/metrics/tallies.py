"""Counters and histograms as plain numbers; they are put into Prometheus' form when asked for.

Adding to one is on the way of every pod, reading them is not: so a counter is a dict, a histogram
a list per set of labels.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.utils import floatToGoString

Labels = tuple[str, ...]


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
    """The values of one set of labels; whoever adds often keeps it at hand."""

    __slots__ = ("_bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float) -> None:
        """Take in one value."""
        self.counts[bisect_left(self._bounds, value)] += 1
        self.total += value

    def reset(self) -> None:
        self.counts = [0] * len(self.counts)
        self.total = 0.0


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
        (self._cells.get(labels) or self.cell(*labels)).observe(value)

    def cell(self, *labels: str) -> Cell:
        """Where values with these labels go."""
        cell = self._cells.get(labels)
        if cell is None:
            cell = self._cells[labels] = Cell(self.bounds)
        return cell

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
