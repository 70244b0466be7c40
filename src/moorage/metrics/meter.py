"""Meter: all metrics of one scheduler, as the text that Prometheus reads."""

from collections.abc import Callable, Iterator
from functools import cache

from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.core import Metric

from moorage.api.meta import KubeObject
from moorage.core.observations import Added, Deleted, Listed, Observation, Updated
from moorage.core.scheduler import Scheduler
from moorage.metrics import gauges
from moorage.metrics.facts import Clock, MeteredJournal, Tracks
from moorage.metrics.families import Families
from moorage.metrics.timing import Timing

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

# What takes longer than any request may is a watch, and says nothing of latency.
LONGEST_REQUEST_SECONDS = 120.0


class Meter:
    """See the module. `journal` has to be the scheduler's own; `attach` it before the first pod."""

    def __init__(self, clock: Clock, chance: Callable[[], float], journal_limit: int) -> None:
        self.families = Families()
        self.journal = MeteredJournal(journal_limit)
        # The name of the lease and whether we hold it; None if there is none.
        self.election: Callable[[], tuple[str, bool] | None] = lambda: None
        self.host = ""
        self._clock = clock
        self._chance = chance
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

        self.journal.tracks = Tracks(self.families, self._clock, profile_of)
        Timing(self.families, self._clock, self._chance).attach(scheduler)

    # What the shell tells

    def called(self, verb: str, seconds: float) -> None:
        """One of the core's verbs was called."""
        self.families.verb_duration.observe(seconds, verb)

    def observed(self, observation: Observation, seconds: float) -> None:
        """The core was told something."""
        self.families.verb_duration.observe(seconds, "observe")
        self.families.event_handling.observe(seconds, event_label(observation))

    def requested(self, method: str, code: int, seconds: float) -> None:
        """A request to the API server came to an end; code 0 if there was no answer."""
        self.families.requests.add(str(code) if code else "<error>", method, self.host)
        if seconds <= LONGEST_REQUEST_SECONDS:
            self.families.request_duration.observe(seconds, method, self.host)

    # What others ask

    def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        return generate_latest(self._registry)

    def reset(self) -> None:
        """Count from nothing again."""
        for tally in self.families:
            tally.reset()

    def collect(self) -> Iterator[Metric]:
        """For the registry."""
        for tally in self.families:
            yield tally.family()
        if self._scheduler is not None:
            yield from gauges.read(self._scheduler)
        elected = self.election()
        if elected is not None:
            name, leads = elected
            yield gauges.election(name, leads=leads)

    def describe(self) -> list[Metric]:
        """For the registry: nothing to check names against before the scheduler is there."""
        return []


def event_label(observation: Observation) -> str:
    """What was observed, as kube-scheduler labels it."""
    if isinstance(observation, Listed):
        return f"{observation.kind.__name__}List"
    obj = observation.obj
    return _label(type(observation), type(obj), is_assigned=bool(getattr(obj, "node_name", "")))


@cache
def _label(observed: type[Observation], kind: type[KubeObject], *, is_assigned: bool) -> str:
    name = kind.__name__
    if name == "Pod":
        name = "AssignedPod" if is_assigned else "UnschedulablePod"
    return f"{name}{_CHANGES[observed]}"


_CHANGES: dict[type[Observation], str] = {Added: "Add", Updated: "Update", Deleted: "Delete"}
