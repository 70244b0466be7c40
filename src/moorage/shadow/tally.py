"""ShadowTally: all comparisons of a run as figures, metrics and plain data.

Memory is bounded: times are those of the latest pods, and of each verdict and reason the latest
examples are kept.
"""

from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from prometheus_client.core import GaugeMetricFamily, Metric

from moorage.metrics import tallies
from moorage.shadow.comparison import REASONS, VERDICTS, WORSE, PodComparison

MOST_TIMES = 10_000
MOST_EXAMPLES = 20
OURS, OTHERS = SIDES = ("moorage", "other")
STATES = ("waiting", "decided", "rejected")


class PendingCounts(NamedTuple):
    """Pending pods by our state and the other scheduler's: waiting, decided or rejected."""

    counts: Counter[tuple[str, str]]

    @property
    def total(self) -> int:
        return sum(self.counts.values())


class ShadowTally:
    """See the module."""

    def __init__(self, pending: Callable[[], PendingCounts]) -> None:
        self.pending = pending
        self.counts: Counter[tuple[str, str]] = Counter()
        # Pods whose node is ours, or one of the best in the cluster as it was at the binding.
        self.agreed = 0
        self.late = 0
        self.gone = 0
        # How often each plugin was the one that favoured our node, if the other's was worse.
        self.plugins: Counter[str] = Counter()
        self.examples: dict[tuple[str, str], deque[PodComparison]] = {}
        self._times: dict[str, deque[float]] = {side: deque(maxlen=MOST_TIMES) for side in SIDES}
        self._durations = tallies.Histogram(
            "moorage_shadow_decision_duration_seconds",
            "Time from the first observation of a pod to the decision, and to the binding by the "
            "other scheduler.",
            tallies.exponential(0.001, 2, 18),
            ("scheduler",),
        )

    def add(self, found: PodComparison) -> None:
        """Count a comparison."""
        kind = (found.verdict, found.reason)
        self.counts[kind] += 1
        self.agreed += found.is_agreed
        self.late += found.is_late
        if found.verdict == WORSE and (plugin := found.deciding_plugin):
            self.plugins[plugin] += 1
        if found.reason:
            self.examples.setdefault(kind, deque(maxlen=MOST_EXAMPLES)).append(found)
        for side, seconds in ((OURS, found.seconds), (OTHERS, found.other_seconds)):
            if seconds is not None:
                self._times[side].append(seconds)
                self._durations.observe(seconds, side)

    @property
    def total(self) -> int:
        """The number of pods compared."""
        return sum(self.counts.values())

    def of_verdict(self, verdict: str) -> int:
        """The number of pods with a verdict."""
        return sum(count for (each, _), count in self.counts.items() if each == verdict)

    def kinds(self) -> Iterator[tuple[str, str, int]]:
        """Verdict, reason and number of pods, in a fixed order."""
        for verdict in VERDICTS:
            for reason in ("", *REASONS):
                if count := self.counts[verdict, reason]:
                    yield verdict, reason, count

    def times(self, side: str) -> tuple[float, float, float] | None:
        """The 50th, 90th and 99th percentile of a side's times in seconds; None without any."""
        ordered = sorted(self._times[side])
        if not ordered:
            return None
        p50, p90, p99 = (percentile(ordered, percent) for percent in (50, 90, 99))
        return p50, p90, p99

    def to_dict(self) -> dict[str, Any]:
        """All figures as plain data."""
        return {
            "compared": self.total,
            "agreed": self.agreed,
            "verdicts": {verdict: self.of_verdict(verdict) for verdict in VERDICTS},
            "reasons": [
                {"verdict": verdict, "reason": reason, "pods": count}
                for verdict, reason, count in self.kinds()
                if reason
            ],
            "decidedAtBinding": self.late,
            "goneBeforeBinding": self.gone,
            "pending": [
                {"moorage": ours, "other": other, "pods": count}
                for (ours, other), count in sorted(self.pending().counts.items())
            ],
            "worseBy": dict(self.plugins.most_common()),
            "seconds": {
                side: dict(zip(("p50", "p90", "p99"), times, strict=True))
                for side in SIDES
                if (times := self.times(side)) is not None
            },
            "examples": [each.to_dict() for some in self.examples.values() for each in some],
        }

    def metrics(self) -> Iterator[Metric]:
        """The figures for Prometheus."""
        pods = tallies.CounterMetric(
            "moorage_shadow_pods_total",
            "Pods bound by the other scheduler, by how its node compares with ours and why.",
            ("verdict", "reason"),
            {kind: float(count) for kind, count in self.counts.items()},
        )
        yield pods.family()
        yield self._durations.family()
        agreed = tallies.CounterMetric(
            "moorage_shadow_agreed_pods_total",
            "Pods whose node is ours, or one of our best in the cluster as it was at the binding.",
            counts={(): float(self.agreed)},
        )
        yield agreed.family()
        late = tallies.CounterMetric(
            "moorage_shadow_late_decisions_total",
            "Pods whose binding was observed before we had decided.",
            counts={(): float(self.late)},
        )
        yield late.family()
        waiting = GaugeMetricFamily(
            "moorage_shadow_pending_pods",
            "Pending pods by our state and by the state that the other scheduler reports.",
            labels=SIDES,
        )
        for states, count in self.pending().counts.items():
            waiting.add_metric(states, count)
        yield waiting


def percentile(ordered: Sequence[float], percent: int) -> float:
    """The nearest rank in a sorted sequence."""
    return ordered[min(len(ordered) * percent // 100, len(ordered) - 1)]
