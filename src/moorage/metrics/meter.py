"""Meter: all metrics of one scheduler, as the text that Prometheus reads."""

from collections.abc import Callable, Iterable, Iterator

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric

from moorage.api.pod import Pod
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.metrics import gauges
from moorage.metrics.facts import Clock, MeteredJournal, Tracks
from moorage.metrics.families import Families
from moorage.metrics.tallies import FRESH, Cell, Histogram
from moorage.metrics.timing import ProfileTiming

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# A request that takes longer is a watch, whose duration is no latency.
LONGEST_REQUEST_SECONDS = 120.0


class Meter:
    """See the module. `journal` has to be the scheduler's; call `attach` before the first pod."""

    def __init__(self, clock: Clock, chance: Callable[[], float], journal_limit: int) -> None:
        self.families = Families()
        self.journal = MeteredJournal(journal_limit)
        # The name of the lease and whether we hold it; None if there is none.
        self.election: Callable[[], tuple[str, bool] | None] = lambda: None
        self.host = ""
        # Metrics of other parts, read on request.
        self.sources: list[Callable[[], Iterable[Metric]]] = []
        self._clock = clock
        self._chance = chance
        self._verbs: dict[str, Cell] = {}
        self._handled: dict[tuple[type, type, bool], Cell] = {}
        self._timings: list[ProfileTiming] = []
        self._scheduler: Scheduler | None = None
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def attach(self, scheduler: Scheduler) -> None:
        """Measure this scheduler."""
        self._scheduler = scheduler
        profiles = list(scheduler.profiles)

        def profile_of(key: str) -> str:
            known = scheduler.known_pod(key) if len(profiles) > 1 else None
            return profiles[0] if known is None else known.spec.scheduler_name

        self.tracks = Tracks(self.families, self._clock, profile_of)
        self.journal.count_with(self.tracks)
        for profile in scheduler.profiles.values():
            timing = ProfileTiming(profile, self.families, self._clock, self._chance)
            profile.measure(timing)
            self._timings.append(timing)

    # Called by the shell

    def called(self, verb: str, seconds: float) -> None:
        """One of the core's verbs was called."""
        cell = self._verbs.get(verb)
        if cell is None:
            cell = self._verbs[verb] = self.families.verb_duration.cell(verb)
        cell.observe(seconds)
        if len(cell.fresh) >= FRESH:
            self._fold()

    def observed(self, observation: Observation, seconds: float) -> None:
        """An observation was passed to the core."""
        key = _label_key(observation)
        cell = self._handled.get(key)
        if cell is None:
            cell = self._handled[key] = self.families.event_handling.cell(event_label(observation))
        cell.observe(seconds)
        if len(cell.fresh) >= FRESH:
            self._fold()

    def _fold(self) -> None:
        """Sort fresh values into buckets; called after verbs, as values arise only there."""
        for tally in self.families:
            if isinstance(tally, Histogram):
                tally.fold()

    def requested(self, method: str, code: int, seconds: float) -> None:
        """A request to the API server ended; code 0 without a response."""
        self.families.requests.add(str(code) if code else "<error>", method, self.host)
        if seconds <= LONGEST_REQUEST_SECONDS:
            self.families.request_duration.observe(seconds, method, self.host)

    # Called by the server

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def reset(self) -> None:
        """Count from nothing again."""
        for timing in self._timings:
            timing.count_evaluations()
        for tally in self.families:
            tally.reset()

    def collect(self) -> Iterator[Metric]:
        """For the registry."""
        for timing in self._timings:
            timing.count_evaluations()
        # Calls of `observe` were counted by event already.
        handled = self.families.event_handling.cells()
        self.families.verb_duration.cell("observe").add_up(handled)
        for tally in self.families:
            yield tally.family()
        if self._scheduler is not None:
            yield from gauges.read(self._scheduler)
        elected = self.election()
        if elected is not None:
            name, leads = elected
            yield gauges.election(name, leads=leads)
        for source in self.sources:
            yield from source()

    def describe(self) -> list[Metric]:
        """For the registry: no metrics to check names against before a scheduler is attached."""
        return []


def event_label(observation: Observation) -> str:
    """The label of an observation in kube-scheduler's metrics."""
    if isinstance(observation, Listed):
        return f"{observation.kind.__name__}List"
    obj = observation.obj
    name = type(obj).__name__
    if isinstance(obj, Pod):
        name = "AssignedPod" if obj.node_name else "UnschedulablePod"
    return f"{name}{_CHANGES[type(observation)]}"


def _label_key(observation: Observation) -> tuple[type, type, bool]:
    """A key that determines the label of an observation."""
    if isinstance(observation, Listed):
        return Listed, observation.kind, False
    obj = observation.obj
    return type(observation), type(obj), isinstance(obj, Pod) and bool(obj.spec.node_name)


_CHANGES: dict[type[Observation], str] = {Added: "Add", Updated: "Update", Deleted: "Delete"}
